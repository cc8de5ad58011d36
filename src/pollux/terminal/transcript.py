"""A transcript on a terminal: blocks as Rich renderables, one by one, so that a long session starts at once.

Everything is told by characters first and by colour second, so it reads the same in a pipe. All text of the session
goes through `clean` on its way in and through `safe` on its way out: Markdown has ways of its own to write a character.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, tzinfo
from itertools import dropwhile, islice
from typing import ClassVar, TypeAlias, assert_never

from markdown_it import MarkdownIt
from rich import box, markdown
from rich.cells import cell_len, chop_cells
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.rule import Rule
from rich.segment import Segment
from rich.style import Style
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

from pollux.model import Attachment, Cell, Fate, Kind, Origin, ScreenDisplay, Session, Tokens
from pollux.terminal.text import clean, count, encodable, lasted, safe, screen_text, size
from pollux.views.tools import (
    Agent,
    Body,
    Change,
    Data,
    Diff,
    Excerpt,
    Files,
    Input,
    Matches,
    Output,
    Questions,
    Screen,
    Todos,
)
from pollux.views.transcript import (
    FATES,
    LABELS,
    Answer,
    Attached,
    Block,
    LeftOut,
    Notice,
    Other,
    Prompt,
    Synthetic,
    Thinking,
    Tool,
    Usage,
)

PROSE = 100
"""Columns that prose fills at most: longer lines are hard to read."""
LONG_TEXT = 50_000
"""Characters above which words are not laid out but only broken at the edge: it would take seconds."""
LONG_LINE = 2_000
LONG_CODE = 20_000

# What we (and Rich, for its lists and tables) write ourselves, and what stands for it where there is only ASCII.
_MARKS = str.maketrans("▌│┊✦✻✓✔✗⊘▶○⑂⋯…▣•·→─━", "||:*~+*x/>oY~~#*->--")

_STATUS = {"success": ("✓", "green"), "error": ("✗", "red"), "cancelled": ("⊘", "yellow"), "pending": ("○", "yellow")}
_TODO = {
    "completed": ("✔", "green"),
    "in_progress": ("▶", "bold yellow"),
    "pending": ("○", ""),
    "cancelled": ("✗", "dim"),
    "blocked": ("!", "red"),
}
_ACTIVITY = {"completed": ("✓", "dim"), "error": ("✗", "red"), "cancelled": ("⊘", "dim")}
_NOTICE = {Kind.WARNING: ("!", "yellow"), Kind.ERROR: ("✗", "red"), Kind.UNKNOWN: ("?", "yellow")}
_CHANGE = {
    Change.ADD: ("+", "green"),
    Change.DELETE: ("-", "red"),
    Change.CONTEXT: (" ", "dim"),
    Change.HUNK: ("⋯", "dim cyan"),
}

_Row: TypeAlias = "tuple[Text | str, Text | str, str]"
"""What stands before a line, the line, its style."""


def header(session: Session, *, zone: tzinfo | None = None, encoding: str = "utf-8") -> RenderableType:
    """Say what a session is before its transcript begins."""
    page = _Page(zone, encoding)
    tokens = sum((call.tokens for call in session.calls), Tokens())
    lines = [
        Text(page.line(session.title or session.first_prompt or session.id), "bold"),
        Text(_joined(page.line(session.project.name), page.line(session.project.path or "")), "cyan"),
        Text(_joined(_period(session, zone), page.line(", ".join(session.models)))),
        Text(_counts(session)),
        Text(_tokens(tokens) if session.calls else ""),
        Text(_joined(page.line(session.id), "" if session.kind == "main" else page.line(session.kind)), "dim"),
    ]
    if session.problems:
        lines.append(Text(f"! {_counted(len(session.problems), 'problem')} while reading its files", "yellow"))
    return _Safe(Group(*(line for line in lines if line.plain), Rule(style="dim")), encoding)


def transcript(
    blocks: Iterable[Block], *, zone: tzinfo | None = None, encoding: str = "utf-8"
) -> Iterator[RenderableType]:
    """Give renderables to print one after the other; times are local unless a zone is given."""
    page = _Page(zone, encoding)
    before: Block | None = None
    day: date | None = None
    for block in blocks:
        if before is not None and not (isinstance(before, Tool) and isinstance(block, Tool | Usage)):
            yield Text()
        today = page.day(block)
        if day and today and today != day:
            yield _Safe(Group(Text(f"─── {today:%A}, {today.day} {today:%B %Y} ───", "dim"), Text()), encoding)
        day = today or day
        is_flagged = block.fate is not Fate.ACTIVE and not isinstance(block, LeftOut)
        if is_flagged and (before is None or before.fate is not block.fate):
            yield _Safe(Text(f"⑂ {FATES[block.fate]}", "yellow"), encoding)
        for part in _block(block, page):
            yield _Safe(_Gutter(part, "┊ ", style="yellow") if is_flagged else part, encoding)
        before = block


@dataclass(frozen=True, slots=True)
class _Page:
    """What the renderers below need to know of the terminal."""

    zone: tzinfo | None
    encoding: str

    @property
    def is_unicode(self) -> bool:
        return self.encoding.lower().startswith("utf")

    def text(self, text: str) -> str:
        return encodable(clean(text), self.encoding)

    def line(self, text: str) -> str:
        return self.text(" ".join(text.split()))

    def clock(self, at: datetime | None) -> str:
        return f"{at.astimezone(self.zone):%H:%M}" if at else ""

    def day(self, block: Block) -> date | None:
        at = None if isinstance(block, LeftOut) else block.at
        return at.astimezone(self.zone).date() if at else None


def _block(block: Block, page: _Page) -> Iterator[RenderableType]:
    match block:
        case Prompt():
            yield from _prompt(block, page)
        case Answer(text=text):
            yield from _marked(_answer(page.text(text), page), Text("✦ ", "magenta"), most=PROSE)
        case Thinking(subject=subject, text=text):
            words = page.text("\n".join(filter(None, (subject, text))))
            yield from _marked(_prose(words, "dim italic"), Text("✻ ", "dim"), most=PROSE)
        case Tool():
            yield from _tool(block, page)
        case Notice(kind=kind, text=text):
            mark, style = _NOTICE.get(kind, ("•", "cyan"))
            rows = [*_excerpt(text, page, "red" if kind is Kind.ERROR else "")]
            yield from _marked(_rows(rows or [("", "(no words)", "dim")]), Text(f"{mark} ", style))
        case Synthetic():
            yield from _synthetic(block, page)
        case Attached(attachment=attachment):
            yield _Gutter(_attachment(attachment, page), "  ")
        case Other(text=text):
            yield Text("? a part that Pollux does not know", "yellow")
            yield from _rows(_excerpt(text, page, "dim"), Text("  │ ", "dim"))
        case Usage(model=model, tokens=tokens):
            yield _Gutter(Text(_joined(page.line(model or ""), _tokens(tokens)), "dim"), "  ")
        case LeftOut(words=words, fate=fate):
            yield Text(f"{'⋯' if fate is Fate.COMPRESSED else '⑂'} {words}", "yellow")
        case _:
            assert_never(block)


def _prompt(block: Prompt, page: _Page) -> Iterator[RenderableType]:
    def parts() -> Iterator[RenderableType]:
        if block.origin is not Origin.HUMAN:
            yield Text(LABELS[block.origin], "dim")
        if block.text.hidden:
            yield from _rows(_excerpt(block.text, page))
        elif block.text.head.strip():
            yield from _prose(page.text(block.text.head))
        elif not block.attachments:
            yield Text("(no words)", "dim")
        yield from (_attachment(attachment, page) for attachment in block.attachments)

    colour = "bold cyan" if block.origin is Origin.HUMAN else "bold magenta"
    for number, part in enumerate(parts()):
        body = part if number else _Aside(part, page.clock(block.at))
        yield _Gutter(body, "▌ ", style=colour, most=PROSE)


def _tool(block: Tool, page: _Page) -> Iterator[RenderableType]:
    mark, colour = _STATUS["error"] if block.is_failed else _STATUS.get(block.status, ("?", "yellow"))
    summary = block.summary
    line = Text(page.line(summary.label), "bold").append(f" {page.line(summary.text)}".rstrip(), "not bold")
    if summary.outcome:
        line.append(f"  · {page.line(summary.outcome)}", "not bold red" if block.is_failed else "not bold dim")
    yield _Gutter(line, Text(f"  {mark} ", colour), "    ")
    for body in block.bodies:
        yield from _rows(_body(body, page), Text("    > " if isinstance(body, Input) else "    │ ", "dim"))
    yield from (_Gutter(_attachment(attachment, page), "    ") for attachment in block.attachments)
    yield from (_Gutter(Text(f"({page.line(note)})", "dim italic"), "    ") for note in block.notes)


def _synthetic(block: Synthetic, page: _Page) -> Iterator[RenderableType]:
    words = f"⋯ {block.label}"
    if block.summary:
        words += f": {page.line(block.summary)}"
    if block.text.hidden and not block.text.head:
        words += f" ({block.text.hidden})"
    yield Text(words, "dim")
    if block.text.head:
        yield from _rows(_excerpt(block.text, page, "dim"), Text("  │ ", "dim"))


def _body(body: Body, page: _Page) -> Iterator[_Row]:
    match body:
        case Input(text=text) | Data(text=text):
            yield from _excerpt(text, page, "dim")
        case Output(text=text, is_error=is_error):
            yield from _excerpt(text, page, "red" if is_error else "dim")
        case Diff():
            yield from _diff(body, page)
        case Screen(head=head, tail=tail, hidden_lines=hidden):
            yield from (_screen_row(cells, page) for cells in head)
            yield from _more(hidden, "line")
            yield from (_screen_row(cells, page) for cells in tail)
        case Todos(todos=todos):
            for todo in todos:
                mark, style = _TODO.get(todo.status, ("?", "yellow"))
                is_over = todo.status in {"completed", "cancelled"}
                yield Text(f"{mark} ", style), page.line(todo.description), "dim" if is_over else ""
        case Matches():
            yield from _matches(body, page)
        case Files(files=files, hidden=hidden):
            yield from (("", page.line(name), "dim") for name in files)
            yield from _more(hidden, "name")
        case Agent():
            yield from _agent(body, page)
        case Questions():
            yield from _questions(body, page)
        case _:
            assert_never(body)


def _excerpt(excerpt: Excerpt, page: _Page, style: str = "") -> Iterator[_Row]:
    yield from (("", line, style) for line in page.text(excerpt.head).split("\n") if excerpt.head)
    if excerpt.hidden:
        yield "", f"… {excerpt.hidden}", "dim italic"
    yield from (("", line, style) for line in page.text(excerpt.tail).split("\n") if excerpt.tail)


def _more(hidden: int, noun: str) -> Iterator[_Row]:
    if hidden:
        yield "", f"… {_counted(hidden, f'more {noun}')}", "dim italic"


def _diff(body: Diff, page: _Page) -> Iterator[_Row]:
    """Show a diff; lines have their number after the change, removed ones that before it."""
    numbers = [line.old if line.change is Change.DELETE else line.new for line in body.lines]
    wide = max((len(str(number)) for number in numbers if number), default=0)
    for place, (number, line) in enumerate(zip(numbers, body.lines, strict=True)):
        mark, style = _CHANGE[line.change]
        if line.change is not Change.HUNK:
            before = f"{number or '':>{wide}} " if wide else ""
            yield Text.assemble((before, "dim"), (f"{mark} ", style)), page.text(line.text), style
        elif place:
            yield "", mark, style
    yield from _more(body.hidden_lines, "line")


def _screen_row(cells: tuple[Cell, ...], page: _Page) -> _Row:
    text = screen_text(ScreenDisplay((cells,)))
    is_plain = len(text) > LONG_LINE or not page.is_unicode
    return ("", page.text(text.plain), "") if is_plain else ("", text, "")


def _matches(body: Matches, page: _Page) -> Iterator[_Row]:
    for match in body.matches:
        place = Text.assemble((page.line(match.path), "magenta"), (":", "dim"))
        if match.line is not None:
            place.append(str(match.line), "green").append("-" if match.is_context else ":", "dim")
        yield place.append(" "), page.line(match.text), "dim"
    yield from _more(body.hidden, "line")


def _agent(body: Agent, page: _Page) -> Iterator[_Row]:
    for activity in body.activity:
        is_thought = activity.type == "thought" and activity.status != "error"
        mark, style = ("✻", "dim") if is_thought else _ACTIVITY.get(activity.status, ("○", "dim"))
        words = f"{activity.content} {activity.description}".strip()
        yield Text(f"{mark} ", style), page.line(words), "dim italic" if is_thought else "dim"
    yield from _more(body.hidden, "step")
    if body.result is not None:
        yield from _excerpt(body.result, page)


def _questions(body: Questions, page: _Page) -> Iterator[_Row]:
    for question in body.questions:
        yield "? ", page.line(question.question), ""
        if question.choices:
            yield "  ", page.line(" / ".join(question.choices)), "dim"
        if question.answer:
            yield Text("→ ", "green"), page.line(question.answer), ""


def _attachment(attachment: Attachment, page: _Page) -> Text:
    size_or_place = attachment.uri if attachment.size is None else size(attachment.size)
    words = ", ".join(filter(None, (attachment.media_type, size_or_place)))
    return Text.assemble(("▣ ", "cyan"), (page.line(words), "dim"))


def _tokens(tokens: Tokens) -> str:
    words = [f"{count(tokens.input)} tokens in"]
    words[0] += f" ({count(tokens.cached)} cached)" if tokens.cached else ""
    words.append(f"{count(tokens.output)} out")
    words += [f"{count(tokens.thoughts)} thoughts"] if tokens.thoughts else []
    words += [f"{count(tokens.tool)} for tools"] if tokens.tool else []
    return ", ".join(words)


def _counts(session: Session) -> str:
    words = [_counted(session.counts.get(kind, 0), noun) for kind, noun in (("user", "prompt"), ("gemini", "answer"))]
    words += [_counted(session.tool_calls, "tool call")] if session.tool_calls else []
    words += [_counted(session.counts["error"], "error")] if session.counts.get("error") else []
    words += [_counted(len(session.children), "subagent")] if session.children else []
    gone = [f"{session.fates[fate]:,} {FATES[fate]}" for fate in Fate if fate in session.fates and fate != Fate.ACTIVE]
    return ", ".join(words) + (f" ({', '.join(gone)})" if gone else "")


def _period(session: Session, zone: tzinfo | None) -> str:
    if session.started is None:
        return ""
    start = session.started.astimezone(zone)
    words = f"{start:%a} {start.day} {start:%b %Y, %H:%M}"
    if session.ended is None or session.ended <= session.started:
        return words
    end = session.ended.astimezone(zone)
    until = f"{end:%H:%M}" if end.date() == start.date() else f"{end:%a} {end.day} {end:%b %Y, %H:%M}"
    return f"{words} to {until} ({lasted(end - start)})"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _joined(*words: str) -> str:
    return " · ".join(word for word in words if word)


def _prose(text: str, style: str = "") -> Iterator[RenderableType]:
    if len(text) <= LONG_TEXT:
        yield Text(text, style)
    else:
        yield from _rows(("", line, style) for line in text.split("\n"))


def _answer(text: str, page: _Page) -> Iterator[RenderableType]:
    laid_out = _Markdown(text, page) if len(text) <= LONG_TEXT else None
    if laid_out is not None and not laid_out.is_lossy:
        yield laid_out
    else:
        yield from _prose(text)


def _marked(parts: Iterable[RenderableType], mark: Text, most: int | None = None) -> Iterator[RenderableType]:
    """Put a mark before the first line, and set all others in."""
    blank = " " * cell_len(mark.plain)
    for number, part in enumerate(parts):
        yield _Gutter(part, blank if number else mark, blank, most=most)


def _rows(rows: Iterable[_Row], lead: Text | None = None) -> Iterator[RenderableType]:
    """Give so many rows at a time that a long output neither waits for its end nor is held as a whole."""
    rest = iter(rows)
    while some := tuple(islice(rest, 500)):
        yield _Rows(some, lead or Text())


@dataclass(frozen=True, slots=True)
class _Rows:
    """Lines as they are, each with something before it; quick for lines of any length."""

    rows: tuple[_Row, ...]
    lead: Text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lead = [*_segments(self.lead, console)]
        room = options.max_width - cell_len(self.lead.plain)
        for before, line, style in self.rows:
            first = before if isinstance(before, Text) or not before else Text(before)
            width = cell_len(first.plain) if isinstance(first, Text) else 0
            look = console.get_style(style)
            for number, piece in enumerate(_pieces(console, line, max(room - width, 8))):
                yield from lead
                if isinstance(first, Text):
                    yield from [Segment(" " * width)] if number else _segments(first, console)
                if isinstance(piece, Text):
                    yield from _segments(piece, console)
                else:
                    yield Segment(piece, look)
                yield Segment.line()


def _segments(text: Text, console: Console) -> Iterable[Segment]:
    """Render a text within a line; Rich does that without the style of the whole."""
    return Segment.apply_style(text.render(console), console.get_style(text.style))


def _pieces(console: Console, line: Text | str, width: int) -> Iterable[Text | str]:
    """Break a line between words; one that is too long for prose, just anywhere."""
    if isinstance(line, Text):
        return line.wrap(console, width)
    if len(line) <= width // 2 or (len(line) <= width and line.isascii()):
        return (line,)
    if len(line) <= LONG_LINE:
        return (piece.plain for piece in Text(line).wrap(console, width))
    if line.isascii():
        return (line[start : start + width] for start in range(0, len(line), width))
    return chop_cells(line, width)


@dataclass(frozen=True, slots=True)
class _Gutter:
    """Something with a mark at the left of its first line, and another one (or the same) at the left of all others."""

    body: RenderableType
    first: Text | str
    rest: str | None = None
    style: str = ""
    most: int | None = None
    """Columns it fills at most."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        first = self.first if isinstance(self.first, Text) else Text(self.first, self.style)
        rest = Text(first.plain if self.rest is None else self.rest, self.style)
        width = min(options.max_width, self.most or options.max_width) - cell_len(first.plain)
        lines = console.render_lines(self.body, options.update(width=max(width, 1), height=None), pad=False)
        # Rich begins lists and code with an empty line.
        for number, line in enumerate(dropwhile(_is_blank, lines)):
            before, shown = rest if number else first, [*_trimmed(line)]
            yield from _segments(before if shown else Text(before.plain.rstrip(), self.style), console)
            yield from shown
            yield Segment.line()


def _is_blank(line: list[Segment]) -> bool:
    return not any(segment.text.strip() or _is_coloured(segment.style) for segment in line)


def _trimmed(line: list[Segment]) -> Iterator[Segment]:
    """Take off the blanks with which Rich fills lines up, unless they are coloured."""
    end = len(line)
    while end and line[end - 1].text.isspace() and not _is_coloured(line[end - 1].style):
        end -= 1
    yield from line[: end - 1]
    if end:
        text, style, control = line[end - 1]
        yield Segment(text if _is_coloured(style) else text.rstrip(), style, control)


def _is_coloured(style: Style | None) -> bool:
    return style is not None and bool(style.bgcolor or style.reverse or style.underline)


@dataclass(frozen=True, slots=True)
class _Aside:
    """Something with a few words at the right of its first line."""

    body: RenderableType
    words: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room = options.max_width - len(self.words) - 2
        if not self.words or room < 2 * len(self.words):
            yield self.body
            return
        lines = console.render_lines(self.body, options.update(width=room, height=None), pad=False)
        for number, line in enumerate(lines):
            yield from line if number else Segment.adjust_line_length(line, room)
            if not number:
                yield Segment(f"  {self.words}", Style(dim=True))
            yield Segment.line()


@dataclass(frozen=True, slots=True)
class _Safe:
    """The last check: nothing gets past it that a terminal would act upon, or has no character for."""

    body: RenderableType
    encoding: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        is_unicode = self.encoding.lower().startswith("utf")
        for segment in console.render(self.body, options):
            text = safe(segment.text)
            if not is_unicode:
                text = encodable(text.translate(_MARKS), self.encoding)
            yield Segment(text, segment.style, segment.control)


class _Heading(markdown.Heading):
    """A heading that stays one without colours."""

    def __rich_console__(self, _console: Console, _options: ConsoleOptions) -> RenderResult:
        level = int(self.tag[1:])
        yield Text.assemble(("#" * level + " ", "dim"), self.text)


class _Code(markdown.CodeBlock):
    """Code, set in by four columns and in the terminal's own colours."""

    def __rich_console__(self, _console: Console, _options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip()
        if len(code) > LONG_CODE:
            yield from _rows((("", line, "") for line in code.split("\n")), Text("    "))
        else:
            body = Syntax(code, self.lexer_name, theme="ansi_dark", background_color="default", word_wrap=True)
            yield _Gutter(body, "    ")


class _Quote(markdown.BlockQuote):
    """A quotation, not to be taken for a prompt."""

    def __rich_console__(self, _console: Console, _options: ConsoleOptions) -> RenderResult:
        yield _Gutter(self.elements, "> ", style="dim")


class _Table(markdown.TableElement):
    """A table with a line below its head, the same with every release of Rich."""

    def __rich_console__(self, _console: Console, _options: ConsoleOptions) -> RenderResult:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, border_style="dim", header_style="bold")
        for cell in self.header.row.cells if self.header and self.header.row else ():
            table.add_column(cell.content)
        for row in self.body.rows if self.body else ():
            table.add_row(*(cell.content for cell in row.cells))
        yield table


class _Markdown(markdown.Markdown):
    """Markdown without anything to click on, in which HTML is text like any other (Rich would swallow it)."""

    elements: ClassVar[dict[str, type[markdown.MarkdownElement]]] = {
        **markdown.Markdown.elements,
        "heading_open": _Heading,
        "fence": _Code,
        "code_block": _Code,
        "blockquote_open": _Quote,
        "table_open": _Table,
    }
    _parser: ClassVar[MarkdownIt] = (
        MarkdownIt("commonmark", {"html": False, "maxNesting": 20})
        .enable(["strikethrough", "table"])
        .disable("reference")
    )

    # The terminal's own background, and the same look with every release of Rich.
    _theme: ClassVar[Theme] = Theme(
        {
            "markdown.code": "bold cyan",
            "markdown.code_block": "none",
            "markdown.block_quote": "none",
            "markdown.hr": "dim",
            "markdown.item.bullet": "cyan",
            "markdown.item.number": "cyan",
            "markdown.link": "bright_blue",
            "markdown.link_url": "underline blue",
            **{f"markdown.h{level}": "bold underline" if level < 3 else "bold" for level in range(1, 7)},  # noqa: PLR2004
        }
    )

    def __init__(self, text: str, page: _Page) -> None:
        super().__init__("", hyperlinks=False)
        self.markup = text
        self.parsed = self._parser.parse(text)
        for token in self.parsed:
            for child in token.children or ():
                # An entity may have become a character that the text did not have when it was cleaned.
                child.content = page.text(child.content)
                if child.type == "image":  # Rich would put it before its paragraph, and leave out where it is
                    child.type, child.content = "text", f"▣ {child.content} ({child.attrs.get('src', '')})"

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        with console.use_theme(self._theme):
            yield from super().__rich_console__(console, options)

    @property
    def is_lossy(self) -> bool:
        """Whether something of the text is not shown: what is nested too deep, or nothing but marks."""
        levels = [token.level for token in self.parsed if token.content or token.type == "hr"]
        return not levels or max(levels) >= self._parser.options["maxNesting"] - 1
