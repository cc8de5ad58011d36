"""Usage on a terminal: a table with bars, and the audit of a session call by call; lines and CSV for other programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Self

import msgspec
from rich.console import Group, RenderableType
from rich.text import Text

from pollux.model import Tokens, Usage
from pollux.render.terminal.screen import line
from pollux.render.terminal.tables import (
    NO_NAMES,
    TableColumn,
    TextTable,
    align_points,
    csv_lines,
    dollars,
    key_column,
    tab_lines,
)
from pollux.reports.periods import PERIODS
from pollux.reports.usage import UsageReport, UsageRow
from pollux.text.numbers import Currency, count, plural
from pollux.views.contracts import rfc3339
from pollux.views.session_text import title

if TYPE_CHECKING:  # a report is drawn without it
    from pollux.render.terminal.screen import Console
    from pollux.reports.audit import AuditedCall, AuditReport, Bucket, Duplicate

_PICO, _MICRO = Decimal(10) ** -12, Decimal(10) ** -6
_SUMS = ("calls", "input", "cached", "output", "thoughts", "tool", "total", "cost_usd")
_NUMBERS = (*_SUMS, "unpriced_calls", "unpriced_tokens", *(f"active_{name}" for name in _SUMS))
_OUTCOMES = ("tool_calls", "success", "error", "cancelled", "no_result")


def cost_of(sums: Usage, currency: Currency) -> str:
    """Return a cost, with a plus sign if calls without a price are not in it."""
    return currency.show(sums.cost_nanousd) + (
        "+" if sums.cost.unpriced_calls and sums.cost_nanousd is not None else ""
    )


def usage_table(report: UsageReport, currency: Currency, projects: Mapping[str, str] = NO_NAMES) -> TextTable:
    """Return the rows of a report and, unless rows overlap as those of tools do, their total.

    `projects` are the names of all projects by their keys.
    """
    has_total = report.by != "tool"
    rows = [*report.rows, *([UsageRow(None, "billed", report.billed, report.active)] if has_total else [])]
    columns = [key_column(report.by, [(row.key, row.name) for row in rows], projects)]
    columns += _tool_columns(rows, currency) if report.by == "tool" else _call_columns(report, rows, currency)
    styles = [*[""] * len(report.rows), "bold"] if has_total else []
    return TextTable(columns, styles, weights=[_weight(row, report) for row in report.rows])


def _call_columns(report: UsageReport, rows: Sequence[UsageRow], currency: Currency) -> Iterator[TableColumn]:
    has_dropped = report.billed != report.active  # otherwise the active columns would repeat the billed ones

    def numbers(name: str, rank: int, cell: Callable[[UsageRow], str], style: str = "") -> TableColumn:
        return TableColumn(name, [cell(row) for row in rows], style, rank, is_right=True)

    yield numbers("calls", 4, lambda row: count(row.billed.calls))
    yield numbers("input", 6, lambda row: count(row.billed.tokens.input))
    yield numbers("cached", 8, lambda row: _cached_share(row.billed.tokens))
    yield numbers("output", 7, lambda row: count(row.billed.tokens.output))
    yield numbers("thoughts", 9, lambda row: count(row.billed.tokens.thoughts))
    if report.billed.tokens.tool:
        yield numbers("tool", 10, lambda row: count(row.billed.tokens.tool))
    yield numbers("tokens", 2, lambda row: count(row.billed.tokens.total))
    if has_dropped:
        yield numbers("active", 3, lambda row: count(row.active.tokens.total), "dim")
    yield _cost_column("cost", 0, [row.billed for row in rows], currency, "green")
    if has_dropped:
        yield _cost_column(f"active {currency.symbol}", 5, [row.active for row in rows], currency, "dim")


def _tool_columns(rows: Sequence[UsageRow], currency: Currency) -> Iterator[TableColumn]:
    outcomes = [row.outcomes for row in rows]
    yield TableColumn("calls", [count(asked.calls) if asked else "" for asked in outcomes], is_right=True)
    failed = [count(asked.error) if asked else "" for asked in outcomes]
    yield TableColumn("failed", failed, rank=4, is_right=True)
    cancelled = [count(asked.cancelled) if asked else "" for asked in outcomes]
    yield TableColumn("cancelled", cancelled, rank=5, is_right=True)
    yield TableColumn("tokens", [count(row.billed.tokens.total) for row in rows], rank=2, is_right=True)
    yield _cost_column("cost", 0, [row.billed for row in rows], currency, "green")


def _cost_column(name: str, rank: int, sums: Sequence[Usage], currency: Currency, style: str) -> TableColumn:
    cells = align_points([cost_of(row_sums, currency) for row_sums in sums])
    return TableColumn(name, cells, style, rank, is_right=True)


def totals(report: UsageReport, currency: Currency) -> Iterator[Text]:
    """Yield what was billed, what of it is still active, and the cost of the difference."""
    for name, sums in (("billed", report.billed), ("active", report.active)):
        words = f"  {plural(sums.calls, 'call')}, {count(sums.tokens.total)} tokens"
        yield Text.assemble((f"{name:<7}", "dim"), (cost_of(sums, currency), "bold"), words)
    dropped = report.billed.cost.nanousd - report.active.cost.nanousd
    if dropped:
        cost = currency.show(dropped)
        yield Text(f"{cost} was spent on messages that were later rewound, rolled back, compressed or replaced.", "dim")


def notes(report: UsageReport, currency: Currency) -> Iterator[str]:
    """Yield where the prices come from, and what the amounts leave out."""
    rate = f"; {currency.rate} {currency.code} per dollar" if currency.code != "USD" else ""
    yield f"Prices: {report.table}, {report.date}{rate}"
    for model, sums in report.unpriced.items():
        name = line(model, 60) if model else "calls without a model name"
        yield f"No price for {name}: {plural(sums.calls, 'call')}, {count(sums.tokens.total)} tokens are in no amount."
    if report.by == "tool":
        yield (
            "Tokens and cost are those of the model calls that asked for the tool. A call that asked for two tools"
            " counts in both rows, so the rows do not add up to a total."
        )
    if report.billed.inconsistent:
        n_calls = report.billed.inconsistent
        verb = "call has a total that is" if n_calls == 1 else "calls have totals that are"
        yield f"{n_calls} {verb} not the sum of the counts; all are shown as recorded. `pollux audit` names them."


def usage_lines(report: UsageReport, *, header: bool = True) -> Iterator[str]:
    """Yield a tab-separated line per row, with exact numbers."""
    return tab_lines(*_export(report), header=header)


def usage_csv(report: UsageReport, *, header: bool = True) -> Iterator[str]:
    """Yield a line of CSV per row, with exact numbers."""
    return csv_lines(*_export(report), header=header)


def _export(report: UsageReport) -> tuple[list[str], Iterator[list[object]]]:
    names = ["key", "name", *_NUMBERS, *(_OUTCOMES if report.by == "tool" else ())]

    def rows() -> Iterator[list[object]]:
        for row in report.rows:
            billed, asked = row.billed, row.outcomes
            numbers = [
                *_sums(billed),
                billed.cost.unpriced_calls,
                billed.cost.unpriced_tokens.total,
                *_sums(row.active),
            ]
            if asked:
                numbers += [asked.calls, asked.success, asked.error, asked.cancelled, asked.no_result]
            yield [row.key or "", row.name, *numbers]

    return names, rows()


def _sums(sums: Usage) -> list[object]:
    tokens = sums.tokens
    counts = (tokens.input, tokens.cached, tokens.output, tokens.thoughts, tokens.tool, tokens.total)
    return [sums.calls, *counts, dollars(sums.cost_nanousd)]


def _cached_share(tokens: Tokens) -> str:
    return f"{100 * tokens.cached // tokens.input}%" if tokens.input else "–"


def _weight(row: UsageRow, report: UsageReport) -> int:
    """Return what a bar shows: tool calls of a tool, otherwise money, or tokens where nothing has a price."""
    if row.outcomes:
        return row.outcomes.calls
    return row.billed.cost.nanousd if report.billed.cost.nanousd else row.billed.tokens.total


def audit_lines(report: AuditReport) -> Iterator[Text]:
    """Yield the cost of a session and its subagents call by call, and the total."""
    for session, calls in report.audits:
        yield Text.assemble((session.id, "bold bright_blue"), "  ", line(title(session), 200))
        for number, call in enumerate(calls, 1):
            yield Text("")
            yield from _call_lines(number, call)
        yield Text("")
    amount = _exact(report.cost_nanousd)
    yield Text.assemble("total     ", (amount, "bold green"), f"  {plural(len(report.counted), 'call')}")
    if report.n_unpriced:
        models = "a model that has" if report.n_unpriced == 1 else "models that have"
        yield Text(f"          without {plural(report.n_unpriced, 'call')} of {models} no price", "bright_magenta")
    yield Text(f"prices    {report.table}, {report.date}", "dim")


def _call_lines(number: int, audited: AuditedCall) -> Iterator[Text]:
    call = audited.call
    head = f"{line(call.model or 'no model', 60)}, {call.fate}"
    yield Text.assemble((f"{number}  ", "dim"), (rfc3339(call.at) or "no time", "bold"), f"  {head}")
    yield Text(f"   {line(str(call.file), 500)}:{call.line}", "dim")
    recorded = audited.recorded if isinstance(audited.recorded, dict) else {}
    counts = "  ".join(f"{line(name, 20)} {line(str(value), 24)}" for name, value in recorded.items())
    yield Text(f"   recorded  {counts}")
    if audited.is_total_computed:
        yield Text("   the file has no total: computed as input + output + thoughts + tool", "bright_magenta")
    if not call.tokens.is_consistent:
        yield Text("   the total is not input + output + thoughts + tool: shown as recorded", "bright_magenta")
    if audited.owner:
        yield Text(f"   not counted here: it belongs to session {line(audited.owner, 80)}", "bright_magenta")
    elif audited.price is None:
        yield Text("   no price for this model: in no amount", "bright_magenta")
    else:
        yield from _amounts(audited)
    for duplicate in audited.duplicates:
        yield Text(f"   not counted again  {_duplicate(duplicate)}", "dim")


def _amounts(audited: AuditedCall) -> Iterator[Text]:
    assert audited.price
    assert audited.tier
    since = f" since {audited.price.since}" if audited.price.since else ""
    tier = f", prompt above {audited.tier.above:,} tokens" if audited.tier.above else ""
    yield Text(f"   price     {line(audited.price.id, 80)}{since}{tier}")
    for bucket in audited.buckets:
        if bucket.tokens:
            yield Text(f"   {bucket.name:<9} {_product(bucket)}")
    yield Text.assemble("   amount    ", (_exact(audited.cost_nanousd), "green"))


def _product(bucket: Bucket) -> str:
    rate = _with_cents(Decimal(bucket.picousd) * _MICRO)
    return f"{bucket.tokens:,} × {rate} per million = {_with_cents(Decimal(bucket.amount) * _PICO)}"


def _exact(nanousd: int | None) -> str:
    return "no price" if nanousd is None else _with_cents(nanousd * Decimal(10) ** -9)


def _with_cents(amount: Decimal) -> str:
    digits = f"{amount:,.12f}".rstrip("0")
    return f"${digits}{'0' * max(0, 2 - len(digits.partition('.')[2]))}"


def _duplicate(duplicate: Duplicate) -> str:
    session = f" {line(duplicate.session_id, 80)}" if duplicate.session_id else ""
    return f"{line(duplicate.file, 500)}:{duplicate.line}  {duplicate.reason}{session}"


def usage_screen(
    report: UsageReport, currency: Currency, *notices: str, projects: Mapping[str, str] = NO_NAMES
) -> Iterator[RenderableType]:
    """Yield the table of a report, its totals and notes."""
    if report.n_hidden:
        notices += (f"{plural(report.n_hidden, 'more row')}: in the totals, but not shown.",)
    yield usage_table(report, currency, projects)
    yield Text("")
    yield from totals(report, currency)
    yield Text("")
    for note in (*notices, *notes(report, currency)):
        yield Text(note, "dim")


class LiveScreen:
    """A report that is drawn again and again.

    It has the whole screen: lines that wrap anew when the window is resized could not be drawn over.
    """

    def __init__(self, console: Console, currency: Currency, projects: Mapping[str, str] = NO_NAMES) -> None:
        """Prepare to draw on a console."""
        from rich.live import Live  # noqa: PLC0415  most reports are drawn once

        self._console, self._currency, self._projects = console, currency, projects
        self._live = Live(console=console, screen=True, auto_refresh=False)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.__exit__(None, None, None)

    def draw(self, report: UsageReport) -> None:
        """Draw as many rows as the screen has room for: the latest periods, or the largest rows."""
        self._live.update(self._fitted(report), refresh=True)

    def print(self, report: UsageReport) -> None:
        """Print the report where it stays after the command has ended."""
        self._console.print(self._fitted(report))

    def _fitted(self, report: UsageReport) -> RenderableType:
        without_rows = Group(*usage_screen(msgspec.structs.replace(report, rows=()), self._currency, "more"))
        room = max(1, self._console.height - len(self._console.render_lines(without_rows, pad=False)))
        rows = report.rows[-room:] if report.by in PERIODS else report.rows[:room]
        n_more = len(report.rows) - len(rows)
        notices = [f"{plural(n_more, 'more row')}: in the totals, but not shown."] if n_more else []
        notices += ["No model call matches yet."] if not rows else []
        shown = msgspec.structs.replace(report, rows=rows)
        return Group(*usage_screen(shown, self._currency, *notices, projects=self._projects))
