"""Read trajectories (ATIF, Harbor RFC 0001), written by Pollux or by other programs, as sessions.

Pollux's own trajectories carry the original data in `extra.gemini` and `extra.pollux`, which is restored unchanged. The
steps of other programs have no IDs, so IDs are generated. Subagents inside a trajectory are separate sessions and are
not shown.
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
    """Number of steps before a message that is not a step itself."""


class _StepMessage(msgspec.Struct):
    message: Wire
    is_dropped: bool = False


_SIGN = re.compile(rb'"schema_version"\s*:\s*"ATIF-v')
_TYPES = {"user": "user", "agent": "gemini", "system": "info"}
_DROPPED = frozenset({"rewound", "rolled_back", "replaced"})


def sniff(head: bytes) -> bool:
    """Return whether a file that starts with these bytes is a trajectory."""
    if not _SIGN.search(head):
        return False
    return any(key.depth == 1 and key.name == "schema_version" for key in keys(head_text(head)))


def convert(data: bytes, *, name: str, modified: datetime) -> Converted:
    """Convert one trajectory; an invalid step becomes a message of kind `unknown` and a problem."""
    del modified  # a trajectory without times has no times
    document, torn = decode(data)
    trajectory: Wire = document if isinstance(document, dict) else {}
    problems = [*torn, *_problems(trajectory)]
    session_id, made_up = trajectory.get("trajectory_id") or trajectory.get("session_id"), {"id"}
    if not isinstance(session_id, str):
        session_id = stem(name)
        made_up.add("session_id")
    extra = _extra_of(trajectory)
    messages = [*_messages(_StepConverter(session_id, trajectory, extra), problems)]
    header: Wire = {**_times(messages), **extras(extra.gemini), "sessionId": session_id}
    return Converted(header, (*messages, *_lost_calls(extra.pollux)), tuple(problems), frozenset(made_up))


def _problems(trajectory: Wire) -> Iterator[Problem]:
    if not isinstance(trajectory.get("steps"), list):
        yield Problem("no-steps", "has no list of steps: this is not a complete trajectory")
    inner = trajectory.get("subagent_trajectories")
    if isinstance(inner, list) and inner:
        yield Problem("inner-trajectory", f"{len(inner)} subagent(s) inside this trajectory are not shown")


def _extra_of(trajectory: Wire) -> _Extra:
    try:
        return msgspec.convert(trajectory.get("extra") or {}, _Extra)
    except msgspec.ValidationError:
        return _Extra()  # another program's


class _StepConverter:
    """Converts steps to the client's messages, and stores results for messages that only name them."""

    def __init__(self, session_id: str, trajectory: Wire, extra: _Extra) -> None:
        self.steps = trajectory.get("steps")
        self.others = extra.pollux.get("messages")
        agent = trajectory.get("agent")
        self._model = agent.get("model_name") if isinstance(agent, dict) else None
        self._session_id = session_id
        self._results: dict[str, Json] = {}

    def convert(self, number: int, step: _Step) -> Iterator[_StepMessage]:
        """Yield the message of a step, and a notice for each result that belongs to no call."""
        extra = step.extra or _Extra()
        if extra.pollux.get("is_empty"):
            return
        message = self._message(number, step, extra.gemini)
        yield _StepMessage(message, extra.pollux.get("fate") in _DROPPED)
        without_call = [result for result in _results(step) if result.source_call_id is None]
        for index, result in enumerate(without_call):
            notice = {"id": f"{message['id']}#{index}", "type": "info", "content": _text(result.content)}
            yield _StepMessage({**notice, **_present(timestamp=step.timestamp)})

    def wrap_invalid(self, number: int, step: Json) -> _StepMessage:
        """Return a message of kind `unknown` that contains an invalid step unchanged."""
        return _StepMessage({"id": f"{self._session_id}#{number}", "type": "unknown", "content": [step]})

    def _message(self, number: int, step: _Step, gemini: Wire) -> Wire:
        is_ours = isinstance(gemini.get("id"), str)
        kind = _TYPES.get(step.source, step.source)
        fields = _present(
            timestamp=step.timestamp,
            model=step.model_name or (self._model if kind == "gemini" and not is_ours else None),
            thoughts=[{"subject": "", "description": step.reasoning_content}] if step.reasoning_content else None,
            tokens=_tokens(step.metrics) if step.metrics else None,
            toolCalls=[*self._calls(step)] or None,
        )
        content = _content(step.message)
        message: Wire = {"id": f"{self._session_id}#{number}", "type": kind, "content": content, **fields}
        message |= gemini
        if "content" in gemini:
            message["content"] = self._filled(gemini["content"])
        return message

    def _calls(self, step: _Step) -> Iterator[Wire]:
        results = {result.source_call_id: result for result in _results(step)}
        for call in step.tool_calls or ():
            own = call.extra.gemini if call.extra else {}
            wire: Wire = {"id": call.tool_call_id, "name": call.function_name, "args": call.arguments, **own}
            if result := results.get(call.tool_call_id):
                response, *media = _result(result)
                self._results[call.tool_call_id] = response
                named = {"id": call.tool_call_id, "name": call.function_name, "response": response}
                wire["result"] = [{"functionResponse": named}, *media]
            yield wire

    def _filled(self, content: Json) -> Json:
        """Return a content with the responses that it only names."""
        filled: list[Json] = []
        for part in content if isinstance(content, list) else []:
            match part:
                case {"functionResponse": {"id": str(id_)} as response} if "response" not in response:
                    filled.append({"functionResponse": {**response, "response": self._results.get(id_)}})
                case _:
                    filled.append(part)
        return filled


def _messages(converter: _StepConverter, problems: list[Problem]) -> Iterator[Wire]:
    """Yield the messages in order; each run of dropped ones is followed by the rewind that drops it."""
    for is_dropped, run in groupby(_step_messages(converter, problems), lambda message: message.is_dropped):
        messages = [step_message.message for step_message in run]
        yield from messages
        if is_dropped:
            yield {"$rewindTo": messages[0]["id"]}


def _step_messages(converter: _StepConverter, problems: list[Problem]) -> Iterator[_StepMessage]:
    """Yield the messages of the steps, and messages that are not steps at their positions among them."""
    waiting = [step for _, step in _typed(converter.others, []) if isinstance(step, _Step)]
    for number, step in _typed(converter.steps, problems):
        while waiting and waiting[0].after_step < number:
            yield from converter.convert(0, waiting.pop(0))
        if isinstance(step, _Step):
            yield from converter.convert(number, step)
        else:
            yield converter.wrap_invalid(number, step)
    for step in waiting:
        yield from converter.convert(0, step)


def _typed(values: Json, problems: list[Problem]) -> Iterator[tuple[int, _Step | Json]]:
    """Yield the number of each step, and the step as a `_Step` or, if it is invalid, unchanged with a problem."""
    for number, value in enumerate(values if isinstance(values, list) else (), 1):
        try:
            yield number, msgspec.convert(value, _Step)
        except msgspec.ValidationError as error:
            problems.append(Problem("bad-step", f"step {number}: {error}"))
            yield number, value


def _content(message: str | list[_Part]) -> Json:
    return message if isinstance(message, str) else [_part(part) for part in message]


def _part(part: _Part) -> Json:
    if part.source:
        return {"fileData": {"mimeType": part.source.media_type, "fileUri": part.source.path}}
    return {"text": part.text or ""}


def _tokens(metrics: _Metrics) -> Wire | None:
    """Return the API's own counts if they are there, else the closest equivalent of the trajectory's counts."""
    if metrics.extra and metrics.extra.gemini:
        return metrics.extra.gemini
    prompt, completion = metrics.prompt_tokens, metrics.completion_tokens
    if prompt is None or completion is None:
        return None
    return {"input": prompt, "output": completion, "cached": metrics.cached_tokens or 0, "total": prompt + completion}


def _results(step: _Step) -> list[_Result]:
    return step.observation.results if step.observation else []


def _result(result: _Result) -> list[Json]:
    own = result.extra.gemini if result.extra else {}
    text = _text(result.content)
    response: Json = {} if text is None else {"error" if own.get("is_error") else "output": text}
    if "response" in own:
        response = own["response"]
    elif "error" in own:
        response = {"output": text, "error": own["error"]}
    media = own.get("parts")
    if not isinstance(media, list):
        media = [_part(part) for part in result.content if part.source] if isinstance(result.content, list) else []
    return [response, *media]


def _text(content: str | list[_Part] | None) -> str | None:
    if not isinstance(content, list):
        return content
    texts = [part.text for part in content if part.text is not None]
    return "".join(texts) if texts else None


def _lost_calls(own: Wire) -> Iterator[Wire]:
    """Yield the model calls that no step contains as empty answers, dropped ones last."""
    recorded = own.get("calls")
    calls = [call for call in recorded if isinstance(call, dict)] if isinstance(recorded, list) else []
    dropped = [call for call in calls if call.get("fate") in _DROPPED]
    for call in [*(call for call in calls if call not in dropped), *dropped]:
        fields = {key: value for key, value in call.items() if key not in {"message_id", "fate"}}
        yield {"id": call.get("message_id"), "type": "gemini", "content": "", **fields}
    if dropped:
        yield {"$rewindTo": dropped[0].get("message_id")}


def _times(messages: list[Wire]) -> Wire:
    times = [message["timestamp"] for message in messages if isinstance(message.get("timestamp"), str)]
    return {"startTime": times[0], "lastUpdated": times[-1]} if times else {}


def _present(**fields: Json) -> Wire:
    return {name: value for name, value in fields.items() if value is not None}
