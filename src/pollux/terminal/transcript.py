"""A transcript on a terminal: blocks as Rich renderables, one by one, so that a long session starts at once.

Everything is told by characters first and by colour second, so it reads the same in a pipe. All text of the session
goes through `clean` on its way in and through `safe` on its way out: Markdown has ways of its own to write a character.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, tzinfo
from itertools import dropwhile
from typing import ClassVar, TypeAlias, assert_never

from markdown_it import MarkdownIt
from rich import markdown
from rich.cells import cell_len, chop_cells
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.rule import Rule
from rich.segment import Segment
from rich.style import Style
from rich.syntax import Syntax
from rich.text import Text

from pollux.model import Attachment, Fate, Kind, Origin, ScreenDisplay, Session, Tokens
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
LONG_TEXT = 100_000
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

_Row: TypeAlias = "tuple[Text | str, str, str]"
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
        parts: list[RenderableType] = []
        if before is not None and not (isinstance(before, Tool) and isinstance(block, Tool | Usage)):
            parts.append(Text())
        today = page.day(block)
        if day and today and today != day:
            parts += [Text(f"─── {today:%A}, {today.day} {today:%B %Y} ───", "dim"), Text()]
        day = today or day
        if block.fate is Fate.ACTIVE or isinstance(block, LeftOut):
            parts.append(_block(block, page))
        else:
            if before is None or before.fate is not block.fate:
                parts.append(Text(f"⑂ {FATES[block.fate]}", "yellow"))
            parts.append(_Gutter(_block(block, page), "┊ ", style="yellow"))
        yield _Safe(Group(*parts), encoding)
        before = block


@dataclass(frozen=True, slots=True)
class _Page:
    """What the renderers below need to know of the terminal."""

    zone: tzinfo | None
    encoding: str

    def text(self, text: str) -> str:
        return encodable(clean(text), self.encoding)

    def line(self, text: str) -> str:
        return self.text(" ".join(text.split()))

    def clock(self, at: datetime | None) -> str:
        return f"{at.astimezone(self.zone):%H:%M}" if at else ""

    def day(self, block: Block) -> date | None:
        at = None if isinstance(block, LeftOut) else block.at
        return at.astimezone(self.zone).date() if at else None


def _block(block: Block, page: _Page) -> RenderableType:
    match block:
        case Prompt():
            return _prompt(block, page)
        case Answer(text=text):
            return _Gutter(_answer(page.text(text), page), Text("✦ ", "magenta"), "  ", most=PROSE)
        case Thinking(subject=subject, text=text):
            words = page.text(_joined_lines(subject, text))
            return _Gutter(_prose(words, "dim italic"), Text("✻ ", "dim"), "  ", most=PROSE)
        case Tool():
            return _tool(block, page)
        case Notice(kind=kind, text=text):
            mark, style = _NOTICE.get(kind, ("•", "cyan"))
            body = _rows(_excerpt(text, page, "red" if kind is Kind.ERROR else ""))
            return _Gutter(body if text.head else Text("(no words)", "dim"), Text(f"{mark} ", style), "  ")
        case Synthetic():
            return _synthetic(block, page)
        case Attached(attachment=attachment):
            return _Gutter(_attachment(attachment, page), "  ")
        case Other(text=text):
            return Group(Text("? a part that Pollux does not know", "yellow"), _body(Data(text), page))
        case Usage(model=model, tokens=tokens):
            return _Gutter(Text(_joined(page.line(model or ""), _tokens(tokens)), "dim"), "  ")
        case LeftOut(words=words, fate=fate):
            return Text(f"{'⋯' if fate is Fate.COMPRESSED else '⑂'} {words}", "yellow")
        case _:
            assert_never(block)


def _prompt(block: Prompt, page: _Page) -> RenderableType:
    parts: list[RenderableType] = []
    if block.origin is not Origin.HUMAN:
        parts.append(Text(LABELS[block.origin], "dim"))
    if block.text.hidden:
        parts.append(_rows(_excerpt(block.text, page)))
    elif block.text.head.strip():
        parts.append(_prose(page.text(block.text.head)))
    elif not block.attachments:
        parts.append(Text("(no words)", "dim"))
    parts += [_attachment(attachment, page) for attachment in block.attachments]
    colour = "bold cyan" if block.origin is Origin.HUMAN else "bold magenta"
    return _Gutter(_Aside(Group(*parts), page.clock(block.at)), "▌ ", style=colour, most=PROSE)


def _tool(block: Tool, page: _Page) -> RenderableType:
    mark, colour = _STATUS["error"] if block.is_failed else _STATUS.get(block.status, ("?", "yellow"))
    summary = block.summary
    line = Text(page.line(summary.label), "bold").append(f" {page.line(summary.text)}".rstrip(), "not bold")
    if summary.outcome:
        line.append(f"  · {page.line(summary.outcome)}", "red" if block.is_failed else "dim not bold")
    parts: list[RenderableType] = [line]
    parts += [
        _Gutter(_body(body, page), "> " if isinstance(body, Input) else "│ ", style="dim") for body in block.bodies
    ]
    parts += [_Gutter(_attachment(attachment, page), "│ ", style="dim") for attachment in block.attachments]
    parts += [Text(f"({page.line(note)})", "dim italic") for note in block.notes]
    return _Gutter(Group(*parts), Text(f"  {mark} ", colour), "    ")


def _synthetic(block: Synthetic, page: _Page) -> RenderableType:
    words = f"⋯ {block.label}"
    if block.summary:
        words += f": {page.line(block.summary)}"
    if block.text.hidden and not block.text.head:
        words += f" ({block.text.hidden})"
    line = Text(words, "dim")
    if not block.text.head:
        return line
    return Group(line, _Gutter(_rows(_excerpt(block.text, page, "dim")), "  │ ", style="dim"))


def _body(body: Body, page: _Page) -> RenderableType:
    match body:
        case Input(text=text) | Data(text=text):
            return _rows(_excerpt(text, page, "dim"))
        case Output(text=text, is_error=is_error):
            return _rows(_excerpt(text, page, "red" if is_error else "dim"))
        case Diff():
            return _diff(body, page)
        case Screen():
            return _screen(body)
        case Todos(todos=todos):
            marks = ((*_TODO.get(todo.status, ("?", "yellow")), todo) for todo in todos)
            done = {"completed", "cancelled"}
            return _rows(
                (Text(f"{mark} ", style), page.line(todo.description), "dim" if todo.status in done else "")
                for mark, style, todo in marks
            )
        case Matches():
            return _matches(body, page)
        case Files(files=files, hidden=hidden):
            return _rows([*(("", page.line(name), "dim") for name in files), *_more(hidden, "name")])
        case Agent():
            return _agent(body, page)
        case Questions():
            return _questions(body, page)
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


def _diff(body: Diff, page: _Page) -> RenderableType:
    """Show a diff; lines have their number after the change, removed ones that before it."""
    numbers = [line.old if line.change is Change.DELETE else line.new for line in body.lines]
    wide = max((len(str(number)) for number in numbers if number), default=0)

    def rows() -> Iterator[_Row]:
        for place, (number, line) in enumerate(zip(numbers, body.lines, strict=True)):
            mark, style = _CHANGE[line.change]
            if line.change is not Change.HUNK:
                before = f"{number or '':>{wide}} " if wide else ""
                yield Text(before, "dim").append(f"{mark} ", style), page.text(line.text), style
            elif place:
                yield "", mark, style

    return _rows([*rows(), *_more(body.hidden_lines, "line")])


def _screen(body: Screen) -> RenderableType:
    parts: list[RenderableType] = [screen_text(ScreenDisplay(body.head))]
    parts += [_rows(_more(body.hidden_lines, "line"))] if body.hidden_lines else []
    parts += [screen_text(ScreenDisplay(body.tail))] if body.tail else []
    return Group(*parts)


def _matches(body: Matches, page: _Page) -> RenderableType:
    def rows() -> Iterator[_Row]:
        for match in body.matches:
            place = Text(page.line(match.path), "magenta").append(":", "dim")
            if match.line is not None:
                place.append(str(match.line), "green").append("-" if match.is_context else ":", "dim")
            yield place.append(" "), page.line(match.text), "dim"

    return _rows([*rows(), *_more(body.hidden, "line")])


def _agent(body: Agent, page: _Page) -> RenderableType:
    def rows() -> Iterator[_Row]:
        for activity in body.activity:
            is_thought = activity.type == "thought" and activity.status != "error"
            mark, style = ("✻", "dim") if is_thought else _ACTIVITY.get(activity.status, ("○", "dim"))
            words = f"{activity.content} {activity.description}".strip()
            yield Text(f"{mark} ", style), page.line(words), "dim italic" if is_thought else "dim"
        yield from _more(body.hidden, "step")
        if body.result is not None:
            yield from _excerpt(body.result, page)

    return _rows(rows())


def _questions(body: Questions, page: _Page) -> RenderableType:
    def rows() -> Iterator[_Row]:
        for question in body.questions:
            yield "? ", page.line(question.question), ""
            if question.choices:
                yield "  ", page.line(" / ".join(question.choices)), "dim"
            if question.answer:
                yield Text("→ ", "green"), page.line(question.answer), ""

    return _rows(rows())


def _attachment(attachment: Attachment, page: _Page) -> Text:
    words = ", ".join(
        word
        for word in (attachment.media_type, size(attachment.size) if attachment.size is not None else attachment.uri)
        if word
    )
    return Text("▣ ", "cyan").append(page.line(words), "dim")


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


def _joined_lines(*words: str) -> str:
    return "\n".join(word for word in words if word)


def _prose(text: str, style: str = "") -> RenderableType:
    return Text(text, style) if len(text) <= LONG_TEXT else _rows(("", line, style) for line in text.split("\n"))


def _answer(text: str, page: _Page) -> RenderableType:
    return _Markdown(text, page) if len(text) <= LONG_TEXT else _prose(text)


def _rows(rows: Iterable[_Row]) -> RenderableType:
    return _Rows(tuple(rows))


@dataclass(frozen=True, slots=True)
class _Rows:
    """Lines as they are, each with something before it; quick for lines of any length."""

    rows: tuple[_Row, ...]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for before, line, style in self.rows:
            lead = before if isinstance(before, Text) else Text(before)
            width = cell_len(lead.plain)
            look = console.get_style(style)
            for number, piece in enumerate(_pieces(console, line, max(options.max_width - width, 8))):
                if number:
                    yield Segment(" " * width)
                else:
                    yield from lead.render(console)
                yield Segment(piece, look)
                yield Segment.line()


def _pieces(console: Console, line: str, width: int) -> Iterable[str]:
    """Break a line between words; one that is too long for prose, just anywhere."""
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
            yield from (before if shown else Text(before.plain.rstrip(), self.style)).render(console)
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
        yield Text("#" * level + " ", "dim").append_text(self.text)


class _Code(markdown.CodeBlock):
    """Code, set in by four columns and in the terminal's own colours."""

    def __rich_console__(self, _console: Console, _options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip()
        if len(code) > LONG_CODE:
            body = _prose(code)
        else:
            body = Syntax(code, self.lexer_name, theme="ansi_dark", background_color="default", word_wrap=True)
        yield _Gutter(body, "    ")


class _Quote(markdown.BlockQuote):
    """A quotation, not to be taken for a prompt."""

    def __rich_console__(self, _console: Console, _options: ConsoleOptions) -> RenderResult:
        yield _Gutter(self.elements, "> ", style="dim")


class _Markdown(markdown.Markdown):
    """Markdown without anything to click on, in which HTML is text like any other (Rich would swallow it)."""

    elements: ClassVar[dict[str, type[markdown.MarkdownElement]]] = {
        **markdown.Markdown.elements,
        "heading_open": _Heading,
        "fence": _Code,
        "code_block": _Code,
        "blockquote_open": _Quote,
    }
    _parser: ClassVar[MarkdownIt] = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])

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
