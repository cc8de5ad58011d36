"""The schema of records and their signed envelopes, and a checker of values.

Written from the CDDL of the draft, rule for rule and in its order. The judge in `tests/interop` reads the CDDL itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from tests.exports.vac_rules import (
    Rule,
    anything,
    array,
    boolean,
    byte_string,
    either,
    encoded,
    integer,
    matching,
    members,
    number,
    plain,
    row,
    tagged,
    text,
    unsigned,
    words,
)

_MOST = 100
"""The number of problems listed; a hostile record may have any number."""


def problems(value: Any) -> list[str]:  # noqa: ANN401  any decoded file
    """Return the problems of a record or an envelope, each with its path; none if it fits the schema."""
    rule = SIGNED_RECORD if hasattr(value, "tag") else RECORD
    try:
        return list(islice(rule(value, ""), _MOST))
    except RecursionError:
        return ["nested too deeply to be looked at"]


_DATE = r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_TIME = r"([01][0-9]|2[0-3]):[0-5][0-9]:(60|[0-5][0-9])([.][0-9]+)?"
_ZONE = r"(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
_date_time = matching("an RFC 3339 time", f"{_DATE}T{_TIME}{_ZONE}")
_uri = matching("a URI", r"([^:/?#]+:)?(//[^/?#]*)?[^?#]*(\?[^#]*)?(#.*)?")
_timestamp = either("an RFC 3339 time or milliseconds", _date_time, unsigned)
_session_id = either("a text or a byte string", text, byte_string)


def _entry(value: Any, path: str) -> Iterator[str]:  # noqa: ANN401
    """Yield the problems of an entry by the rule of its type."""
    kind = value.get("type") if isinstance(value, Mapping) else None
    rule = ENTRIES.get(kind) if isinstance(kind, str) else None
    return (rule or members({"type": words(*ENTRIES)}))(value, path)


_ANY_ENTRY: dict[str, Rule] = {"timestamp": _timestamp, "id": text, "children": array(_entry)}

TOKEN_USAGE = members(
    {}, dict.fromkeys(("input", "output", "cached", "reasoning", "total"), unsigned) | {"cost": number}
)
_MESSAGE = members(
    {"type": words("user", "assistant")},
    {**_ANY_ENTRY, "model-id": text, "parent-id": text, "token-usage": TOKEN_USAGE},
)
ENTRIES: dict[str, Rule] = {
    "user": _MESSAGE,
    "assistant": _MESSAGE,
    "tool-call": members({"name": text, "input": anything}, {**_ANY_ENTRY, "call-id": text}),
    "tool-result": members({"output": anything}, {**_ANY_ENTRY, "call-id": text, "status": text, "is-error": boolean}),
    "reasoning": members({"content": anything}, {**_ANY_ENTRY, "encrypted": text, "subject": text}),
    "system-event": members({"event-type": text}, {**_ANY_ENTRY, "data": members({})}),
}

_VCS = members({"type": text}, dict.fromkeys(("revision", "branch", "repository"), text))
_ENVIRONMENT = members({"working-dir": text}, {"vcs": _VCS, "sandboxes": array(text)})
_AGENT_META = members(
    {"model-id": text, "model-provider": text}, {"models": array(text), "cli-name": text, "cli-version": text}
)
_TRACE = members(
    {"session-id": _session_id, "agent-meta": _AGENT_META, "entries": array(_entry)},
    {"format": text, "session-start": _timestamp, "session-end": _timestamp, "environment": _ENVIRONMENT},
)

_CONTRIBUTOR = members({"type": words("human", "ai", "mixed", "unknown")}, {"model-id": text}, is_open=False)
_RANGE = members(
    {"start-line": unsigned, "end-line": unsigned},
    {"content-hash": text, "content-hash-alg": text, "contributor": _CONTRIBUTOR},
    is_open=False,
)
_RESOURCE = members({"type": text, "url": _uri}, is_open=False)
_CONVERSATION = members(
    {"ranges": array(_RANGE)},
    {"url": _uri, "contributor": _CONTRIBUTOR, "related": array(_RESOURCE)},
    is_open=False,
)
_FILE = members({"path": text, "conversations": array(_CONVERSATION)}, is_open=False)
_ATTRIBUTION = members({"files": array(_FILE)}, is_open=False)

RECORD = members(
    {"version": text, "id": text, "session": _TRACE},
    {
        "created": _timestamp,
        "file-attribution": _ATTRIBUTION,
        "vcs": _VCS,
        "recording-agent": members({"name": text}, {"version": text}),
    },
)

_LABELS = (int, str)
_CWT_CLAIMS, _ISSUER, _SUBJECT = 15, 1, 2
_ALG, _CONTENT_TYPE, _KID, _X5CHAIN, _X5T = 1, 3, 4, 33, 34
_TRACE_METADATA, _RECEIPTS = 100, 394
_COSE_SIGN1 = 18
_payload = either("a byte string or null", byte_string, plain("null", lambda value: value is None))
_x509 = either("a certificate, or two and more", byte_string, array(byte_string, least=2))

TRACE_METADATA = members(
    {"session-id": _session_id, "agent-vendor": text, "trace-format": text, "timestamp-start": _timestamp},
    {"timestamp-end": _timestamp, "content-hash": text, "content-hash-alg": text},
    is_open=False,
)
_PROTECTED = members(
    {_CWT_CLAIMS: members({_ISSUER: text, _SUBJECT: text}, keys=_LABELS)},
    {
        _ALG: integer,
        _CONTENT_TYPE: either("a text or an integer from 0 on", text, unsigned),
        _KID: byte_string,
        _X5T: row(either("an integer or a text", integer, text), byte_string),
        _X5CHAIN: _x509,
    },
    keys=_LABELS,
)


def _receipt(value: Any, path: str) -> Iterator[str]:  # noqa: ANN401
    """Yield the problems of a receipt; the draft requires each to contain another, so that none can fit."""
    headers = members({_RECEIPTS: array(encoded(_receipt), least=1)}, keys=_LABELS)
    inner = row(encoded(members({}, keys=_LABELS)), headers, _payload, byte_string)
    return tagged(_COSE_SIGN1, inner)(value, path)


_UNPROTECTED = members(
    {}, {_TRACE_METADATA: TRACE_METADATA, _X5CHAIN: _x509, _RECEIPTS: array(_receipt, least=1)}, keys=_LABELS
)
SIGNED_RECORD = tagged(_COSE_SIGN1, row(encoded(_PROTECTED), _UNPROTECTED, _payload, byte_string))
