"""All surfaces agree: whatever happens to the homes, in whatever order it is archived, and whatever it costs.

`ls`, `usage`, `stats`, `overview`, `audit`, the exports and Parquet are asked the same and must say the same, after
every refresh of an archive, while another process writes to it, and without an archive.
"""

from __future__ import annotations

import io
import json
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import HealthCheck, given, seed, settings
from tests.builders import instant_of
from tests.library.worlds import Story, World, stories

from pollux.__main__ import main
from pollux.archive.lock import WriterLock
from pollux.library.config import Config
from pollux.library.library import Library
from pollux.library.stats import TABLES, StatsQuery
from pollux.library.usage import GROUPS, UsageQuery
from pollux.model import Cost, Tokens, Usage
from pollux.reports.filters import Filter
from pollux.reports.sessions import Page, SessionRow
from pollux.reports.stats import StatsTable
from pollux.reports.usage import UsageReport, UsageRow
from pollux.reports.usage_split import PeriodUsage
from pollux.views.contracts import listed_row

parquet = pytest.importorskip("pyarrow.parquet", reason="no pyarrow: `pip install 'pollux-cli[lake]'`")

N_SHARES, N_STORIES = (8, int(os.environ.get("POLLUX_LAW") or 300)) if os.environ.get("POLLUX_LONG") else (2, 30)
"""Shares, which run side by side, and the stories of each."""
IS_REPEATABLE = "POLLUX_LONG" not in os.environ or "CI" in os.environ
"""As in `conftest.py`: every share draws other stories, the same in every run."""
EVERY = Filter(subagents=True, empty=True)
WINDOW = Filter(since=instant_of(1), until=instant_of(900))
"""A stretch of time that some of the calls of most stories are in."""
Key: TypeAlias = str | None
Numbers: TypeAlias = Mapping[Key, tuple[int, ...]]


@pytest.mark.parametrize("share", range(N_SHARES))
def test_all_surfaces_agree(share: int) -> None:
    @settings(max_examples=N_STORIES, suppress_health_check=list(HealthCheck))
    @given(stories())
    def check(story: Story) -> None:
        _check_story(story)

    if IS_REPEATABLE:
        seed(share)(check)
    check()


def _check_story(story: Story) -> None:
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        folder = Path(name)
        patch.setenv("XDG_DATA_HOME", str(folder / "data"))
        world = World(folder, story)
        for round_ in story.rounds:
            for event in round_.events:
                world.happen(event)
            with _another_writer(folder / "archive.db", is_there=round_.is_locked):
                _check_reports(world.config(round_.prices, "archive.db", round_.homes))
        prices = story.rounds[-1].prices
        _check_all(world.config(prices, "archive.db"), folder)
        assert _check_all(world.config(prices, "new.db"), folder) == _check_all(world.config(prices, None), folder)


@contextmanager
def _another_writer(archive: Path, *, is_there: bool) -> Iterator[None]:
    lock = WriterLock(archive)
    is_taken = is_there and lock.take()
    try:
        yield
    finally:
        if is_taken:
            lock.release()


def _check_all(config: Config, folder: Path) -> object:
    """Check the answers of the library, and the commands that hand sessions over; return what they say."""
    rows, answers = _check_reports(config)
    own = {row.id: row.own_usage for row in rows.values()}
    assert _exported_calls(config, folder) == {id_: _told(usage) for id_, usage in own.items() if usage.calls}
    if config.archive:
        assert _parquet(config, folder) == {id_: _numbers(usage) for id_, usage in own.items() if usage.calls}
    for id_, document in _exported_sessions(config, folder).items():
        assert document["session"] == json.loads(json.dumps(listed_row(rows[id_])))
        assert _total(call["tokens"] for call in document["usage"]) == own[id_].tokens
    for row in rows.values():
        if row.root_id == row.id and row.usage.calls:
            assert _audited(config, row.id) == (_numbers(row.usage)[:9], row.usage.cost_nanousd)
    return answers


def _check_reports(config: Config) -> tuple[dict[str, SessionRow], object]:
    """Check that the reports of a library agree; return the sessions, and all that was said of them."""
    with Library(config) as library:
        page = library.sessions(EVERY, Page(None))
        rows = {row.id: row for row in page.rows}
        assert page.total == len(rows)
        usage = sum((row.own_usage for row in rows.values()), Usage())
        active = _check_usage(library, rows, usage)
        _check_stats(library, rows, usage)
        _check_window(library)
        look = library.overview().overview
        assert look.usage == usage
        listed = library.sessions(page=Page(None)).rows
        assert (look.n_sessions, look.n_prompts) == (len(listed), sum(row.prompts for row in listed))
        for row in listed:
            assert library.session(row.id) == row
    return rows, ({id_: _facts(row) for id_, row in rows.items()}, active)


def _check_usage(library: Library, rows: Mapping[str, SessionRow], usage: Usage) -> object:
    """Check `usage` against the sessions; return the reports."""
    reports = {by: library.usage(UsageQuery(by)) for by in GROUPS}
    for by, report in reports.items():
        assert _numbers(report.billed) == _numbers(usage), by
        assert report.active == reports["day"].active, by
        assert sum((sums for sums in report.unpriced.values()), Usage()).calls == usage.cost.unpriced_calls, by
        if by != "tool":
            assert sum((row.billed for row in report.rows), Usage()) == report.billed, by
            assert sum((row.active for row in report.rows), Usage()) == report.active, by
    by_root = _grouped(rows, lambda row: row.root_id, lambda row: row.own_usage)
    assert _billed(reports["session"]) == by_root
    apart = library.usage(UsageQuery("session", separate_subagents=True))
    assert _billed(apart) == _grouped(rows, lambda row: row.id, lambda row: row.own_usage)
    assert _billed(reports["project"]) == _grouped(rows, lambda row: row.project.key or None, lambda row: row.own_usage)
    kept = {row.key: _numbers(row.active) for row in reports["session"].rows}
    for row in rows.values():
        if row.root_id == row.id:
            assert _numbers(row.usage) == by_root.get(row.id, _numbers(Usage())), row.id
            assert _numbers(row.active) == kept.get(row.id, _numbers(Usage())), row.id
    return {by: [_plain(row) for row in report.rows] for by, report in reports.items()}


def _check_stats(library: Library, rows: Mapping[str, SessionRow], usage: Usage) -> None:
    """Check `stats` against the sessions and against `usage`."""
    summary = library.stats().summary
    assert summary is not None
    totals = summary.totals
    assert (totals["model_calls"], totals["tokens"]) == (usage.calls, usage.tokens.total)
    assert totals["prompts"] == sum(row.prompts for row in rows.values())
    assert totals["tool_calls"] == sum(row.tool_calls for row in rows.values())
    sections = {by: library.stats(StatsQuery(by)).sections[0] for by in TABLES}
    for by in ("day", "week", "month", "project", "session"):
        names = ("prompts", "tool_calls", "model_calls", "tokens")
        work = _columns(sections[by], *names)
        assert _sum([(0,) * len(names), *work.values()]) == tuple(totals[name] for name in names), by
    for by in ("day", "week", "month", "project", "session", "model"):
        reported = library.usage(UsageQuery(by)).rows
        spent = {row.key: (row.billed.calls, row.billed.tokens.total) for row in reported}
        assert _without_zeros(_columns(sections[by], "model_calls", "tokens")) == _without_zeros(spent), by
    by_root = _grouped(rows, lambda row: row.root_id, lambda row: (row.prompts, row.tool_calls))
    assert _without_zeros(_columns(sections["session"], "prompts", "tool_calls")) == _without_zeros(by_root)
    asked = {}
    for row in library.usage(UsageQuery("tool")).rows:
        assert row.outcomes is not None
        asked[row.key] = (row.outcomes.calls, row.outcomes.success, row.outcomes.error, row.outcomes.cancelled)
    assert asked == _columns(sections["tool"], "tool_calls", "success", "error", "cancelled")


def _check_window(library: Library) -> None:
    """Check that the reports on a stretch of time agree."""
    reports = {by: library.usage(UsageQuery(by, WINDOW)) for by in GROUPS}
    for by, report in reports.items():
        assert (report.billed, report.active) == (reports["day"].billed, reports["day"].active), by
    _check_summaries(library)
    summary = library.stats(StatsQuery(filter=WINDOW)).summary
    assert summary is not None
    billed = reports["day"].billed
    assert (summary.totals["model_calls"], summary.totals["tokens"]) == (billed.calls, billed.tokens.total)
    assert summary.totals["tool_calls"] == sum(row.outcomes.calls for row in reports["tool"].rows if row.outcomes)


def _check_summaries(library: Library) -> None:
    """Check that the page of usage, which starts from stored sums, shows what the reports add up from the calls."""
    windows = (Filter(), WINDOW, Filter(since=WINDOW.since), Filter(until=WINDOW.until), Filter(model="pro"))
    for window in windows:
        summary = library.usage_summary(UsageQuery("day", window), n_rows=10_000)
        reports = {by: library.usage(UsageQuery(by, window)) for by in ("day", "model", "project", "session", "tool")}
        assert (summary.billed, summary.active) == (reports["day"].billed, reports["day"].active)
        assert summary.unpriced == reports["day"].unpriced
        assert summary.models == reports["model"].rows
        assert list(map(_amounts, summary.periods)) == list(map(_amounts, reports["day"].rows))
        for by, rows in (("project", summary.projects), ("session", summary.sessions), ("tool", summary.tools)):
            assert _amounts_of(rows) == _amounts_of(reports[by].rows), by
        assert (summary.n_sessions, summary.n_tools) == (len(summary.sessions), len(summary.tools))
        first = library.usage_summary(UsageQuery("day", window), n_rows=2)
        assert first.sessions == summary.sessions[:2]
        priced = summary.billed.tokens.total - summary.billed.cost.unpriced_tokens.total
        assert summary.billed.cost.nanousd == 0 or summary.breakdown.picousd or not priced


def _amounts_of(rows: Iterable[UsageRow]) -> object:
    return {row.key: (row.name, row.outcomes, *_amounts(row)) for row in rows}


def _amounts(row: UsageRow | PeriodUsage) -> tuple[object, ...]:
    return _numbers(row.billed), _numbers(row.active)


def _exported_calls(config: Config, folder: Path) -> dict[str, tuple[int, ...]]:
    """Add up the records of `export --format calls` by session."""
    sums: dict[str, tuple[int, ...]] = {}
    for text in _exported(config, folder, "calls"):
        for line in text.splitlines():
            record = json.loads(line)
            is_unpriced = record["cost_nanousd"] is None
            numbers = [record[name] for name in ("total_tokens", "cached_input_tokens", "reasoning_tokens")]
            one = (1, *numbers, record["tool_prompt_tokens"], record["cost_nanousd"] or 0, int(is_unpriced))
            sums[record["session_id"]] = _sum([sums.get(record["session_id"], (0,) * len(one)), one])
    return sums


def _told(usage: Usage) -> tuple[int, ...]:
    """Return of a usage what the records of calls say too."""
    tokens, cost = usage.tokens, usage.cost
    spent = (tokens.total, tokens.cached, tokens.thoughts, tokens.tool)
    return (usage.calls, *spent, cost.nanousd, cost.unpriced_calls)


def _exported_sessions(config: Config, folder: Path) -> dict[str, Any]:
    """Return the documents of `export --format json` by session."""
    documents = [json.loads(text) for text in _exported(config, folder, "json")]
    return {document["session"]["id"]: document for document in documents}


def _exported(config: Config, folder: Path, format_: str) -> list[str]:
    with tempfile.TemporaryDirectory(dir=folder) as target:
        _run(config, "export", "--all", "--format", format_, "--output", target)
        return [
            path.read_text("utf-8") for path in sorted(Path(target).rglob("*.json*")) if not path.name.startswith(".")
        ]


def _parquet(config: Config, folder: Path) -> dict[str, tuple[int, ...]]:
    """Add up the model calls of a lake by session."""
    sums: dict[str, Usage] = defaultdict(Usage)
    with tempfile.TemporaryDirectory(dir=folder) as target:
        _run(config, "export", "--all", "--format", "parquet", "--output", target)
        path = Path(target) / "model_calls.parquet"
        calls = parquet.read_table(path).to_pylist() if path.exists() else []
    for call in calls:
        if call["owner_session_id"] is None:
            tokens, nanousd = _counts(call, "tok_"), call["cost_nanousd"]
            cost = Cost(0, 1, tokens) if nanousd is None else Cost(nanousd)
            sums[call["session_id"]] += Usage(1, tokens, cost, 1 - call["tok_consistent"])
    return {id_: _numbers(usage) for id_, usage in sums.items()}


def _audited(config: Config, session_id: str) -> tuple[tuple[int, ...], int | None]:
    """Add up the calls that `audit` counts in a session and its subagents."""
    document = json.loads(_run(config, "audit", session_id, "--json"))
    usage = Usage()
    for call in document["calls"]:
        if call["counted_in"] == call["session"]:
            nanousd = call["cost_nanousd"]
            cost = Cost(0, 1) if nanousd is None else Cost(nanousd)
            usage += Usage(1, _counts(call["tokens"]), cost)
    assert (document["counted"], document["unpriced_calls"]) == (usage.calls, usage.cost.unpriced_calls)
    assert document["cost_nanousd"] == usage.cost_nanousd
    return _numbers(usage)[:9], document["cost_nanousd"]


def _run(config: Config, command: str, *args: str) -> str:
    """Run a command in this process, and return what it prints."""
    homes = [word for home in config.homes for word in ("--home", str(home.root))]
    archive = ["--archive", str(config.archive)] if config.archive else ["--no-archive"]
    printed, errors = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(sys, "argv", ["pollux", command, *args, *homes, *archive])
        patch.setenv("POLLUX_PRICES", str(config.price_file))
        stack.enter_context(redirect_stdout(printed))
        stack.enter_context(redirect_stderr(errors))
        ended = stack.enter_context(pytest.raises(SystemExit))
        main()
    said = errors.getvalue()
    assert ended.value.code in (0, 1), said
    assert "Traceback" not in said
    printed.seek(0)
    return printed.read()


def _facts(row: SessionRow) -> object:
    """Return what does not depend on where a session was read from."""
    return {**listed_row(row), "deleted": None, "root": row.root_id, "prompts": row.prompts, "number": row.number}


def _plain(row: UsageRow) -> object:
    return row.key, row.name, _numbers(row.billed), _numbers(row.active), row.last_us, row.outcomes


def _numbers(usage: Usage) -> tuple[int, ...]:
    cost = usage.cost
    calls = (usage.calls, *_fields(usage.tokens), cost.nanousd, cost.unpriced_calls)
    return (*calls, *_fields(cost.unpriced_tokens), usage.inconsistent)


def _fields(tokens: Tokens) -> tuple[int, ...]:
    return (tokens.input, tokens.cached, tokens.output, tokens.thoughts, tokens.tool, tokens.total)


def _counts(row: Mapping[str, int], prefix: str = "") -> Tokens:
    return Tokens(*(row[f"{prefix}{name}"] for name in ("input", "cached", "output", "thoughts", "tool", "total")))


def _total(rows: Iterable[Mapping[str, int]]) -> Tokens:
    return sum(map(_counts, rows), Tokens())


def _billed(report: UsageReport) -> Numbers:
    return {row.key: _numbers(row.billed) for row in report.rows}


def _grouped(
    rows: Mapping[str, SessionRow], key: Callable[[SessionRow], Key], value: Callable[[SessionRow], Any]
) -> dict[Key, tuple[int, ...]]:
    """Add up a value of sessions by a key; sessions without model calls have no usage."""
    groups: dict[Key, list[tuple[int, ...]]] = defaultdict(list)
    for row in rows.values():
        part = value(row)
        if isinstance(part, Usage):
            if part.calls:
                groups[key(row)].append(_numbers(part))
        else:
            groups[key(row)].append(part)
    return {name: _sum(parts) for name, parts in groups.items()}


def _sum(parts: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(map(sum, zip(*parts, strict=True)))


def _columns(section: StatsTable, *names: str) -> dict[Key, tuple[int, ...]]:
    places = [section.columns.index(name) for name in names]
    return {row.key: tuple(row.numbers[place] for place in places) for row in section.rows}


def _without_zeros(numbers: Numbers) -> Numbers:
    return {key: values for key, values in numbers.items() if any(values)}
