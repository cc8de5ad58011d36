"""Tables of usage: amounts, columns that are dropped, bars, and escaped titles."""

from __future__ import annotations

from decimal import Decimal

from pollux.model import Cost, Tokens, Usage
from pollux.render.terminal.screen import Console
from pollux.render.terminal.usage import cost_of, notes, totals, usage_csv, usage_lines, usage_table
from pollux.reports.usage import ToolOutcomes, UsageReport, UsageRow
from pollux.text.numbers import Currency


def sums(calls: int = 1, nanousd: int = 1_500_000_000, *, unpriced_calls: int = 0, inconsistent: int = 0) -> Usage:
    tokens = Tokens(1000 * calls, 250 * calls, 20, 30, 0, 1050 * calls)
    return Usage(calls, tokens, Cost(nanousd, unpriced_calls), inconsistent)


def report(*rows: UsageRow, by: str = "session", billed: Usage | None = None, kept: Usage | None = None) -> UsageReport:
    return UsageReport(by, "UTC", "table 1", "2026-10-15", rows, billed or sums(3), kept or sums(2))


def drawn(found: UsageReport, width: int, encoding: str = "utf-8") -> list[str]:
    console = Console(width=width, force_terminal=False)
    options = console.options.copy()
    options.encoding = encoding
    lines = console.render_lines(usage_table(found, Currency()), options, pad=False)
    return ["".join(segment.text for segment in line) for line in lines]


def test_incomplete_amount_has_a_plus_sign() -> None:
    assert cost_of(sums(2, unpriced_calls=1), Currency()) == "$1.50+"
    assert cost_of(sums(1, 0, unpriced_calls=1), Currency()) == "no price"


def test_columns_are_dropped_on_narrow_terminals() -> None:
    rows = [UsageRow(f"id-{n}", "title " * 9, sums(n), sums(1), n) for n in (1, 2, 3)]
    heads = {width: drawn(report(*rows), width)[0].split() for width in (24, 60, 80, 160)}
    assert heads[24] == ["session", "cost"]
    assert {"tokens", "cost", "active"} <= set(heads[60])
    assert {"calls", "active", "$"} <= set(heads[80])
    assert {"cached", "thoughts"} <= set(heads[160])
    for width in (24, 60, 80, 160):
        assert all(len(line) <= width for line in drawn(report(*rows), width))


def test_active_columns_are_shown_only_if_they_differ() -> None:
    rows = [UsageRow(f"2026-11-0{n}", f"2026-11-0{n}", sums(n), sums(n)) for n in (1, 2)]
    lines = drawn(report(*rows, by="day", billed=sums(3), kept=sums(3)), 80)
    assert "active" not in lines[0]
    assert "█" in lines[1]


def test_bars_are_drawn_in_any_encoding() -> None:
    rows = [UsageRow(f"2026-11-0{n}", f"2026-11-0{n}", sums(n, n * 10**9), sums(n, n * 10**9)) for n in (1, 2)]
    found = report(*rows, by="day", billed=sums(3), kept=sums(3))
    assert [line.count("#") for line in drawn(found, 200, "ascii")[1:3]] == [12, 24]
    free = [UsageRow("a", "a", sums(1, 0), sums(1, 0)), UsageRow("b", "b", sums(2, 0), sums(2, 0))]
    drawn_free = drawn(report(*free, by="model", billed=sums(3, 0), kept=sums(3, 0)), 200, "ascii")
    assert [line.count("#") for line in drawn_free[1:3]] == [12, 24]  # by tokens
    none = [UsageRow(one, one, Usage(), Usage()) for one in "ab"]
    assert "#" not in "".join(drawn(report(*none, by="model", billed=Usage(), kept=Usage()), 200, "ascii"))


def test_weeks_and_hours_are_named() -> None:
    assert "2026-W46 09 Nov" in drawn(report(UsageRow("2026-W46", "2026-W46", sums(), sums()), by="week"), 80)[1]
    hour = UsageRow("2026-11-15T02:00+01:00", "x", sums(), sums())
    assert "2026-11-15 02:00+01:00" in drawn(report(hour, by="hour"), 80)[1]
    assert "no time" in drawn(report(UsageRow(None, "no time", sums(), sums()), by="day"), 80)[1]


def test_tool_rows_count_failed_and_cancelled_calls() -> None:
    rows = [
        UsageRow("Bash", "Shell", sums(), sums(), None, ToolOutcomes(5, 3, 1, 1)),
        UsageRow("Read", "Read", Usage(), Usage()),
    ]
    found = report(*rows, by="tool")
    head, bash, *_ = drawn(found, 80)
    assert head.split() == ["tool", "calls", "failed", "cancelled", "tokens", "cost"]
    assert bash.split()[:4] == ["Shell", "5", "1", "1"]
    assert any("do not add up" in one for one in notes(found, Currency()))


def test_totals_show_billed_and_active() -> None:
    billed, active = (text.plain for text in totals(report(), Currency()))
    assert billed == "billed $1.50  3 calls, 3.1k tokens"
    assert active == "active $1.50  2 calls, 2.1k tokens"
    *_, dropped = totals(report(billed=sums(3, 4 * 10**9)), Currency())
    assert dropped.plain.startswith("$2.50 was spent on messages that were later rewound")


def test_notes_list_prices_and_unpriced_calls() -> None:
    found = UsageReport(
        *("day", "UTC", "table 1", "2026-10-15", (), sums(3, inconsistent=2), sums(2)),
        {None: sums(1), "x\x1b[2J": sums(2)},
    )
    said = list(notes(found, Currency("EUR", Decimal("0.9"))))
    assert said[0] == "Prices: table 1, 2026-10-15; 0.9 EUR per dollar"
    assert said[1].startswith("No price for calls without a model name: 1 call, 1.1k tokens")
    assert "\x1b" not in said[2]
    assert "2 calls have totals that are not the sum" in said[3]


def test_hostile_titles_are_escaped() -> None:
    found = report(UsageRow("id", '=cmd|"x"\n\x1b[2J', sums(), Usage()))
    assert "\x1b" not in "".join(drawn(found, 200))
    _, fields = usage_lines(found)
    assert fields.count("\n") == 1
    assert "\x1b" not in fields
    assert "'=cmd" in "".join(usage_csv(found))
