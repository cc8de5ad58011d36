"""Tables that fit a terminal, and the same rows as tab-separated or CSV lines for other programs.

This is the only way into a table: cells are written as they are and never parsed as markup, so no title, model, tool
or path can restyle, hide or break a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from pollux.render.terminal.screen import cut, cut_start, line
from pollux.reports.periods import monday
from pollux.text.encode import csv_row, escape_formula
from pollux.text.escape import make_visible
from pollux.views.session_text import NO_TITLE

NO_NAMES: Mapping[str, str] = {}
"""Where the names of all projects are not known."""
_GAP = 2
_BAR_MIN, _BAR_MAX = 6, 24
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_KEY_MAX, _SHORT_ID = 40, 8
_KEY_LEAST = {"session": 26, "model": 22, "project": 16, "tool": 12}
"""Cells to which the first column of a report may be cut; that of others is not."""
_LONGEST_NAME = 1000
"""Characters of a name in CSV."""
_NANO = Decimal(10) ** -9


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column, and what becomes of it on a narrow terminal."""

    name: str
    cells: Sequence[Text | str]
    style: str = ""
    rank: int = 0
    """The column with the highest rank is dropped first; one of rank 0 is never dropped."""
    is_right: bool = False
    least: int | None = None
    """The width to which the column may be cut; None if it is never cut."""
    keeps_end: bool = False
    """Whether strings lose their beginning when they are cut, as paths do."""

    @property
    def width(self) -> int:
        """The width that the column needs to show every cell in full."""
        return max([cell_len(self.name), *(cell_len(_plain(cell)) for cell in self.cells)])

    @property
    def least_width(self) -> int:
        """The width below which the column is dropped."""
        return self.width if self.least is None else min(self.least, self.width)


@dataclass(frozen=True, slots=True)
class TextTable:
    """Rows under a header, as wide as the terminal allows."""

    columns: Sequence[TableColumn]
    row_styles: Sequence[str] = ()
    headings: Mapping[int, str] = field(default_factory=dict)
    """Lines between rows: the number of the row that each precedes, and its text."""
    weights: Sequence[int] = ()
    """What the bar behind each row shows, if there is room for bars."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        columns, widths = _fitting(self.columns, options.max_width)
        room = options.max_width - sum(widths) - _GAP * len(widths)
        bar = min(room, _BAR_MAX) if room >= _BAR_MIN and len(self.weights) > 1 else 0
        styles = [console.get_style(column.style) for column in columns]
        dim = console.get_style("dim")
        yield from _row(columns, [column.name for column in columns], widths, [dim] * len(columns), Style(), console)
        for number, cells in enumerate(zip(*(column.cells for column in columns), strict=True)):
            if number in self.headings:
                yield from (Segment(self.headings[number], Style(bold=True)), Segment.line())
            row_style = console.get_style(self.row_styles[number]) if self.row_styles else Style()
            segments = [*_row(columns, cells, widths, styles, row_style, console)]
            if bar and number < len(self.weights):
                drawn = _bar(self.weights[number], max(self.weights), bar, is_ascii=options.ascii_only)
                segments[-1:] = [Segment(" " * _GAP), Segment(drawn, Style(color="bright_blue")), Segment.line()]
            yield from segments


def _fitting(columns: Sequence[TableColumn], width: int) -> tuple[list[TableColumn], list[int]]:
    """Drop columns until the others fit, then give the room that is left to those that can be cut."""
    chosen = list(columns)
    natural = {column.name: column.width for column in columns}
    least = {column.name: column.least_width for column in columns}

    def used() -> int:
        return sum(least[column.name] for column in chosen) + _GAP * (len(chosen) - 1)

    while used() > width and any(column.rank for column in chosen):
        chosen.remove(max(chosen, key=lambda column: column.rank))
    room = width - used()
    for column in sorted(chosen, key=lambda column: natural[column.name]):
        extra = max(min(natural[column.name] - least[column.name], room), 0)
        least[column.name] += extra
        room -= extra
    if room < 0:
        widest = max(chosen, key=lambda column: (column.least is not None, least[column.name])).name
        least[widest] = max(1, least[widest] + room)
    return chosen, [least[column.name] for column in chosen]


def _row(
    columns: Sequence[TableColumn],
    cells: Iterable[Text | str],
    widths: Sequence[int],
    styles: Sequence[Style],
    row_style: Style,
    console: Console,
) -> Iterator[Segment]:
    for number, (column, cell, width, style) in enumerate(zip(columns, cells, widths, styles, strict=True)):
        if number:
            yield Segment(" " * _GAP)
        segments = [*_cell(cell, width, style + row_style, console, keeps_end=column.keeps_end)]
        padding = " " * (width - sum(segment.cell_length for segment in segments))
        if column.is_right and padding:
            yield Segment(padding)
        yield from segments
        if not column.is_right and padding and number < len(columns) - 1:
            yield Segment(padding)
    yield Segment.line()


def _cell(
    cell: Text | str, width: int, style: Style, console: Console, *, keeps_end: bool = False
) -> Iterable[Segment]:
    if isinstance(cell, str):
        return [Segment(cut_start(cell, width) if keeps_end else cut(cell, width), style)]
    text = cell.copy()
    text.truncate(width, overflow="ellipsis")
    return Segment.apply_style(text.render(console), style)


def _plain(cell: Text | str) -> str:
    return cell if isinstance(cell, str) else cell.plain


def _bar(value: int, most: int, width: int, *, is_ascii: bool) -> str:
    if not most:
        return ""
    if is_ascii:
        return "#" * (value * width // most)
    full, eighths = divmod(value * width * 8 // most, 8)
    return "█" * full + (_EIGHTHS[eighths] if eighths else "")


def key_column(by: str, rows: Iterable[tuple[str | None, str]], projects: Mapping[str, str] = NO_NAMES) -> TableColumn:
    """Return the first column of a report: the names of its rows.

    Args:
        by: what the rows are grouped by.
        rows: the key and the name of each.
        projects: the names of all projects by their keys, so that each has the same name in every table.

    """
    pairs = list(rows)
    names: dict[str, str] = {}
    if by == "project":
        names = distinct_names([*projects.items(), *((key, name) for key, name in pairs if key is not None)])
    cells = [line(names.get(key or "") or _row_name(by, key, name), _KEY_MAX) for key, name in pairs]
    return TableColumn("type" if by == "filetype" else by, cells, "bright_blue", least=_KEY_LEAST.get(by))


def _row_name(by: str, key: str | None, name: str) -> str:
    if key is None:
        return name
    if by == "session":
        return f"{key[:_SHORT_ID]} {name or NO_TITLE}"
    if by == "week":
        return f"{key} {monday(key):%d %b}"
    return key.replace("T", " ") if by == "hour" else name


def align_points(amounts: Sequence[str]) -> list[str]:
    """Return amounts of money, padded so that their decimal points are below each other in a right-aligned column."""
    fractions = [len(amount) - amount.index(".") if "." in amount else 0 for amount in amounts]
    widest = max(fractions, default=0)
    return [
        amount + " " * (widest - fraction) if fraction else amount
        for amount, fraction in zip(amounts, fractions, strict=True)
    ]


def distinct_names(projects: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return a name per project key; projects of the same name get the nearest parent folder that tells them apart.

    Args:
        projects: the key of each project, which is its path if that is known, and its name.

    """
    names = dict(projects)
    groups: dict[str, list[str]] = {}
    for key, name in names.items():
        groups.setdefault(name, []).append(key)
    for name, keys in groups.items():
        folders = {key: key.replace("\\", "/").rstrip("/").split("/")[:-1] for key in keys}
        if len(keys) < 2 or not any(folders.values()):  # noqa: PLR2004
            continue
        depth = _distinguishing_depth(list(folders.values()))
        for key, parents in folders.items():
            if len(parents) >= depth and parents[-depth]:
                names[key] = f"{parents[-depth]}/{'…/' * (depth > 1)}{name}"
            elif parents:
                names[key] = key
    return names


def _distinguishing_depth(paths: list[list[str]]) -> int:
    """Return how many folders up the parents of all paths differ."""
    deepest = max(map(len, paths))
    for depth in range(1, deepest + 1):
        if len({path[-depth] if len(path) >= depth else "" for path in paths}) == len(paths):
            return depth
    return deepest


def tab_lines(names: Sequence[str], rows: Iterable[Sequence[object]], *, header: bool) -> Iterator[str]:
    """Yield rows as tab-separated lines, below a header if there is to be one; nothing at all without rows."""
    for number, row in enumerate(rows):
        if header and not number:
            yield tabbed(*names)
        yield tabbed(*row)


def csv_lines(names: Sequence[str], rows: Iterable[Sequence[object]], *, header: bool) -> Iterator[str]:
    """Yield rows as CSV, in which no text can become a formula of a spreadsheet."""
    if header:
        yield csv_row(names)
    for row in rows:
        yield csv_row([escape_formula(line(cell, _LONGEST_NAME)) if isinstance(cell, str) else cell for cell in row])


def tabbed(*fields: object) -> str:
    """Return fields as one tab-separated line; tabs and line feeds inside a field become spaces."""
    return "\t".join(" ".join(make_visible(str("" if field is None else field)).split()) for field in fields) + "\n"


def dollars(nanousd: int | None) -> str:
    """Return an amount in dollars with every digit that it has, at least two after the point; empty without a price."""
    if nanousd is None:
        return ""
    digits = f"{nanousd * _NANO:f}".rstrip("0")
    return digits + "0" * max(0, 2 - len(digits.partition(".")[2]))
