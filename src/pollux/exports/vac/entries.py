"""The second walk: messages → entries, one at a time, with subagents below the call that started them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeAlias

from pollux.exports.source import Subject
from pollux.exports.vac.contents import token_usage
from pollux.exports.vac.messages import Answers, message_entry
from pollux.exports.vac.plan import Plan, Run, agent
from pollux.exports.vac.values import Entry, Many, Open, sound, time, told
from pollux.model import Fate, Message, ModelCall
from pollux.sessions.grouping import Placed
from pollux.sessions.replay.entries import Entry as Light

Recorded: TypeAlias = Iterator[tuple[tuple[Placed, Light], Message]]

EVENTS = {
    Fate.REWOUND: "rewind",
    Fate.COMPRESSED: "compression",
    Fate.ROLLED_BACK: "rollback",
    Fate.REPLACED: "replacement",
}
"""What happened to messages that are no longer part of the conversation."""


def entries(subject: Subject, plan: Plan) -> Many:
    """Give the entries of a session, to be made when they are written."""
    return Many(plan.count, lambda: (sound(entry, subject.losses) for entry in _Walk(subject, plan).entries()))


@dataclass(frozen=True, slots=True)
class _Walk:
    """Goes through a session once, from its first message to its last."""

    subject: Subject
    plan: Plan
    answers: Answers = field(default_factory=Answers)

    def entries(self) -> Iterator[Entry]:
        """Make the entries in the order of the timeline; then those that have no place in it."""
        recorded: Recorded = zip(self.subject.group.timeline, self.subject.messages(), strict=True)
        for run in self.plan.runs:
            if run.fate is Fate.ACTIVE:
                yield from self._messages(recorded, run)
            else:
                yield self._gone(recorded, run)
        for plan in self.plan.apart:
            yield Open(self._agent(plan), type="system-event", **{"event-type": "subagent"})
        for call in self.plan.calls:
            yield self._uncounted(call)

    def _messages(self, recorded: Recorded, run: Run) -> Iterator[Entry]:
        for (placed, light), message in islice(recorded, len(run.ids)):
            agents = {
                number: self._agent(self.plan.agents[light.id, number])
                for number in range(len(message.tool_calls))
                if (light.id, number) in self.plan.agents
            }
            kind = self.subject.clean(light.kind)
            entry = message_entry(message, str(kind), self.answers, agents)
            file = self.plan.first_source + self.subject.group.files.index(placed)
            entry["source"] = told(file=file, line=message.line)
            if message.tokens and light.id not in self.plan.counted:
                entry["token-usage"]["repeated"] = True
            yield entry

    def _gone(self, recorded: Recorded, run: Run) -> Entry:
        """Say what became of messages, and keep them below that if asked to."""
        event = {"type": "system-event", "event-type": EVENTS[run.fate]}
        data = told(messages=len(run.ids), token_usage=token_usage(run.tokens) if run.tokens else None)
        if self.plan.keeps_all:
            losses = self.subject.losses
            children = Many(len(run.ids), lambda: (sound(one, losses) for one in self._messages(recorded, run)))
            return Open(event, data=data, children=children)
        for _ in islice(recorded, len(run.ids)):
            pass
        agents = [plan.session.id for (id_, _), plan in self.plan.agents.items() if id_ in run.ids]
        left_out = told(left_out=self.subject.clean(run.ids), subagents=self.subject.clean(agents) if agents else None)
        return {**event, "data": {**data, **left_out}}

    def _agent(self, plan: Plan) -> Entry:
        """Tell what a subagent is and did; it is opened when it is written."""
        trace = sound(plan.trace, self.subject.losses)
        children = Many(plan.count, lambda: entries(agent(self.subject, plan.session), plan).each())
        return {"agent-session": trace, "children": children}

    def _uncounted(self, call: ModelCall) -> Entry:
        """Tell of a model call whose message was folded into another one."""
        data = told(
            message_id=call.message_id,
            model_id=call.model,
            token_usage=token_usage(call.tokens),
            fate=None if call.fate is Fate.ACTIVE else call.fate,
        )
        event = told(type="system-event", event_type="model-call", timestamp=time(call.at))
        return {**event, "data": self.subject.clean(data)}
