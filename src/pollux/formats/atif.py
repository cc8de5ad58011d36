"""Trajectories (ATIF, Harbor RFC 0001): the steps of an agent, ours and those of others, as a session.

What a trajectory of ours keeps under `extra.gemini` and `extra.pollux` comes back as it was. In those of others, steps
have no ids; they are made up. Subagents inside a trajectory are sessions of their own, and not shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from itertools import groupby
from typing import Any

import msgspec

from pollux.formats.converted import Converted, Wire, decode, extras, head_text, keys, stem
from pollux.model import Json, Problem


class _Extra(msgspec.Struct):
    gemini: dict[str, Any] = {}
    pollux: dict[str, Any] = {}


class _Source(msgspec.Struct):
    media_type: str
    path: str


class _Part(msgspec.Struct):
    text: str | None = None
    source: _Source | None = None


class _Call(msgspec.Struct):
    tool_call_id: str
    function_name: str
    arguments: Any = {}
    extra: _Extra | None = None


class _Result(msgspec.Struct):
    source_call_id: str | None = None
    content: str | list[_Part] | None = None
    extra: _Extra | None = None


class _Observation(msgspec.Struct):
    results: list[_Result] = []


class _Metrics(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    extra: _Extra | None = None


class _Step(msgspec.Struct):
    source: str
    message: str | list[_Part] = ""
    timestamp: str | None = None
    model_name: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[_Call] | None = None
    observation: _Observation | None = None
    metrics: _Metrics | None = None
    extra: _Extra | None = None
    after_step: int = 0
    """Of a message that is no step: how many steps come before it."""


class _Told(msgspec.Struct):
    message: Wire
    is_taken_back: bool = False


_SIGN = re.compile(rb'"schema_version"\s*:\s*"ATIF-v')
_TYPES = {"user": "user", "agent": "gemini", "system": "info"}
_TAKEN_BACK = frozenset({"rewound", "rolled_back", "replaced"})


def sniff(head: bytes) -> bool:
    """Tell from the first bytes of a file whether it is a trajectory."""
    if not _SIGN.search(head):
        return False
    return any(key.depth == 1 and key.name == "schema_version" for key in keys(head_text(head)))


def convert(data: bytes, *, name: str, modified: datetime) -> Converted:
    """Convert one trajectory; a bad step becomes a message of kind `unknown` and a problem."""
    del modified  # a trajectory without times has none
    document, torn = decode(data)
    whole: Wire = document if isinstance(document, dict) else {}
    problems = [*torn, *_problems(whole)]
    session_id, made_up = whole.get("trajectory_id") or whole.get("session_id"), {"id"}
    if not isinstance(session_id, str):
        session_id = stem(name)
        made_up.add("session_id")
    extra = _extra_of(whole)
    messages = [*_messages(_Reader(session_id, whole, extra), problems)]
    header: Wire = {**_times(messages), **extras(extra.gemini), "sessionId": session_id}
    return Converted(header, (*messages, *_lost_calls(extra.pollux)), tuple(problems), frozenset(made_up))


def _problems(whole: Wire) -> Iterator[Problem]:
    if not isinstance(whole.get("steps"), list):
        yield Problem("no-steps", "no list of steps: this is not a whole trajectory")
    inner = whole.get("subagent_trajectories")
    if isinstance(inner, list) and inner:
        yield Problem("inner-trajectory", f"{len(inner)} subagent(s) inside this trajectory are not shown")


def _extra_of(whole: Wire) -> _Extra:
    try:
        return msgspec.convert(whole.get("extra") or {}, _Extra)
    except msgspec.ValidationError:
        return _Extra()  # somebody else's


class _Reader:
    """Puts steps into the client's words, and remembers results for the messages that only name them."""

    def __init__(self, session_id: str, whole: Wire, extra: _Extra) -> None:
        self.steps = whole.get("steps")
        self.others = extra.pollux.get("messages")
        agent = whole.get("agent")
        self._model = agent.get("model_name") if isinstance(agent, dict) else None
        self._session_id = session_id
        self._results: dict[str, Json] = {}

    def read(self, number: int, step: _Step) -> Iterator[_Told]:
        """Yield the message of a step, and notices for what it observed that no call asked for."""
        extra = step.extra or _Extra()
        if extra.pollux.get("is_empty"):
            return
        message = self._message(number, step, extra.gemini)
        yield _Told(message, extra.pollux.get("fate") in _TAKEN_BACK)
        for index, result in enumerate(one for one in _results(step) if one.source_call_id is None):
            told = {"id": f"{message['id']}#{index}", "type": "info", "content": _words(result.content)}
            yield _Told({**told, **_present(timestamp=step.timestamp)})

    def unread(self, number: int, step: Json) -> _Told:
        """Keep what is no step as it is."""
        return _Told({"id": f"{self._session_id}#{number}", "type": "unknown", "content": [step]})

    def _message(self, number: int, step: _Step, gemini: Wire) -> Wire:
        is_ours = isinstance(gemini.get("id"), str)
        kind = _TYPES.get(step.source, step.source)
        told = _present(
            timestamp=step.timestamp,
            model=step.model_name or (self._model if kind == "gemini" and not is_ours else None),
            thoughts=[{"subject": "", "description": step.reasoning_content}] if step.reasoning_content else None,
            tokens=_tokens(step.metrics) if step.metrics else None,
            toolCalls=[*self._calls(step)] or None,
        )
        message: Wire = {"id": f"{self._session_id}#{number}", "type": kind, "content": _content(step.message), **told}
        message |= gemini
        if "content" in gemini:
            message["content"] = self._filled(gemini["content"])
        return message

    def _calls(self, step: _Step) -> Iterator[Wire]:
        found = {one.source_call_id: one for one in _results(step)}
        for call in step.tool_calls or ():
            own = call.extra.gemini if call.extra else {}
            wire: Wire = {"id": call.tool_call_id, "name": call.function_name, "args": call.arguments, **own}
            if result := found.get(call.tool_call_id):
                response, *media = _result(result)
                self._results[call.tool_call_id] = response
                named = {"id": call.tool_call_id, "name": call.function_name, "response": response}
                wire["result"] = [{"functionResponse": named}, *media]
            yield wire

    def _filled(self, content: Json) -> Json:
        """Give responses that are only named their words back."""
        filled: list[Json] = []
        for part in content if isinstance(content, list) else []:
            match part:
                case {"functionResponse": {"id": str(id_)} as response} if "response" not in response:
                    filled.append({"functionResponse": {**response, "response": self._results.get(id_)}})
                case _:
                    filled.append(part)
        return filled


def _messages(reader: _Reader, problems: list[Problem]) -> Iterator[Wire]:
    """Yield the messages in their order; what was taken back is followed by the rewind that does it."""
    for is_taken_back, run in groupby(_told(reader, problems), lambda one: one.is_taken_back):
        messages = [one.message for one in run]
        yield from messages
        if is_taken_back:
            yield {"$rewindTo": messages[0]["id"]}


def _told(reader: _Reader, problems: list[Problem]) -> Iterator[_Told]:
    """Read the steps, and what is no step in its place among them."""
    waiting = [one for _, one in _typed(reader.others, []) if isinstance(one, _Step)]
    for number, step in _typed(reader.steps, problems):
        while waiting and waiting[0].after_step < number:
            yield from reader.read(0, waiting.pop(0))
        if isinstance(step, _Step):
            yield from reader.read(number, step)
        else:
            yield reader.unread(number, step)
    for step in waiting:
        yield from reader.read(0, step)


def _typed(values: Json, problems: list[Problem]) -> Iterator[tuple[int, _Step | Json]]:
    """Give each step its number and its type, and say which have none."""
    for number, value in enumerate(values if isinstance(values, list) else (), 1):
        try:
            yield number, msgspec.convert(value, _Step)
        except msgspec.ValidationError as error:
            problems.append(Problem("bad-step", f"step {number}: {error}"))
            yield number, value


def _content(message: str | list[_Part]) -> Json:
    return message if isinstance(message, str) else [_part(one) for one in message]


def _part(part: _Part) -> Json:
    if part.source:
        return {"fileData": {"mimeType": part.source.media_type, "fileUri": part.source.path}}
    return {"text": part.text or ""}


def _tokens(metrics: _Metrics) -> Wire | None:
    """Take the API's own counts where they are kept; else what others count comes nearest."""
    if metrics.extra and metrics.extra.gemini:
        return metrics.extra.gemini
    prompt, completion = metrics.prompt_tokens, metrics.completion_tokens
    if prompt is None or completion is None:
        return None
    return {"input": prompt, "output": completion, "cached": metrics.cached_tokens or 0, "total": prompt + completion}


def _results(step: _Step) -> list[_Result]:
    return step.observation.results if step.observation else []


def _result(result: _Result) -> list[Json]:
    """Return what the model was told of a call, and the media that came with it."""
    own = result.extra.gemini if result.extra else {}
    words = _words(result.content)
    response: Json = {} if words is None else {"error" if own.get("is_error") else "output": words}
    if "response" in own:
        response = own["response"]
    elif "error" in own:
        response = {"output": words, "error": own["error"]}
    media = own.get("parts")
    if not isinstance(media, list):
        media = [_part(one) for one in result.content if one.source] if isinstance(result.content, list) else []
    return [response, *media]


def _words(content: str | list[_Part] | None) -> str | None:
    if not isinstance(content, list):
        return content
    texts = [one.text for one in content if one.text is not None]
    return "".join(texts) if texts else None


def _lost_calls(own: Wire) -> Iterator[Wire]:
    """Yield the model calls that no step tells of as empty answers, at the end those that were taken back."""
    calls = own.get("calls")
    found = [one for one in calls if isinstance(one, dict)] if isinstance(calls, list) else []
    gone = [one for one in found if one.get("fate") in _TAKEN_BACK]
    for one in (*(one for one in found if one not in gone), *gone):
        told = {key: value for key, value in one.items() if key not in {"message_id", "fate"}}
        yield {"id": one.get("message_id"), "type": "gemini", "content": "", **told}
    if gone:
        yield {"$rewindTo": gone[0].get("message_id")}


def _times(messages: list[Wire]) -> Wire:
    times = [one["timestamp"] for one in messages if isinstance(one.get("timestamp"), str)]
    return {"startTime": times[0], "lastUpdated": times[-1]} if times else {}


def _present(**fields: Json) -> Wire:
    return {name: value for name, value in fields.items() if value is not None}
