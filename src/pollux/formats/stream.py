"""Read captured output of headless runs: the events of `-o stream-json`, one per line, or the object of `-o json`.

Both are what the client prints, not what it records: a tool's output is its display, thoughts are missing, and tokens
are totals of the run, so that no message has any. Captures often contain the client's messages on standard error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from itertools import groupby

import msgspec

from pollux.formats.converted import Converted, Wire, decode, extras, head_text, keys, salvage, stem, utf8
from pollux.model import Json, Problem
from pollux.text.times import client_timestamp, parse_time

_EVENTS = {
    "init": "session_id",
    "message": "role",
    "tool_use": "tool_name",
    "tool_result": "tool_id",
    "error": "severity",
    "result": "status",
}
"""A key that each event must have, because session files also contain messages of type `error`."""
_EVENT = b'{"type":'
_EVENT_SIGN = re.compile(rf'"type"\s*:\s*"(?:{"|".join(_EVENTS)})"')
_OUTPUT = frozenset({"session_id", "response", "stats", "error", "warnings"})
_OUTPUT_START = re.compile(rf'\{{(?<![^\n]\{{)\s*"(?:{"|".join(sorted(_OUTPUT))})"\s*:')  # in the first column
_SESSION_START = re.compile(r'\{\s*"(?:sessionId|id)"')  # most files: a quick way out
_TRIES = 1000  # objects to decode at most in search of the output
_SHOWN = 80  # characters of a line that is quoted in a problem


class _Capture(msgspec.Struct):
    name: str
    at: str
    """Time of the newest event."""
    started: str | None = None
    session_id: str | None = None
    metadata: Wire = msgspec.field(default_factory=dict)
    """Other fields of the first and the last event."""
    messages: list[Wire] = msgspec.field(default_factory=list)
    calls: dict[str, Wire] = msgspec.field(default_factory=dict)
    results: list[Json] = msgspec.field(default_factory=list)
    problems: list[Problem] = msgspec.field(default_factory=list)
    made_up: set[str] = msgspec.field(default_factory=lambda: {"id", "session_id"})
    text: str | None = None
    """Text of the unfinished answer; None if the next text starts a new message."""
    asked: list[Json] | None = None
    """Calls of the last message, if it is an answer to which more calls may be added."""


def sniff(head: bytes) -> bool:
    """Return whether a file that starts with these bytes is captured output; other lines may precede it."""
    text = head_text(head)
    if _SESSION_START.match(text):
        return False
    for line in text.encode().split(b"\n") if _EVENT_SIGN.search(text) else ():
        _, value = _cut(line)
        if value is not None and "type" in value:
            return _is_event(value)
    start = _OUTPUT_START.search(text)
    seen = {key.name for key in keys(text[start.start() :]) if key.depth == 1} if start else set()
    return seen <= _OUTPUT and (
        "response" in seen or {"session_id", "error"} <= seen or {"session_id", "stats"} <= seen
    )


def convert(data: bytes, *, name: str, modified: datetime) -> Converted:
    """Convert one file; lines that are not events become problems."""
    data = utf8(data)
    lines = [*_lines(data)]
    if any(value is not None and _is_event(value) for _, _, value in lines):
        return _converted_stream(lines, stem(name), modified)
    return _converted_output(data.decode(), stem(name), modified)


def _lines(data: bytes) -> Iterator[tuple[int, str, Wire | None]]:
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.strip():
            yield number, *_cut(line)


def _cut(line: bytes) -> tuple[str, Wire | None]:
    """Split a line into text and the object at its end."""
    start = 0 if line.lstrip().startswith(b"{") else line.find(_EVENT)
    value, torn = decode(line[start:]) if start >= 0 else (None, ())
    return (line[:start].decode(), value) if isinstance(value, dict) and not torn else (line.decode(), None)


def _is_event(value: Wire) -> bool:
    kind = value.get("type")
    return isinstance(kind, str) and isinstance(value.get(_EVENTS.get(kind, "")), str)


def _converted_stream(lines: list[tuple[int, str, Wire | None]], name: str, modified: datetime) -> Converted:
    capture = _Capture(name, client_timestamp(modified))
    noise: list[tuple[int, str]] = []
    for number, text, event in lines:
        if text.strip():
            noise.append((number, text))
        if event is not None:
            _take_time(capture, event)
            _take_event(capture, event, number)
    _end_text(capture)
    last_number, last_text, last_event = lines[-1]
    if last_event is None and (last_text.lstrip().startswith("{") or _EVENT.decode() in last_text):
        noise.pop()
        capture.problems.append(Problem("torn-line", f"a truncated event: {_quoted(last_text)}", line=last_number))
    elif not capture.results:
        capture.problems.append(Problem("torn-stream", "the run was interrupted: it has no result", line=last_number))
    capture.problems += _noise_problems(noise)
    return Converted(
        _stream_header(capture), tuple(capture.messages), tuple(capture.problems), frozenset(capture.made_up)
    )


def _stream_header(capture: _Capture) -> Wire:
    header: Wire = {
        "sessionId": capture.session_id or capture.name,
        "startTime": capture.started,
        "lastUpdated": capture.at,
        **extras(capture.metadata),
    }
    return header | {"results": capture.results} if len(capture.results) > 1 else header


def _take_time(capture: _Capture, event: Wire) -> None:
    at = event.get("timestamp")
    if isinstance(at, str) and parse_time(at):
        capture.at = at
    else:
        capture.made_up.add("timestamp")
    capture.started = capture.started or capture.at


def _take_event(capture: _Capture, event: Wire, line: int) -> None:
    match event:
        case {"type": "init", "session_id": str(session_id)}:
            _take_init(capture, event, session_id, line)
        case {"type": "message", "role": "assistant", "content": str(text)}:
            if capture.text is None or event.get("delta") is not True:
                _end_text(capture)
                _add_answer(capture, _other_fields(event, "role", "content", "delta"))
                capture.text = ""
            capture.text = (capture.text or "") + text
        case {"type": "message", "role": "user", "content": str(text)}:
            _add_message(capture, "user", [{"text": text}], _other_fields(event, "role", "content"))
        case {"type": "tool_use", "tool_name": str(name), "tool_id": str(call_id)}:
            _take_call(capture, event, name, call_id)
        case {"type": "tool_result", "tool_id": str(call_id)} if call_id in capture.calls:
            _take_tool_result(capture, event, capture.calls[call_id])
        case {"type": "error", "severity": "warning" | "error" as severity, "message": str(text)}:
            _add_message(capture, severity, [{"text": text}], _other_fields(event, "severity", "message"))
        case {"type": "result"}:
            _take_result(capture, event)
        case _:
            kind = event.get("type")
            kind = kind if isinstance(kind, str) and kind else "unknown"
            _add_message(capture, kind, [], event)
            capture.problems.append(Problem("unknown-event", f"an event of the unknown type {kind!r}", line=line))


def _take_init(capture: _Capture, event: Wire, session_id: str, line: int) -> None:
    """Start the session; a second run of the same session continues it."""
    capture.session_id = capture.session_id or session_id
    capture.made_up.discard("session_id")
    capture.metadata |= _other_fields(event, "session_id")
    if capture.session_id != session_id:
        text = f"another session, {session_id}, starts here; split the file to read both"
        capture.problems.append(Problem("second-session", text, line=line))


def _take_call(capture: _Capture, event: Wire, name: str, call_id: str) -> None:
    _end_text(capture)
    asked = _add_answer(capture, {}) if capture.asked is None else capture.asked
    call: Wire = {
        **_other_fields(event, "tool_name", "tool_id", "parameters"),
        "id": call_id,
        "name": name,
        "args": event.get("parameters", {}),
        "status": "pending",
        "timestamp": capture.at,
    }
    asked.append(call)
    capture.calls[call_id] = call
    capture.messages[-1]["toolCalls"] = asked


def _take_tool_result(capture: _Capture, event: Wire, call: Wire) -> None:
    """Complete the call: the output is the tool's display, and only an error was also sent to the model."""
    _end_text(capture)
    capture.asked = None
    call |= _other_fields(event, "tool_id", "output", *call)
    call |= {"status": event.get("status", "success"), "timestamp": capture.at}
    if "output" in event:
        call["resultDisplay"] = event["output"]
    match event:
        case {"error": {"message": str(text)}}:
            response = {"id": call["id"], "name": call["name"], "response": {"error": text}}
            call["result"] = [{"functionResponse": response}]


def _take_result(capture: _Capture, event: Wire) -> None:
    result = _other_fields(event)
    capture.results.append(result)
    capture.metadata |= result
    match event:
        case {"error": {"message": str(text)}}:
            _add_message(capture, "error", [{"text": text}], {})


def _add_answer(capture: _Capture, extra: Wire) -> list[Json]:
    _add_message(capture, "gemini", [], extra)
    if model := capture.metadata.get("model"):
        capture.messages[-1]["model"] = model
    capture.asked = []
    return capture.asked


def _add_message(capture: _Capture, kind: str, content: list[Json], extra: Wire) -> None:
    _end_text(capture)
    capture.asked = None
    own = f"{capture.name}#{len(capture.messages)}"
    message: Wire = {"id": own, "timestamp": capture.at, "type": kind, "content": content}
    capture.messages.append(message | {"event": extra} if extra else message)


def _end_text(capture: _Capture) -> None:
    if capture.text is not None:
        capture.messages[-1]["content"] = [{"text": capture.text}]
        capture.text = None


def _other_fields(event: Wire, *known: str) -> Wire:
    return {key: value for key, value in event.items() if key not in {"type", "timestamp", *known}}


def _noise_problems(noise: list[tuple[int, str]]) -> Iterator[Problem]:
    """Yield one problem for each run of lines that are not events."""
    for _, run in groupby(enumerate(noise), lambda numbered: numbered[1][0] - numbered[0]):
        lines = [line for _, line in run]
        number, text = lines[0]
        more = f" and {len(lines) - 1} more line(s)" if len(lines) > 1 else ""
        yield Problem("no-event", f"not an event: {_quoted(text)}{more}", line=number)


def _quoted(text: str) -> str:
    text = text.strip()
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…")


def _converted_output(text: str, name: str, modified: datetime) -> Converted:
    output, start, end, problems = _output(text)
    problems += _noise_problems([*_noise_around(text, start, end)])
    own = output.get("session_id")
    made_up = {"id", "timestamp"} if isinstance(own, str) else {"id", "timestamp", "session_id"}
    header = extras({key: value for key, value in output.items() if key not in {"session_id", "response"}})
    header |= {
        "sessionId": own if isinstance(own, str) else name,
        "startTime": client_timestamp(modified),
        "lastUpdated": client_timestamp(modified),
    }
    messages = tuple(
        {"id": f"{name}#{index}", "timestamp": client_timestamp(modified), **message}
        for index, message in enumerate(_output_messages(output))
    )
    return Converted(header, messages, tuple(problems), frozenset(made_up))


def _output(text: str) -> tuple[Wire, int, int, list[Problem]]:
    """Return the object of `-o json` among other text, with its start and end, and problems."""
    first: tuple[Wire, int, int, list[Problem]] | None = None
    position, n_tries = 0, 0
    while n_tries < _TRIES and (match := _OUTPUT_START.search(text, position)):
        n_tries += 1
        value, end, fault = salvage(text, match.start())
        position = max(end, match.end())
        torn = [Problem("torn-json", f"truncated ({fault.msg})", line=fault.lineno)] if fault else []
        output = value if isinstance(value, dict) else {}
        candidate = output, match.start(), len(text) if fault else end, torn
        first = first or candidate
        if not {"session_id", "response", "stats"}.isdisjoint(output):
            return candidate
    return first or ({}, 0, 0, [Problem("no-output", "contains neither an event nor an answer of the client")])


def _noise_around(text: str, start: int, end: int) -> Iterator[tuple[int, str]]:
    for first, piece in ((1, text[:start]), (1 + text.count("\n", 0, end), text[end:])):
        yield from ((number, line) for number, line in enumerate(piece.split("\n"), first) if line.strip())


def _output_messages(output: Wire) -> Iterator[Wire]:
    warnings, response = output.get("warnings"), output.get("response")
    for warning in warnings if isinstance(warnings, list) else ():
        yield {"type": "warning", "content": [{"text": str(warning)}]}
    if isinstance(response, str) and response:
        answer: Wire = {"type": "gemini", "content": [{"text": response}]}
        match output:
            case {"stats": {"models": dict(models)}} if len(models) == 1:
                answer["model"] = next(iter(models))
        yield answer
    match output:
        case {"error": {"message": str(text)}}:
            yield {"type": "error", "content": [{"text": text}]}
