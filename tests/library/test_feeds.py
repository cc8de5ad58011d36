"""A session on a screen while it goes on: every block once, results when they come, nothing taken back."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests import builders
from tests.builders import call, gemini, header, log, notice, rewind, tokens, user

from pollux.library import feeds
from pollux.library.feeds import BlockFeed, MessageFeed
from pollux.model import Kind, Message
from pollux.sessions.grouping import OpenSession, open_readings
from pollux.sessions.replay import TimelineEntry, reading
from pollux.sessions.replay.reading import FileReading
from pollux.views.contracts import to_json
from pollux.views.transcript import Block, Branches, Detail, HiddenBlock, ToolBlock, TranscriptOptions


def group(folder: Path, *records: object) -> OpenSession:
    return open_readings("main", builders.SESSION, [builders.read_bytes(folder, log(header(), *records))])


def names(found: list[Block]) -> list[str]:
    return [_name(one) for one in found]


def _name(block: Block) -> str:
    match block:
        case HiddenBlock(text=words):
            return words
        case ToolBlock(status=status):
            return f"Tool {block.message_id} {status}"
        case _:
            return f"{type(block).__name__.removesuffix('Block')} {block.message_id}"


TURNS = [
    user("u1", "one"),
    gemini("g1", "first"),
    user("u2", "two"),
    gemini("g2", "second", toolCalls=[call("c1"), call("c2")]),
]


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (0, []),
        (1, ["Tool g2 success"]),
        (3, ["Answer g2", "Tool g2 success", "Tool g2 success"]),
        (5, ["Answer g1", "Prompt u2", "Answer g2", "Tool g2 success", "Tool g2 success"]),
        (9, ["Prompt u1", "Answer g1", "Prompt u2", "Answer g2", "Tool g2 success", "Tool g2 success"]),
    ],
)
def test_end_is_shown_first(tmp_path: Path, count: int, expected: list[str]) -> None:
    told = BlockFeed(TranscriptOptions())
    assert names(told.first(group(tmp_path, *TURNS), count)) == expected
    assert told.next(group(tmp_path, *TURNS)) == []
    assert names(told.next(group(tmp_path, *TURNS, user("u3", "three")))) == ["Prompt u3"]


def test_end_of_a_session_of_many_notices_is_found(tmp_path: Path) -> None:
    records = [user("u1", "one"), *(notice(f"i{number}", "", second=number) for number in range(50))]
    assert names(BlockFeed(TranscriptOptions()).first(group(tmp_path, *records), 3)) == ["Prompt u1"]


def test_beginning_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def whole(placed: FileReading, entry: TimelineEntry, *, shortened: bool) -> Message:
        read.append(entry.id)
        return reading.build_message(placed, entry, shortened=shortened)

    monkeypatch.setattr(feeds, "build_message", whole)
    records = [user(f"u{number}", str(number)) for number in range(100)]
    told = BlockFeed(TranscriptOptions())
    told.first(group(tmp_path, *records), 2)
    assert read == [f"u{number}" for number in range(95, 100)]
    assert names(told.next(group(tmp_path, *records, user("u5", "once more")))) == []
    assert names(told.next(group(tmp_path, *records, rewind("u90")))) == ["10 messages rewound"]


def test_call_is_shown_when_called_and_when_done(tmp_path: Path) -> None:
    told = BlockFeed(TranscriptOptions())
    asked = gemini("g1", "wait", toolCalls=[call("c1", status="executing", result=None)])
    assert names(told.first(group(tmp_path, user("u1"), asked), 9)) == ["Prompt u1", "Answer g1", "Tool g1 executing"]
    assert told.next(group(tmp_path, user("u1"), asked, asked | {"tokens": tokens()})) == []
    done = gemini("g1", "wait", toolCalls=[call("c1"), call("c2")])
    records = [user("u1"), asked, asked | {"tokens": tokens()}, done]
    assert names(told.next(group(tmp_path, *records))) == ["Tool g1 success", "Tool g1 success"]
    masked = gemini("g1", "wait", toolCalls=[call("c1", status="error"), call("c2")])
    assert told.next(group(tmp_path, *records, masked)) == []


def test_calls_without_ids_are_distinguished_by_their_order(tmp_path: Path) -> None:
    told = BlockFeed(TranscriptOptions())
    plain = call()
    del plain["id"]
    told.first(group(tmp_path, user("u1"), gemini("g1", toolCalls=[plain])), 9)
    records = [user("u1"), gemini("g1", toolCalls=[plain]), gemini("g1", toolCalls=[plain, plain])]
    assert names(told.next(group(tmp_path, *records))) == ["Tool g1 success"]


def test_dropped_messages_are_reported_in_a_line(tmp_path: Path) -> None:
    told = BlockFeed(TranscriptOptions())
    told.first(group(tmp_path, *TURNS), 1)
    records = [*TURNS, rewind("u2"), user("u3", "three")]
    assert names(told.next(group(tmp_path, *records))) == ["2 messages rewound", "Prompt u3"]
    assert told.next(group(tmp_path, *records)) == []
    again = [*records, TURNS[2]]
    assert told.next(group(tmp_path, *again)) == []  # back, and was shown


def test_messages_dropped_before_they_were_shown_are_reported_in_a_line(tmp_path: Path) -> None:
    told = BlockFeed(TranscriptOptions())
    told.first(group(tmp_path, *TURNS[:2]), 1)
    records = [*TURNS, rewind("u2")]
    assert names(told.next(group(tmp_path, *records))) == ["2 messages rewound"]
    assert told.next(group(tmp_path, *TURNS, gemini("g2", "x", tokens=tokens()), rewind("u2"))) == []


def test_all_branches_are_shown_if_wanted(tmp_path: Path) -> None:
    told = BlockFeed(TranscriptOptions(Detail.NORMAL, Branches.ALL))
    told.first(group(tmp_path, *TURNS[:2]), 1)
    records = [*TURNS, rewind("u2")]
    assert names(told.next(group(tmp_path, *records)))[:2] == ["Prompt u2", "Answer g2"]
    assert names(told.next(group(tmp_path, *records, rewind("u1")))) == ["2 messages rewound"]


def test_doubt_is_that_of_the_memory(tmp_path: Path) -> None:
    for told in (BlockFeed(TranscriptOptions()), MessageFeed()):
        told.first(group(tmp_path, *TURNS), 1)
        assert not told.is_in_doubt(group(tmp_path, *TURNS))
        assert told.is_in_doubt(group(tmp_path, *TURNS, user("u9", "one")))


def test_rows_come_again_when_they_change(tmp_path: Path) -> None:
    told = MessageFeed()
    assert [row.message.id for row in told.first(group(tmp_path, *TURNS), 2)] == ["u2", "g2"]
    (document,) = told.next(group(tmp_path, *TURNS, gemini("g1", "first", tokens=tokens())))
    row = to_json(document)
    assert (row["schema"], row["session"], row["id"]) == ("pollux.message/1", builders.SESSION, "g1")
    assert (row["kind"], row["tokens"]) == (Kind.GEMINI, {**tokens(), "total": 15})
    assert MessageFeed().first(group(tmp_path, *TURNS), 0) == []
    assert len(MessageFeed().first(group(tmp_path, *TURNS), 99)) == 4
