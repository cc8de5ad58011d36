"""Find the tool call that started each subagent, in every generation (see `docs/formats.md`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from pollux.formats.operations import CallHead
from pollux.formats.tools import tool
from pollux.model import Json, Kind, Origin, Role
from pollux.sessions.grouping import LocatedReading, OpenSession
from pollux.sessions.replay import IMPORTED
from pollux.sessions.replay.reading import build_message
from pollux.sessions.replay.replay import TimelineEntry
from pollux.text.times import parse_time


def link(groups: Sequence[OpenSession]) -> None:
    """Set parent and call of each subagent: by the ID that a call names, else by the text that the call passed to it.

    An imported session cannot claim a subagent whose file was read on this machine.
    """
    by_id = {group.id: group for group in groups}
    everyone: dict[str, tuple[int, OpenSession, CallHead]] = {}
    own: dict[str, tuple[int, OpenSession, CallHead]] = {}
    for group in groups:
        for call in _named_calls(group):
            candidate = (len(everyone), group, call)
            everyone.setdefault(str(call.agent_id), candidate)
            if not group.main.is_import:
                own.setdefault(str(call.agent_id), candidate)
    unclaimed = []
    for child in groups:
        if child.kind != "subagent":
            continue
        names = (child.id, child.main.reading.path.stem)
        starters = everyone if child.main.is_import else own
        candidates = [starters[name] for name in names if name in starters]
        starter = min(candidates, key=lambda candidate: candidate[0], default=None)
        if starter:
            child.parent, child.parent_call = starter[1].id, starter[2].id
        elif child.parent in by_id:
            unclaimed.append(child)
    _link_by_text(unclaimed, by_id)


def mark_prompts(group: OpenSession) -> None:
    """Set the origin of user messages that no human typed into this session: tasks of agents, and loaded prompts."""
    if group.kind == "subagent":
        _mark_in_subagent(group)
    else:
        _mark_imported(group)
        _mark_in_parent(group)


def _mark_imported(group: OpenSession) -> None:
    """Mark messages that `--session-file` loaded from another session: they are older than the import."""
    if group.main.role != Role.IMPORT:
        return
    notices = (entry for entry in group.entries if entry.id.startswith(IMPORTED))
    imported = next((parse_time(entry.at) for entry in notices), None)
    for entry in group.entries:
        at = parse_time(entry.at)
        if imported and at and at < imported:
            entry.is_own = False
            if entry.origin == Origin.HUMAN:
                entry.origin = Origin.LOADED


def _mark_in_subagent(group: OpenSession) -> None:
    """Mark all prompts of a subagent: the first is its task, and the client wrote the others."""
    origin = Origin.AGENT_PROMPT
    for entry in group.entries:
        if entry.origin == Origin.HUMAN:
            entry.origin = origin
            origin = Origin.CONTINUE


def _mark_in_parent(group: OpenSession) -> None:
    """Mark the tasks of agents among the prompts of a session: up to 0.36 the session's file contains both."""
    last_human: TimelineEntry | None = None
    n_human = 0
    for located, entry in group.timeline:
        if entry.origin == Origin.HUMAN:
            last_human = entry
            n_human += 1
        elif last_human and n_human > 1 and _starts_agent(located, entry, last_human.prompt):
            last_human.origin = Origin.AGENT_PROMPT
            last_human, n_human = None, n_human - 1


def _starts_agent(located: LocatedReading, entry: TimelineEntry, prompt: str) -> bool:
    if not any(map(_is_unnamed_agent, entry.calls)):
        return False
    return any(_is_task(prompt, text) for text in _texts_for_agents(located, entry))


def _is_unnamed_agent(call: CallHead) -> bool:
    """Return whether a call may have started an agent whose turns are in the same file, as in releases up to 0.36."""
    return not call.agent_id and call.name != _NAMING_CALL and tool(call.name, call.display_name).is_agent


def _is_task(prompt: str, text: str) -> bool:
    """Return whether a prompt is the task of an agent: it contains the text of the call on separate lines."""
    return bool(text) and prompt != text and f"\n{text}\n" in f"\n{prompt}\n"


def _named_calls(group: OpenSession) -> Iterator[CallHead]:
    return (call for entry in group.entries for call in entry.calls if call.agent_id)


_NAMING_CALL = "invoke_agent"
"""Starts agents since 0.39, whose agents have their own files."""
_MOST_PARALLEL = 64
"""Calls whose texts are compared with an agent's task; the client runs fewer at the same time."""


class _AgentCalls:
    """The calls of a session that started agents without naming them, in order."""

    def __init__(self, parent: OpenSession) -> None:
        self._remaining = _agent_calls(parent)
        self._next: list[tuple[str | None, list[str]]] = []

    def take(self, prompt: str) -> str | None:
        """Remove the call whose text is in the prompt, else the first call, and return its ID."""
        self._next += islice(self._remaining, _MOST_PARALLEL - len(self._next))
        if not self._next:
            return None
        for position, (_, texts) in enumerate(self._next):
            if any(text and text in prompt for text in texts):
                return self._next.pop(position)[0]
        return self._next.pop(0)[0]


def _agent_calls(parent: OpenSession) -> Iterator[tuple[str | None, list[str]]]:
    for located, entry in parent.timeline:
        if any(not head.agent_id and tool(head.name, head.display_name).is_agent for head in entry.calls):
            for call in build_message(located.reading, entry, shortened=True).tool_calls:
                if tool(call.name, call.display_name).is_agent:
                    yield call.id, list(_texts(call.args))


def _link_by_text(children: list[OpenSession], by_id: dict[str, OpenSession]) -> None:
    """Link agents of releases whose calls do not name them: by the same text, else by order."""
    calls: dict[str, _AgentCalls] = {}
    for child in sorted(children, key=lambda child: (child.main.is_import, str(child.main.started))):
        parent = str(child.parent)
        if parent not in calls:
            calls[parent] = _AgentCalls(by_id[parent])
        child.parent_call = calls[parent].take(next((entry.prompt for entry in child.entries if entry.prompt), ""))


def _texts_for_agents(located: LocatedReading, entry: TimelineEntry) -> Iterator[str]:
    if entry.kind == Kind.GEMINI:
        for call in build_message(located.reading, entry, shortened=True).tool_calls:
            if tool(call.name).is_agent:
                yield from _texts(call.args)


def _texts(args: Json) -> Iterator[str]:
    if isinstance(args, dict):
        yield from (value.strip() for key, value in args.items() if isinstance(value, str) and key != "agent_name")
