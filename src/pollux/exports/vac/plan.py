"""The first pass over a session and its subagents: plan the entries before any of them is written.

Lookups here use the unredacted IDs and paths of the session files; everything that goes into a record passes through
`ExportSource.clean` first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import NamedTuple, TypeAlias

from pollux.exports.source import ExportSource, export_source
from pollux.exports.vac.attribution import EditedFiles, may_edit
from pollux.exports.vac.values import members, time_text
from pollux.model import Fate, Json, Message, ModelCall, Session, Tokens
from pollux.sessions.replay import TimelineEntry as TimelineItem
from pollux.sessions.replay.reading import build_message
from pollux.views.contracts import problem_row
from pollux.views.transcript import Branches

CallPlace: TypeAlias = tuple[str, int]
"""A tool call: the ID of its message, and its number there."""

MAX_NESTING = 3
"""Levels of subagents; deeper ones are at the end of the record, since each level makes validators of the schema two to
three times slower."""
_NATIVE = ("kind", "summary", "directories", "projectHash", "lastUpdated", "memoryScratchpad")
"""The client's metadata that a record holds under the same names, next to the members of the schema."""
_MAPPED = frozenset({"sessionId", "startTime", "messages", *_NATIVE})
_GOOGLE = ("gemini", "gemma", "auto", "pro", "flash")
"""Prefixes of the names of Google's models, and the aliases of the client."""


class FateRun(NamedTuple):
    """Consecutive messages with the same fate."""

    fate: Fate
    ids: list[str]
    tokens: Tokens | None


@dataclass(frozen=True, slots=True)
class RecordPlan:
    """How a session becomes entries."""

    session: Session
    trace: dict[str, Json]
    """The description of the session."""
    first_source: int
    """The place of its files among the sources of the record."""
    runs: tuple[FateRun, ...]
    writes_dropped: bool
    """Whether dropped messages are written too."""
    agents: dict[CallPlace, RecordPlan]
    """Subagents by the call that started them."""
    unplaced_agents: tuple[RecordPlan, ...]
    """Subagents whose call is unknown or nested too deeply."""
    unplaced_calls: tuple[ModelCall, ...]
    """Model calls without a message in the timeline."""
    own_usage: frozenset[str]
    """Messages whose tokens this session was billed for, not a session that it was loaded from."""

    @property
    def count(self) -> int:
        """The number of its entries."""
        n_entries = sum(len(run.ids) if run.fate is Fate.ACTIVE else 1 for run in self.runs)
        return n_entries + len(self.unplaced_agents) + len(self.unplaced_calls)


@dataclass(slots=True)
class Survey:
    """What the first pass collects for the record as a whole."""

    files: EditedFiles
    sources: list[Json] = field(default_factory=list)
    problems: list[Json] = field(default_factory=list)
    models: dict[str, None] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    too_deep: deque[Session] = field(default_factory=deque)


def survey(source: ExportSource) -> tuple[RecordPlan, Survey]:
    """Plan a session and all its subagents."""
    session = source.by_id.get(source.session.id, source.session)
    collected = Survey(EditedFiles(session.project.path), seen={session.id})
    plan = _plan(source, session, collected, MAX_NESTING)
    unplaced = [*plan.unplaced_agents]
    while collected.too_deep:
        session = collected.too_deep.popleft()
        unplaced.append(_plan(open_agent(source, session), session, collected, MAX_NESTING - 1))
    return replace(plan, unplaced_agents=tuple(unplaced)), collected


def open_agent(source: ExportSource, session: Session) -> ExportSource:
    """Return the source of a subagent."""
    agent = export_source(
        session,
        source.open_session(session),
        source.by_id,
        source.open_session,
        source.prices,
        options=source.export_options,
        redactor=source.redactor,
    )
    return replace(agent, losses=source.losses)


def agent_meta(models: list[str]) -> dict[str, Json]:
    """Return the client and the models of a session."""
    first = models[0] if models else "unknown"
    meta: dict[str, Json] = {"cli-name": "gemini-cli", "model-id": first, "model-provider": provider(first)}
    return meta | ({"models": models} if len(models) > 1 else {})


def provider(model: str) -> str:
    """Return the provider of a model, by its name."""
    return "google" if model.removeprefix("models/").startswith(_GOOGLE) else "unknown"


def _plan(source: ExportSource, session: Session, collected: Survey, levels_left: int) -> RecordPlan:
    first_source = len(collected.sources)
    collected.sources += ({"session-id": source.session.id, **file} for file in source.sources())
    collected.problems += (source.clean(members(**problem_row(problem))) for problem in session.problems)
    collected.models.update(dict.fromkeys(_models(source)))
    by_call, without_call = _children(source, session, collected)
    agents: dict[CallPlace, RecordPlan] = {}
    for item, message in _relevant_messages(source, by_call):
        for number, call in enumerate(message.tool_calls):
            collected.files.add_call(call, message)
            if child := by_call.pop(call.id or "", None):
                for plan in _plan_children(source, [child], collected, levels_left):
                    agents[item.id, number] = plan
    unplaced = _plan_children(source, [*without_call, *by_call.values()], collected, levels_left)
    ids = {item.id for item in source.group.entries}
    return RecordPlan(
        session=session,
        trace=_trace(source),
        first_source=first_source,
        runs=tuple(_fate_run(fate, items) for fate, items in groupby(source.group.entries, lambda item: item.fate)),
        writes_dropped=source.export_options.branches is Branches.ALL,
        agents=agents,
        unplaced_agents=tuple(unplaced),
        unplaced_calls=tuple(call for call in session.calls if call.message_id not in ids),
        own_usage=frozenset(call.message_id for call in session.calls),
    )


def _children(source: ExportSource, session: Session, collected: Survey) -> tuple[dict[str, Session], list[Session]]:
    """Return the subagents that are not planned yet: by their call, and those without one."""
    by_call: dict[str, Session] = {}
    without_call: list[Session] = []
    for id_ in session.children:
        if id_ in collected.seen or id_ not in source.by_id:
            continue
        collected.seen.add(id_)
        child = source.by_id[id_]
        if child.parent_call and child.parent_call not in by_call:
            by_call[child.parent_call] = child
        else:
            without_call.append(child)
    return by_call, without_call


def _plan_children(
    source: ExportSource, children: Iterable[Session], collected: Survey, levels_left: int
) -> list[RecordPlan]:
    if not levels_left:
        collected.too_deep += children
        return []
    return [_plan(open_agent(source, child), child, collected, levels_left - 1) for child in children]


def _relevant_messages(source: ExportSource, by_call: dict[str, Session]) -> Iterator[tuple[TimelineItem, Message]]:
    """Yield the messages that may have edited a file or started a subagent, unredacted."""
    for placed, item in source.group.timeline:
        calls = item.calls or item.content.asked
        if any(call.id in by_call or may_edit(call.name, call.display_name) for call in calls):
            yield item, build_message(placed.reading, item)


def _fate_run(fate: Fate, items: Iterable[TimelineItem]) -> FateRun:
    ids: list[str] = []
    counts: list[Tokens] = []
    for item in items:
        ids.append(item.id)
        if item.tokens:
            counts.append(item.tokens)
    return FateRun(fate, ids, sum(counts, Tokens()) if counts else None)


def _trace(source: ExportSource) -> dict[str, Json]:
    """Return the description of a session; its working directory only if the hash in the file proves it."""
    session, project = source.session, source.session.project
    metadata = source.clean(dict(source.group.main.seen))
    assert isinstance(metadata, dict)
    trace = {name: metadata[name] for name in _NATIVE if metadata.get(name) is not None}
    trace |= members(
        session_id=session.id,
        session_start=time_text(session.started),
        session_end=time_text(session.ended or session.updated),
        agent_meta=agent_meta(_models(source)),
        environment={"working-dir": project.path} if project.proven and project.path else None,
        kind=session.kind,
        parent_session_id=session.parent,
        parent_call_id=session.parent_call,
        project=members(hash=project.hash, slug=project.slug, path=project.path, proven=project.proven),
        generation=session.generation or None,
        native={name: value for name, value in metadata.items() if name not in _MAPPED} or None,
    )
    return trace


def _models(source: ExportSource) -> list[str]:
    """Return the models of a session: those with token counts, then others, in order of appearance."""
    names = source.clean([item.model for item in source.group.entries if item.model])
    assert isinstance(names, list)
    return list(dict.fromkeys([*source.session.models, *map(str, names)]))
