"""Markdown on a terminal, the same with every release of Rich and readable without colours."""

from __future__ import annotations

from typing import ClassVar

from markdown_it import MarkdownIt
from pygments.token import Comment, Error, Generic, Keyword, Name, Number, Operator, String, Token
from rich import box, markdown
from rich.console import Console, ConsoleOptions, RenderResult
from rich.style import Style
from rich.syntax import ANSISyntaxTheme, Syntax
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

from pollux.render.terminal.layout import Gutter, PageFormat, lay_out
from pollux.views.languages import lexer_for

_SYNTAX = ANSISyntaxTheme(
    {
        Token: Style(),
        Comment: Style(italic=True),
        Keyword: Style(color="bright_blue"),
        Operator.Word: Style(color="bright_blue"),
        Name.Builtin: Style(color="bright_blue"),
        Name.Tag: Style(color="bright_blue"),
        Name.Function: Style(bold=True),
        Name.Class: Style(bold=True),
        Name.Decorator: Style(color="bright_magenta"),
        String: Style(color="green"),
        Number: Style(color="bright_magenta"),
        Generic.Deleted: Style(color="bright_red"),
        Generic.Inserted: Style(color="green"),
        Generic.Heading: Style(bold=True),
        Generic.Subheading: Style(bold=True),
        Generic.Error: Style(color="bright_red"),
        Error: Style(color="bright_red", underline=True),
    }
)


class _Heading(markdown.Heading):
    """A heading that keeps its number signs, so that it is one without colours too."""

    def __rich_console__(self, _console: Console, _options: ConsoleOptions) -> RenderResult:
        level = int(self.tag[1:])
        yield Text.assemble(("#" * level + " ", "dim"), self.text)


class _Code(markdown.CodeBlock):
    """Code, indented by four columns and in the colours of the terminal."""

    def __rich_console__(self, _console: Console, _options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip()
        lexer = lexer_for(self.lexer_name, code)
        if lexer is None:
            yield from lay_out((("", line, "") for line in code.split("\n")), Text("    "))
        else:
            body = Syntax(code, lexer, theme=_SYNTAX, background_color="default", word_wrap=True)
            yield Gutter(body, "    ")


class _Quote(markdown.BlockQuote):
    """A quotation with `>` before each line, unlike a prompt."""

    def __rich_console__(self, _console: Console, _options: ConsoleOptions) -> RenderResult:
        yield Gutter(self.elements, "> ", style="dim")


class _Table(markdown.TableElement):
    """A table with a line below its header, the same with every release of Rich."""

    def __rich_console__(self, _console: Console, _options: ConsoleOptions) -> RenderResult:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, border_style="dim", header_style="bold")
        for cell in self.header.row.cells if self.header and self.header.row else ():
            table.add_column(cell.content)
        for row in self.body.rows if self.body else ():
            table.add_row(*(cell.content for cell in row.cells))
        yield table


class Markdown(markdown.Markdown):
    """Markdown without links to click on, in which HTML is text (Rich would leave it out)."""

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

    # No background colours, and the same styles with every release of Rich.
    _theme: ClassVar[Theme] = Theme(
        {
            "markdown.code": "bold bright_blue",
            "markdown.code_block": "none",
            "markdown.block_quote": "none",
            "markdown.hr": "dim",
            "markdown.item.bullet": "bright_blue",
            "markdown.item.number": "bright_blue",
            "markdown.link": "bright_blue",
            "markdown.link_url": "underline bright_blue",
            **{f"markdown.h{level}": "bold underline" if level < 3 else "bold" for level in range(1, 7)},  # noqa: PLR2004
        }
    )

    def __init__(self, text: str, page: PageFormat) -> None:
        """Parse a text without control characters, and clean what the parser makes of it."""
        super().__init__("", hyperlinks=False)
        self.markup = text
        self.parsed = self._parser.parse(text)
        for token in self.parsed:
            for child in token.children or ():
                # An entity may have become a control character.
                child.content = page.text(child.content)
                if child.type == "image":  # Rich would put it before its paragraph, without its address
                    child.type, child.content = "text", f"▣ {child.content} ({child.attrs.get('src', '')})"

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        with console.use_theme(self._theme):
            yield from super().__rich_console__(console, options)

    @property
    def is_lossy(self) -> bool:
        """Whether some text is not shown, because it is nested too deep or consists of marks only."""
        levels = [token.level for token in self.parsed if token.content or token.type == "hr"]
        return not levels or max(levels) >= self._parser.options["maxNesting"] - 1
