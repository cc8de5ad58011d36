"""A message of a session file → its events.

Such a file says of a call what came of it, so the events of both stand at the message that asked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime
from itertools import groupby

import msgspec

from pollux.exports.events import draft as of
from pollux.exports.events.draft import ASKED, Draft, Outcome
from pollux.model import FunctionResponse, Json, Message, Origin, TextDisplay, ToolCall

_FAILED = frozenset({"error", "cancelled"})
_DONE = _FAILED | {"success"}


def message_drafts(message: Message, include: Collection[str]) -> Iterator[Draft]:
    """Give the events of a message, in the order in which they happened."""
    origin = of.known_origin(message)
    if origin in ASKED:
        yield of.prompt(message, message.text, message.id, message.at, "prompt")
    elif origin is Origin.MODEL:
        yield from _answer(message, include)
        yield from _calls(message)
    elif origin is Origin.TOOL_RESPONSE:
        yield from _responses(message)
    else:
        yield from of.asides(message, include)


def _answer(message: Message, include: Collection[str]) -> Iterator[Draft]:
    if "thoughts" in include:
        yield from of.thoughts(message)
    if "text" in include and (text := message.text).strip():
        yield Draft("text", message.id, message.at, "text", {"message": text}, of.model(message))
    if "usage" in include and message.tokens is not None:
        counts = {"tokens": msgspec.to_builtins(message.tokens)}
        yield Draft("usage", f"{message.id}/usage", message.at, "usage", {}, of.by_model(message) | counts)


def _calls(message: Message) -> Iterator[Draft]:
    """Give calls and results; what was called together is recorded together, at the time when all were done."""
    asked_at = message.at
    made_up: tuple[str, ...] = ()
    for done_at, batch in groupby(enumerate(message.tool_calls), lambda one: one[1].at):
        calls = list(batch)
        for number, call in calls:
            yield _use(message, call, number, asked_at, made_up)
        for number, call in calls:
            if _is_done(call):
                yield _result(message, call, number)
        if done_at:  # old releases put the calls of several answers into one message
            asked_at, made_up = done_at, ("timestamp",)


def _use(message: Message, call: ToolCall, number: int, at: datetime | None, made_up: tuple[str, ...]) -> Draft:
    return Draft(
        "tool_use",
        call.id or f"{message.id}/{number}",
        at,
        f"use/{number}",
        of.use_fields(call, call.args),
        _metadata(message, call),
        made_up if call.id else ("id", *made_up),
    )


def _result(message: Message, call: ToolCall, number: int) -> Draft:
    metadata = _metadata(message, call) | {"status": call.status}
    if call.exit_code is not None:
        metadata["exit_code"] = call.exit_code
    made_up = [name for name, value in (("id", call.id), ("timestamp", call.at)) if value is None]
    return Draft(
        "tool_result",
        f"{call.id or f'{message.id}/{number}'}/result",
        call.at or message.at,
        f"result/{number}",
        {"tool_name": call.canonical, "tool_result": _outcome(call)},
        metadata,
        tuple(made_up),
        of.call_key(call.id, call.name),
    )


def _outcome(call: ToolCall) -> Outcome:
    output = call.output
    if output is None and call.error is None:
        shown = call.display.text if isinstance(call.display, TextDisplay) else None  # captured output has no more
        output = shown if call.response is None else of.outcome(call.response).output
    return Outcome(success=call.error is None and call.status not in _FAILED, output=output, error=call.error)


def _is_done(call: ToolCall) -> bool:
    return call.status in _DONE or any(one is not None for one in (call.output, call.error, call.response))


def _responses(message: Message) -> Iterator[Draft]:
    """Give the results that a message to the model holds, for calls of which nothing else is recorded."""
    for place, part in enumerate(message.parts):
        if isinstance(part, FunctionResponse):
            found = of.result(part, f"{message.id}/{place}", message.at, f"response/{place}")
            yield found._replace(made_up=() if part.id else ("id",), is_second_hand=True)


def _metadata(message: Message, call: ToolCall) -> dict[str, Json]:
    agent: dict[str, Json] = {"agent_session_id": call.agent_id} if call.agent_id else {}
    return {"message_id": message.id} | of.tool_metadata(call, call.name, call.id) | agent
