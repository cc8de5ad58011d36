"""Usage on a terminal: tables with bars, money, and an audit line by line; plain lines and CSV for other programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple, Self

import msgspec
from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pollux.model import Tokens
from pollux.render.terminal.tables import counted, tabbed
from pollux.render.terminal.text import line
from pollux.reports.periods import PERIODS, monday
from pollux.reports.usage import Report, Row, Sums
from pollux.text.encode import csv_row, escape_formula
from pollux.text.numbers import Currency, count
from pollux.views.contracts import when
from pollux.views.session_text import NO_TITLE, title

if TYPE_CHECKING:  # a report is drawn without it
    from pollux.render.terminal.console import Console
    from pollux.reports.audit import AuditedCall, AuditReport, Bucket, Duplicate

_LONGEST = 1000
"""Characters of a name in CSV."""
_NANO, _PICO, _MICRO = Decimal(10) ** -9, Decimal(10) ** -12, Decimal(10) ** -6
_GAP = 2
_BAR_MIN, _BAR_MAX = 6, 24
_KEY_MAX, _KEY_MIN = 40, 10
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_SHORT_ID = 8


def cost_of(found: Sums, currency: Currency) -> str:
    """Say a cost; a plus where something without a price is not in it."""
    return currency.show(found.cost_nanousd) + ("+" if found.unpriced_calls and found.cost_nanousd is not None else "")


class _Column(NamedTuple):
    """A column, and how willingly it makes way."""

    name: str
    rank: int
    show: Callable[[Row], str]
    style: str = ""
    is_needed: bool = True


def usage_table(report: Report, currency: Currency, *, width: int, encoding: str = "utf-8") -> Table:
    """Lay a report out in columns: as many as fit, the most wanted first, and a bar if there is room left."""
    total = Row(None, "billed", report.billed, report.kept)
    columns = [one for one in _columns(report, currency) if one.is_needed]
    keys = [_key(report.by, row) for row in report.rows]
    key_width = min(max([cell_len(one) for one in (*keys, report.by, "billed")]), _KEY_MAX)
    chosen, room = _fitting(columns, [*report.rows, total], width - min(key_width, max(_KEY_MIN, width // 3)))
    key_width = min(key_width, width - _width_of(chosen, [*report.rows, total]))
    room = width - key_width - _width_of(chosen, [*report.rows, total]) - _GAP
    bar = min(room, _BAR_MAX) if room >= _BAR_MIN and len(report.rows) > 1 else 0
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, _GAP, 0, 0), collapse_padding=True)
    table.add_column(report.by, no_wrap=True, max_width=key_width, style="cyan")
    for one in chosen:
        table.add_column(one.name, justify="right", no_wrap=True, style=one.style)
    if bar:
        table.add_column("", no_wrap=True, style="blue")
    most = max((_weight(row, report) for row in report.rows), default=0)
    for key, row in zip(keys, report.rows, strict=True):
        bars = [_bar(_weight(row, report), most, bar, encoding)] if bar else []
        table.add_row(line(key, key_width), *(one.show(row) for one in chosen), *bars)
    if report.by != "tool":
        table.add_section()
        table.add_row(Text("billed", "bold"), *(Text(one.show(total), "bold") for one in chosen))
    return table


def totals(report: Report, currency: Currency) -> Iterator[Text]:
    """Say what was billed and what of it was kept, side by side."""
    for name, found in (("billed", report.billed), ("kept", report.kept)):
        tokens = found.tokens
        words = (
            f"{count(tokens.input)} in ({_share(tokens)} cached), {count(tokens.output)} out, "
            f"{count(tokens.thoughts)} thoughts" + (f", {count(tokens.tool)} tool" if tokens.tool else "")
        )
        yield Text.assemble(
            (f"{name:<7}", "dim"),
            (f"{cost_of(found, currency)}", "bold"),
            f"  {counted(found.calls, 'call')}, {count(tokens.total)} tokens: {words}",
        )


def notes(report: Report, currency: Currency) -> Iterator[str]:
    """Say what the numbers are made of, and what is missing in them."""
    yield f"Prices: {report.table}, {report.date}" + (
        f"; {currency.rate} {currency.code} for a dollar" if currency.code != "USD" else ""
    )
    for model, found in report.unpriced.items():
        name = line(model, 60) if model else "calls without a model's name"
        words = f"{counted(found.calls, 'call')}, {count(found.tokens.total)} tokens"
        yield f"No price for {name}: {words} are in no amount."
    if report.by == "tool":
        yield (
            "Tokens and cost are those of the model calls that asked for a tool, each once a tool: one that asked for"
            " two tools stands in both rows, so the rows are not to be added up."
        )
    if report.billed.inconsistent:
        n = report.billed.inconsistent
        words = "call has a total that is" if n == 1 else "calls have totals that are"
        yield f"{n} {words} not the sum of the counts; all are shown as recorded, `pollux audit` names them."


def usage_lines(report: Report) -> Iterator[str]:
    """Give one line a row, fields apart by tabs, numbers exact."""
    for row in report.rows:
        yield tabbed(row.key or "", row.name, *(_plain(one) for one in _numbers(row)))


def usage_csv(report: Report) -> Iterator[str]:
    """Give a report as CSV: every number exact, money in nano-dollars, nothing where there is no price."""
    names = ["key", "name", *_NUMBERS, *(("tool_calls", *_STATUSES) if report.by == "tool" else ())]
    yield csv_row(names)
    for row in report.rows:
        asked = row.asked
        more = [asked.calls, asked.success, asked.error, asked.cancelled, asked.unfinished] if asked else []
        names = [escape_formula(line(text, _LONGEST)) for text in (row.key or "", row.name)]
        yield csv_row([*names, *(_plain(one) for one in _numbers(row)), *more])


_SUMS = ("calls", "input", "cached", "output", "thoughts", "tool", "total", "cost_nanousd")
_NUMBERS = (*_SUMS, "unpriced_calls", "unpriced_tokens", *(f"kept_{name}" for name in _SUMS))
_STATUSES = ("success", "error", "cancelled", "unfinished")


def _numbers(row: Row) -> list[int | None]:
    billed = row.billed
    return [*_of(billed), billed.unpriced_calls, billed.unpriced_tokens.total, *_of(row.kept)]


def _of(found: Sums) -> list[int | None]:
    one = found.tokens
    counts = (one.input, one.cached, one.output, one.thoughts, one.tool, one.total)
    return [found.calls, *counts, found.cost_nanousd]


def _plain(number: int | None) -> str:
    return "" if number is None else str(number)


def _columns(report: Report, currency: Currency) -> list[_Column]:
    """Name all columns in their order; those with a low rank stay longest."""
    has_tool = bool(report.billed.tokens.tool)
    has_lost = report.billed != report.kept  # else the same numbers would stand there twice
    found = [
        _Column("calls", 4, lambda row: count(row.billed.calls)),
        _Column("input", 6, lambda row: count(row.billed.tokens.input)),
        _Column("cached", 8, lambda row: _share(row.billed.tokens)),
        _Column("output", 7, lambda row: count(row.billed.tokens.output)),
        _Column("thoughts", 9, lambda row: count(row.billed.tokens.thoughts)),
        _Column("tool", 10, lambda row: count(row.billed.tokens.tool), is_needed=has_tool),
        _Column("tokens", 0, lambda row: count(row.billed.tokens.total)),
        _Column("kept", 3, lambda row: count(row.kept.tokens.total), "dim", has_lost),
        _Column("cost", 1, lambda row: cost_of(row.billed, currency), "green"),
        _Column(f"kept {currency.symbol}", 5, lambda row: cost_of(row.kept, currency), "dim", has_lost),
    ]
    if report.by == "tool":
        found = [
            _Column("calls", 0, lambda row: count(row.asked.calls) if row.asked else ""),
            _Column("failed", 4, lambda row: count(row.asked.error) if row.asked else ""),
            _Column("cancelled", 5, lambda row: count(row.asked.cancelled) if row.asked else ""),
            *(one for one in found if one.name in ("tokens", "cost")),
        ]
    return found


def _fitting(columns: list[_Column], rows: Sequence[Row], room: int) -> tuple[list[_Column], int]:
    """Drop columns until the rest fits."""
    chosen = list(columns)
    while len(chosen) > 1 and _width_of(chosen, rows) > room:
        chosen.remove(max(chosen, key=lambda one: one.rank))
    return chosen, room - _width_of(chosen, rows)


def _width_of(columns: Iterable[_Column], rows: Sequence[Row]) -> int:
    return sum(_GAP + max(len(one.name), *(cell_len(one.show(row)) for row in rows)) for one in columns)


def _key(by: str, row: Row) -> str:
    """Name a row for people."""
    if row.key is None:
        return row.name
    if by == "session":
        return f"{row.key[:_SHORT_ID]} {row.name or NO_TITLE}"
    if by == "week":
        return f"{row.key} {monday(row.key):%d %b}"
    return row.key.replace("T", " ") if by == "hour" else row.name


def _share(tokens: Tokens) -> str:
    """Say how much of the prompts came from the cache."""
    return f"{100 * tokens.cached // tokens.input}%" if tokens.input else "–"


def _weight(row: Row, report: Report) -> int:
    """Draw money where there is some, else tokens; tools by how often they were called."""
    if row.asked:
        return row.asked.calls
    return row.billed.priced_nanousd if report.billed.priced_nanousd else row.billed.tokens.total


def _bar(value: int, most: int, width: int, encoding: str) -> str:
    if not most:
        return ""
    if not encoding.lower().startswith("utf"):
        return "#" * (value * width // most)
    full, rest = divmod(value * width * 8 // most, 8)
    return "█" * full + (_EIGHTHS[rest] if rest else "")


def audit_lines(report: AuditReport) -> Iterator[Text]:
    """Yield how the cost of a session and its subagents comes about, call by call, and the total."""
    for session, calls in report.audits:
        yield Text.assemble((session.id, "bold cyan"), "  ", line(title(session), 200))
        for number, call in enumerate(calls, 1):
            yield Text("")
            yield from _call_lines(number, call)
        yield Text("")
    amount = dollars(report.cost_nanousd)
    yield Text.assemble("total     ", (amount, "bold green"), f"  {counted(len(report.counted), 'call')}")
    if report.n_unpriced:
        models = "a model that has" if report.n_unpriced == 1 else "models that have"
        yield Text(f"          without {counted(report.n_unpriced, 'call')} of {models} no price", "yellow")
    yield Text(f"prices    {report.table}, {report.date}", "dim")


def _call_lines(number: int, one: AuditedCall) -> Iterator[Text]:
    call = one.call
    head = f"{line(call.model or 'no model', 60)}, {call.fate}"
    yield Text.assemble((f"{number}  ", "dim"), (when(call.at) or "no time", "bold"), f"  {head}")
    yield Text(f"   {line(str(call.file), 500)}:{call.line}", "dim")
    recorded = one.recorded if isinstance(one.recorded, dict) else {}
    words = "  ".join(f"{line(name, 20)} {line(str(value), 24)}" for name, value in recorded.items())
    yield Text(f"   recorded  {words}")
    if one.is_total_computed:
        yield Text("   the file has no total: computed as input + output + thoughts + tool", "yellow")
    if not call.tokens.is_consistent:
        yield Text("   the total is not input + output + thoughts + tool: shown as recorded", "yellow")
    if one.owner:
        yield Text(f"   not counted here: it belongs to session {line(one.owner, 80)}", "yellow")
    elif one.price is None:
        yield Text("   no price for this model: in no amount", "yellow")
    else:
        yield from _amounts(one)
    for each in one.duplicates:
        yield Text(f"   not counted again  {_place(each)}", "dim")


def _amounts(one: AuditedCall) -> Iterator[Text]:
    assert one.price
    assert one.tier
    since = f" since {one.price.since}" if one.price.since else ""
    tier = f", prompt above {one.tier.above:,} tokens" if one.tier.above else ""
    yield Text(f"   price     {line(one.price.id, 80)}{since}{tier}")
    for bucket in one.buckets:
        if bucket.tokens:
            yield Text(f"   {bucket.name:<9} {_product(bucket)}")
    yield Text.assemble("   amount    ", (dollars(one.cost_nanousd), "green"))


def _product(bucket: Bucket) -> str:
    rate = _dollars(Decimal(bucket.picousd) * _MICRO)
    return f"{bucket.tokens:,} × {rate} a million = {_dollars(Decimal(bucket.amount) * _PICO)}"


def dollars(nanousd: int | None) -> str:
    """Say an amount with every digit it has."""
    return "no price" if nanousd is None else _dollars(nanousd * _NANO)


def _dollars(amount: Decimal) -> str:
    whole = f"{amount:,.12f}".rstrip("0")
    return f"${whole}{'0' * max(0, 2 - len(whole.partition('.')[2]))}"


def _place(each: Duplicate) -> str:
    session = f" {line(each.session_id, 80)}" if each.session_id else ""
    return f"{line(each.file, 500)}:{each.line}  {each.why}{session}"


def screen(report: Report, currency: Currency, width: int, encoding: str, *notices: str) -> RenderableType:
    """Return a table with its totals and notes."""
    table = usage_table(report, currency, width=width, encoding=encoding)
    below = (Text(note, "dim") for note in (*notices, *notes(report, currency)))
    return Group(table, Text(""), *totals(report, currency), Text(""), *below)


class LiveScreen:
    """A report that is drawn again and again, on a screen of its own.

    Lines that wrapped anew when a window was resized could not be drawn over.
    """

    def __init__(self, console: Console, currency: Currency) -> None:
        """Take the console to draw on."""
        from rich.live import Live  # noqa: PLC0415  most reports are drawn once

        self._console, self._currency = console, currency
        self._live = Live(console=console, screen=True, auto_refresh=False)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.__exit__(None, None, None)

    def draw(self, report: Report) -> None:
        """Draw the newest rows that the screen has room for."""
        self._live.update(self._fitted(report), refresh=True)

    def print(self, report: Report) -> None:
        """Leave the report on the screen of the terminal."""
        self._console.print(self._fitted(report))

    def _fitted(self, report: Report) -> RenderableType:
        width, encoding = self._console.width, self._console.encoding
        around = screen(msgspec.structs.replace(report, rows=()), self._currency, width, encoding, "more")
        room = max(1, self._console.height - len(self._console.render_lines(around, pad=False)))
        rows = report.rows[-room:] if report.by in PERIODS else report.rows[:room]
        n_more = len(report.rows) - len(rows)
        notices = [f"{n_more} more are in the sums, and not shown."] if n_more else []
        notices += ["No model call fits yet."] if not rows else []
        return screen(msgspec.structs.replace(report, rows=rows), self._currency, width, encoding, *notices)
