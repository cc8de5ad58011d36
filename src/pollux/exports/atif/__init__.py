"""Export a session as a trajectory in the Agent Trajectory Interchange Format (Harbor RFC 0001).

Steps are the messages that led to the current state: active and compressed ones. Retracted messages are left out and
counted. Messages that only send results to the model are not steps, since a result belongs to its call. Both are listed
under `extra.pollux`, so that `formats/atif.py` can restore them. Subagents are trajectories inside the trajectory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

from pollux import __version__
from pollux.exports.atif.client_values import tokens_json, without_none
from pollux.exports.atif.steps import StepContext, is_audio, result_carrier, step
from pollux.exports.fields import NANO, TOKEN_RULE, completion_tokens, price_table, prompt_tokens
from pollux.exports.source import RETRACTED, ExportSource
from pollux.model import Json, Message, ModelCall, Origin, Session, Usage
from pollux.prices import usage_of
from pollux.text.encode import encode
from pollux.text.times import client_timestamp
from pollux.views.contracts import calls_of, problem_row
from pollux.views.transcript import Branches

VERSION, VERSION_WITH_AUDIO = "ATIF-v1.7", "ATIF-v1.8"

_EMPTY_STEP: dict[str, Json] = {
    "step_id": 1,
    "source": "system",
    "message": "",
    "extra": {"pollux": {"is_empty": True}},
}
"""A trajectory must have at least one step."""


class _NumberedMessage(NamedTuple):
    message: Message
    number: int | None
    """The number of its step, if it is one."""
    after: int
    """The number of steps before it."""


@dataclass(slots=True)
class _StepTotals:
    """The number and usage of the steps of a trajectory."""

    steps: int = 0
    usage: Usage = field(default_factory=Usage)


@dataclass(slots=True)
class _Others:
    """What is not a step."""

    calls: dict[str, ModelCall]
    """The model calls that no step has used yet."""
    n_messages: int = 0
    known_calls: set[str] = field(default_factory=set)
    """The tool calls that steps have with their results."""


def render(source: ExportSource) -> Iterator[bytes]:
    """Yield one session with its subagents."""
    yield from _trajectory(source, count(1), {source.session.id}, has_audio=_has_audio(source))
    yield b"\n"


def _trajectory(
    source: ExportSource, numbers: Iterator[int], ancestors: set[str], *, has_audio: bool
) -> Iterator[bytes]:
    session, losses = source.session, source.losses
    calls = {call.message_id: call for call in session.calls}
    agents: dict[str | None, list[str]] = {}
    for id_ in session.children:
        if id_ in source.by_id and id_ not in ancestors:
            agents.setdefault(source.by_id[id_].parent_call, []).append(id_)
    context = StepContext(source, calls, agents, numbers, has_audio)
    yield encode(_head(session, has_audio=has_audio), losses)[:-1] + b',"steps":['
    totals, others = _StepTotals(), _Others(dict(calls))
    for message, number, _ in _numbered_messages(source):
        if number is None:
            others.n_messages += 1
            continue
        yield (b",\n" if totals.steps else b"\n") + encode({"step_id": number, **step(context, message)}, losses)
        totals.steps += 1
        others.known_calls |= {call.id for call in message.tool_calls if call.id}
        if own := others.calls.pop(message.id, None):
            totals.usage += usage_of([own], source.prices)
    if not totals.steps:
        yield encode(_EMPTY_STEP, losses)
    yield b"\n]," + encode(_tail(source, totals), losses)[1:-1]
    yield from _extra(context, others)
    separator = b',"subagent_trajectories":[\n'
    for child in source.children():
        if child.session.id not in ancestors:
            yield separator
            yield from _trajectory(child, numbers, ancestors | {child.session.id}, has_audio=has_audio)
            separator = b",\n"
    yield b"]}" if separator == b",\n" else b"}"


def _numbered_messages(source: ExportSource) -> Iterator[_NumberedMessage]:
    """Yield every message with its place among the steps."""
    number = 0
    for message in source.messages():
        is_step = message.fate not in RETRACTED and message.origin is not Origin.TOOL_RESPONSE
        yield _NumberedMessage(message, number + 1 if is_step else None, number)
        number += is_step


def _head(session: Session, *, has_audio: bool) -> dict[str, Json]:
    agent = without_none(
        name="gemini-cli",
        version="unknown",
        model_name=session.models[0] if len(session.models) == 1 else None,
        extra={"generation": session.generation, "kind": session.kind},
    )
    version = VERSION_WITH_AUDIO if has_audio else VERSION
    return {"schema_version": version, "session_id": session.id, "trajectory_id": session.id, "agent": agent}


def _tail(source: ExportSource, totals: _StepTotals) -> dict[str, Json]:
    """Return the totals: tokens of the steps, cost including subagents, and everything that was billed."""
    session = source.session
    calls = list(calls_of(session, source.by_id))
    billed = usage_of(calls, source.prices)
    agents_usage = usage_of((call for call in calls if call.session_id != session.id), source.prices)
    tokens, cost = totals.usage.tokens, totals.usage.cost + agents_usage.cost
    is_priced = calls and not cost.unpriced_calls  # the format cannot mark a sum as incomplete
    return without_none(
        notes=_notes(session),
        final_metrics=without_none(
            total_prompt_tokens=prompt_tokens(tokens) if totals.usage.calls else None,
            total_completion_tokens=completion_tokens(tokens) if totals.usage.calls else None,
            total_cached_tokens=tokens.cached if totals.usage.calls else None,
            total_cost_usd=cost.nanousd / NANO if is_priced else None,
            total_steps=totals.steps or 1,
            extra={"pollux": {"billed": tokens_json(billed.tokens), "model_calls": billed.calls}} if calls else None,
        ),
    )


def _notes(session: Session) -> str | None:
    counts = [f"{session.fates[fate]} {fate.label}" for fate in RETRACTED if session.fates.get(fate)]
    return f"Messages that are no steps, since they were taken back: {', '.join(counts)}." if counts else None


def _extra(context: StepContext, others: _Others) -> Iterator[bytes]:
    """Yield the `extra` of a trajectory: the client's metadata, Pollux's own, and messages that are not steps."""
    source = context.source
    session, losses = source.session, source.losses
    metadata = source.clean(dict(source.group.main.seen))
    pollux: dict[str, Json] = {
        "version": __version__,
        "title": session.title,
        "project": {"path": session.project.path, "hash": session.project.hash},
        "parent": session.parent,
        "parent_call": session.parent_call,
        "fates": dict(session.fates),
        "prices": price_table(source),
        "sources": source.sources(),
        "problems": [source.clean(problem_row(problem)) for problem in session.problems],
    }
    yield b',"extra":' + encode({"token_rule": TOKEN_RULE, "gemini": metadata, "pollux": pollux}, losses)[:-2]
    yield b',"messages":['
    separator = b"\n"
    for message, number, after in _numbered_messages(source) if others.n_messages else ():
        if number is None and (other := _other_message(context, message, others)):
            yield separator + encode({"after_step": after, **other}, losses)
            separator = b",\n"
    yield b'],"calls":' + encode([_model_call(call) for call in others.calls.values()], losses) + b"}}"


def _other_message(context: StepContext, message: Message, others: _Others) -> dict[str, Json] | None:
    """Return a message that is not a step; a retracted one only with `--branches all`."""
    if message.fate in RETRACTED:
        if context.source.export_options.branches is not Branches.ALL:
            context.source.losses[f"a message that was {message.fate.label} (--branches all adds it)"] += 1
            return None
        others.calls.pop(message.id, None)
    return (
        result_carrier(message, others.known_calls)
        if message.origin is Origin.TOOL_RESPONSE
        else step(context, message)
    )


def _model_call(call: ModelCall) -> Json:
    return without_none(
        message_id=call.message_id,
        timestamp=client_timestamp(call.at) if call.at else None,
        model=call.model,
        fate=call.fate,
        tokens=tokens_json(call.tokens),
    )


def _has_audio(source: ExportSource) -> bool:
    """Return whether audio will be written; only then the newest version is used, which few readers support yet."""
    if source.write_side_file is None:
        return False
    for message in source.messages():
        of_calls = (attachment for call in message.tool_calls for attachment in call.attachments)
        if any(is_audio(attachment) for attachment in (*message.attachments, *of_calls)):
            return True
    return any(_has_audio(child) for child in source.children())
