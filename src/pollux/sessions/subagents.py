"""Subagents: which call of which session started them, in all generations (`docs/formats.md`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from pollux.formats.operations import CallHead
from pollux.formats.tools import tool
from pollux.model import Json, Kind, Origin, Role
from pollux.sessions.grouping import Group, Placed
from pollux.sessions.replay.entries import IMPORTED
from pollux.sessions.replay.reading import whole
from pollux.sessions.replay.replay import Entry
from pollux.text.times import instant


def link(groups: Sequence[Group]) -> None:
    """Find for each subagent the call that started it, by the ID the call names, else by the words it was given.

    An imported session cannot claim a subagent whose file this machine has read itself.
    """
    by_id = {group.id: group for group in groups}
    everyone: dict[str, tuple[int, Group, CallHead]] = {}
    own: dict[str, tuple[int, Group, CallHead]] = {}
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
        starter = min((starters[name] for name in names if name in starters), key=_place, default=None)
        if starter:
            child.parent, child.parent_call = starter[1].id, starter[2].id
        elif child.parent in by_id:
            unclaimed.append(child)
    _link_by_words(unclaimed, by_id)


def _place(starter: tuple[int, Group, CallHead]) -> int:
    return starter[0]


def mark_prompts(group: Group) -> None:
    """Recognise what an agent was told: nobody typed it, though it stands there as a user's message."""
    if group.kind == "subagent":
        _mark_in_subagent(group)
    else:
        _mark_imported(group)
        _mark_in_parent(group)


def _mark_imported(group: Group) -> None:
    """Recognise messages that `--session-file` brought from another session: they are older than the import."""
    if group.main.role != Role.IMPORT:
        return
    notices = (entry for entry in group.entries if entry.id.startswith(IMPORTED))
    imported = next((instant(entry.at) for entry in notices), None)
    for entry in group.entries:
        at = instant(entry.at)
        if imported and at and at < imported:
            entry.is_own = False
            if entry.origin == Origin.HUMAN:
                entry.origin = Origin.LOADED


def _mark_in_subagent(group: Group) -> None:
    """Nobody types into a subagent: the first prompt is its task, and the client wrote the others."""
    origin = Origin.AGENT_PROMPT
    for entry in group.entries:
        if entry.origin == Origin.HUMAN:
            entry.origin = origin
            origin = Origin.CONTINUE


def _mark_in_parent(group: Group) -> None:
    """Find the tasks of agents among the prompts of a session: up to 0.36 the file of a session has both."""
    last_human: Entry | None = None
    n_human = 0
    for placed, entry in group.timeline:
        if entry.origin == Origin.HUMAN:
            last_human = entry
            n_human += 1
        elif last_human and n_human > 1 and _starts_agent(placed, entry, last_human.prompt):
            last_human.origin = Origin.AGENT_PROMPT
            last_human, n_human = None, n_human - 1


def _starts_agent(placed: Placed, entry: Entry, prompt: str) -> bool:
    """Return whether a message calls an agent whose task is this prompt."""
    return any(map(_is_unnamed_agent, entry.calls)) and any(_is_task(prompt, words) for words in _told(placed, entry))


def _is_unnamed_agent(call: CallHead) -> bool:
    """Return whether a call may have started an agent whose turns are in the same file: releases to 0.36."""
    return not call.agent_id and call.name != _NAMING_CALL and tool(call.name, call.display_name).is_agent


def _is_task(prompt: str, words: str) -> bool:
    """Return whether a prompt is the task of an agent: the client puts the words of the call on lines of their own."""
    return bool(words) and prompt != words and f"\n{words}\n" in f"\n{prompt}\n"


def _named_calls(group: Group) -> Iterator[CallHead]:
    return (call for entry in group.entries for call in entry.calls if call.agent_id)


_NAMING_CALL = "invoke_agent"
"""Starts agents from 0.39 on, when they have files of their own."""
_AT_A_TIME = 64
"""Calls that are compared with the words of an agent; more do not run side by side."""


class _Calls:
    """The calls of a session that started agents and do not name them, in order."""

    def __init__(self, parent: Group) -> None:
        self._rest = _agent_calls(parent)
        self._next: list[tuple[str | None, list[str]]] = []

    def take(self, prompt: str) -> str | None:
        """Return the ID of the call with these words, else of the first, and remove it."""
        self._next += islice(self._rest, _AT_A_TIME - len(self._next))
        if not self._next:
            return None
        same = (place for place, (_, told) in enumerate(self._next) if any(text and text in prompt for text in told))
        return self._next.pop(next(same, 0))[0]


def _agent_calls(parent: Group) -> Iterator[tuple[str | None, list[str]]]:
    for placed, entry in parent.timeline:
        if any(not head.agent_id and tool(head.name, head.display_name).is_agent for head in entry.calls):
            for call in whole(placed.reading, entry, shortened=True).tool_calls:
                if tool(call.name, call.display_name).is_agent:
                    yield call.id, list(_texts(call.args))


def _link_by_words(children: list[Group], by_id: dict[str, Group]) -> None:
    """Link agents of releases whose calls do not name them: same words, else same order."""
    calls: dict[str, _Calls] = {}
    for child in sorted(children, key=lambda one: (one.main.is_import, str(one.main.started))):
        parent = str(child.parent)
        if parent not in calls:
            calls[parent] = _Calls(by_id[parent])
        child.parent_call = calls[parent].take(next((entry.prompt for entry in child.entries if entry.prompt), ""))


def _told(placed: Placed, entry: Entry) -> Iterator[str]:
    """Yield the words that the agent calls of a message gave to their agents."""
    if entry.kind == Kind.GEMINI:
        for call in whole(placed.reading, entry, shortened=True).tool_calls:
            if tool(call.name).is_agent:
                yield from _texts(call.args)


def _texts(args: Json) -> Iterator[str]:
    if isinstance(args, dict):
        yield from (value.strip() for key, value in args.items() if isinstance(value, str) and key != "agent_name")
