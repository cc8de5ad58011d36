"""Write small session files full of faults, and read each, in a child process that is killed if it hangs."""

from __future__ import annotations

import json
import random
import resource
import signal
import sys
from pathlib import Path
from typing import Any

from tests.builders import answers, call, gemini, header, tokens, user

from pollux import formats
from pollux.formats.source import Source
from pollux.sessions.replay.reading import build_message, finish_reading, record_lookups, state
from pollux.sessions.replay.replay import replay

SECONDS_A_FILE = 5
SECONDS = 120
MEMORY = 2 << 30

KEYS = ("$rewindTo", "id", "$set", "sessionId", "projectHash", "type", "timestamp", "model", "tokens", "content")
MORE_KEYS = ("displayContent", "toolCalls", "thoughts", "messages", "lastUpdated", "kind", "directories", "summary")
ODD: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    5,
    1.5,
    1 << 70,
    "",
    "x",
    "\ud800",
    [],
    [1],
    [[]],
    {},
    {"id": 5},
    {"messages": [1]},
    "é" * 3,
)
SEPARATORS = ((",", ":"), (", ", ": "), (" ,  ", " :\t"))


def main() -> None:
    """Read the files of some seeds, and write the current seed to the file named by the first argument."""
    place, first, last = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    with place.open("w") as note:
        for seed in range(first, last):
            note.seek(0)
            note.write(f"{seed:9}")
            note.flush()
            signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS_A_FILE)  # time of this process; its signal kills
            read(fuzzed(seed))


def read(data: bytes) -> None:
    """Read a file through its format, its replay, its messages and its state."""
    original = Source(Path("fuzzed"), data=data)
    source, format_, operations = formats.opened(original)
    reading = finish_reading(source, format_, replay(operations, *record_lookups(source)), original)
    for entry in reading.replay.timeline:
        build_message(reading, entry)
    for _ in state(reading):
        pass


def fuzzed(seed: int) -> bytes:
    """Return the bytes of the file that a seed generates."""
    rng = random.Random(seed)  # noqa: S311  no secret
    if rng.random() < 0.2:
        return _document(rng)
    lines = [_encoded(rng, header())] + [_line(rng) for _ in range(rng.randint(1, 4))]
    if rng.random() < 0.1:
        rng.shuffle(lines)
    return rng.choice((b"\n", b"\n", b"\n", b"\r\n", b"\r", b"")).join(lines)


def _document(rng: random.Random) -> bytes:
    messages = [_message(rng) for _ in range(rng.randint(0, 3))]
    spoiled = _spoiled(rng, header(messages=messages))
    data = json.dumps(spoiled, indent=rng.choice((2, 2, 1, None)), ensure_ascii=rng.random() < 0.8)
    return _torn(rng, data.encode("utf-8", "surrogatepass"))


def _line(rng: random.Random) -> bytes:
    kind = rng.randint(0, 5)
    value: Any
    match kind:
        case 0:
            value = {"$set": _spoiled(rng, {"messages": [_message(rng) for _ in range(rng.randint(0, 3))]})}
        case 1:
            value = {"$set": {"$set": {"messages": [_message(rng)]}, "messages": rng.choice(ODD)}}
        case 2:
            value = {"$rewindTo": rng.choice(("u1", "g1", "none", *ODD))}
        case 3:
            value = header(messages=[_message(rng)])
        case _:
            value = _message(rng)
    return _torn(rng, _encoded(rng, _spoiled(rng, value)))


def _message(rng: random.Random) -> Any:  # noqa: ANN401
    result = [answers(f"c{rng.randint(1, 3)}", output=rng.choice(("", "Exit Code: 1", "<tool_output_masked>")))]
    made = rng.choice(
        (
            user(f"u{rng.randint(1, 3)}", rng.choice(("hello", [{"text": "hello"}], result))),
            gemini(f"g{rng.randint(1, 3)}", tokens=tokens(), toolCalls=[call(result=result)], thoughts=[{}]),
            {"id": f"b{rng.randint(1, 3)}", "type": "gemini", "content": [{"text": "hi"}]},
        )
    )
    return _spoiled(rng, made)


def _spoiled(rng: random.Random, value: Any) -> Any:  # noqa: ANN401
    """Return a record with values of types that the client never writes."""
    for _ in range(rng.choice((0, 0, 1, 1, 2))):
        value = {**value, rng.choice(KEYS + MORE_KEYS): rng.choice(ODD)}
    for key in ("tokens", "toolCalls"):
        if rng.random() < 0.1 and value.get(key):
            inner = value[key][0] if isinstance(value[key], list) else value[key]
            if isinstance(inner, dict):
                spoiled = {**inner, rng.choice([*inner, "input", "name"]): rng.choice(ODD)}
                value = {**value, key: [spoiled] if isinstance(value[key], list) else spoiled}
    items = list(value.items())
    if rng.random() < 0.5:
        rng.shuffle(items)
    return dict(items)


def _encoded(rng: random.Random, value: Any) -> bytes:  # noqa: ANN401
    text = json.dumps(value, separators=rng.choice(SEPARATORS), ensure_ascii=rng.random() < 0.8)
    if rng.random() < 0.1:
        text = text.replace('"messages"', '"mess\\u0061ges"').replace('"$set"', '"\\u0024set"')
    return text.encode("utf-8", "surrogatepass")


def _torn(rng: random.Random, data: bytes) -> bytes:
    match rng.randint(0, 9):
        case 0:
            return data[: rng.randint(0, len(data))]
        case 1:
            return data[: rng.randint(0, len(data))] + data
        case 2:
            place = rng.randint(0, len(data))
            return data[:place] + bytes([rng.randint(0, 255)]) + data[place + 1 :]
    return data
