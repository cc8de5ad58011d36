"""Session files that are broken in every way we could think of, each made from its seed alone."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any, NamedTuple

from tests import builders
from tests.builders import Wire

LONG = "@@5000 digits@@"
DEEP = "@@nested@@"
DEEPER = "@@nested deeply@@"
_RAW = {
    json.dumps(LONG).encode(): b"9" * 5000,
    json.dumps(DEEP).encode(): b"[" * 600 + b"]" * 600,
    json.dumps(DEEPER).encode(): b'{"a":' * 900 + b"1" + b"}" * 900,
}
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 7, 1.5, -0.0, 1e308, 2**31, 2**53 + 1, 2**63, 2**64, -(2**63) - 1, 10**30, LONG),
    *("", "x", " ", "\ud800", "\udfff\ud800", "\0", "\x1b[31m", "é漢", "a" * 3000, "@@ -9999999999999999999 +1 @@"),
    *(
        "Exit Code: 99999999999999999999",
        "0001-01-01T00:00:00.000Z",
        "9999-12-31T23:59:59.999999Z",
        "$set",
        "__proto__",
    ),
    *([], [[]], [None], [1, "x", {}], {}, {"id": 5}, {"messages": [1]}, {"text": 5}, {"functionCall": 1}, DEEP, DEEPER),
    *({"output": "\nExit Code: -99999999999999999999\n"}, {"fileDiff": "x", "diffStat": {"model_added_lines": 2**63}}),
)
KEYS = (
    *("id", "type", "timestamp", "content", "displayContent", "model", "tokens", "toolCalls", "thoughts", "messages"),
    *("sessionId", "projectHash", "startTime", "lastUpdated", "kind", "summary", "directories", "memoryScratchpad"),
    *("args", "result", "resultDisplay", "status", "agentId", "name", "input", "output", "cached", "total"),
)
HOSTILE: tuple[tuple[str, Any], ...] = (
    ("output", "notes\nExit Code: 99999999999999999999\n"),
    ("output", f"notes\nExit Code: -{'9' * 5000}\n"),
    ("fileDiff", f"@@ -{'9' * 5000},1 +18446744073709551616 @@\n a\n-b\n+c"),
    ("diffStat", {"model_added_lines": 2**63, "model_removed_lines": LONG}),
    ("diffStat", {"model_added_lines": 2**62, "user_added_lines": 2**62}),
    ("directories", [2**64, "/srv"]),
    ("memoryScratchpad", {"version": -(2**70), "n": [LONG, DEEP]}),
    ("args", '{"command": "echo \\ud800", "file_path": "/srv/\\udfff"}'),
    ("timestamp", "9999-12-31T23:59:59.999999Z"),
    ("timestamp", "0001-01-01T00:00:00.000Z"),
    ("startTime", "9999-12-31T23:59:59.999999Z"),
    ("tokens", {"input": 2**63, "output": -(2**31), "cached": 2**31 - 1, "total": 2**31 - 1}),
    ("lineNumber", 2**70),
)
"""Keys, and values that have once stopped Pollux."""
SEPARATORS = (b"\r\n", b"\r", b"\n\n", b" \n\t", b"\n\x0c", "\u2028".encode(), b"\x00", b",\n", b"")


class Mutant(NamedTuple):
    """A broken session file."""

    seed: int
    name: str
    data: bytes


def mutant(seed: int) -> Mutant:
    """Return the mutant of a seed."""
    rng = random.Random(seed)  # noqa: S311
    session = f"{seed:08x}-5955-4bdb-8380-88eda48ac048"
    is_document = rng.random() < 0.25
    records = _records(session, rng)
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        rng.choice(_OF_VALUES)(records, rng)
    data = _document(records, rng) if is_document else builders.log(*records)
    for shown, raw in _RAW.items():
        data = data.replace(shown, raw)
    for _ in range(rng.choice((0, 1, 1, 2, 4))):
        data = rng.choice(_OF_BYTES)(data, rng)
    suffix = rng.choice((".json", ".jsonl")) if rng.random() < 0.1 else ".json" if is_document else ".jsonl"
    return Mutant(seed, f"session-2026-11-15T19-30-{seed:08x}{suffix}", data)


def _records(session: str, rng: random.Random) -> list[Any]:
    """Return a sound session with something of everything."""
    shell = builders.call("c1", "run_shell_command", args={"command": "cd src && make | tail -1"})
    shell["result"] = [builders.answers("c1", "run_shell_command", "Output: x\nExit Code: 1\n")]
    display = {
        "fileDiff": "Index: a\n@@ -1,2 +1,2 @@\n a\n-b\n+c",
        "fileName": "a",
        "filePath": "/srv/a",
        "originalContent": "a\nb",
        "newContent": "a\nc",
        "diffStat": {"model_added_lines": 1, "model_removed_lines": 1},
    }
    edit = builders.call("c2", "replace", args={"file_path": "/srv/a", "old_string": "b"}, resultDisplay=display)
    todos = builders.call("c3", "write_todos", resultDisplay={"todos": [{"description": "d", "status": "pending"}]})
    picture = {"inlineData": {"mimeType": "image/png", "data": "aGVsbG8="}}
    thoughts = [{"subject": "s", "description": "d", "timestamp": builders.at(3)}]
    asked = builders.user(f"u1-{session}", [{"text": "look at this"}, picture])
    more: Wire = {"tokens": builders.tokens(10), "thoughts": thoughts, "toolCalls": [shell, edit, todos]}
    answer = builders.gemini(f"g1-{session}", "```python\nprint(1)\n```\n| a | b |\n|---|---|\n| 1 | 2 |", **more)
    again = builders.gemini(f"g2-{session}", [{"text": "done"}, builders.asks("c4", file_path="/srv/b")], second=9)
    head = builders.header(session, directories=["/srv"], memoryScratchpad={"version": 1, "toolSequence": ["ls"]})
    records = [head, builders.preamble(), asked, answer, builders.updates(lastUpdated=builders.at(5)), again]
    records.append(builders.notice(f"i1-{session}"))
    if rng.random() < 0.5:
        records.append(builders.checkpoint(asked, answer, builders.user(f"u2-{session}", "new")))
    if rng.random() < 0.5:
        records += [builders.rewind(f"g2-{session}"), builders.user(f"u3-{session}", "instead", displayContent="shown")]
    return records


def _document(records: list[Any], rng: random.Random) -> bytes:
    head = records[0] if records and isinstance(records[0], dict) else {}
    indent = rng.choice((2, 2, None))
    return json.dumps(head | {"messages": records[1:]}, ensure_ascii=rng.random() < 0.2, indent=indent).encode(
        "utf-8", "backslashreplace"
    )


def _containers(value: object) -> list[tuple[Any, Any]]:
    """Return every place inside a value: what holds it, and its key there."""
    found: list[tuple[Any, Any]] = []
    waiting: list[Any] = [value]
    while waiting:
        inner = waiting.pop()
        keys = [*inner] if isinstance(inner, dict) else range(len(inner)) if isinstance(inner, list) else ()
        found += [(inner, key) for key in keys]
        waiting += [inner[key] for key in keys]
    return found


def _replace_value(records: list[Any], rng: random.Random) -> None:
    holder, key = rng.choice(_containers(records))
    holder[key] = rng.choice(ODD)


def _replace_known_value(records: list[Any], rng: random.Random) -> None:
    key = rng.choice(KEYS)
    for holder, name in _containers(records):
        if name == key and isinstance(holder, dict):
            holder[name] = rng.choice(ODD)


def _replace_by_hostile(records: list[Any], rng: random.Random) -> None:
    key, value = rng.choice(HOSTILE)
    for holder, name in _containers(records):
        if name == key and isinstance(holder, dict):
            holder[name] = value


def _name_oddly(records: list[Any], rng: random.Random) -> None:
    """Return the session an ID that is no good name for a file; another one each time, so that they stay apart."""
    number = rng.getrandbits(64)
    session = rng.choice((f"{'x' * 300}{number}", f"../{number}/con", f"--{number}", f"é漢\0\n{number}.", f"{number}:"))
    for holder, name in _containers(records):
        if name == "sessionId" and isinstance(holder, dict):
            holder[name] = session


def _add_value(records: list[Any], rng: random.Random) -> None:
    objects = [one for one in records if isinstance(one, dict)]
    if objects:
        rng.choice(objects)[rng.choice((*KEYS, "$rewindTo", "$push", "\ud800", "new"))] = rng.choice(ODD)


def _drop_value(records: list[Any], rng: random.Random) -> None:
    places = [(holder, key) for holder, key in _containers(records) if isinstance(holder, dict)]
    holder, key = rng.choice(places)
    del holder[key]


def _repeat_record(records: list[Any], rng: random.Random) -> None:
    records.insert(rng.randrange(len(records) + 1), rng.choice(records))


def _shuffle_records(records: list[Any], rng: random.Random) -> None:
    rng.shuffle(records)


def _drop_record(records: list[Any], rng: random.Random) -> None:
    if len(records) > 1:
        del records[rng.randrange(len(records))]


def _rename_ids(records: list[Any], rng: random.Random) -> None:
    """Give several messages one ID."""
    for record in records:
        if isinstance(record, dict) and "id" in record and rng.random() < 0.5:
            record["id"] = "same"


def _flip(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.randint(1, 8)):
        if changed:
            changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def _cut(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _hole(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + data[at + rng.randint(1, 300) :]


def _swap(data: bytes, rng: random.Random) -> bytes:
    one, two, three = sorted(rng.randrange(len(data) + 1) for _ in range(3))
    return data[:one] + data[two:three] + data[one:two] + data[three:]


def _repeat_line(data: bytes, rng: random.Random) -> bytes:
    lines = data.split(b"\n")
    at = rng.randrange(len(lines))
    return b"\n".join([*lines[:at], *[lines[at]] * rng.choice((2, 3, 20)), *lines[at + 1 :]])


def _separate(data: bytes, rng: random.Random) -> bytes:
    return data.replace(b"\n", rng.choice(SEPARATORS), rng.choice((1, 3, -1)))


def _encode(data: bytes, rng: random.Random) -> bytes:
    text = data.decode("utf-8", "replace")
    return rng.choice(
        (
            lambda: b"\xef\xbb\xbf" + data,
            lambda: text.encode("utf-16"),
            lambda: text.encode("utf-32-le"),
            lambda: text.encode("latin-1", "replace"),
            lambda: data.replace(b"e", b"\xff", 5),
            lambda: data.replace(b"a", b"\xed\xa0\x80", 3),
            lambda: data.replace(b" ", b"\x00"),
        )
    )()


def _insert(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    junk = (
        b"9" * 5000,
        b"[" * 3000,
        b'{"id":' * 500,
        b"\\ud800",
        b"\x00" * 50,
        b"\n{}\n",
        b'"',
        b"\n[]\n",
        b"\nnull\n",
    )
    return data[:at] + rng.choice(junk) + data[at:]


def _empty(data: bytes, rng: random.Random) -> bytes:
    return rng.choice((b"", b"\n", b"{}", b"[]", b"null", b'""', b"\x00", data))


_OF_VALUES: tuple[Callable[[list[Any], random.Random], None], ...] = (
    *(_replace_value, _replace_value, _replace_known_value, _replace_known_value, _add_value, _drop_value),
    *(_replace_by_hostile, _replace_by_hostile, _name_oddly),
    *(_repeat_record, _shuffle_records, _drop_record, _rename_ids),
)
_OF_BYTES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    *(_flip, _flip, _cut, _hole, _swap, _repeat_line, _separate, _encode, _insert, _empty),
)


def good_session() -> list[Wire]:
    """Return a session that must always be listed, shown and counted as it is."""
    call = builders.call("good-c1", "run_shell_command", args={"command": "make"})
    return [
        builders.header(GOOD),
        builders.user("good-u1", "What is the answer?"),
        builders.gemini("good-g1", "It is 42.", tokens=builders.tokens(100), toolCalls=[call]),
        builders.gemini("good-g2", "Really.", second=3, tokens=builders.tokens(200)),
    ]


GOOD = "600d600d-0000-4000-8000-000000000042"
GOOD_NAME = "session-2026-11-15T19-30-600d600d.jsonl"
