"""Records and envelopes that fit the schema, and others that do not, for the checker and for the CDDL judge."""

from __future__ import annotations

from typing import Any

import cbor2

TIME = "2026-11-15T19:30:00.000Z"


def entry(**members: Any) -> dict[str, Any]:  # noqa: ANN401  any value of a record
    return {name.replace("_", "-"): value for name, value in members.items()}


USER = entry(type="user", content="hello")
CALL = entry(type="tool-call", name="read_file", input={"file_path": "a.txt"})
RESULT = entry(type="tool-result", output="text")
REASONING = entry(type="reasoning", content="hm")
EVENT = entry(type="system-event", event_type="info")
META = {"model-id": "gemini-2.5-pro", "model-provider": "google"}


def session(*entries: Any, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"session-id": "s1", "agent-meta": META, "entries": [*entries], **entry(**more)}


def record(*entries: Any, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return a record with these entries."""
    return {"version": "3.0.0-draft", "id": "r1", "session": session(*entries)} | entry(**more)


def traced(**more: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return a record whose session has other members."""
    return record(session=session(USER, **more))


def without(value: dict[Any, Any], name: Any) -> dict[Any, Any]:  # noqa: ANN401
    return {key: member for key, member in value.items() if key != name}


def used(**counts: Any) -> dict[str, Any]:  # noqa: ANN401
    return record(USER | {"type": "assistant", "token-usage": entry(**counts)})


CONTRIBUTOR = {"type": "ai", "model-id": "gemini-2.5-pro"}
RANGE = {
    "start-line": 1,
    "end-line": 2,
    "content-hash": "00ff",
    "content-hash-alg": "sha-256",
    "contributor": {"type": "mixed"},
}
RESOURCE = {"type": "tool-call", "url": "#c1"}
CONVERSATION = {
    "url": "https://example.org/c?d#e",
    "contributor": CONTRIBUTOR,
    "ranges": [RANGE],
    "related": [RESOURCE],
}
FILE = {"path": "a.txt", "conversations": [CONVERSATION]}


def attributed(**more: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return a record with an attribution that differs in one of its maps."""
    range_ = RANGE | entry(**more.get("range_", {}))
    conversation = CONVERSATION | {"ranges": [range_]} | entry(**more.get("conversation", {}))
    file = FILE | {"conversations": [conversation]} | entry(**more.get("file", {}))
    return record(file_attribution={"files": [file]} | entry(**more.get("whole", {})))


PROTECTED = {1: -8, 3: "application/json", 4: b"key", 15: {1: "google", 2: "s1"}}
METADATA = {
    "session-id": "s1",
    "agent-vendor": "google",
    "trace-format": "ietf-vac-v3.0",
    "timestamp-start": TIME,
    "timestamp-end": TIME,
    "content-hash": "00ff",
    "content-hash-alg": "sha-256",
}


def envelope(
    protected: Any = None,  # noqa: ANN401
    unprotected: Any = None,  # noqa: ANN401
    payload: bytes | None = None,
    *,
    tag: int = 18,
) -> Any:  # noqa: ANN401
    head = cbor2.dumps(PROTECTED if protected is None else protected)
    return cbor2.CBORTag(tag, [head, {100: METADATA} if unprotected is None else unprotected, payload, b"signature"])


def receipt() -> Any:  # noqa: ANN401
    return cbor2.CBORTag(18, [cbor2.dumps({}), {}, None, b"signature"])


VALID: dict[str, Any] = {
    "minimal, without entries": record(),
    "another member of the record": record(colour="red"),
    "all members of the record": record(
        created=TIME,
        vcs={"type": "git", "revision": "00ff", "branch": "main", "repository": "https://example.org/r"},
        recording_agent={"name": "pollux", "version": "1"},
    ),
    "all members of the session": traced(
        format="interactive",
        session_start=TIME,
        session_end=1_794_771_000_000,
        environment={"working-dir": "/w", "vcs": {"type": "hg"}, "sandboxes": ["/s"]},
        agent_meta=META | {"models": ["a", "b"], "cli-name": "gemini-cli", "cli-version": "0.61.0"},
    ),
    "user": record(USER),
    "user without content": record(without(USER, "content")),
    "user with null for content": record(USER | {"content": None}),
    "user with parts": record(USER | {"content": [{"text": "a"}]}),
    "assistant with all members": record(
        entry(type="assistant", content="", id="m", parent_id="l", model_id="g", timestamp=TIME, children=[CALL])
    ),
    "tool call": record(CALL | {"call-id": "c", "id": "e", "timestamp": TIME}),
    "tool call with null for input": record(CALL | {"input": None}),
    "tool result": record(RESULT | {"call-id": "c", "status": "error", "is-error": True}),
    "tool result with null for output": record(RESULT | {"output": None}),
    "reasoning": record(REASONING | {"subject": "s", "encrypted": "e"}),
    "event": record(EVENT | {"data": {"content": "x"}}),
    "parent of something else than a message": record(CALL | {"parent-id": 5}),
    "children of children": record(CALL | {"children": [USER | {"children": [CALL | {"children": [EVENT]}]}]}),
    "time without a fraction": traced(session_start="2026-11-15T19:30:00Z"),
    "time with a long fraction": traced(session_start="2026-11-15T19:30:00.123456789Z"),
    "time with a zone": traced(session_start="2026-11-15T19:30:60+05:30"),
    "time on a day that is not": traced(session_start="2026-02-31T19:30:00Z"),
    "time as milliseconds": traced(session_start=0),
    "usage that is empty": used(),
    "usage with other members": used(thoughts=3, tool=1.5),
    "usage with a fraction for cost": used(cost=0.25),
    "usage with the largest total": used(total=2**64 - 1),
    "attribution with all members": attributed(),
    "attribution without files": record(file_attribution={"files": []}),
    "session id as bytes": record(session=session() | {"session-id": b"\x00\x01"}),
    "envelope, detached": envelope(),
    "envelope, attached": envelope(payload=b"{}"),
    "envelope without unprotected members": envelope(unprotected={}),
    "envelope without alg": envelope(without(PROTECTED, 1)),
    "envelope with a number for content type": envelope(PROTECTED | {3: 50}),
    "envelope with one certificate": envelope(PROTECTED | {33: b"certificate"}),
    "envelope with two certificates": envelope(unprotected={33: [b"one", b"two"]}),
    "envelope with the hash of a certificate": envelope(PROTECTED | {34: [-16, b"hash"]}),
    "envelope with other members": envelope(PROTECTED | {"x": 1, 99: 2}, {"y": 1}),
    "envelope with session id as bytes": envelope(unprotected={100: METADATA | {"session-id": b"\x01"}}),
}

INVALID: dict[str, Any] = {
    "no map": ["record"],
    "without version": without(record(), "version"),
    "without id": without(record(), "id"),
    "without session": without(record(), "session"),
    "without session id": record(session=without(session(), "session-id")),
    "without agent meta": record(session=without(session(), "agent-meta")),
    "without entries": record(session=without(session(), "entries")),
    "without model id": traced(agent_meta=without(META, "model-id")),
    "without model provider": traced(agent_meta=without(META, "model-provider")),
    "tool call without name": record(without(CALL, "name")),
    "tool call without input": record(without(CALL, "input")),
    "tool result without output": record(without(RESULT, "output")),
    "reasoning without content": record(without(REASONING, "content")),
    "event without its type": record(without(EVENT, "event-type")),
    "environment without folder": traced(environment={"sandboxes": []}),
    "vcs without type": record(vcs={"branch": "main"}),
    "recording agent without name": record(recording_agent={"version": "1"}),
    "conversation without ranges": record(
        file_attribution={"files": [FILE | {"conversations": [without(CONVERSATION, "ranges")]}]}
    ),
    "entry without type": record(without(USER, "type")),
    "version as a number": record(version=3),
    "type of the client": record(USER | {"type": "gemini"}),
    "entry that is no map": record("hello"),
    "time in words": traced(session_start="yesterday"),
    "time with more behind it": traced(session_start=f"{TIME} or so"),
    "time with a small z": traced(session_start="2026-11-15T19:30:00z"),
    "time without a zone": traced(session_start="2026-11-15T19:30:00"),
    "time before 1970": traced(session_start=-1),
    "time with a fraction of a millisecond": traced(session_start=1.5),
    "null for a time": traced(session_start=None),
    "null for the time of an entry": record(USER | {"timestamp": None}),
    "null for created": record(created=None),
    "negative count": used(input=-1),
    "fraction of a count": used(input=1.5),
    "whole number written as a fraction": used(input=12.0),
    "null for a count": used(output=None),
    "count beyond 64 bits": used(total=2**64),
    "text for cost": used(cost="1"),
    "child of an unknown type": record(CALL | {"children": [USER | {"type": "note"}]}),
    "children that are no array": record(CALL | {"children": CALL}),
    "null for children": record(CALL | {"children": None}),
    "data that is no map": record(EVENT | {"data": "text"}),
    "text for is-error": record(RESULT | {"is-error": "true"}),
    "number for status": record(RESULT | {"status": 1}),
    "null for a call id": record(CALL | {"call-id": None}),
    "integer as a key of an entry": record(USER | {1: "x"}),
    "integer as a key of data": record(EVENT | {"data": {1: "x"}}),
    "null for a model id": record(USER | {"model-id": None}),
    "null for a parent": record(USER | {"parent-id": None}),
    "null for subject": record(REASONING | {"subject": None}),
    "another member of an attribution": attributed(whole={"colour": "red"}),
    "another member of a file": attributed(file={"colour": "red"}),
    "another member of a conversation": attributed(conversation={"colour": "red"}),
    "another member of a range": attributed(range_={"colour": "red"}),
    "another member of a contributor": attributed(conversation={"contributor": CONTRIBUTOR | {"colour": "red"}}),
    "another member of a resource": attributed(conversation={"related": [RESOURCE | {"colour": "red"}]}),
    "contributor of another kind": attributed(conversation={"contributor": {"type": "robot"}}),
    "negative line": attributed(range_={"start_line": -1}),
    "resource without address": attributed(conversation={"related": [{"type": "x"}]}),
    "recording agent as text": record(recording_agent="pollux"),
    "number for a session id": record(session=session() | {"session-id": 7}),
    "number for an entry id": record(USER | {"id": 7}),
    "models that are no array": traced(agent_meta=META | {"models": "gemini"}),
    "envelope without claims": envelope(without(PROTECTED, 15)),
    "envelope without issuer": envelope(PROTECTED | {15: {2: "s1"}}),
    "envelope without subject": envelope(PROTECTED | {15: {1: "google"}}),
    "envelope with alg as text": envelope(PROTECTED | {1: "EdDSA"}),
    "envelope with a text for the key": envelope(PROTECTED | {4: "key"}),
    "envelope without tag": envelope().value,
    "envelope with another tag": envelope(tag=98),
    "envelope with a text for payload": cbor2.CBORTag(18, [*envelope().value[:2], "{}", b"signature"]),
    "envelope with a text for its header": cbor2.CBORTag(18, ["header", {}, None, b"signature"]),
    "envelope of three": cbor2.CBORTag(18, envelope().value[:3]),
    "envelope whose header is no CBOR": cbor2.CBORTag(18, [b"\xff", {}, None, b"signature"]),
    "metadata without vendor": envelope(unprotected={100: without(METADATA, "agent-vendor")}),
    "metadata without start": envelope(unprotected={100: without(METADATA, "timestamp-start")}),
    "another member of metadata": envelope(unprotected={100: METADATA | {"colour": "red"}}),
    "array of one certificate": envelope(unprotected={33: [b"one"]}),
    "no receipts": envelope(unprotected={394: []}),
    "a receipt, which the schema makes impossible": envelope(unprotected={394: [receipt()]}),
}
