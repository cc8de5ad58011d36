"""A session that is followed while it grows tells just what it tells afterwards, wherever the looks fall."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests import builders
from tests.builders import call, checkpoint, gemini, header, log, preamble, rewind, tokens, user
from tests.corpus.trees import Tree, each_release
from tests.growth import EVERYTHING, Follower, Told, exported, grow, session_of

from pollux.formats import log as log_format
from pollux.formats.operations import Operation
from pollux.formats.source import Line
from pollux.library.config import utc_now
from pollux.model import Project, Session
from pollux.sessions.live import LiveSession
from pollux.sessions.locate import locate

DATA = Path(__file__).parents[1] / "data"
LOGS = sorted({*DATA.glob("damage/l*[!t].jsonl"), *DATA.glob("corpus/0.61.0/*/gemini/tmp/webapp/chats/*.jsonl")})
SESSION = Session(builders.SESSION, "main", Project())
NAME = f"{builders.NAME}.jsonl"


def name_of(content: bytes) -> str:
    """Name a file as the client does."""
    return f"session-2026-11-15T19-30-{session_of(content, 'nobody').id[:8]}.jsonl"


def sort_out(told: Told) -> Told:
    """Leave out what only a live stream has, and what is known only in the end."""
    return [plain(event) for event in told if event["type"] not in ("fate", "session_end")]


def plain(event: dict[str, Any]) -> dict[str, Any]:
    metadata = {key: value for key, value in event["metadata"].items() if key not in ("fate", "origin")}
    of_start = {"timestamp": None} if event["type"] == "session_start" else {}  # of several headers the last counts
    return {**event, "metadata": metadata, "cwd": None, **of_start}


def fates(told: Told) -> dict[str, str]:
    """Return the last word on each event: what it came with, unless a later one says otherwise."""
    by_message: dict[str, str] = {}
    found = {}
    for event in told:
        if event["type"] == "fate":
            by_message[event["metadata"]["message_id"]] = event["metadata"]["fate"]
        elif "fate" in event["metadata"]:
            found[event["id"]] = event["metadata"]["fate"]
    owner = {one["id"]: one["metadata"].get("message_id", one["id"].partition("/")[0]) for one in told}
    return {id_: by_message.get(owner[id_], fate) for id_, fate in found.items()}


@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
@pytest.mark.parametrize("file", LOGS, ids=lambda file: file.stem)
def test_whatever_the_looks_the_events_are_the_same(file: Path, data: st.DataObject) -> None:
    content = file.read_bytes()
    cuts = data.draw(st.lists(st.integers(0, len(content)), max_size=12))
    include = data.draw(st.sampled_from([frozenset[str](), EVERYTHING]))
    with tempfile.TemporaryDirectory() as folder:
        told = grow(Path(folder), name_of(content), content, cuts, include)
        assert sort_out(told) == sort_out(exported(Path(folder), include))
        assert len({event["id"] for event in told}) == len(told)


@pytest.mark.parametrize("file", LOGS, ids=lambda file: file.stem)
def test_line_by_line(tmp_path: Path, file: Path) -> None:
    content = file.read_bytes()
    cuts = [end for end in range(1, len(content)) if content[end - 1 : end] == b"\n"]
    told = grow(tmp_path, name_of(content), content, cuts, EVERYTHING)
    final = exported(tmp_path, EVERYTHING)
    assert sort_out(told) == sort_out(final)
    assert fates(told) == fates(final)


@each_release
def test_every_log_of_the_corpus_line_by_line(tmp_path: Path, trees: list[Tree]) -> None:
    logs = [
        file for tree in trees for file in tree.files if file.suffix == ".jsonl" and file.name.startswith("session")
    ]
    if not logs:
        pytest.skip("a release that wrote no logs")
    for number, file in enumerate(logs):
        content, end, _ = file.read_bytes().rpartition(b"\n")  # a torn line at the end is waited for
        content += end
        ends = [end for end in range(1, len(content)) if content[end - 1 : end] == b"\n"]
        root = tmp_path / str(number)
        told = grow(root, name_of(content), content, ends[:: 1 + len(ends) // 60], EVERYTHING)
        assert sort_out(told) == sort_out(exported(root, EVERYTHING)), file


# One by one: what may happen to the files of a session that somebody follows.


@pytest.fixture
def follower(tmp_path: Path) -> Follower:
    return Follower(tmp_path, SESSION, EVERYTHING - {"notices"})


def write(follower: Follower, *records: object, name: str = NAME) -> Path:
    return builders.put(builders.chats(follower.root) / name, log(*records))


def append(path: Path, *records: object) -> None:
    with path.open("ab") as stream:
        stream.write(log(*records))


def event_pairs(events: Told) -> list[tuple[str, str]]:
    return [(event["type"], event.get("message") or event["id"]) for event in events]


def test_torn_line_is_waited_for(follower: Follower) -> None:
    path = write(follower, header(), user("u1", "one"))
    assert event_pairs(follower.look()) == [("session_start", f"{builders.SESSION}/start"), ("user_prompt", "one")]
    torn = builders.line(gemini("g1", "two", toolCalls=[call("c1")]))
    for cut in range(1, len(torn), 7):
        path.write_bytes(log(header(), user("u1", "one")) + torn[:cut])
        assert follower.look() == []
    path.write_bytes(log(header(), user("u1", "one")) + torn)
    assert [one for one, _ in event_pairs(follower.look())] == ["text", "tool_use", "tool_result"]
    append(path, b"", user("u2", "three"))
    assert event_pairs(follower.look()) == [("user_prompt", "three")]
    assert follower.look() == []


def test_nothing_whole_is_no_session_yet(follower: Follower) -> None:
    path = builders.put(builders.chats(follower.root) / NAME, b"")
    assert follower.look() == []
    path.write_bytes(builders.line(header())[:40])
    assert follower.look() == []
    path.write_bytes(log(header(), user("u1", "one")))
    assert len(follower.look()) == 2


def test_later_results_are_reported_when_they_arrive(follower: Follower) -> None:
    asked = gemini("g1", "", tokens=tokens())
    path = write(follower, header(), user("u1"), asked)
    assert [one for one, _ in event_pairs(follower.look())] == ["session_start", "user_prompt", "usage"]
    append(path, asked | {"toolCalls": [call("c1", status="executing", result=None)]})
    assert event_pairs(follower.look()) == [("tool_use", "c1")]
    append(path, user("u2", "hurry up", second=5), asked | {"toolCalls": [call("c1")]})
    assert event_pairs(follower.look()) == [("tool_result", "c1/result"), ("user_prompt", "hurry up")]
    append(path, asked | {"toolCalls": [call("c1"), call("c2")]})
    assert event_pairs(follower.look()) == [("tool_use", "c2"), ("tool_result", "c2/result")]


def test_rewind_takes_nothing_back(follower: Follower) -> None:
    path = write(follower, header(), user("u1", "one"), gemini("g1", "first"), user("u2", "two"))
    follower.look()
    append(path, rewind("g1"))
    events = follower.look()
    assert [(one["type"], one["metadata"]["message_id"], one["metadata"]["fate"]) for one in events] == [
        ("fate", "g1", "rewound"),
        ("fate", "u2", "rewound"),
    ]
    append(path, user("u3", "three"), checkpoint(user("u1", "one"), gemini("g1", "first"), user("u3", "three")))
    assert [(one["type"], one["id"]) for one in follower.look()] == [("fate", "g1/fate/2"), ("user_prompt", "u3")]


def test_without_fates_a_rewind_is_silent(tmp_path: Path) -> None:
    follower = Follower(tmp_path, SESSION)
    path = write(follower, header(), user("u1", "one"))
    follower.look()
    append(path, rewind("u1"))
    assert follower.look() == []


def test_rewritten_history_is_not_reported_again(follower: Follower) -> None:
    turns = [preamble(), user("u1", "one"), gemini("g1", "first", tokens=tokens())]
    path = write(follower, header(), checkpoint(turns[0]), *turns[1:])
    follower.look()
    fused = preamble(id="x1", content=[*preamble()["content"], {"text": "one"}])
    again = [fused, gemini("x2", [{"text": "first"}], model=None)]
    append(path, again[0])
    assert follower.look() == []
    append(path, again[1], checkpoint(*again))
    assert follower.look() == []
    append(path, user("u2", "two"))
    assert event_pairs(follower.look()) == [("user_prompt", "two")]


def test_repeated_prompt_is_reported_when_it_is_answered(follower: Follower) -> None:
    path = write(follower, header(), user("u1", "go on"), gemini("g1", "yes", tokens=tokens()))
    follower.look()
    append(path, user("u2", "go on"))
    assert follower.look() == []
    assert event_pairs(follower.look(is_patient=False)) == []  # nothing has changed since
    append(path, gemini("g2", "again", tokens=tokens(20)))
    assert [one for one, _ in event_pairs(follower.look())] == ["user_prompt", "text", "usage"]


def test_resumed_document_goes_on_in_a_log(follower: Follower) -> None:
    old = [user("u1", "one"), gemini("g1", "first")]
    builders.put(builders.chats(follower.root) / f"{builders.NAME}.json", builders.document(*old))
    assert len(follower.look()) == 3
    path = write(follower, header(), old[0])
    assert follower.look() == []
    append(path, old[1], user("u2", "two", second=9))
    assert event_pairs(follower.look()) == [("user_prompt", "two")]
    stub = NAME.replace("19-30", "19-45")
    write(follower, header(), checkpoint(preamble()), name=stub)
    assert follower.look() == []


@pytest.mark.parametrize("half", [0, 1, 200, 500])
def test_half_written_document_is_waited_for(follower: Follower, half: int) -> None:
    path = builders.chats(follower.root) / f"{builders.NAME}.json"
    builders.put(path, builders.document(user("u1", "one")))
    assert len(follower.look()) == 2
    whole = builders.document(user("u1", "one"), gemini("g1", "first"), user("u2", "two"))
    path.write_bytes(whole[:half])
    assert follower.look() == []
    path.write_bytes(whole)
    assert event_pairs(follower.look()) == [("text", "first"), ("user_prompt", "two")]


def test_broken_document_is_taken_for_what_it_is_in_the_end(follower: Follower) -> None:
    path = builders.chats(follower.root) / f"{builders.NAME}.json"
    builders.put(path, builders.document(user("u1", "one"), user("u2", "two"))[:-60])
    assert follower.look() == []
    os.utime(path, (time.time() - 5, time.time() - 5))
    assert event_pairs(follower.look()) == [("session_start", f"{builders.SESSION}/start"), ("user_prompt", "one")]


def test_file_in_the_place_of_another_tells_what_is_new(follower: Follower) -> None:
    path = write(follower, header(), user("u1", "one"), user("u2", "two"))
    follower.look()
    path.unlink()
    assert follower.look() == []
    path.write_bytes(log(user("u3", "three")))  # the client has lost its header, and we know whose it is
    events = follower.look()
    assert event_pairs(events) == [("user_prompt", "three")]
    assert (events[0]["session_id"], events[0]["metadata"]["content_index"]) == (builders.SESSION, 2)
    path.write_bytes(log(header(), user("u1", "one"), user("u2", "two"), user("u3", "three"), user("u4", "four")))
    assert event_pairs(follower.look()) == [("user_prompt", "four")]
    path.write_bytes(log(header(), user("u1", "one")))
    assert follower.look() == []


def test_log_is_read_on_from_where_it_was_left(follower: Follower, monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[int] = []
    operations = log_format.operations

    def counted(line: Line, path: Path) -> list[Operation]:
        lines.append(line.number)
        return operations(line, path)

    monkeypatch.setattr(log_format, "operations", counted)
    path = write(follower, header(), user("u0", "nothing"))
    follower.look()
    for number in range(1, 4):
        append(path, user(f"u{number}", f"number {number}"))
        assert event_pairs(follower.look()) == [("user_prompt", f"number {number}")]
    assert lines == [1, 2, 3, 4, 5]
    path.write_bytes(path.read_bytes().replace(b"nothing", b"another") + log(user("u4", "four")))
    assert event_pairs(follower.look()) == [("user_prompt", "four")]  # not the file that it was
    assert lines[5:] == [1, 2, 3, 4, 5, 6]
    write(follower, header(), name=NAME.replace("19-30", "19-31"))
    assert follower.look() == []
    assert lines[11:] == [1]


def test_end_of_a_line_may_come_later_than_the_line(follower: Follower) -> None:
    path = write(follower, header(), user("u1", "one"))
    last = builders.line(user("u2", "two"))
    path.write_bytes(path.read_bytes() + last)
    assert [one for _, one in event_pairs(follower.look())][1:] == ["one", "two"]
    append(path, b"")
    assert follower.look() == []
    append(path, user("u3", "three"))
    assert event_pairs(follower.look()) == [("user_prompt", "three")]
    path.write_bytes(path.read_bytes() + builders.line(user("u4", "four")))
    assert event_pairs(follower.look()) == [("user_prompt", "four")]
    path.write_bytes(path.read_bytes() + log(user("u5", "glued to it")))
    assert event_pairs(follower.look()) == [("user_prompt", "glued to it")]


def test_subagents_are_reported_with_their_session(tmp_path: Path) -> None:
    tree = DATA / "corpus" / "0.61.0" / "i-subagent" / "gemini"
    shutil.copytree(tree, tmp_path / ".gemini")
    found = exported(tmp_path)
    (main,) = {event["session_id"] for event in found if "parent_session_id" not in event["metadata"]} - {
        event["session_id"] for event in found if "parent_session_id" in event["metadata"]
    }
    shutil.rmtree(tmp_path / ".gemini" / "tmp" / "webapp" / "chats")
    follower = Follower(tmp_path, Session(main, "main", Project()))
    files = sorted(tree.glob("tmp/webapp/chats/**/*.jsonl"), key=lambda file: -len(file.parts))
    for file in files:  # the session itself is written to at last
        builders.put(tmp_path / ".gemini" / file.relative_to(tree), file.read_bytes())
        follower.look()
    by_session: dict[str, Told] = {event["session_id"]: [] for event in found}
    for event in follower.told:
        by_session[event["session_id"]].append(plain(event))
    assert len(by_session) == 4
    for session_id, events in by_session.items():
        own = [event for event in found if event["session_id"] == session_id]
        assert events == sort_out(own)
    uses = [event for event in follower.told if "agent_session_id" in event["metadata"]]
    assert {event["metadata"]["agent_session_id"] for event in uses} == by_session.keys() - {main}


def test_file_that_was_named_is_followed_wherever_it_is(tmp_path: Path) -> None:
    path = builders.put(tmp_path / "copy of a session.jsonl", log(header(), user("u1", "one")))
    live = LiveSession(SESSION, {}, clock=utc_now)
    ((session, group),) = live.look_at(path)
    assert (session.id, session.first_prompt, [one.text for one in group.messages()]) == (SESSION.id, "one", ["one"])
    assert live.look_at(path) == []
    append(path, user("u2", "two"))
    ((_, group),) = live.look_at(path)
    assert [one.text for one in group.messages()] == ["one", "two"]
    path.write_bytes(b"")
    assert live.look_at(path) == []
    path.unlink()
    assert live.look_at(path) == []


def test_file_that_goes_while_it_is_looked_at_is_passed_over(tmp_path: Path) -> None:
    path = builders.put(builders.chats(tmp_path) / NAME, log(header(), user("u1", "one")))
    files = list(locate([builders.home(tmp_path)]).files)
    path.unlink()
    assert LiveSession(SESSION, {}, clock=utc_now).look(files) == []
