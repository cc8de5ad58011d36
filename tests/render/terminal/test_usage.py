"""Money with enough digits, columns that make way, bars, and nothing that a title could do to a terminal or a sheet."""

from __future__ import annotations

from decimal import Decimal

from rich.console import Console

from pollux.model import Tokens
from pollux.render.terminal.usage import cost_of, dollars, notes, totals, usage_csv, usage_lines, usage_table
from pollux.reports.usage import Asked, Report, Row, Sums
from pollux.text.numbers import Currency


def sums(calls: int = 1, nanousd: int = 1_500_000_000, *, unpriced_calls: int = 0, inconsistent: int = 0) -> Sums:
    tokens = Tokens(1000 * calls, 250 * calls, 20, 30, 0, 1050 * calls)
    return Sums(calls, tokens, nanousd, unpriced_calls, inconsistent=inconsistent)


def report(*rows: Row, by: str = "session", billed: Sums | None = None, kept: Sums | None = None) -> Report:
    return Report(by, "UTC", "table 1", "2026-10-15", rows, billed or sums(3), kept or sums(2))


def drawn(found: Report, width: int, encoding: str = "utf-8") -> list[str]:
    console = Console(width=width, record=True, file=None, force_terminal=False)
    with console.capture() as capture:
        console.print(usage_table(found, Currency(), width=width, encoding=encoding))
    return capture.get().splitlines()


def test_exact_money_has_every_digit() -> None:
    assert [dollars(one) for one in (0, 1, 10**9, 1_500_000_000, 1_298_875, None)] == [
        *("$0.00", "$0.000000001", "$1.00", "$1.50", "$0.001298875", "no price"),
    ]


def test_amount_says_that_something_is_missing() -> None:
    assert cost_of(sums(2, unpriced_calls=1), Currency()) == "$1.50+"
    assert cost_of(sums(1, 0, unpriced_calls=1), Currency()) == "no price"


def test_columns_make_way() -> None:
    rows = [Row(f"id-{n}", "title " * 9, sums(n), sums(1), n) for n in (1, 2, 3)]
    heads = {width: drawn(report(*rows), width)[0].split() for width in (24, 60, 80, 160)}
    assert heads[24] == ["session", "tokens"]
    assert {"tokens", "cost", "kept"} <= set(heads[60])
    assert {"calls", "input", "kept", "$"} <= set(heads[80])
    assert {"cached", "thoughts"} <= set(heads[160])
    for width in (24, 60, 80, 160):
        assert all(len(line) <= width for line in drawn(report(*rows), width))


def test_what_is_the_same_is_not_shown_twice() -> None:
    rows = [Row(f"2026-11-0{n}", f"2026-11-0{n}", sums(n), sums(n)) for n in (1, 2)]
    lines = drawn(report(*rows, by="day", billed=sums(3), kept=sums(3)), 80)
    assert "kept" not in lines[0]
    assert "█" in lines[1]


def test_bars_are_drawn_in_any_encoding() -> None:
    rows = [Row(f"2026-11-0{n}", f"2026-11-0{n}", sums(n, n * 10**9), sums(n, n * 10**9)) for n in (1, 2)]
    found = report(*rows, by="day", billed=sums(3), kept=sums(3))
    assert [line.count("#") for line in drawn(found, 200, "ascii")[1:3]] == [12, 24]
    free = [Row("a", "a", sums(1, 0), sums(1, 0)), Row("b", "b", sums(2, 0), sums(2, 0))]
    drawn_free = drawn(report(*free, by="model", billed=sums(3, 0), kept=sums(3, 0)), 200, "ascii")
    assert [line.count("#") for line in drawn_free[1:3]] == [12, 24]  # by tokens
    none = [Row(one, one, Sums(), Sums()) for one in "ab"]
    assert "#" not in "".join(drawn(report(*none, by="model", billed=Sums(), kept=Sums()), 200, "ascii"))


def test_weeks_and_hours_are_named() -> None:
    assert "2026-W46 09 Nov" in drawn(report(Row("2026-W46", "2026-W46", sums(), sums()), by="week"), 80)[1]
    hour = Row("2026-11-15T02:00+01:00", "x", sums(), sums())
    assert "2026-11-15 02:00+01:00" in drawn(report(hour, by="hour"), 80)[1]
    assert "no time" in drawn(report(Row(None, "no time", sums(), sums()), by="day"), 80)[1]


def test_tools_say_what_came_of_them() -> None:
    rows = [Row("Bash", "Bash", sums(), sums(), None, Asked(5, 3, 1, 1)), Row("Read", "Read", Sums(), Sums())]
    found = report(*rows, by="tool")
    head, bash, *_ = drawn(found, 80)
    assert head.split() == ["tool", "calls", "failed", "cancelled", "tokens", "cost"]
    assert bash.split()[:4] == ["Bash", "5", "1", "1"]
    assert any("not to be added up" in one for one in notes(found, Currency()))


def test_totals_are_side_by_side() -> None:
    billed, kept = (text.plain for text in totals(report(), Currency()))
    assert billed.startswith("billed $1.50  3 calls, 3.1k tokens: 3.0k in (25% cached)")
    assert kept.startswith("kept   $1.50  2 calls")
    with_tool = Sums(1, Tokens(0, 0, 1, 0, 5, 6), 1)
    assert "(– cached)" in next(totals(report(billed=with_tool), Currency())).plain


def test_notes_name_what_is_missing() -> None:
    found = Report(
        *("day", "UTC", "table 1", "2026-10-15", (), sums(3, inconsistent=2), sums(2)),
        {None: sums(1), "x\x1b[2J": sums(2)},
    )
    said = list(notes(found, Currency("EUR", Decimal("0.9"))))
    assert said[0] == "Prices: table 1, 2026-10-15; 0.9 EUR for a dollar"
    assert said[1].startswith("No price for calls without a model's name: 1 call, 1.1k tokens")
    assert "\x1b" not in said[2]
    assert "2 calls have totals that are not the sum" in said[3]


def test_titles_do_no_harm() -> None:
    found = report(Row("id", '=cmd|"x"\n\x1b[2J', sums(), Sums()))
    assert "\x1b" not in "".join(drawn(found, 200))
    (fields,) = usage_lines(found)
    assert fields.count("\n") == 1
    assert "\x1b" not in fields
    assert "'=cmd" in "".join(usage_csv(found))
