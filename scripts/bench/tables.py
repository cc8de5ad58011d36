"""Markdown tables of measurements and of reported usage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from scripts.bench.bars import Bar
from scripts.bench.billed import Billed, is_right
from scripts.bench.correctness import Answers
from scripts.bench.measure import Measured

_MB = 1 << 20
_VERDICTS = {True: "met", False: "**missed**", None: "not measured"}
_COLUMNS: Mapping[str, Callable[[Billed], float | None]] = {
    "fresh input": lambda billed: billed.fresh,
    "cached": lambda billed: billed.cached,
    "output": lambda billed: billed.output,
    "thoughts": lambda billed: billed.thoughts,
    "output + thoughts": lambda billed: billed.answered,
    "tool": lambda billed: billed.tool,
    "dollars": lambda billed: billed.dollars,
}


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1) -> Iterator[str]:
    """Yield the lines of a table; the first columns are aligned to the left, the others to the right."""
    yield f"| {' | '.join(head)} |"
    yield f"| {' | '.join('---' if n < left else '---:' for n in range(len(head)))} |"
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""


def bar_table(bars: Iterable[Bar]) -> Iterator[str]:
    """Yield the table of bars."""
    head = ("work", "bar", "measured", "")
    yield from table(head, ((bar.work, bar.bar, bar.measured, _VERDICTS[bar.is_met]) for bar in bars), left=4)


def time_table(measured: Iterable[Measured], cat: Measured) -> Iterator[str]:
    """Yield a table of times and memory."""
    head = ("", "best s", "median s", "CPU s", "× cat", "CPU × cat", "largest process", "all processes")
    yield from table(head, (_time_row(result, cat) for result in measured))


def _time_row(result: Measured, cat: Measured) -> list[str]:
    times = [f"{result.best:.2f}", f"{result.median:.2f}", f"{result.cpu:.2f}"]
    ratios = [f"{result.best / cat.best:.1f}", f"{result.cpu / cat.cpu:.1f}"]
    memory = ["–", "–"]
    if peak := result.peak:
        memory = [f"{peak.largest / _MB:.0f} MB", f"{peak.together / _MB:.0f} MB in {peak.processes}"]
    once = ", once" if result.work.is_slow else ""
    failed = " (**failed**)" if result.is_failed else ""
    return [result.work.name + once + failed, *times, *ratios, *memory]


def number_table(answers: Answers) -> Iterator[str]:
    """Yield a table of the usage of one home, by program."""
    rows = [["truth", *(_plain(column(answers.true)) for column in _COLUMNS.values())]]
    for name, reported in answers.reported.items():
        rows.append([name, *(_cell(reported, answers.true, column) for column in _COLUMNS.values())])
    yield from table(("", *_COLUMNS), rows)


def case_table(cases: Sequence[Answers], columns: Sequence[str]) -> Iterator[str]:
    """Yield a table of some numbers with a row for each home."""
    programs = list(cases[0].reported)
    rows = [
        [
            case.home,
            " / ".join(_plain(_COLUMNS[name](case.true)) for name in columns),
            *(
                " / ".join(_cell(case.reported[program], case.true, _COLUMNS[name]) for name in columns)
                for program in programs
            ),
        ]
        for case in cases
    ]
    yield from table(("", "truth", *programs), rows)


def _cell(reported: Billed | None, true: Billed, column: Callable[[Billed], float | None]) -> str:
    """Return a number as text, in bold type if it is wrong."""
    if reported is None:
        return "**failed**"
    value = column(reported)
    return _plain(value) if is_right(value, column(true)) else f"**{_plain(value)}**"


def _plain(number: float | None) -> str:
    if number is None:
        return "–"
    if isinstance(number, int):
        return f"{number:,}"
    return f"{number:,.9f}".rstrip("0").rstrip(".") if number < 1 else f"{number:,.6f}"
