"""Read saved API histories: requests and answers without IDs, times and token counts.

`{history: Content[]}` (`/chat save` since 0.16), a bare `Content[]` (`/chat save` before, `/chat share`, bug reports),
restore points (`checkpoints/*.json`) and dumps of failed API calls. IDs and times are generated from the file's name:
entry *n* is *n* seconds after the first, and its part *m* another *m* milliseconds later.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from urllib.parse import unquote

from pollux.formats.converted import Converted, Wire, decode, extras, head_text, keys, stamp_after, stem
from pollux.model import Json, Problem
from pollux.text.times import client_timestamp


class _Entry(NamedTuple):
    message: Wire
    parts: list[Json]
    faults: list[tuple[str, str]]


class _Response(NamedTuple):
    """A function response and the media parts that follow it."""

    fields: Wire
    parts: list[Json]
    place: int


_HOLDERS = ("clientHistory", "history", "context")
"""Keys with the entries of an object; next to `clientHistory`, `history` is what the screen showed."""
_KINDS = {"user": "user", "model": "gemini"}
_MEDIA = ("inlineData", "fileData")
_CANCELLED = "[Operation Cancelled]"
_LAST_PART = 999  # part times stay within the entry's second

_SESSION_NAME = re.compile(r"session-(2\d{3}-\d\d-\d\dT\d\d-\d\d(?:-[0-5]\d(?=-))?)(?:\D.*)?", re.DOTALL)
_DATED_NAME = re.compile(r"(?:.*-)?(2\d{3}-\d\d-\d\dT\d\d-\d\d-\d\d[-_]\d{3})Z(?:-.*)?")
_NUMBERED_NAME = re.compile(r"(?:gemini-conversation|bug-report-history)-(\d{13})")
_CHECKPOINT_NAME = re.compile(r"checkpoint-(.+)")


def sniff(head: bytes) -> bool:
    """Return whether a file that starts with these bytes is a saved history."""
    text = head_text(head)
    if text.startswith("["):
        return any(key.depth == 2 and key.name == "parts" for key in keys(text))  # noqa: PLR2004  list, object
    seen: set[str] = set()
    for key in keys(text) if text.startswith("{") else ():
        if key.depth == 1:
            if key.name == "messages":
                return False
            if key.name in _HOLDERS and key.opening == "[" and (key.name != "context" or "error" in seen):
                return True
            seen.add(key.name)
    return False


def convert(data: bytes, *, name: str, modified: datetime) -> Converted:
    """Convert one file; an invalid entry becomes a message of kind `unknown` and a problem."""
    document, torn = decode(data)
    holder, contents, other_fields = _contents(document)
    problems = [*torn]
    if holder is None and not torn:
        problems.append(Problem("no-history", "has no list of history entries: this is not a saved conversation"))
    own = stem(name)
    start = _time_from_name(own) or modified
    entries = [_entry(content) for content in contents]
    _link_calls(entries, start)
    messages: list[Wire] = []
    for index, (message, _, faults) in enumerate(entries):
        messages.append({"id": f"{own}#{index}", "timestamp": stamp_after(start, seconds=index), **message})
        problems += (Problem(code, f"{holder}[{index}]: {fault}") for code, fault in faults)
    made_up = {"id", "timestamp"}
    session_id = other_fields.get("sessionId")
    if isinstance(session_id, str) and session_id:
        del other_fields["sessionId"]
    else:
        session_id = own
        made_up.add("session_id")
    header: Wire = {"sessionId": session_id, **_times(start, len(messages)), **_tag(own), **extras(other_fields)}
    return Converted(header, tuple(messages), tuple(problems), frozenset(made_up))


def _contents(document: Json) -> tuple[str | None, list[Json], Wire]:
    if isinstance(document, list):
        return "entries", document, {}
    if not isinstance(document, dict):
        return None, [], {}
    for holder in _HOLDERS:
        entries = document.get(holder)
        if isinstance(entries, list):
            other_fields = {key: value for key, value in document.items() if key != holder}
            return holder, [_request(entry) for entry in entries] if holder == "context" else entries, other_fields
    return None, [], document


def _request(entry: Json) -> Json:
    """Return an entry with a role: the client adds a failed request to the history as bare parts."""
    match entry:
        case {"role": _} | {"parts": _} | None:
            return entry
        case list():
            return {"role": "user", "parts": entry}
        case _:
            return {"role": "user", "parts": [entry]}


def _times(start: datetime, n_messages: int) -> Wire:
    return {"startTime": client_timestamp(start), "lastUpdated": stamp_after(start, seconds=max(n_messages - 1, 0))}


def _tag(name: str) -> Wire:
    match = _CHECKPOINT_NAME.fullmatch(name)
    return {"tag": unquote(match[1])} if match else {}


def _time_from_name(name: str) -> datetime | None:
    if dated := _SESSION_NAME.fullmatch(name) or _DATED_NAME.fullmatch(name):
        year, month, day, *time = (int(number) for number in re.findall(r"\d+", dated[1]))
        hour, minute, second, millisecond = [*time, 0, 0][:4]
        try:
            return datetime(year, month, day, hour, minute, second, millisecond * 1000, tzinfo=UTC)
        except ValueError:  # such as the 31st of February
            return None
    if numbered := _NUMBERED_NAME.fullmatch(name):
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=int(numbered[1]))
    return None


def _entry(entry: Json) -> _Entry:
    if not isinstance(entry, dict):
        return _Entry({"type": "unknown", "content": [entry]}, [], [("bad-entry", "not an object")])
    faults: list[tuple[str, str]] = []
    match entry.get("role"):
        case "user" | "model" as role:
            kind = _KINDS[role]
        case str(role) if role:
            kind = role
            faults.append(("unknown-role", f"unknown role {role!r}"))
        case _:
            kind = "unknown"
            faults.append(("no-role", "no role"))
    match entry.get("parts"):
        case list(parts):
            pass
        case str() | dict() as part:
            parts = [part]
        case other:
            parts = [] if other is None else [other]
            faults.append(("no-parts", "no list of parts"))
    other_fields = {key: value for key, value in entry.items() if key not in {"role", "parts"}}
    message: Wire = {"type": kind, "content": parts}
    return _Entry(message | {"entry": other_fields} if other_fields else message, parts, faults)


def _link_calls(entries: list[_Entry], start: datetime) -> None:
    """Add its result to each call: the response is in a later entry, with the call's ID or in the same order."""
    by_id: dict[str, Wire] = {}
    turn: list[Wire] = []
    was_model = False
    for index, (message, parts, _) in enumerate(entries):
        is_model = message["type"] == "gemini"
        if is_model:
            calls = [*_calls(parts, start, index)]
            if calls:
                message["toolCalls"] = calls
            turn = turn + calls if was_model else calls
            by_id |= {_key(call): call for call in calls if "id" in call}
        else:
            for response in _responses(parts):
                call = by_id.pop(_key(response.fields), None) or _asked(response.fields, turn)
                if call is not None:
                    at = stamp_after(start, seconds=index, milliseconds=min(response.place, _LAST_PART))
                    _answer(call, response, at)
        was_model = is_model


def _calls(parts: list[Json], start: datetime, second: int) -> Iterator[Wire]:
    for place, part in enumerate(parts):
        match part:
            case {"functionCall": dict(call)} if isinstance(call.get("name"), str):
                own: Wire = {"id": call["id"]} if isinstance(call.get("id"), str) else {}
                at = stamp_after(start, seconds=second, milliseconds=min(place, _LAST_PART))
                yield own | {"name": call["name"], "args": call.get("args", {}), "status": "pending", "timestamp": at}


def _responses(parts: list[Json]) -> Iterator[_Response]:
    response: _Response | None = None
    for place, part in enumerate(parts):
        match part:
            case {"functionResponse": dict(fields)}:
                if response:
                    yield response
                response = _Response(fields, [part], place)
            case dict() if response and any(key in part for key in _MEDIA):
                response.parts.append(part)
            case _:
                if response:
                    yield response
                response = None
    if response:
        yield response


def _key(call: Wire) -> str:
    """Return the ID by which to match calls and responses: since 0.43 only some start with the tool's name."""
    own = call.get("id")
    return own.removeprefix(f"{call.get('name')}__") if isinstance(own, str) else ""


def _asked(response: Wire, turn: list[Wire]) -> Wire | None:
    """Return the call that a response answers, by name and order, if the call or the response has no ID."""
    for call in turn:
        has_two_ids = "id" in call and isinstance(response.get("id"), str)
        if "result" not in call and call["name"] == response.get("name") and not has_two_ids:
            return call
    return None


def _answer(call: Wire, response: _Response, at: str) -> None:
    own = response.fields.get("id")
    if isinstance(own, str):
        call.setdefault("id", own)
    call |= {"result": response.parts, "status": _status(response.fields.get("response")), "timestamp": at}


def _status(response: Json) -> str:
    match response:
        case {"error": error} | {"content": {"error": error}} if error is not None:
            return "cancelled" if isinstance(error, str) and error.startswith(_CANCELLED) else "error"
        case _:
            return "success"
