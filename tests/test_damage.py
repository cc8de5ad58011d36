"""Damaged files of each generation raise nothing, keep all complete messages, and report each fault."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.builders import Wire, document, header, line, log, put, tokens, user
from tests.cpu_time import cpu_seconds

from pollux.exports import gemini
from pollux.formats.origins import user_origin
from pollux.formats.parts import parts
from pollux.model import FunctionCall, FunctionResponse, Message, Text, Tokens
from pollux.sessions import grouping
from pollux.sessions.replay.reading import FileReading, build_message, read

DATA = Path(__file__).parent / "data" / "damage"
SAMPLES = {path.name: path.read_bytes() for path in sorted(DATA.iterdir())}
LOGS = [name for name in SAMPLES if name.endswith(".jsonl")]
SMALL = [name for name in SAMPLES if "small" in name]

GARBAGE = (
    b"garbage",
    b"\0\0\0",
    b"{",
    b"}",
    b"[]",
    b"null",
    b"3",
    b'"text"',
    b"{}",
    b'{"id":7}',
    b'{"$set":1}',
    b'{"$x":1}',
)

often = settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])


class Damaged(NamedTuple):
    """A file of a sample's name with other bytes."""

    name: str
    data: bytes


class Outcome(NamedTuple):
    """The reading of a file and its messages."""

    reading: FileReading
    messages: list[Message]

    @property
    def usage(self) -> Tokens:
        return sum((call.tokens for call in self.reading.replay.calls.values()), Tokens())


class Print(NamedTuple):
    """The fields that a copy of a message under another ID shares with it."""

    kind: str
    calls: frozenset[str]
    words: str


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("damage")


def outcome(folder: Path, damaged: Damaged) -> Outcome:
    """Return the reading of a file and its messages, after a check that both ways to read it agree."""
    path = put(folder / damaged.name, damaged.data)
    group = grouping.open_file(path)
    read_file = read(path)
    everything = [build_message(read_file, entry) for entry in read_file.replay.timeline]
    assert [*group.messages()] == everything
    if read_file.replay.is_readable:
        json.loads(b"".join(gemini.render_state(read_file)), parse_int=float)
    return Outcome(read_file, everything)


def check(folder: Path, damaged: Damaged) -> Outcome:
    """Check the guarantees for any damaged file, and return its reading."""
    result = outcome(folder, damaged)
    if result.reading.format == "log":
        assert [plain(message) for message in result.reading.replay.state] == [
            plain(message) for message in state_of_log(damaged.data)
        ]
    lost = [message["id"] for message in readable(damaged) if not is_there(message, result)]
    assert not lost
    reported = {problem.line for problem in result.reading.replay.problems}
    if damaged.name.endswith(".jsonl"):
        assert {number for number, data in numbered(damaged.data) if decoded(data) is None} <= reported
    elif decoded(damaged.data) is None:
        assert reported - {None}
        assert not result.reading.replay.is_readable
    return result


def readable(damaged: Damaged) -> Iterator[Wire]:
    """Yield the complete messages: those in valid JSON, and in other lines the unchanged ones of the sample."""
    if damaged.name.endswith(".json"):
        document = decoded(damaged.data)
        yield from listed(document) if document is not None else pieces(damaged, damaged.data)
        return
    for _, data in numbered(damaged.data):
        record = decoded(data)
        yield from recorded(record) if record is not None else pieces(damaged, data)


def pieces(damaged: Damaged, data: bytes) -> Iterator[Wire]:
    """Yield the messages of the sample that these bytes contain unchanged."""
    sample = SAMPLES[damaged.name]
    is_document = damaged.name.endswith(".json")
    records = [json.loads(sample)] if is_document else [decoded(text) for _, text in numbered(sample)]
    for message in (each for record in records for each in (listed(record) if is_document else recorded(record))):
        text = (
            json.dumps(message, indent=2, ensure_ascii=False).replace("\n", "\n    ").encode()
            if is_document
            else line(message)
        )
        assert text in sample
        if text in data or text.replace(b"\n", b"\r\n") in data:
            yield message


def decoded(data: bytes) -> Any:  # noqa: ANN401  as on the wire
    """Return a value decoded as JavaScript does; `None` for invalid JSON, an empty object for `null`."""
    try:
        value = json.loads(data.decode("utf-8", "replace"), parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return {} if value is None else value


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def numbered(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank; a lone carriage return ends one too."""
    for number, part in enumerate(data.split(b"\n"), 1):
        yield from ((number, piece) for piece in part.split(b"\r") if piece.strip())


def listed(record: Any) -> list[Wire]:  # noqa: ANN401
    messages = record.get("messages") if isinstance(record, dict) else None
    return (
        [message for message in messages if isinstance(message, dict) and isinstance(message.get("id"), str)]
        if isinstance(messages, list)
        else []
    )


def recorded(record: Any) -> list[Wire]:  # noqa: ANN401
    """Return the messages of one line of a log."""
    if not isinstance(record, dict) or isinstance(record.get("$rewindTo"), str):
        return []
    if isinstance(record.get("id"), str):
        return [record]
    if isinstance(record.get("$set"), dict | list):
        return listed(record["$set"])
    is_header = isinstance(record.get("sessionId"), str) and isinstance(record.get("projectHash"), str)
    return listed(record) if is_header else []


def state_of_log(data: bytes) -> dict[str, Wire]:
    """Return the state of a log, replayed as the client does and without Pollux."""
    state: dict[str, Wire] = {}
    for _, text in numbered(data):
        record = decoded(text)
        if isinstance(record, dict) and isinstance(target := record.get("$rewindTo"), str):
            ids = [*state]
            for id_ in ids[ids.index(target) if target in state else 0 :]:
                del state[id_]
        elif isinstance(record, dict):
            messages = recorded(record)
            if not isinstance(record.get("id"), str) and isinstance(record.get("$set"), dict):
                state = {} if isinstance(record["$set"].get("messages"), list) else state
            state |= {message["id"]: message for message in messages}
    return state


def plain(id_: str) -> str:
    """Return a value without replacement characters: Pollux writes one for each byte, the client one for each run."""
    return re.sub("[?\ufffd\ud800-\udfff]", "", id_)


def is_there(message: Wire, result: Outcome) -> bool:
    if any(plain(other.id) == plain(message["id"]) for other in result.messages):
        return True
    mine = print_of(message)
    return any(is_copy(mine, print_of_entry(other)) for other in result.messages)


def is_copy(one: Print, other: Print) -> bool:
    same = one.calls & other.calls if one.calls else one.words == other.words
    return one.kind == other.kind and bool(same)


def print_of(message: Wire) -> Print:
    message_parts = parts(message.get("content"))
    calls = {part.id for part in message_parts if isinstance(part, FunctionCall | FunctionResponse) and part.id}
    text = "".join(part.text for part in message_parts if isinstance(part, Text))
    kind = str(message.get("type"))
    return Print(kind, frozenset(calls), (user_origin(text)[1] if kind == "user" else text).strip())


def print_of_entry(message: Message) -> Print:
    calls = {part.id for part in message.parts if isinstance(part, FunctionCall | FunctionResponse) and part.id}
    calls |= {call.id for call in message.tool_calls if call.id}
    text = "".join(part.text for part in message.parts if isinstance(part, Text))
    return Print(message.kind, frozenset(calls), (user_origin(text)[1] if message.kind == "user" else text).strip())


def lines_of(data: bytes) -> list[bytes]:
    return data.removesuffix(b"\n").split(b"\n")


def damages(name: str) -> st.SearchStrategy[Damaged]:
    """Draw damage of a sample that leaves complete messages unchanged, so that usage cannot grow."""
    data = SAMPLES[name]
    lines = lines_of(data)
    places = st.integers(0, len(lines) - 1)

    def joined(new: list[bytes]) -> Damaged:
        return Damaged(name, b"\n".join(new) + b"\n")

    def moved(from_: int, to: int) -> Damaged:
        others = lines[:from_] + lines[from_ + 1 :]
        return joined([*others[:to], lines[from_], *others[to:]])

    cuts = st.integers(0, len(data)).map(lambda at: Damaged(name, data[:at]))
    swaps = st.builds(moved, places, places)
    doubles = places.map(lambda at: joined([*lines[: at + 1], *lines[at:]]))
    garbage = [
        piece for piece in GARBAGE if name in LOGS or not piece.startswith(b'{"')
    ]  # a document does not begin with a record
    inserts = st.builds(lambda at, what: joined([*lines[:at], what, *lines[at:]]), places, st.sampled_from(garbage))
    glues = places.map(lambda at: joined([*lines[:at], b"".join(lines[at : at + 2]), *lines[at + 2 :]]))
    ends = st.sampled_from([data.replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + data, data.replace(b"\n", b"\r")])
    torn_ends = st.builds(lambda new, at: Damaged(name, new[: len(new) - at]), ends, st.integers(0, len(data)))
    return st.one_of(cuts, doubles, inserts, glues, torn_ends, *([swaps] if name in LOGS else []))


def flips(name: str) -> st.SearchStrategy[Damaged]:
    """Draw damage of a sample that may change an ID or a count."""
    data = SAMPLES[name]
    places = st.integers(0, len(data))
    holes = st.builds(lambda at, size: Damaged(name, data[:at] + data[at + size :]), places, st.integers(1, 400))
    swaps = st.builds(lambda lines: Damaged(name, b"\n".join(lines)), st.permutations(lines_of(data)))
    zeros = st.builds(
        lambda at, size: Damaged(name, data[:at] + bytes(size) + data[at + size :]), places, st.integers(1, 400)
    )
    one = st.tuples(st.integers(0, len(data) - 1), st.integers(0, 255))

    def flipped(changes: list[tuple[int, int]]) -> Damaged:
        new = bytearray(data)
        for at, byte in changes:
            new[at] = byte
        return Damaged(name, bytes(new))

    return st.one_of(st.lists(one, min_size=1, max_size=4).map(flipped), holes, zeros, swaps)


@pytest.mark.parametrize("name", SAMPLES)
def test_undamaged_file_has_no_problem(folder: Path, name: str) -> None:
    result = check(folder, Damaged(name, SAMPLES[name]))
    expected = ["split-by-newer-node"] if name == "l2-weird.jsonl" else []  # the output of a tool contains U+2028
    assert [problem.code for problem in result.reading.replay.problems] == expected
    assert result.reading.replay.is_readable
    assert result.messages


@pytest.mark.parametrize("name", SMALL)
def test_file_cut_at_any_byte_keeps_complete_messages(folder: Path, name: str) -> None:
    data = SAMPLES[name]
    usage = outcome(folder, Damaged(name, data)).usage
    for size in range(len(data)):
        assert check(folder, Damaged(name, data[:size])).usage.total <= usage.total


@pytest.mark.parametrize("name", SAMPLES)
@often
@given(st.data())
def test_structural_damage_keeps_complete_messages(folder: Path, name: str, data: st.DataObject) -> None:
    sound = outcome(folder, Damaged(name, SAMPLES[name]))
    result = check(folder, data.draw(damages(name)))
    assert result.reading.replay.calls.keys() <= sound.reading.replay.calls.keys()
    assert result.usage.total <= sound.usage.total


@pytest.mark.parametrize("name", SAMPLES)
@often
@given(st.data())
def test_flipped_bytes_raise_nothing(folder: Path, name: str, data: st.DataObject) -> None:
    check(folder, data.draw(flips(name)))


@pytest.mark.parametrize(
    "torn",
    [
        b'{"id":' * 100_000,
        b'{"id":"' * 100_000,
        b'{"id":[' * 100_000,
        b"[" * 1_000_000,
        b'{"$set":{"messages":[' + b'{"id":"a","type":"user"},' * 20_000,
        b'{"sessionId":' * 100_000,
        b'{"id":"a","content":"' + b"x" * 5_000_000,
        b"\\ud800" * 500_000,
        b"\xff" * 1_000_000,
    ],
    ids=lambda torn: repr(torn[:24]),
)
def test_long_torn_line_is_read_in_linear_time(folder: Path, torn: bytes) -> None:
    with cpu_seconds(5):
        result = outcome(folder, Damaged("torn.jsonl", log(header(), torn, user("u9"))))
    assert [problem.line for problem in result.reading.replay.problems] == [2]
    assert result.messages[-1].id == "u9"


@pytest.mark.parametrize("depth", [*range(920, 985, 4), 5000])
def test_nesting_of_any_depth_is_read(folder: Path, depth: int) -> None:
    deep = b"[" * depth + b"]" * depth
    message = line(user("u1", "deep", odd="deep")).replace(b'"odd":"deep"', b'"odd":' + deep)
    head = line(header(x="deep")).replace(b'"deep"', deep)
    for torn in (message, message[:-1], b"x" + message, head, head[:-1], b"x" + head):
        assert ids_of(put(folder / "deep.jsonl", log(header(), torn, user("u9"))))[-1] == "u9"
    content = document(user("u1", "deep", odd="deep"), user("u9"), x="deep")
    for data in (
        content.replace(b'"odd": "deep"', b'"odd": ' + deep),
        content.replace(b'"x": "deep"', b'"x": ' + deep),
    ):
        for torn in (data, data[:-2], data.replace(b"    },", b"    }x,", 1)):
            assert ids_of(put(folder / "deep.json", torn))[-1] == "u9"


def ids_of(path: Path) -> list[str]:
    return [message.id for message in grouping.open_file(path).messages()]


def test_numbers_of_any_size_are_read(folder: Path) -> None:
    digits = b"9" * 5000
    records = [line(header(x=77)), line(user("u1", "hello", x=77)), line(user("u2", "hello", x=77) | {"timestamp": 77})]
    for number in (digits, b"-" + digits, b"1e999", b"9" * 30, b"1." + digits):
        result = outcome(folder, Damaged("big.jsonl", b"\n".join(records).replace(b"77", number)))
        assert [message.text for message in result.messages] == ["hello", "hello"]
        codes = {(problem.code, problem.line) for problem in result.reading.replay.problems}
        assert codes <= {("bad-value", 3), ("value-out-of-range", None)}


def test_usage_is_the_same_in_any_order_of_lines(folder: Path) -> None:
    records = [
        user("u1"),
        *({"id": f"g{n}", "type": "gemini", "content": "", "tokens": tokens(n)} for n in range(1, 9)),
    ]
    ordered = outcome(folder, Damaged("order.jsonl", log(header(), *records, *records)))
    turned = outcome(folder, Damaged("order.jsonl", log(*reversed(records), header(), *records)))
    assert turned.usage == ordered.usage == sum((Tokens(n, 1, 2, 3, 0, n + 5) for n in range(1, 9)), Tokens())
