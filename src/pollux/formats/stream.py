"""Captured output of headless runs: the events of `-o stream-json`, one a line, and the one object of `-o json`.

Both are what the client prints, not what it records: a tool's output is its display, thoughts are missing, and tokens
are totals of the run, so no message has any. Captures are often mixed with what the client says on standard error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from itertools import groupby

import msgspec

from pollux.formats.converted import Converted, Wire, decode, extras, head_text, keys, salvage, stem, time_from, utf8
from pollux.model import Json, Problem
from pollux.text.times import stamp

_EVENTS = {
    "init": "session_id",
    "message": "role",
    "tool_use": "tool_name",
    "tool_result": "tool_id",
    "error": "severity",
    "result": "status",
}
"""What each event must have; a session file has messages of type `error` too."""
_EVENT = b'{"type":'
_EVENT_SIGN = re.compile(rf'"type"\s*:\s*"(?:{"|".join(_EVENTS)})"')
_OUTPUT = frozenset({"session_id", "response", "stats", "error", "warnings"})
_OUTPUT_START = re.compile(rf'\{{(?<![^\n]\{{)\s*"(?:{"|".join(sorted(_OUTPUT))})"\s*:')  # in the first column
_SESSION_START = re.compile(r'\{\s*"(?:sessionId|id)"')  # by far the most files: told apart at a glance
_TRIES = 1000  # objects to look at in a file that has so many and not the one
_SHOWN = 80  # characters of a line that is quoted in a problem


class _Capture(msgspec.Struct):
    """A session as far as its events have been taken in."""

    name: str
    at: str
    """The time of the newest event."""
    started: str | None = None
    session_id: str | None = None
    rest: Wire = msgspec.field(default_factory=dict)
    """What the first and the last event say about the session."""
    messages: list[Wire] = msgspec.field(default_factory=list)
    calls: dict[str, Wire] = msgspec.field(default_factory=dict)
    results: list[Json] = msgspec.field(default_factory=list)
    problems: list[Problem] = msgspec.field(default_factory=list)
    made_up: set[str] = msgspec.field(default_factory=lambda: {"id", "session_id"})
    text: str | None = None
    """What the open answer says so far; none where the next text begins a message."""
    asked: list[Json] | None = None
    """The calls of the last message, if it is an answer that may ask for more."""


def sniff(head: bytes) -> bool:
    """Tell from the first bytes of a file whether it is captured output; lines of other kinds may stand before it."""
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
    """Convert one file; lines that are no events become problems."""
    data = utf8(data)
    lines = [*_lines(data)]
    if any(value is not None and _is_event(value) for _, _, value in lines):
        return _converted_stream(lines, stem(name), modified)
    return _converted_output(data.decode(), stem(name), modified)


def _lines(data: bytes) -> Iterator[tuple[int, str, Wire | None]]:
    """Yield number, words and object of each line that is not blank."""
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.strip():
            yield number, *_cut(line)


def _cut(line: bytes) -> tuple[str, Wire | None]:
    """Cut a line into words and the object that ends it."""
    start = 0 if line.lstrip().startswith(b"{") else line.find(_EVENT)
    value, torn = decode(line[start:]) if start >= 0 else (None, ())
    return (line[:start].decode(), value) if isinstance(value, dict) and not torn else (line.decode(), None)


def _is_event(value: Wire) -> bool:
    kind = value.get("type")
    return isinstance(kind, str) and isinstance(value.get(_EVENTS.get(kind, "")), str)


def _converted_stream(lines: list[tuple[int, str, Wire | None]], name: str, modified: datetime) -> Converted:
    capture = _Capture(name, stamp(modified))
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
        capture.problems.append(Problem("torn-line", f"an event that is cut: {_quoted(last_text)}", line=last_number))
    elif not capture.results:
        capture.problems.append(Problem("torn-stream", "the run was cut short: it has no result", line=last_number))
    capture.problems += _noise_problems(noise)
    return Converted(
        _stream_header(capture), tuple(capture.messages), tuple(capture.problems), frozenset(capture.made_up)
    )


def _stream_header(capture: _Capture) -> Wire:
    header: Wire = {
        "sessionId": capture.session_id or capture.name,
        "startTime": capture.started,
        "lastUpdated": capture.at,
        **extras(capture.rest),
    }
    return header | {"results": capture.results} if len(capture.results) > 1 else header


def _take_time(capture: _Capture, event: Wire) -> None:
    at = event.get("timestamp")
    if isinstance(at, str) and time_from(at):
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
                _add_answer(capture, _rest(event, "role", "content", "delta"))
                capture.text = ""
            capture.text = (capture.text or "") + text
        case {"type": "message", "role": "user", "content": str(text)}:
            _add_message(capture, "user", [{"text": text}], _rest(event, "role", "content"))
        case {"type": "tool_use", "tool_name": str(name), "tool_id": str(call_id)}:
            _take_call(capture, event, name, call_id)
        case {"type": "tool_result", "tool_id": str(call_id)} if call_id in capture.calls:
            _take_tool_result(capture, event, capture.calls[call_id])
        case {"type": "error", "severity": "warning" | "error" as severity, "message": str(text)}:
            _add_message(capture, severity, [{"text": text}], _rest(event, "severity", "message"))
        case {"type": "result"}:
            _take_result(capture, event)
        case _:
            kind = event.get("type")
            kind = kind if isinstance(kind, str) and kind else "unknown"
            _add_message(capture, kind, [], event)
            capture.problems.append(
                Problem("unknown-event", f"an event of kind {kind!r} that Pollux cannot place", line=line)
            )


def _take_init(capture: _Capture, event: Wire, session_id: str, line: int) -> None:
    """Begin the session; a second run of the same session goes on with it."""
    capture.session_id = capture.session_id or session_id
    capture.made_up.discard("session_id")
    capture.rest |= _rest(event, "session_id")
    if capture.session_id != session_id:
        text = f"another session, {session_id}, begins here; split the file to see them apart"
        capture.problems.append(Problem("second-session", text, line=line))


def _take_call(capture: _Capture, event: Wire, name: str, call_id: str) -> None:
    _end_text(capture)
    asked = _add_answer(capture, {}) if capture.asked is None else capture.asked
    call: Wire = {
        **_rest(event, "tool_name", "tool_id", "parameters"),
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
    """Complete the call; what is printed is the tool's display, and the model was sent at most the error."""
    _end_text(capture)
    capture.asked = None
    call |= _rest(event, "tool_id", "output", *call)
    call |= {"status": event.get("status", "success"), "timestamp": capture.at}
    if "output" in event:
        call["resultDisplay"] = event["output"]
    match event:
        case {"error": {"message": str(text)}}:
            response = {"id": call["id"], "name": call["name"], "response": {"error": text}}
            call["result"] = [{"functionResponse": response}]


def _take_result(capture: _Capture, event: Wire) -> None:
    rest = _rest(event)
    capture.results.append(rest)
    capture.rest |= rest
    match event:
        case {"error": {"message": str(text)}}:
            _add_message(capture, "error", [{"text": text}], {})


def _add_answer(capture: _Capture, extra: Wire) -> list[Json]:
    _add_message(capture, "gemini", [], extra)
    if model := capture.rest.get("model"):
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
    """Give the open answer its text."""
    if capture.text is not None:
        capture.messages[-1]["content"] = [{"text": capture.text}]
        capture.text = None


def _rest(event: Wire, *known: str) -> Wire:
    return {key: value for key, value in event.items() if key not in {"type", "timestamp", *known}}


def _noise_problems(noise: list[tuple[int, str]]) -> Iterator[Problem]:
    """Yield one problem for each run of lines that are no events."""
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
        "startTime": stamp(modified),
        "lastUpdated": stamp(modified),
    }
    messages = tuple(
        {"id": f"{name}#{index}", "timestamp": stamp(modified), **message}
        for index, message in enumerate(_output_messages(output))
    )
    return Converted(header, messages, tuple(problems), frozenset(made_up))


def _output(text: str) -> tuple[Wire, int, int, list[Problem]]:
    """Find the object of `-o json` among other words, with its place."""
    first: tuple[Wire, int, int, list[Problem]] | None = None
    position, n_tries = 0, 0
    while n_tries < _TRIES and (found := _OUTPUT_START.search(text, position)):
        n_tries += 1
        value, end, fault = salvage(text, found.start())
        position = max(end, found.end())
        torn = [Problem("torn-json", f"cut short ({fault.msg})", line=fault.lineno)] if fault else []
        output = value if isinstance(value, dict) else {}
        place = output, found.start(), len(text) if fault else end, torn
        first = first or place
        if not {"session_id", "response", "stats"}.isdisjoint(output):
            return place
    return first or ({}, 0, 0, [Problem("no-output", "neither an event nor an answer of the client was found")])


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
