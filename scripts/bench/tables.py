"""Tables of what was measured and of what was said."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from scripts.bench.bars import Bar
from scripts.bench.billed import Billed, is_right
from scripts.bench.correctness import Answers
from scripts.bench.measure import Measured

_MB = 1 << 20
_VERDICTS = {True: "met", False: "**missed**", None: "not measured"}
_COLUMNS: Mapping[str, Callable[[Billed], float | None]] = {
    "fresh input": lambda one: one.fresh,
    "cached": lambda one: one.cached,
    "output": lambda one: one.output,
    "thoughts": lambda one: one.thoughts,
    "output + thoughts": lambda one: one.answered,
    "tool": lambda one: one.tool,
    "dollars": lambda one: one.dollars,
}


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1) -> Iterator[str]:
    """Write a table, the first columns to the left, the others to the right."""
    yield f"| {' | '.join(head)} |"
    yield f"| {' | '.join('---' if n < left else '---:' for n in range(len(head)))} |"
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""


def bar_table(bars: Iterable[Bar]) -> Iterator[str]:
    """Write down the bars."""
    head = ("work", "bar", "measured", "")
    yield from table(head, ((one.work, one.bar, one.found, _VERDICTS[one.is_met]) for one in bars), left=4)


def time_table(measured: Iterable[Measured], cat: Measured) -> Iterator[str]:
    """Write down times and memory."""
    head = ("", "best s", "median s", "CPU s", "× cat", "CPU × cat", "largest process", "all processes")
    yield from table(head, (_time_row(one, cat) for one in measured))


def _time_row(one: Measured, cat: Measured) -> list[str]:
    times = [f"{one.best:.2f}", f"{one.median:.2f}", f"{one.cpu:.2f}"]
    ratios = [f"{one.best / cat.best:.1f}", f"{one.cpu / cat.cpu:.1f}"]
    memory = ["–", "–"]
    if one.peak:
        memory = [f"{one.peak.largest / _MB:.0f} MB", f"{one.peak.together / _MB:.0f} MB in {one.peak.processes}"]
    once = ", once" if one.work.is_slow else ""
    failed = " (**failed**)" if one.is_failed else ""
    return [one.work.name + once + failed, *times, *ratios, *memory]


def number_table(answers: Answers) -> Iterator[str]:
    """Write down what everybody says about one home."""
    rows = [["truth", *(_plain(column(answers.true)) for column in _COLUMNS.values())]]
    for name, said in answers.said.items():
        rows.append([name, *(_cell(said, answers.true, column) for column in _COLUMNS.values())])
    yield from table(("", *_COLUMNS), rows)


def case_table(cases: Sequence[Answers], columns: Sequence[str]) -> Iterator[str]:
    """Write down some numbers for many homes, a home a row."""
    names = list(cases[0].said)
    rows = [
        [
            one.home,
            " / ".join(_plain(_COLUMNS[name](one.true)) for name in columns),
            *(" / ".join(_cell(one.said[who], one.true, _COLUMNS[name]) for name in columns) for who in names),
        ]
        for one in cases
    ]
    yield from table(("", "truth", *names), rows)


def _cell(said: Billed | None, true: Billed, column: Callable[[Billed], float | None]) -> str:
    """Write a number, bold where it is wrong."""
    if said is None:
        return "**failed**"
    value = column(said)
    return _plain(value) if is_right(value, column(true)) else f"**{_plain(value)}**"


def _plain(number: float | None) -> str:
    if number is None:
        return "–"
    if isinstance(number, int):
        return f"{number:,}"
    return f"{number:,.9f}".rstrip("0").rstrip(".") if number < 1 else f"{number:,.6f}"
