"""A session as a trajectory, piece by piece, with those of its subagents inside.

Steps are what led to the state of the conversation: all that is active, and what was compressed on the way. What was
rewound, rolled back or replaced is left out and counted. Messages that only carry results to the model are no steps,
since a result stands with its call. For the way back, both are told of under `extra.pollux`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

from pollux import __version__
from pollux.exports.atif import words
from pollux.exports.atif.steps import NANO, Family, carrier, is_sound, step
from pollux.exports.atif.words import filled
from pollux.exports.source import Subject
from pollux.exports.tokens import RULE, completion, price_table, prompt
from pollux.model import Fate, Json, Message, ModelCall, Origin, Session, Usage
from pollux.prices import usage_of
from pollux.text.encode import encode
from pollux.text.times import stamp
from pollux.views.contracts import calls_of, problem_row
from pollux.views.transcript import FATES, Branches

VERSION, VERSION_WITH_SOUND = "ATIF-v1.7", "ATIF-v1.8"
MAPPING: tuple[tuple[str, str, str], ...] = (
    ("session id", "`session_id`, `trajectory_id`", "the same in both"),
    ("the client", "`agent.name` = `gemini-cli`", "`agent.version` is `unknown`: session files do not tell"),
    ("prompt", "step, `source` = `user`", "as it was sent; what was typed is `extra.gemini.displayContent`"),
    ("answer", "step, `source` = `agent`", "`llm_call_count` = 1; 0 for words that the client put in"),
    ("notice, unknown message", "step, `source` = `system`", "its kind is `extra.gemini.type`"),
    ("thoughts", "`reasoning_content`", "one text; each with its time in `extra.gemini.thoughts`"),
    ("tool call", "`tool_calls[]`", "status, times and display in `extra.gemini`, our names in `extra.pollux`"),
    ("result of a call", "`observation.results[]` of the same step", "failed ones too: `extra.gemini.is_error`"),
    ("message that carries results", "no step", "listed in `extra.pollux.messages`"),
    ("subagent", "`subagent_trajectories[]`", "referred to by the result of the call that started it"),
    ("picture, sound", "content part with a path", "a file beside the trajectory; without a place for it, lost"),
    (
        "input + tool tokens",
        "`metrics.prompt_tokens`",
        "with the cached ones; the six counts are in `metrics.extra`",
    ),
    ("output + thoughts tokens", "`metrics.completion_tokens`", "no counts, no metrics: never 0"),
    ("cached tokens", "`metrics.cached_tokens`", "a part of the prompt"),
    ("cost", "`metrics.cost_usd`", "estimated; the table is in `extra.pollux.prices`; absent without a price"),
    ("sums", "`final_metrics`", "tokens of the steps, cost with subagents, all calls in `extra.pollux`"),
    ("compressed message", "step", "`extra.pollux.fate` = `compressed`"),
    (
        "rewound, rolled back, replaced message",
        "left out",
        "counted in `notes`; `--branches all`: in `extra.pollux.messages`",
    ),
    ("model call without a step", "`extra.pollux.calls[]`", "so that sums stay what was paid"),
    ("loaded or imported message", "step, `is_copied_context`", "trainers must not learn from it twice"),
    ("metadata of the file", "`extra.gemini`", "as the client wrote it"),
    ("source files", "`extra.pollux.sources[]`", "with their SHA-256"),
)
"""What becomes what: ours, theirs, and how."""

_LEFT_OUT = (Fate.REWOUND, Fate.ROLLED_BACK, Fate.REPLACED)
_NOTHING: dict[str, Json] = {"step_id": 1, "source": "system", "message": "", "extra": {"pollux": {"is_empty": True}}}
"""A trajectory has at least one step."""


class _Placed(NamedTuple):
    message: Message
    number: int | None
    """Of its step, if it is one."""
    after: int
    """How many steps there are before it."""


@dataclass(slots=True)
class _Sums:
    """What the steps of a trajectory come to."""

    steps: int = 0
    usage: Usage = field(default_factory=Usage)


@dataclass(slots=True)
class _Aside:
    """What is no step."""

    calls: dict[str, ModelCall]
    """The model calls that no step has told of yet."""
    messages: int = 0
    known: set[str] = field(default_factory=set)
    """The calls that are told with their results."""


def render(subject: Subject) -> Iterator[bytes]:
    """Write one session with its subagents."""
    yield from _trajectory(subject, count(1), {subject.session.id}, has_sound=_has_sound(subject))
    yield b"\n"


def _trajectory(subject: Subject, numbers: Iterator[int], above: set[str], *, has_sound: bool) -> Iterator[bytes]:
    session, losses = subject.session, subject.losses
    calls = {call.message_id: call for call in session.calls}
    agents: dict[str | None, list[str]] = {}
    for id_ in session.children:
        if id_ in subject.by_id and id_ not in above:
            agents.setdefault(subject.by_id[id_].parent_call, []).append(id_)
    family = Family(subject, calls, agents, numbers, has_sound)
    yield encode(_head(session, has_sound=has_sound), losses)[:-1] + b',"steps":['
    sums, aside = _Sums(), _Aside(dict(calls))
    for message, number, _ in _placed(subject):
        if number is None:
            aside.messages += 1
            continue
        yield (b",\n" if sums.steps else b"\n") + encode({"step_id": number, **step(family, message)}, losses)
        sums.steps += 1
        aside.known |= {call.id for call in message.tool_calls if call.id}
        if own := aside.calls.pop(message.id, None):
            sums.usage += usage_of([own], subject.prices)
    if not sums.steps:
        yield encode(_NOTHING, losses)
    yield b"\n]," + encode(_tail(subject, sums), losses)[1:-1]
    yield from _extra(family, aside)
    separator = b',"subagent_trajectories":[\n'
    for child in subject.children():
        if child.session.id not in above:
            yield separator
            yield from _trajectory(child, numbers, above | {child.session.id}, has_sound=has_sound)
            separator = b",\n"
    yield b"]}" if separator == b",\n" else b"}"


def _placed(subject: Subject) -> Iterator[_Placed]:
    """Give every message its place among the steps."""
    number = 0
    for message in subject.messages():
        is_step = message.fate not in _LEFT_OUT and message.origin is not Origin.TOOL_RESPONSE
        yield _Placed(message, number + 1 if is_step else None, number)
        number += is_step


def _head(session: Session, *, has_sound: bool) -> dict[str, Json]:
    agent = filled(
        name="gemini-cli",
        version="unknown",
        model_name=session.models[0] if len(session.models) == 1 else None,
        extra={"generation": session.generation, "kind": session.kind},
    )
    version = VERSION_WITH_SOUND if has_sound else VERSION
    return {"schema_version": version, "session_id": session.id, "trajectory_id": session.id, "agent": agent}


def _tail(subject: Subject, sums: _Sums) -> dict[str, Json]:
    """Sum up: tokens of the steps, money of the subagents too, and beside it all that was ever paid for."""
    session = subject.session
    calls = list(calls_of(session, subject.by_id))
    billed = usage_of(calls, subject.prices)
    of_agents = usage_of((call for call in calls if call.session_id != session.id), subject.prices)
    tokens, cost = sums.usage.tokens, sums.usage.cost + of_agents.cost
    is_priced = calls and not cost.unpriced_calls  # the format has no word for an incomplete sum
    return filled(
        notes=_notes(session),
        final_metrics=filled(
            total_prompt_tokens=prompt(tokens) if sums.usage.calls else None,
            total_completion_tokens=completion(tokens) if sums.usage.calls else None,
            total_cached_tokens=tokens.cached if sums.usage.calls else None,
            total_cost_usd=cost.nanousd / NANO if is_priced else None,
            total_steps=sums.steps or 1,
            extra={"pollux": {"billed": words.tokens(billed.tokens), "model_calls": billed.calls}} if calls else None,
        ),
    )


def _notes(session: Session) -> str | None:
    told = [f"{session.fates[fate]} {FATES[fate]}" for fate in _LEFT_OUT if session.fates.get(fate)]
    return f"Messages that are no steps, since they were taken back: {', '.join(told)}." if told else None


def _extra(family: Family, aside: _Aside) -> Iterator[bytes]:
    """Write what belongs to the whole: the client's metadata, our own words, and what is no step."""
    subject = family.subject
    session, losses = subject.session, subject.losses
    metadata = subject.clean(dict(subject.group.main.seen))
    own: dict[str, Json] = {
        "version": __version__,
        "title": session.title,
        "project": {"path": session.project.path, "hash": session.project.hash},
        "parent": session.parent,
        "parent_call": session.parent_call,
        "fates": dict(session.fates),
        "prices": price_table(subject),
        "sources": subject.sources(),
        "problems": [subject.clean(problem_row(one)) for one in session.problems],
    }
    yield b',"extra":' + encode({"token_rule": RULE, "gemini": metadata, "pollux": own}, losses)[:-2]
    yield b',"messages":['
    separator = b"\n"
    for message, number, after in _placed(subject) if aside.messages else ():
        if number is None and (told := _no_step(family, message, aside)):
            yield separator + encode({"after_step": after, **told}, losses)
            separator = b",\n"
    yield b'],"calls":' + encode([_model_call(call) for call in aside.calls.values()], losses) + b"}}"


def _no_step(family: Family, message: Message, aside: _Aside) -> dict[str, Json] | None:
    """Write a message that is no step; what was taken back only when asked for."""
    if message.fate in _LEFT_OUT:
        if family.subject.wanted.branches is not Branches.ALL:
            family.subject.losses[f"a message that was {FATES[message.fate]} (--branches all keeps it)"] += 1
            return None
        aside.calls.pop(message.id, None)
    return carrier(message, aside.known) if message.origin is Origin.TOOL_RESPONSE else step(family, message)


def _model_call(call: ModelCall) -> Json:
    return filled(
        message_id=call.message_id,
        timestamp=stamp(call.at) if call.at else None,
        model=call.model,
        fate=call.fate,
        tokens=words.tokens(call.tokens),
    )


def _has_sound(subject: Subject) -> bool:
    """Tell whether a sound will stand beside; only then the newest version is taken, which not everybody knows yet."""
    if subject.beside is None:
        return False
    for message in subject.messages():
        of_calls = (one for call in message.tool_calls for one in call.attachments)
        if any(is_sound(one) for one in (*message.attachments, *of_calls)):
            return True
    return any(_has_sound(child) for child in subject.children())
