"""Statistics of prompts, answers and tool calls by tool, model, project, session, time, file type and program.

Each table contains only integers, so that all renderers can treat them alike; rates are computed for display.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import NamedTuple, TypeAlias

from pollux.model import Problem, Project
from pollux.reports import periods, stats_sql
from pollux.reports.stats_sql import CallCount, MessageCount, StatsCounts, ToolCount
from pollux.reports.usage_sql import session_roots
from pollux.sessions.projects.paths import from_root

TOTAL = (
    *("sessions", "subagents", "projects", "prompts", "answers", "errors", "tool_calls", "success", "error"),
    *("cancelled", "no_result", "nonzero_exit", "model_calls", "tokens", "files", "lines_added", "lines_removed"),
    *("active_seconds", "active_days"),
)
WORK = (
    *("sessions", "subagents", "prompts", "answers", "tool_calls", "error", "cancelled", "model_calls", "tokens"),
    "active_seconds",
)
TOOL = ("tool_calls", "success", "error", "cancelled", "no_result", "nonzero_exit", "sessions")
FILES = ("files", "reads", "creates", "edits", "deletes", "lines_added", "lines_removed")
PROGRAM = ("runs", "sessions")

_SECOND_US = 1_000_000
_SUFFIX = re.compile(r"[\w+-]{1,12}")
_NO_SUFFIX = "no suffix"
Work: TypeAlias = MessageCount | ToolCount | CallCount
_Keyed: TypeAlias = Callable[[Work], tuple[str | None, str] | None]


@dataclass(frozen=True, slots=True)
class StatsRow:
    """One row of a table."""

    key: str | None
    name: str
    """For display: the title of a session, the folder name of a project."""
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StatsTable:
    """Numbers by one dimension."""

    by: str
    columns: tuple[str, ...]
    rows: tuple[StatsRow, ...]


@dataclass(frozen=True, slots=True)
class Statistics:
    """The requested tables, and totals unless a single table was requested."""

    timezone: str
    sections: tuple[StatsTable, ...]
    summary: StatsTotals | None = None
    problems: tuple[Problem, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether all numbers are zero."""
        has_rows = any(section.rows for section in self.sections)
        return not has_rows and not (self.summary and any(self.summary.totals.values()))


@dataclass(frozen=True, slots=True)
class StatsTotals:
    """Totals, and when they happened."""

    totals: Mapping[str, int]
    hours: Mapping[tuple[int, int], int]
    """Prompts by weekday (1 is Monday) and hour of the day."""
    first: datetime | None
    """The start of the first quarter of an hour with activity."""
    last: datetime | None


class StatsDimension(NamedTuple):
    """A dimension of statistics."""

    plural: str
    """The key of its table in JSON."""
    columns: tuple[str, ...]
    needs: frozenset[str] = stats_sql.WORK
    """The fields of `StatsCounts` that it is computed from."""


SECTIONS = {
    "tool": StatsDimension("tools", TOOL, frozenset({"tools"})),
    "model": StatsDimension("models", WORK),
    "project": StatsDimension("projects", WORK),
    "session": StatsDimension("sessions", WORK),
    "day": StatsDimension("days", WORK),
    "week": StatsDimension("weeks", WORK),
    "month": StatsDimension("months", WORK),
    "filetype": StatsDimension("file_types", FILES, frozenset({"touches"})),
    "program": StatsDimension("programs", PROGRAM, frozenset({"programs"})),
}
USUAL = ("tool", "model", "project", "session", "day", "filetype", "program")
"""The tables that are computed by default; weeks and months follow from days."""


def statistics(
    counts: StatsCounts,
    projects: Mapping[str, Project],
    by: str | None = None,
    *,
    others: Sequence[str] = USUAL,
    zone: tzinfo | None = None,
    timezone: str = "UTC",
    problems: tuple[Problem, ...] = (),
) -> Statistics:
    """Return statistics by one dimension, or totals with several tables.

    Args:
        counts: the rows to compute them from.
        projects: the project of each session.
        by: one of `SECTIONS`; without it, totals and the tables of `others` are computed.
        others: the dimensions of the tables next to the totals.
        zone: the time zone of hours, days, weeks and months; the system's own if None.
        timezone: its name.
        problems: to pass on.

    """
    tables = tuple(_table(name, counts, projects, zone) for name in ((by,) if by else others))
    return Statistics(timezone, tables, None if by else _totals(counts, projects, zone), problems)


def _work(counts: StatsCounts) -> list[Work]:
    return [*counts.messages, *counts.tools, *counts.calls]


def _table(by: str, counts: StatsCounts, projects: Mapping[str, Project], zone: tzinfo | None) -> StatsTable:
    match by:
        case "tool":
            rows = _tool_rows(counts.tools)
        case "filetype":
            rows = _file_rows(counts, projects)
        case "program":
            rows = _program_rows(counts)
        case "project":
            names = {session_id: _project(projects.get(session_id)) for session_id in counts.sessions}
            rows = _work_rows(counts, lambda work: names[work.session_id], "prompts")
        case "session":
            sessions = counts.sessions.values()
            roots = session_roots((session.session_id, session.root_id, session.title) for session in sessions)
            rows = _work_rows(counts, lambda work: roots[work.session_id], "active_seconds")
        case "model":
            rows = _work_rows(counts, _model, "answers")
        case _:
            rows = _work_rows(counts, _period(by, zone))
    return StatsTable(by, SECTIONS[by].columns, rows)


def _project(project: Project | None) -> tuple[str | None, str]:
    project = project or Project()
    return project.key or None, project.name


def _model(work: Work) -> tuple[str | None, str] | None:
    """Return the key of a model; None for messages that no model wrote."""
    if isinstance(work, MessageCount) and not work.answers:
        return None
    return work.model, work.model or "no model"


def _period(by: str, zone: tzinfo | None) -> _Keyed:
    names: dict[int, str] = {}

    def key(work: Work) -> tuple[str | None, str]:
        if work.quarter_us is None:
            return None, "no time"
        if work.quarter_us not in names:
            names[work.quarter_us] = periods.period(by, work.quarter_us, zone)
        return names[work.quarter_us], names[work.quarter_us]

    return key


def _work_rows(counts: StatsCounts, key: _Keyed, largest: str | None = None) -> tuple[StatsRow, ...]:
    """Return sums by a key, in the order of one column (the largest first) or of the keys."""
    groups: dict[tuple[str | None, str], list[Work]] = defaultdict(list)
    for work in _work(counts):
        name = key(work)
        if name is not None:
            groups[name].append(work)
    rows = []
    for name, members in groups.items():
        sums = _sums(members, counts)
        rows.append(StatsRow(*name, tuple(sums[column] for column in WORK)))
    if largest is None:
        return tuple(sorted(rows, key=lambda row: (row.key is None, row.key or "")))
    index = WORK.index(largest)
    return tuple(
        sorted(rows, key=lambda row: (-row.numbers[index], *(-number for number in row.numbers), row.key or ""))
    )


def _sums(members: Iterable[Work], counts: StatsCounts) -> Counter[str]:
    """Return the sums of rows of several kinds by column; the last values of each kind are its numbers."""
    by_kind: dict[type[Work], list[Work]] = {MessageCount: [], ToolCount: [], CallCount: []}
    sessions = set()
    for member in members:
        by_kind[type(member)].append(member)
        sessions.add(member.session_id)
    sums: Counter[str] = Counter()
    for kind, rows in by_kind.items():
        names = _NUMBERS[kind]
        columns = zip(*(row[-len(names) :] for row in rows), strict=True)
        sums.update({name: sum(column) for name, column in zip(names, columns, strict=False)})
    kinds = Counter(counts.sessions[session_id].kind for session_id in sessions)
    sums["sessions"], sums["subagents"] = kinds["main"], kinds["subagent"]
    sums["no_result"] = sums["tool_calls"] - sums["success"] - sums["error"] - sums["cancelled"]
    sums["active_seconds"] = sums["active_us"] // _SECOND_US
    return sums


_NUMBERS: dict[type[Work], tuple[str, ...]] = {
    MessageCount: ("prompts", "answers", "errors", "active_us"),
    ToolCount: ("tool_calls", "success", "error", "cancelled", "nonzero_exit"),
    CallCount: ("model_calls", "tokens"),
}


def _totals(counts: StatsCounts, projects: Mapping[str, Project], zone: tzinfo | None) -> StatsTotals:
    rows = _work(counts)
    quarters = sorted({row.quarter_us for row in rows if row.quarter_us is not None})
    sums = _sums(rows, counts)
    sums["projects"] = len({(projects.get(row.session_id) or Project()).key for row in rows})
    sums["active_days"] = len({periods.period("day", quarter_us, zone) for quarter_us in quarters})
    sums["files"] = len({_file(touch.session_id, touch.path, projects) for touch in counts.touches})
    sums["lines_added"] = sum(touch.added for touch in counts.touches)
    sums["lines_removed"] = sum(touch.removed for touch in counts.touches)
    return StatsTotals(
        {name: sums[name] for name in TOTAL},
        _hours(counts.messages, zone),
        _instant(quarters[0]) if quarters else None,
        _instant(quarters[-1]) if quarters else None,
    )


def _tool_rows(tools: Iterable[ToolCount]) -> tuple[StatsRow, ...]:
    groups: dict[str, list[ToolCount]] = defaultdict(list)
    for tool in tools:
        groups[tool.label].append(tool)
    rows = []
    for label, members in groups.items():
        calls, success, error, cancelled, nonzero_exit = (
            sum(column) for column in zip(*(member[4:] for member in members), strict=True)
        )
        no_result = calls - success - error - cancelled
        sessions = len({member.session_id for member in members})
        rows.append(StatsRow(label, label, (calls, success, error, cancelled, no_result, nonzero_exit, sessions)))
    return _largest_first(rows)


def _file_rows(counts: StatsCounts, projects: Mapping[str, Project]) -> tuple[StatsRow, ...]:
    files: dict[str, set[tuple[str, str]]] = defaultdict(set)
    sums: dict[str, Counter[str]] = defaultdict(Counter)
    for touch in counts.touches:
        file = _file(touch.session_id, touch.path, projects)
        suffix = _suffix(file[1])
        files[suffix].add(file)
        of_suffix = sums[suffix]
        of_suffix[touch.op] += touch.touches
        of_suffix["added"] += touch.added
        of_suffix["removed"] += touch.removed
    names = ("read", "create", "edit", "delete", "added", "removed")
    rows = [StatsRow(key, key, (len(files[key]), *(columns[name] for name in names))) for key, columns in sums.items()]
    return tuple(sorted(rows, key=lambda row: (-sum(row.numbers[1:5]), row.name)))


def _program_rows(counts: StatsCounts) -> tuple[StatsRow, ...]:
    runs: Counter[str] = Counter()
    sessions: dict[str, set[str]] = defaultdict(set)
    for program in counts.programs:
        runs[program.program] += program.runs
        sessions[program.program].add(program.session_id)
    return _largest_first([StatsRow(name, name, (count, len(sessions[name]))) for name, count in runs.items()])


def _largest_first(rows: Iterable[StatsRow]) -> tuple[StatsRow, ...]:
    return tuple(sorted(rows, key=lambda row: (-row.numbers[0], row.name)))


def _file(session_id: str, path: str, projects: Mapping[str, Project]) -> tuple[str, str]:
    """Return the identity of a file, whose path may be absolute or relative to the project's folder."""
    project = projects.get(session_id) or Project()
    return project.key, from_root(path, project.path).replace("\\", "/")


def _suffix(path: str) -> str:
    """Return the suffix of a file name in lower case, as the type of the file."""
    name = path.rpartition("/")[2]
    stem, dot, suffix = name.rpartition(".")
    return f".{suffix.lower()}" if dot and stem and _SUFFIX.fullmatch(suffix) else _NO_SUFFIX


def _hours(messages: Iterable[MessageCount], zone: tzinfo | None) -> dict[tuple[int, int], int]:
    by_quarter: Counter[int] = Counter()
    for message in messages:
        if message.quarter_us is not None:
            by_quarter[message.quarter_us] += message.prompts
    by_hour: Counter[tuple[int, int]] = Counter()
    for quarter_us, prompts in by_quarter.items():
        at = periods.local(_instant(quarter_us), zone)
        by_hour[at.isoweekday(), at.hour] += prompts
    return {hour: prompts for hour, prompts in by_hour.items() if prompts}


def _instant(quarter_us: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=quarter_us)
