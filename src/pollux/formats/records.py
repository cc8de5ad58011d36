"""Decode the JSON objects of session files: their type and, for a message, its light `Record`.

The typed decoder skips fields that lists do not need and is as fast as reading the file. If it rejects an object, a
slower way keeps every valid value, so that an invalid one affects only itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, TypeAlias
from zlib import crc32

import msgspec

from pollux.formats import lenient
from pollux.formats.operations import PROMPT_LENGTH, CallHead, Record
from pollux.formats.origins import origin_of, user_words
from pollux.formats.short import MASKED, Short
from pollux.formats.source import Span
from pollux.model import Json, Kind, Tokens

SESSION_ID, PROJECT_HASH = "sessionId", "projectHash"
START_TIME, LAST_UPDATED, MEMORY_SCRATCHPAD = "startTime", "lastUpdated", "memoryScratchpad"
"""Keys of a session's metadata."""
ID_INSIDE = re.compile(rb'"sessionId"\s*:\s*"([^"\\]{8})')
"""The first characters of a session ID anywhere in a file."""


class _Response(msgspec.Struct):
    id: str | None = None


class _Asked(msgspec.Struct):
    id: str | None = None
    name: str | None = None


class _Part(msgspec.Struct):
    text: str | None = None
    function_call: _Asked | None = msgspec.field(name="functionCall", default=None)
    function_response: _Response | None = msgspec.field(name="functionResponse", default=None)
    inline_data: msgspec.Raw = msgspec.field(name="inlineData", default=msgspec.Raw())
    file_data: msgspec.Raw = msgspec.field(name="fileData", default=msgspec.Raw())


_LARGEST = 1 << 31
"""More tokens than any call can have, so that no sum and no price exceeds 64 bits."""
_Count: TypeAlias = Annotated[int, msgspec.Meta(gt=-_LARGEST, lt=_LARGEST)]


class _Tokens(msgspec.Struct):
    input: _Count | None = 0
    cached: _Count | None = 0
    output: _Count | None = 0
    thoughts: _Count | None = 0
    tool: _Count | None = 0
    total: _Count | None = None


class Wire(msgspec.Struct):
    """One object of a session file of any type, with only the fields that decide and count."""

    rewind_to: str | msgspec.UnsetType = msgspec.field(name="$rewindTo", default=msgspec.UNSET)
    id: str | msgspec.UnsetType = msgspec.UNSET
    set: msgspec.Raw = msgspec.field(name="$set", default=msgspec.Raw())
    session_id: str | msgspec.UnsetType = msgspec.field(name="sessionId", default=msgspec.UNSET)
    project_hash: str | msgspec.UnsetType = msgspec.field(name="projectHash", default=msgspec.UNSET)
    type: str | None = None
    timestamp: str | None = None
    model: str | None = None
    tokens: _Tokens | None = None
    content: msgspec.Raw = msgspec.Raw()
    display_content: msgspec.Raw = msgspec.field(name="displayContent", default=msgspec.Raw())
    tool_calls: list[CallHead] | None = msgspec.field(name="toolCalls", default=None)
    thoughts: msgspec.Raw = msgspec.Raw()

    @property
    def is_header(self) -> bool:
        """Whether it identifies the session."""
        return self.session_id is not msgspec.UNSET and self.project_hash is not msgspec.UNSET

    @property
    def is_message(self) -> bool:
        """Whether it is certainly a message: tool calls, responses and arguments may also have an ID."""
        return self.timestamp is not None and bool(self.content)


_TEXTS = ("$rewindTo", "id", "sessionId", "projectHash")
_TEXTS_OR_NULL = ("type", "timestamp", "model")
_CALL_TEXTS = ("id", "status", "timestamp", "displayName", "agentId")
_GAP = re.compile(rb"[\s,]*")
_QUOTES = len(b'""')
_EMPTY = (b"", b"[]", b"null")
_Head: TypeAlias = tuple[str, tuple[str, ...], tuple[CallHead, ...], bool]
_NOTHING: _Head = ("", (), (), False)

_decode_wire = msgspec.json.Decoder(Wire).decode
_decode_parts = msgspec.json.Decoder(list[_Part | str]).decode
_decode_part = msgspec.json.Decoder(_Part | str).decode
_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_elements = msgspec.json.Decoder(list[msgspec.Raw]).decode


def wire(data: bytes) -> tuple[Wire, str | None]:
    """Return the decoded object, and the names of invalid values that it lacks, if any.

    Raises `ValueError` for text that the fast decoder rejects (see `lenient.mask`). Returns an empty `Wire` for a value
    that is not an object.
    """
    try:
        return _decode_wire(data), None
    except msgspec.ValidationError:
        value = lenient.decode(data)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(value, dict):
        return Wire(), None
    bad = _drop_bad_values(value)
    decoded = _decode_wire(lenient.encode(value))
    if decoded.set:  # the bytes of the file, in which `elements` searches for the messages
        decoded.set = msgspec.Raw(fields(data)["$set"])
    return decoded, bad


def record(wire: Wire, data: bytes, span: Span, line: int, short: Short | None = None) -> Record:
    """Return the light record of a message; if it was decoded from a short text, with the lengths of the long one."""
    kind = wire.type or Kind.UNKNOWN
    tokens, content = wire.tokens, bytes(wire.content)
    prompt = sent = ""
    responses: tuple[str, ...] = ()
    if kind == Kind.USER:
        text, responses, asked, has_media = _head(content)
        display = _head(bytes(wire.display_content))[0] if wire.display_content else None
        is_string = content.startswith(b'"')
        origin, prompt, sent = user_words(
            text, display, n_responses=len(responses), has_media=has_media, is_string=is_string
        )
    else:
        text, _, asked, _ = _head(content) if len(content) > _QUOTES else _NOTHING
        origin = origin_of(kind, text, is_counted=bool(wire.model or tokens))
    n_chars, is_masked, checksum = len(text), False, 0
    if wire.tool_calls:
        is_masked = MASKED in data or (short is not None and short.has_cut_out(MASKED, data))
    if short:
        n_chars = short.n_chars(text)
        checksum = _checksum(short.exact(prompt)) if short.n_chars(prompt) > PROMPT_LENGTH else 0
        prompt, sent = short.plain(prompt), short.plain(sent)
    elif len(prompt) > PROMPT_LENGTH:
        checksum = _checksum(prompt)
    is_bare = kind == Kind.GEMINI and not (wire.model or tokens or wire.tool_calls) and _is_list(content)
    return Record(  # by position, which is faster, in the order of the fields
        str(wire.id),
        kind,
        wire.timestamp,
        wire.model,
        counts(tokens) if tokens else None,
        _calls(wire, data) if wire.tool_calls else (),
        bool(wire.thoughts) and _holds_something(wire.thoughts),
        origin,
        prompt[:PROMPT_LENGTH],
        span,
        line,
        checksum,
        n_chars,
        responses,
        is_masked,
        is_bare,
        sent[:PROMPT_LENGTH],
        () if wire.tool_calls else asked,
    )


def _calls(wire: Wire, data: bytes) -> tuple[CallHead, ...]:
    """Return the recorded calls; the status of a call without one is derived from its result."""
    calls = tuple(wire.tool_calls or ())
    if all(call.status for call in calls):
        return calls
    from pollux.formats.tool_calls import call_status  # noqa: PLC0415  rare

    try:
        recorded = [value for value in lenient.decode(data)["toolCalls"] if isinstance(value, dict)]
    except (ValueError, LookupError, TypeError):  # torn
        return calls
    pairs = zip(calls, recorded, strict=False)
    return tuple(msgspec.structs.replace(call, status=call_status(value)) for call, value in pairs)


def counts(tokens: _Tokens) -> Tokens:
    """Return recorded counts; a missing total is the sum of the other counts."""
    prompt, output, thoughts, tool = tokens.input or 0, tokens.output or 0, tokens.thoughts or 0, tokens.tool or 0
    total = prompt + output + thoughts + tool if tokens.total is None else tokens.total
    return Tokens(prompt, tokens.cached or 0, output, thoughts, tool, total)


def _checksum(prompt: str) -> int:
    return crc32(prompt.encode("utf-8", "replace"))


def fields(data: bytes) -> dict[str, bytes]:
    """Return the undecoded values of an object. Raises `ValueError` for any other value."""
    try:
        return {key: bytes(value) for key, value in _decode_fields(data).items()}
    except RecursionError:
        raise ValueError("nested too deeply") from None


def elements(array: bytes, data: bytes) -> Iterator[tuple[Span, bytes]]:
    """Yield the undecoded values of an array, each with its position in the text that contains the array.

    Raises `ValueError` if the text does not contain the array, or if it is nested too deeply.
    """
    position = _place(array, data) + 1
    try:
        values = _decode_elements(array)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    for raw in values:
        element = bytes(raw)
        gap = _GAP.match(data, position)
        start = gap.end() if gap else position
        position = start + len(element)
        yield Span(start, position), element


def _place(part: bytes, data: bytes) -> int:
    """Return the offset of a large value in its text.

    Searches only for the first bytes, because `find` processes the whole pattern before it searches.
    """
    head = part[:256]
    place = data.find(head)
    while place >= 0:
        if data.startswith(part, place):
            return place
        place = data.find(head, place + 1)
    raise ValueError("an array that is not in its text")


def metadata(raw: dict[str, bytes]) -> dict[str, Json]:
    """Decode all metadata except the messages."""
    return {key: lenient.decode(value) for key, value in raw.items() if key != "messages"}


def _holds_something(raw: msgspec.Raw) -> bool:
    return memoryview(raw).nbytes > len(b"null") or bytes(raw) not in _EMPTY


def _is_list(data: bytes) -> bool:
    return data[:1] == b"[" and data != b"[]"


def _head(data: bytes) -> _Head:
    """Return the text of a content, the IDs of its function responses, its function calls, and whether it has media."""
    if data[:1] == b'"':
        return lenient.decode(data), (), (), False
    try:
        parts = _decode_parts(data) if data[:1] == b"[" else [_decode_part(data)] if data[:1] == b"{" else []
    except (msgspec.DecodeError, UnicodeDecodeError):
        parts = _decode_parts(lenient.encode(_good_parts(lenient.decode(data))))
    texts: list[str] = []
    responses: list[str] = []
    asked: list[CallHead] = []
    has_media = False
    for part in parts:  # one loop, because most contents have one part
        if isinstance(part, str):
            texts.append(part)
            continue
        if part.text:
            texts.append(part.text)
        if part.function_response:
            responses.append(part.function_response.id or "")
        if call := part.function_call:
            asked.append(CallHead(call.id, call.name or ""))
        has_media = has_media or bool(part.inline_data or part.file_data)
    return "".join(texts), tuple(responses), tuple(asked), has_media


def _drop_bad_values(value: dict[str, Any]) -> str | None:
    """Remove values that the typed decoder would reject, and return their names."""
    bad = [key for key in _TEXTS if key in value and not isinstance(value[key], str)]
    bad += [key for key in _TEXTS_OR_NULL if not isinstance(value.get(key), str | None)]
    tokens = value.get("tokens")
    if isinstance(tokens, dict):
        bad_counts = [key for key, count in tokens.items() if not _is_count(count)]
        for key in bad_counts:
            del tokens[key]
        bad += [f"tokens.{key}" for key in bad_counts if key in _Tokens.__struct_fields__]
    elif tokens is not None:
        bad.append("tokens")
    calls = value.get("toolCalls")
    if isinstance(calls, list):
        value["toolCalls"] = [_good_call(call) for call in calls if isinstance(call, dict)]
        bad += ["toolCalls"] * (len(value["toolCalls"]) != len(calls))
    elif calls is not None:
        bad.append("toolCalls")
    for key in bad:
        if key != "toolCalls" or not isinstance(calls, list):
            value.pop(key, None)
    return ", ".join(bad) or None


def _is_count(value: object) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool) and abs(value) < _LARGEST)


def _good_call(call: dict[str, Any]) -> dict[str, Any]:
    head = {key: call[key] for key in _CALL_TEXTS if isinstance(call.get(key), str)}
    return {**head, "name": call["name"]} if isinstance(call.get("name"), str) else head


def _good_parts(value: object) -> list[object]:
    """Return the fields of each part that `_head` needs and that have the right type."""
    return [_good_part(part) for part in (value if isinstance(value, list) else [value])]


def _good_part(part: object) -> object:
    if not isinstance(part, dict):
        return part if isinstance(part, str) else {}
    good = {key: part[key] for key in ("inlineData", "fileData") if key in part}
    if isinstance(part.get("text"), str):
        good["text"] = part["text"]
    call = part.get("functionCall")
    if isinstance(call, dict):
        good["functionCall"] = {key: call[key] for key in ("id", "name") if isinstance(call.get(key), str)}
    if "functionResponse" in part:
        response = part["functionResponse"]
        id_ = response.get("id") if isinstance(response, dict) else None
        good["functionResponse"] = {"id": id_ if isinstance(id_, str) else None}
    return good
