"""Saved API histories: what the model was sent and what it answered, without ids, times and counts.

`{history: Content[]}` (`/chat save` since 0.16), a bare `Content[]` (`/chat save` before, `/chat share`, bug reports),
restore points (`checkpoints/*.json`) and the dumps of failed API calls. Ids and times are made up from the file's name:
entry *n* is *n* seconds, and its part *m* another *m* milliseconds, after the first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from urllib.parse import unquote

from pollux.formats.converted import Converted, Wire, decode, extras, head_text, keys, stamp_after, stem
from pollux.model import Json, Problem
from pollux.text.times import stamp


class _Entry(NamedTuple):
    """One entry of a history as a message."""

    message: Wire
    parts: list[Json]
    faults: list[tuple[str, str]]


class _Response(NamedTuple):
    """A functionResponse part and the media that came with it."""

    fields: Wire
    parts: list[Json]
    place: int


_HOLDERS = ("clientHistory", "history", "context")
"""Where an object keeps its entries; `history` beside `clientHistory` is what was on the screen."""
_KINDS = {"user": "user", "model": "gemini"}
_MEDIA = ("inlineData", "fileData")
_CANCELLED = "[Operation Cancelled]"
_LAST_PART = 999  # part times stay within the entry's second

_SESSION_NAME = re.compile(r"session-(2\d{3}-\d\d-\d\dT\d\d-\d\d(?:-[0-5]\d(?=-))?)(?:\D.*)?", re.DOTALL)
_DATED_NAME = re.compile(r"(?:.*-)?(2\d{3}-\d\d-\d\dT\d\d-\d\d-\d\d[-_]\d{3})Z(?:-.*)?")
_NUMBERED_NAME = re.compile(r"(?:gemini-conversation|bug-report-history)-(\d{13})")
_CHECKPOINT_NAME = re.compile(r"checkpoint-(.+)")


def sniff(head: bytes) -> bool:
    """Tell from the first bytes of a file whether it is a saved history."""
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
    """Convert one file; a bad entry becomes a message of kind `unknown` and a problem."""
    document, torn = decode(data)
    holder, entries, rest = _contents(document)
    problems = [*torn]
    if holder is None and not torn:
        problems.append(Problem("no-history", "no history array: this is not a saved conversation"))
    own = stem(name)
    start = _time_from_name(own) or modified
    read = [_entry(entry) for entry in entries]
    _link_calls(read, start)
    messages: list[Wire] = []
    for index, (message, _, faults) in enumerate(read):
        messages.append({"id": f"{own}#{index}", "timestamp": stamp_after(start, seconds=index), **message})
        problems += (Problem(code, f"{holder}[{index}]: {fault}") for code, fault in faults)
    made_up = {"id", "timestamp"}
    session_id = rest.get("sessionId")
    if isinstance(session_id, str) and session_id:
        del rest["sessionId"]
    else:
        session_id = own
        made_up.add("session_id")
    header: Wire = {"sessionId": session_id, **_times(start, len(messages)), **_tag(own), **extras(rest)}
    return Converted(header, tuple(messages), tuple(problems), frozenset(made_up))


def _contents(document: Json) -> tuple[str | None, list[Json], Wire]:
    """Return where the entries were found, the entries, and all else."""
    if isinstance(document, list):
        return "entries", document, {}
    if not isinstance(document, dict):
        return None, [], {}
    for holder in _HOLDERS:
        entries = document.get(holder)
        if isinstance(entries, list):
            rest = {key: value for key, value in document.items() if key != holder}
            return holder, [_request(entry) for entry in entries] if holder == "context" else entries, rest
    return None, [], document


def _request(entry: Json) -> Json:
    """Give a role to the request that failed: the client adds it to the history as bare parts."""
    match entry:
        case {"role": _} | {"parts": _} | None:
            return entry
        case list():
            return {"role": "user", "parts": entry}
        case _:
            return {"role": "user", "parts": [entry]}


def _times(start: datetime, n_messages: int) -> Wire:
    return {"startTime": stamp(start), "lastUpdated": stamp_after(start, seconds=max(n_messages - 1, 0))}


def _tag(name: str) -> Wire:
    found = _CHECKPOINT_NAME.fullmatch(name)
    return {"tag": unquote(found[1])} if found else {}


def _time_from_name(name: str) -> datetime | None:
    if dated := _SESSION_NAME.fullmatch(name) or _DATED_NAME.fullmatch(name):
        year, month, day, *rest = (int(number) for number in re.findall(r"\d+", dated[1]))
        hour, minute, second, millisecond = [*rest, 0, 0][:4]
        try:
            return datetime(year, month, day, hour, minute, second, millisecond * 1000, tzinfo=UTC)
        except ValueError:  # the 31st of February
            return None
    if numbered := _NUMBERED_NAME.fullmatch(name):
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=int(numbered[1]))
    return None


def _entry(entry: Json) -> _Entry:
    """Make the message of one entry, and say what is wrong with it."""
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
    rest = {key: value for key, value in entry.items() if key not in {"role", "parts"}}
    message: Wire = {"type": kind, "content": parts}
    return _Entry(message | {"entry": rest} if rest else message, parts, faults)


def _link_calls(entries: list[_Entry], start: datetime) -> None:
    """Record what came of each call: its response stands in a later entry, with the call's id or in its order."""
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
    """Yield the responses of an entry, each with the media that follow it."""
    found: _Response | None = None
    for place, part in enumerate(parts):
        match part:
            case {"functionResponse": dict(fields)}:
                if found:
                    yield found
                found = _Response(fields, [part], place)
            case dict() if found and any(key in part for key in _MEDIA):
                found.parts.append(part)
            case _:
                if found:
                    yield found
                found = None
    if found:
        yield found


def _key(call: Wire) -> str:
    """Return the id to match by: since 0.43 it begins with the tool's name, but not everywhere."""
    own = call.get("id")
    return own.removeprefix(f"{call.get('name')}__") if isinstance(own, str) else ""


def _asked(response: Wire, turn: list[Wire]) -> Wire | None:
    """Find the call that a response answers by name and order, where one of both has no id."""
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
