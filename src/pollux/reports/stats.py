"""Statistics: what was asked, answered and done, by tool, model, project, session, time, type of file and program.

Every section is a table of whole numbers, so that all renderers are alike; rates are for those who look at them.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import NamedTuple, TypeAlias

from pollux.model import Problem, Project
from pollux.reports import periods
from pollux.reports import stats_sql as parts_of
from pollux.reports.stats_sql import CallPart, MessagePart, Parts, ToolPart
from pollux.reports.usage_sql import session_roots
from pollux.sessions.projects.paths import from_root

TOTAL = (
    *("sessions", "subagents", "projects", "prompts", "answers", "errors", "tool_calls", "success", "error"),
    *("cancelled", "unfinished", "nonzero", "model_calls", "tokens", "files", "lines_added", "lines_removed"),
    *("active_seconds", "active_days"),
)
WORK = (
    *("sessions", "subagents", "prompts", "answers", "tool_calls", "error", "cancelled", "model_calls", "tokens"),
    "active_seconds",
)
TOOL = ("tool_calls", "success", "error", "cancelled", "unfinished", "nonzero", "sessions")
FILES = ("files", "reads", "creates", "edits", "deletes", "lines_added", "lines_removed")
PROGRAM = ("runs", "sessions")

_SECOND_US = 1_000_000
_SUFFIX = re.compile(r"[\w+-]{1,12}")
_NOTHING = "no suffix"
Work: TypeAlias = MessagePart | ToolPart | CallPart
_Keyed: TypeAlias = Callable[[Work], tuple[str | None, str] | None]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a section."""

    key: str | None
    name: str
    """For people: the title of a session, the folder's name of a project."""
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """What was done, by something."""

    by: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Statistics:
    """All that was asked for."""

    timezone: str
    sections: tuple[Section, ...]
    summary: Summary | None = None
    problems: tuple[Problem, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing happened."""
        has_rows = any(section.rows for section in self.sections)
        return not has_rows and not (self.summary and any(self.summary.totals.values()))


@dataclass(frozen=True, slots=True)
class Summary:
    """What happened in all, and when."""

    totals: Mapping[str, int]
    hours: Mapping[tuple[int, int], int]
    """Prompts by weekday (1 is Monday) and hour of the day."""
    first: datetime | None
    """The quarter of an hour in which the first thing happened."""
    last: datetime | None


class Countable(NamedTuple):
    """Something to count by."""

    plural: str
    """What JSON calls the section."""
    columns: tuple[str, ...]
    needs: frozenset[str] = parts_of.WORK
    """The parts it is made of."""


SECTIONS = {
    "tool": Countable("tools", TOOL, frozenset({"tools"})),
    "model": Countable("models", WORK),
    "project": Countable("projects", WORK),
    "session": Countable("sessions", WORK),
    "day": Countable("days", WORK),
    "week": Countable("weeks", WORK),
    "month": Countable("months", WORK),
    "filetype": Countable("file_types", FILES, frozenset({"touches"})),
    "program": Countable("programs", PROGRAM, frozenset({"programs"})),
}
USUAL = ("tool", "model", "project", "session", "day", "filetype", "program")
"""What is told when nothing is asked for; weeks and months follow from days."""


def statistics(
    parts: Parts,
    projects: Mapping[str, Project],
    by: str | None = None,
    *,
    others: Sequence[str] = USUAL,
    zone: tzinfo | None = None,
    timezone: str = "UTC",
    problems: tuple[Problem, ...] = (),
) -> Statistics:
    """Put statistics together.

    Args:
        parts: what happened.
        projects: of each session.
        by: one of `SECTIONS`; without it, there is a summary.
        others: the sections beside the summary.
        zone: whose hours, days, weeks and months; the system's own if there is none.
        timezone: its name.
        problems: what could not be read.

    """
    sections = tuple(_section(name, parts, projects, zone) for name in ((by,) if by else others))
    return Statistics(timezone, sections, None if by else _summary(parts, projects, zone), problems)


def _work(parts: Parts) -> list[Work]:
    return [*parts.messages, *parts.tools, *parts.calls]


def _section(by: str, parts: Parts, projects: Mapping[str, Project], zone: tzinfo | None) -> Section:
    match by:
        case "tool":
            rows = _tool_rows(parts.tools)
        case "filetype":
            rows = _file_rows(parts, projects)
        case "program":
            rows = _program_rows(parts)
        case "project":
            names = {one: _project(projects.get(one)) for one in parts.sessions}
            rows = _work_rows(parts, lambda one: names[one.session_id], "prompts")
        case "session":
            roots = session_roots((one.session_id, one.root_id, one.title) for one in parts.sessions.values())
            rows = _work_rows(parts, lambda one: roots[one.session_id], "active_seconds")
        case "model":
            rows = _work_rows(parts, _model, "answers")
        case _:
            rows = _work_rows(parts, _period(by, zone))
    return Section(by, SECTIONS[by].columns, rows)


def _project(project: Project | None) -> tuple[str | None, str]:
    project = project or Project()
    return project.key or None, project.name


def _model(one: Work) -> tuple[str | None, str] | None:
    """Leave out what no model did."""
    if isinstance(one, MessagePart) and not one.answers:
        return None
    return one.model, one.model or "no model"


def _period(by: str, zone: tzinfo | None) -> _Keyed:
    names: dict[int, str] = {}

    def key(one: Work) -> tuple[str | None, str]:
        if one.quarter_us is None:
            return None, "no time"
        if one.quarter_us not in names:
            names[one.quarter_us] = periods.period(by, one.quarter_us, zone)
        return names[one.quarter_us], names[one.quarter_us]

    return key


def _work_rows(parts: Parts, key: _Keyed, largest: str | None = None) -> tuple[Row, ...]:
    """Put what happened together by a key; the largest first, or in the order of the keys."""
    groups: dict[tuple[str | None, str], list[Work]] = defaultdict(list)
    for one in _work(parts):
        if (name := key(one)) is not None:
            groups[name].append(one)
    counted = {name: _counts(members, parts) for name, members in groups.items()}
    rows = [Row(*name, tuple(counts[column] for column in WORK)) for name, counts in counted.items()]
    if largest is None:
        return tuple(sorted(rows, key=lambda row: (row.key is None, row.key or "")))
    place = WORK.index(largest)
    return tuple(sorted(rows, key=lambda row: (-row.numbers[place], *(-one for one in row.numbers), row.key or "")))


def _counts(members: Iterable[Work], parts: Parts) -> Counter[str]:
    """Add up; each kind of part ends with its numbers."""
    of_kind: dict[type[Work], list[Work]] = {MessagePart: [], ToolPart: [], CallPart: []}
    for one in members:
        of_kind[type(one)].append(one)
    sessions = {one.session_id for some in of_kind.values() for one in some}
    found: Counter[str] = Counter()
    for kind, some in of_kind.items():
        names = _NUMBERS[kind]
        totals = zip(*(one[-len(names) :] for one in some), strict=True)
        found.update({name: sum(column) for name, column in zip(names, totals, strict=False)})
    kinds = Counter(parts.sessions[one].kind for one in sessions)
    found["sessions"], found["subagents"] = kinds["main"], kinds["subagent"]
    found["unfinished"] = found["tool_calls"] - found["success"] - found["error"] - found["cancelled"]
    found["active_seconds"] = found["active_us"] // _SECOND_US
    return found


_NUMBERS: dict[type[Work], tuple[str, ...]] = {
    MessagePart: ("prompts", "answers", "errors", "active_us"),
    ToolPart: ("tool_calls", "success", "error", "cancelled", "nonzero"),
    CallPart: ("model_calls", "tokens"),
}


def _summary(parts: Parts, projects: Mapping[str, Project], zone: tzinfo | None) -> Summary:
    work = _work(parts)
    quarters = sorted({one.quarter_us for one in work if one.quarter_us is not None})
    found = _counts(work, parts)
    found["projects"] = len({(projects.get(one.session_id) or Project()).key for one in work})
    found["active_days"] = len({periods.period("day", one, zone) for one in quarters})
    found["files"] = len({_file(one.session_id, one.path, projects) for one in parts.touches})
    found["lines_added"] = sum(one.added for one in parts.touches)
    found["lines_removed"] = sum(one.removed for one in parts.touches)
    return Summary(
        {name: found[name] for name in TOTAL},
        _hours(parts.messages, zone),
        _instant(quarters[0]) if quarters else None,
        _instant(quarters[-1]) if quarters else None,
    )


def _tool_rows(tools: Iterable[ToolPart]) -> tuple[Row, ...]:
    groups: dict[str, list[ToolPart]] = defaultdict(list)
    for one in tools:
        groups[one.label].append(one)
    rows = []
    for label, members in groups.items():
        calls, success, error, cancelled, nonzero = (
            sum(column) for column in zip(*(one[4:] for one in members), strict=True)
        )
        unfinished = calls - success - error - cancelled
        sessions = len({one.session_id for one in members})
        rows.append(Row(label, label, (calls, success, error, cancelled, unfinished, nonzero, sessions)))
    return _largest_first(rows)


def _file_rows(parts: Parts, projects: Mapping[str, Project]) -> tuple[Row, ...]:
    files: dict[str, set[tuple[str, str]]] = defaultdict(set)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for one in parts.touches:
        file = _file(one.session_id, one.path, projects)
        suffix = _suffix(file[1])
        files[suffix].add(file)
        counts[suffix] += Counter({one.op: one.touches, "added": one.added, "removed": one.removed})
    names = ("read", "create", "edit", "delete", "added", "removed")
    rows = [Row(key, key, (len(files[key]), *(found[name] for name in names))) for key, found in counts.items()]
    return tuple(sorted(rows, key=lambda row: (-sum(row.numbers[1:5]), row.name)))


def _program_rows(parts: Parts) -> tuple[Row, ...]:
    runs: Counter[str] = Counter()
    sessions: dict[str, set[str]] = defaultdict(set)
    for one in parts.programs:
        runs[one.program] += one.runs
        sessions[one.program].add(one.session_id)
    return _largest_first([Row(name, name, (count, len(sessions[name]))) for name, count in runs.items()])


def _largest_first(rows: Iterable[Row]) -> tuple[Row, ...]:
    return tuple(sorted(rows, key=lambda row: (-row.numbers[0], row.name)))


def _file(session_id: str, path: str, projects: Mapping[str, Project]) -> tuple[str, str]:
    """Tell one file from another: a path may be written from the project's folder or in full."""
    project = projects.get(session_id) or Project()
    return project.key, from_root(path, project.path).replace("\\", "/")


def _suffix(path: str) -> str:
    """Tell the type of a file by the end of its name."""
    name = path.rpartition("/")[2]
    stem, dot, suffix = name.rpartition(".")
    return f".{suffix.lower()}" if dot and stem and _SUFFIX.fullmatch(suffix) else _NOTHING


def _hours(messages: Iterable[MessagePart], zone: tzinfo | None) -> dict[tuple[int, int], int]:
    by_quarter: Counter[int] = Counter()
    for one in messages:
        if one.quarter_us is not None:
            by_quarter[one.quarter_us] += one.prompts
    found: Counter[tuple[int, int]] = Counter()
    for quarter_us, prompts in by_quarter.items():
        at = periods.local(_instant(quarter_us), zone)
        found[at.isoweekday(), at.hour] += prompts
    return {place: count for place, count in found.items() if count}


def _instant(quarter_us: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=quarter_us)
