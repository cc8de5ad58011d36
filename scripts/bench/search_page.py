"""The section of the page that shows the numbers of `search`."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from scripts.bench import tables
from scripts.bench.peers import AGENTSVIEW
from scripts.bench.search_numbers import MILLION, SearchNumbers
from scripts.bench.trees import MB

_SHARES = (0.5, 0.95, 1.0)
_FAILURES = {"commands": "found nothing", "hostile": "refused", "ripgrep": "found nothing"}
"""What another exit status than 0, or an error, means."""
RIPGREP_VERSION, TANTIVY_VERSION = "15.0.0", "0.27.0"


def section(numbers: SearchNumbers) -> Iterator[str]:
    """Write the section of the page."""
    yield _heading(numbers)
    yield ""
    yield (
        f"{numbers.n_sessions:,} sessions with {numbers.text_bytes / MB:,.0f} MB of text, "
        f"{numbers.file_bytes / MB:,.0f} MB as files: source code, docs and translations that are installed on this "
        "machine, invented logs and tracebacks; 12 % of the sessions are not English, 3 % of the calls return lock "
        "files, encoded data, minified code or dumps."
    )
    yield ""
    if numbers.n_messages >= MILLION:  # the bars are those of a million messages
        yield from tables.table(("", "bar", "measured", ""), [[*row] for row in _bars(numbers)], left=4)
    yield from _build_table(numbers)
    yield from _time_table(numbers)
    yield from _kind_table(numbers)
    for name, why in numbers.missing.items():
        yield f"{name} is missing: {why}."
    if numbers.remark:
        yield numbers.remark
    dates = sorted(set(numbers.at.values()))
    if dates:
        yield (
            f"Measured between {dates[0]} and {dates[-1]} UTC. Load after the steps: "
            f"{', '.join(f'{step} {load:.1f}' for step, load in numbers.load.items())}."
        )
        yield ""


def _heading(numbers: SearchNumbers) -> str:
    return f"## Search: {numbers.n_messages:,} messages"


def _bars(numbers: SearchNumbers) -> Iterator[tuple[str, str, str, str]]:
    built, times = numbers.built, numbers.times
    index = built.get("index")
    if index:
        yield _bar("memory of the build", "≤ 150 MB", index.largest_process / (1 << 20), 150, "MB")
        yield _bar("index / text", "≤ 0.55", index.size / numbers.text_bytes, 0.55, "")
        if "sync" in built:
            ratio = index.cpu / built["sync"].cpu
            yield _bar("CPU of the build / CPU of `sync` without it", "≤ 2", ratio, 2, "")
    for key, name, share, limit in (
        ("hits", "200 mixed queries, hits, p95", 0.95, 30),
        ("snippets", "200 mixed queries, with snippets, p95", 0.95, 60),
        ("commands", "`pollux search`, whole command, p95", 0.95, 400),
        ("turns", "one more turn indexed, median", 0.5, 5),
        ("hostile", "hostile queries, slowest", 1.0, 1000),
    ):
        if key in times and times[key].seconds:
            unit = f"ms ({times[key].cpu_at(share) * 1000:.3g} ms of CPU)" if times[key].cpu else "ms"
            yield _bar(name, f"≤ {limit} ms", times[key].at(share) * 1000, limit, unit)


def _bar(name: str, bar: str, value: float, limit: float, unit: str) -> tuple[str, str, str, str]:
    shown = f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"  # noqa: PLR2004  three digits
    return name, bar, shown.strip(), "met" if value <= limit else "**missed**"


def _build_table(numbers: SearchNumbers) -> Iterator[str]:
    names = {
        "sync": "`pollux sync` without the index",
        "index": "the index",
        "tantivy": f"tantivy {TANTIVY_VERSION}, one thread",
    }
    rows = []
    for key, built in numbers.built.items():
        memory = f"{built.largest_process / (1 << 20):,.0f} MB"
        ratio = f"{built.size / numbers.text_bytes:.2f}"
        rows.append(
            [
                names.get(key, key),
                f"{built.wall:,.0f}",
                f"{built.cpu:,.0f}",
                memory,
                f"{built.size / MB:,.0f} MB",
                ratio,
            ]
        )
    if rows:
        yield from tables.table(("build", "wall s", "CPU s", "largest process", "on disk", "× text"), rows)


def _time_table(numbers: SearchNumbers) -> Iterator[str]:
    names = {
        "hits": "Pollux inside the process, hits",
        "snippets": "Pollux inside the process, with snippets",
        "commands": "`pollux search QUERY`, whole command",
        "turns": "one more turn indexed",
        "hostile": "hostile queries, inside the process",
        "ripgrep": f"ripgrep {RIPGREP_VERSION}, whole command, one literal text",
        "tantivy": "tantivy inside the process, 20 best, no snippets",
        "agentsview": f"agentsview {AGENTSVIEW.version}, whole command",
        "agentsview --fts": f"agentsview {AGENTSVIEW.version} --fts, whole command",
    }
    rows = []
    for key, name in names.items():
        times = numbers.times.get(key)
        if times and times.seconds:
            failed = f", {times.n_failed} {_FAILURES.get(key, 'failed')}" if times.n_failed else ""
            quantiles = [_ms(times.at(share)) for share in _SHARES]
            cpu = [_ms(times.cpu_at(share)) if times.cpu else "–" for share in _SHARES]
            rows.append([f"{name}{failed}", str(len(times.seconds)), *quantiles, *cpu])
    if rows:
        yield from tables.table(("ms", "queries", "p50", "p95", "max", "CPU p50", "CPU p95", "CPU max"), rows)


def _kind_table(numbers: SearchNumbers) -> Iterator[str]:
    columns = [key for key in ("hits", "snippets", "commands", "ripgrep", "tantivy") if key in numbers.times]
    kinds = dict.fromkeys(kind for key in columns for kind in numbers.times[key].kinds)
    rows = []
    for kind in sorted(kinds):
        row = [kind]
        for key in columns:
            times = numbers.times[key]
            seconds = [second for second, name in zip(times.seconds, times.kinds, strict=False) if name == kind]
            row.append(f"{_ms(statistics.median(seconds))} / {_ms(max(seconds))}" if seconds else "–")
        rows.append(row)
    if rows:
        yield from tables.table(("ms, median / max", *columns), rows)


def _ms(seconds: float) -> str:
    milliseconds = seconds * 1000
    return f"{milliseconds:,.0f}" if milliseconds >= 20 else f"{milliseconds:.1f}"  # noqa: PLR2004  two digits
