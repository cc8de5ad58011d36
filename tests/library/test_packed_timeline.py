"""An open session is held as numbers and packed blocks; only what is shown is unpacked."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from tests.builders import SESSION, asks, chats, gemini, header, log, notice, put, rewind, tokens, user
from tests.web.homes import hostile_home, long_home

from pollux.library.config import configure
from pollux.library.find_in_session import find_in_session
from pollux.library.library import Library
from pollux.library.packed_timeline import BLOCK, UNPACKED, PackedTimeline, UsageById
from pollux.library.windows import OpenConversation
from pollux.model import Cost, Tokens, Usage
from pollux.sessions.grouping import OpenSession
from pollux.sessions.reader import from_file
from pollux.sessions.replay.reading import build_message
from pollux.views.transcript import TranscriptOptions

N_TURNS = 300


def opened(home: Path) -> OpenSession:
    """Open the largest session file of a home, without an archive."""
    path = max(home.rglob("chats/*.jsonl"), key=lambda file: file.stat().st_size)
    return from_file(path)[1]


@pytest.fixture
def long_conversation(tmp_path: Path) -> OpenConversation:
    config = configure(named_homes=[long_home(tmp_path / "home", N_TURNS)], archive=tmp_path / "archive.db")
    with Library(config) as library:
        return library.conversation(library.session(SESSION))


@pytest.mark.parametrize("write", [long_home, hostile_home])
def test_messages_are_those_of_the_open_session(tmp_path: Path, write: object) -> None:
    home = write(tmp_path)  # type: ignore[operator]
    group = opened(home)
    packed = PackedTimeline(group, {})
    assert len(packed) == len(group.timeline)
    expected = [*group.messages()]
    assert [build_message(reading, entry) for reading, entry in packed.entries()] == expected
    assert packed.fates() == [message.fate for message in expected]
    assert [packed.at(place) for place in range(len(packed))] == [message.at for message in expected]
    prompts = [place for place in range(len(packed)) if packed.is_prompt(place)]
    assert list(packed.prompts) == prompts
    assert [packed.is_error(place) for place in range(len(packed))] == [m.kind == "error" for m in expected]


def test_calls_without_a_record_still_have_their_response(tmp_path: Path) -> None:
    """Such calls are rebuilt from the message that answers them, which is anywhere in the file."""
    part = {"functionResponse": {"id": "c1", "name": "read_file", "response": {"output": "its text"}}}
    records = (user("u1", "read it"), gemini("g1", [{"text": "now"}, asks("c1")]), user("r1", [part]), user("u2", "ok"))
    put(chats(tmp_path) / "session-2026-11-15T19-30-6ece72aa.jsonl", log(header(), *records))
    group = opened(tmp_path)
    packed = PackedTimeline(group, {})
    (call,) = build_message(*packed.entry(1)).tool_calls
    assert call.output == "its text"
    assert not packed.readings[0].replay.timeline


def test_whole_session_is_opened_without_unpacking_a_message(long_conversation: OpenConversation) -> None:
    timeline = long_conversation.timeline
    long_conversation.windows()
    assert len([*long_conversation.moments()]) == 3 * N_TURNS + 1
    assert len(long_conversation.outline()) == long_conversation.n_prompts == N_TURNS + 1
    long_conversation.fates()
    long_conversation.last_turn(600)
    assert timeline.n_unpacked == 0


def test_window_unpacks_only_its_blocks(long_conversation: OpenConversation) -> None:
    window = long_conversation.window_of(600)
    assert [*long_conversation.blocks(TranscriptOptions(), window)]
    assert long_conversation.usage_by_message(long_conversation.session, window)
    assert long_conversation.timeline.n_unpacked <= window.stop - window.start + 2 * BLOCK


def test_find_unpacks_only_messages_whose_bytes_match(long_conversation: OpenConversation) -> None:
    assert find_in_session(long_conversation, "needle299").at == (4 * N_TURNS + 2,)
    assert long_conversation.timeline.n_unpacked <= BLOCK


def test_few_messages_stay_unpacked(long_conversation: OpenConversation) -> None:
    timeline = long_conversation.timeline
    assert len([*timeline.entries()]) == timeline.n_unpacked == 4 * N_TURNS + 2
    assert timeline.held <= BLOCK * UNPACKED
    assert not long_conversation.session.calls


def test_usage_of_each_message_is_kept_to_the_last_digit(tmp_path: Path) -> None:
    records = [user("u1", "hi"), gemini("g1", "a", tokens=tokens(5)), notice("n1", "x"), gemini("g2", "b")]
    put(chats(tmp_path) / "session-2026-11-15T19-30-6ece72aa.jsonl", log(header(), *records, rewind("g2")))
    small = Usage(2, Tokens(5, 4, 3, 2, 1, 11), Cost(7, 1, Tokens(1)), inconsistent=1)
    large = Usage(1, Tokens(1 << 62), Cost(1 << 70))
    usages = {"g1": small, "g2": large, "elsewhere": small}
    assert dict(UsageById(usages)) == usages
    packed = PackedTimeline(opened(tmp_path), UsageById(usages))
    assert [packed.usage(place) for place in range(len(packed))] == [None, small, None, large]
    assert [*packed.usages()] == [(1, small), (3, large)]
    assert msgspec.structs.asdict(small) == msgspec.structs.asdict(packed.usage(1) or Usage())
