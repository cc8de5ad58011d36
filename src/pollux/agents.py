"""Subagents: which call of which session started them, in all generations (`docs/formats.md`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pollux.formats.operations import CallHead
from pollux.grouping import Group, Placed
from pollux.model import Json, Kind, Origin
from pollux.reading import whole
from pollux.replay import Entry
from pollux.tools import tool


def link(groups: Sequence[Group]) -> None:
    """Find for each subagent the call that started it, by the id the call names, else by the words it was given.

    An imported session cannot claim a subagent whose file this machine has read itself.
    """
    by_id = {group.id: group for group in groups}
    unclaimed = []
    for child in groups:
        if child.kind != "subagent":
            continue
        others = [group for group in groups if child.main.is_import or not group.main.is_import]
        starter = next(((group, call) for group in others for call in _agent_calls(group) if _names(call, child)), None)
        if starter:
            child.parent, child.parent_call = starter[0].id, starter[1].id
        elif child.parent in by_id:
            unclaimed.append(child)
    _link_by_words(unclaimed, by_id)


def mark_prompts(group: Group) -> None:
    """Recognise what an agent was told: nobody typed it, though it stands there as a user's message."""
    if group.kind == "subagent":
        first = next((entry for entry in group.entries if entry.origin == Origin.HUMAN), None)
        if first:
            first.origin = Origin.AGENT_PROMPT
        return
    last_human: tuple[int, Entry] | None = None
    n_human = 0
    for index, (placed, entry) in enumerate(group.timeline):
        if entry.origin == Origin.HUMAN:
            last_human = (index, entry)
            n_human += 1
        elif last_human and n_human > 1 and any(tool(call.name).is_agent for call in entry.calls):
            told = [text for text in _told(placed, entry) if text]
            if any(text in last_human[1].prompt and text != last_human[1].prompt for text in told):
                last_human[1].origin = Origin.AGENT_PROMPT
                last_human, n_human = None, n_human - 1


def _agent_calls(group: Group) -> Iterator[CallHead]:
    return (call for entry in group.entries for call in entry.calls if call.agent_id or tool(call.name).is_agent)


def _names(call: CallHead, child: Group) -> bool:
    return call.agent_id is not None and call.agent_id in (child.id, child.main.reading.path.stem)


def _link_by_words(children: list[Group], by_id: dict[str, Group]) -> None:
    """Link agents of releases whose calls do not name them: same words, else same order."""
    taken: set[str | None] = set()
    for child in sorted(children, key=lambda one: (one.main.is_import, str(one.main.started))):
        parent = by_id[str(child.parent)]
        calls = [
            (call.id, list(_texts(call.args)))
            for placed, entry in parent.timeline
            if any(not head.agent_id and tool(head.name, head.display_name).is_agent for head in entry.calls)
            for call in whole(placed.reading, entry, shortened=True).tool_calls
            if tool(call.name, call.display_name).is_agent and call.id not in taken
        ]
        prompt = next((entry.prompt for entry in child.entries if entry.prompt), "")
        same = [one for one, told in calls if any(text and text in prompt for text in told)]
        child.parent_call = next(iter(same or [one for one, _ in calls]), None)
        taken.add(child.parent_call)


def _told(placed: Placed, entry: Entry) -> Iterator[str]:
    """Yield the words that the agent calls of a message gave to their agents."""
    if entry.kind == Kind.GEMINI:
        for call in whole(placed.reading, entry, shortened=True).tool_calls:
            if tool(call.name).is_agent:
                yield from _texts(call.args)


def _texts(args: Json) -> Iterator[str]:
    if isinstance(args, dict):
        yield from (value.strip() for key, value in args.items() if isinstance(value, str) and key != "agent_name")
