"""The second pass over a session: make its entries one at a time, with subagents below the call that started them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeAlias

from pollux.exports.source import ExportSource
from pollux.exports.vac.messages import AnsweredCalls, message_entry, token_usage
from pollux.exports.vac.plan import FateRun, RecordPlan, open_agent
from pollux.exports.vac.values import LazyEntries, LazyMap, RecordEntry, members, representable, time_text
from pollux.model import Fate, Message, ModelCall
from pollux.sessions.grouping import LocatedReading
from pollux.sessions.replay import TimelineEntry as TimelineItem

Timeline: TypeAlias = Iterator[tuple[tuple[LocatedReading, TimelineItem], Message]]

EVENTS = {
    Fate.REWOUND: "rewind",
    Fate.COMPRESSED: "compression",
    Fate.ROLLED_BACK: "rollback",
    Fate.REPLACED: "replacement",
}
"""The events that removed messages from the conversation."""


def entries(source: ExportSource, plan: RecordPlan) -> LazyEntries:
    """Return the entries of a session, which are made while they are written."""

    def each() -> Iterator[RecordEntry]:
        return (representable(entry, source.losses) for entry in _SessionPass(source, plan).entries())

    return LazyEntries(plan.count, each)


@dataclass(frozen=True, slots=True)
class _SessionPass:
    """Goes through the messages of a session once."""

    source: ExportSource
    plan: RecordPlan
    answered: AnsweredCalls = field(default_factory=AnsweredCalls)

    def entries(self) -> Iterator[RecordEntry]:
        """Yield the entries in timeline order, then those that have no place in it."""
        timeline: Timeline = zip(self.source.group.timeline, self.source.messages(), strict=True)
        for run in self.plan.runs:
            if run.fate is Fate.ACTIVE:
                yield from self._messages(timeline, run)
            else:
                yield self._dropped(timeline, run)
        for plan in self.plan.unplaced_agents:
            yield LazyMap(self._agent(plan), type="system-event", **{"event-type": "subagent"})
        for call in self.plan.unplaced_calls:
            yield self._model_call(call)

    def _messages(self, timeline: Timeline, run: FateRun) -> Iterator[RecordEntry]:
        for (placed, item), message in islice(timeline, len(run.ids)):
            agents: dict[int, RecordEntry] = {}
            for number in range(len(message.tool_calls)):
                if plan := self.plan.agents.get((item.id, number)):
                    agents[number] = self._agent(plan)
            kind = self.source.clean(item.kind)
            entry = message_entry(message, str(kind), self.answered, agents)
            file = self.plan.first_source + self.source.group.files.index(placed)
            entry["source"] = members(file=file, line=message.line)
            if message.tokens and item.id not in self.plan.own_usage:
                entry["token-usage"]["repeated"] = True
            yield entry

    def _dropped(self, timeline: Timeline, run: FateRun) -> RecordEntry:
        """Return the event that dropped messages, with the messages as its children if all branches are written."""
        event = {"type": "system-event", "event-type": EVENTS[run.fate]}
        data = members(messages=len(run.ids), token_usage=token_usage(run.tokens) if run.tokens else None)
        if self.plan.writes_dropped:
            losses = self.source.losses
            children = LazyEntries(
                len(run.ids), lambda: (representable(entry, losses) for entry in self._messages(timeline, run))
            )
            return LazyMap(event, data=data, children=children)
        for _ in islice(timeline, len(run.ids)):
            pass
        agents = [plan.session.id for (id_, _), plan in self.plan.agents.items() if id_ in run.ids]
        clean = self.source.clean
        left_out = members(left_out=clean(run.ids), subagents=clean(agents) if agents else None)
        return {**event, "data": {**data, **left_out}}

    def _agent(self, plan: RecordPlan) -> RecordEntry:
        """Return a subagent, which is opened when its entries are written."""
        trace = representable(plan.trace, self.source.losses)
        children = LazyEntries(plan.count, lambda: entries(open_agent(self.source, plan.session), plan).each())
        return {"agent-session": trace, "children": children}

    def _model_call(self, call: ModelCall) -> RecordEntry:
        """Return a model call whose message was merged into another one."""
        data = members(
            message_id=call.message_id,
            model_id=call.model,
            token_usage=token_usage(call.tokens),
            fate=None if call.fate is Fate.ACTIVE else call.fate,
        )
        event = members(type="system-event", event_type="model-call", timestamp=time_text(call.at))
        return {**event, "data": self.source.clean(data)}
