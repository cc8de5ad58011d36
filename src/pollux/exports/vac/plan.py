"""The first walk over a session and its subagents: which entries there will be, before any of them is written.

What is looked up here goes by the ids and paths of the files themselves; whatever of it gets into a record passes
through `Subject.clean` first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import NamedTuple, TypeAlias

from pollux.exports import source as subjects
from pollux.exports.source import Subject
from pollux.exports.vac.attribution import Files, may_edit
from pollux.exports.vac.trace import models, trace
from pollux.exports.vac.values import told
from pollux.model import Fate, Json, Message, ModelCall, Session, Tokens
from pollux.sessions.replay.entries import Entry
from pollux.sessions.replay.reading import whole
from pollux.views.contracts import problem_row
from pollux.views.transcript import Branches

Place: TypeAlias = tuple[str, int]
"""A tool call: the message that it stands in, and its number there."""

NESTED = 3
"""How deep subagents stand within subagents; those further down come at the end of the record, since judges of the
schema take two to three times as long for every level."""


class Run(NamedTuple):
    """Messages one after the other of which the same became."""

    fate: Fate
    ids: list[str]
    tokens: Tokens | None


@dataclass(frozen=True, slots=True)
class Plan:
    """How a session becomes entries."""

    session: Session
    trace: dict[str, Json]
    """What is said of the session besides its entries."""
    first_source: int
    """Where its files stand among the sources of the record."""
    runs: tuple[Run, ...]
    keeps_all: bool
    """Messages that are no longer part of the conversation are written too."""
    agents: dict[Place, Plan]
    """Subagents by the call that started them."""
    apart: tuple[Plan, ...]
    """Subagents whose call is not known, or stands too deep."""
    calls: tuple[ModelCall, ...]
    """Model calls that no message of the timeline tells of."""
    counted: frozenset[str]
    """Messages whose tokens are this session's own, and not those of one that it was loaded from."""

    @property
    def count(self) -> int:
        """The number of its entries."""
        kept = sum(len(run.ids) if run.fate is Fate.ACTIVE else 1 for run in self.runs)
        return kept + len(self.apart) + len(self.calls)


@dataclass(slots=True)
class Survey:
    """What the walk collects for the whole record."""

    files: Files
    sources: list[Json] = field(default_factory=list)
    problems: list[Json] = field(default_factory=list)
    models: dict[str, None] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    too_deep: deque[Session] = field(default_factory=deque)


def survey(subject: Subject) -> tuple[Plan, Survey]:
    """Walk over a session and all its subagents."""
    session = subject.by_id.get(subject.session.id, subject.session)
    found = Survey(Files(session.project.path), seen={session.id})
    plan = _planned(subject, session, found, NESTED)
    apart = [*plan.apart]
    while found.too_deep:
        session = found.too_deep.popleft()
        apart.append(_planned(agent(subject, session), session, found, NESTED - 1))
    return replace(plan, apart=tuple(apart)), found


def agent(subject: Subject, session: Session) -> Subject:
    """Open a subagent."""
    made = subjects.subject(
        session,
        subject.opened(session),
        subject.by_id,
        subject.opened,
        subject.prices,
        wanted=subject.wanted,
        redactor=subject.redactor,
    )
    return replace(made, losses=subject.losses)


def _planned(subject: Subject, session: Session, found: Survey, room: int) -> Plan:
    first_source = len(found.sources)
    found.sources += ({"session-id": subject.session.id, **source} for source in subject.sources())
    found.problems += (subject.clean(told(**problem_row(problem))) for problem in session.problems)
    found.models.update(dict.fromkeys(models(subject)))
    by_call, apart = _children(subject, session, found)
    agents: dict[Place, Plan] = {}
    for entry, message in _worth_reading(subject, by_call):
        for number, call in enumerate(message.tool_calls):
            found.files.take(call, message)
            if child := by_call.pop(call.id or "", None):
                for plan in _nested(subject, [child], found, room):
                    agents[entry.id, number] = plan
    plans = _nested(subject, [*apart, *by_call.values()], found, room)
    ids = {entry.id for entry in subject.group.entries}
    return Plan(
        session=session,
        trace=trace(subject),
        first_source=first_source,
        runs=tuple(_run(fate, entries) for fate, entries in groupby(subject.group.entries, lambda one: one.fate)),
        keeps_all=subject.wanted.branches is Branches.ALL,
        agents=agents,
        apart=tuple(plans),
        calls=tuple(call for call in session.calls if call.message_id not in ids),
        counted=frozenset(call.message_id for call in session.calls),
    )


def _children(subject: Subject, session: Session, found: Survey) -> tuple[dict[str, Session], list[Session]]:
    """Return the subagents that nobody has told of yet: by their call, and those without one."""
    by_call: dict[str, Session] = {}
    apart: list[Session] = []
    for id_ in session.children:
        if id_ in found.seen or id_ not in subject.by_id:
            continue
        found.seen.add(id_)
        child = subject.by_id[id_]
        if child.parent_call and child.parent_call not in by_call:
            by_call[child.parent_call] = child
        else:
            apart.append(child)
    return by_call, apart


def _nested(subject: Subject, children: Iterable[Session], found: Survey, room: int) -> list[Plan]:
    if not room:
        found.too_deep += children
        return []
    return [_planned(agent(subject, child), child, found, room - 1) for child in children]


def _worth_reading(subject: Subject, by_call: dict[str, Session]) -> Iterator[tuple[Entry, Message]]:
    """Yield the messages that may have written to a file or started a subagent, as they stand in their files."""
    for placed, entry in subject.group.timeline:
        calls = entry.calls or entry.content.asked
        if any(call.id in by_call or may_edit(call.name, call.display_name) for call in calls):
            yield entry, whole(placed.reading, entry)


def _run(fate: Fate, entries: Iterable[Entry]) -> Run:
    listed = list(entries)
    counts = [entry.tokens for entry in listed if entry.tokens]
    return Run(fate, [entry.id for entry in listed], sum(counts, Tokens()) if counts else None)
