"""A session followed while it grows reports the same events as an export afterwards, whenever it is read."""

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
from tests.growth import EVERYTHING, Events, Follower, exported, grow, session_of

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


def client_file_name(content: bytes) -> str:
    """Return the name that the client gives to a file of this content."""
    return f"session-2026-11-15T19-30-{session_of(content, 'nobody').id[:8]}.jsonl"


def comparable_events(events: Events) -> Events:
    """Return the events without those that only a live stream or only a finished export has."""
    return [without_fate(event) for event in events if event["type"] not in ("fate", "session_end")]


def without_fate(event: dict[str, Any]) -> dict[str, Any]:
    metadata = {key: value for key, value in event["metadata"].items() if key not in ("fate", "origin")}
    of_start = {"timestamp": None} if event["type"] == "session_start" else {}  # the last of several headers counts
    return {**event, "metadata": metadata, "cwd": None, **of_start}


def final_fates(events: Events) -> dict[str, str]:
    """Return the final fate of each event, by its ID: its own, unless a later event changes it."""
    by_message: dict[str, str] = {}
    final_fates = {}
    for event in events:
        if event["type"] == "fate":
            by_message[event["metadata"]["message_id"]] = event["metadata"]["fate"]
        elif "fate" in event["metadata"]:
            final_fates[event["id"]] = event["metadata"]["fate"]
    owner = {event["id"]: event["metadata"].get("message_id", event["id"].partition("/")[0]) for event in events}
    return {id_: by_message.get(owner[id_], fate) for id_, fate in final_fates.items()}


@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
@pytest.mark.parametrize("file", LOGS, ids=lambda file: file.stem)
def test_live_events_equal_an_export_wherever_the_file_is_cut(file: Path, data: st.DataObject) -> None:
    content = file.read_bytes()
    cuts = data.draw(st.lists(st.integers(0, len(content)), max_size=12))
    include = data.draw(st.sampled_from([frozenset[str](), EVERYTHING]))
    with tempfile.TemporaryDirectory() as folder:
        events = grow(Path(folder), client_file_name(content), content, cuts, include)
        assert comparable_events(events) == comparable_events(exported(Path(folder), include))
        assert len({event["id"] for event in events}) == len(events)


@pytest.mark.parametrize("file", LOGS, ids=lambda file: file.stem)
def test_live_events_and_fates_equal_an_export_line_by_line(tmp_path: Path, file: Path) -> None:
    content = file.read_bytes()
    cuts = [end for end in range(1, len(content)) if content[end - 1 : end] == b"\n"]
    events = grow(tmp_path, client_file_name(content), content, cuts, EVERYTHING)
    final = exported(tmp_path, EVERYTHING)
    assert comparable_events(events) == comparable_events(final)
    assert final_fates(events) == final_fates(final)


@each_release
def test_live_events_of_the_corpus_equal_an_export(tmp_path: Path, trees: list[Tree]) -> None:
    logs = [
        file for tree in trees for file in tree.files if file.suffix == ".jsonl" and file.name.startswith("session")
    ]
    if not logs:
        pytest.skip("this release wrote no logs")
    for number, file in enumerate(logs):
        content, end, _ = file.read_bytes().rpartition(b"\n")  # the follower waits for the rest of a torn line
        content += end
        ends = [end for end in range(1, len(content)) if content[end - 1 : end] == b"\n"]
        root = tmp_path / str(number)
        events = grow(root, client_file_name(content), content, ends[:: 1 + len(ends) // 60], EVERYTHING)
        assert comparable_events(events) == comparable_events(exported(root, EVERYTHING)), file


# Changes to the files of a followed session, one by one


@pytest.fixture
def follower(tmp_path: Path) -> Follower:
    return Follower(tmp_path, SESSION, EVERYTHING - {"notices"})


def write(follower: Follower, *records: object, name: str = NAME) -> Path:
    return builders.put(builders.chats(follower.root) / name, log(*records))


def append(path: Path, *records: object) -> None:
    with path.open("ab") as stream:
        stream.write(log(*records))


def event_pairs(events: Events) -> list[tuple[str, str]]:
    return [(event["type"], event.get("message") or event["id"]) for event in events]


def test_torn_line_is_reported_when_it_is_complete(follower: Follower) -> None:
    path = write(follower, header(), user("u1", "one"))
    assert event_pairs(follower.look()) == [("session_start", f"{builders.SESSION}/start"), ("user_prompt", "one")]
    torn = builders.line(gemini("g1", "two", toolCalls=[call("c1")]))
    for cut in range(1, len(torn), 7):
        path.write_bytes(log(header(), user("u1", "one")) + torn[:cut])
        assert follower.look() == []
    path.write_bytes(log(header(), user("u1", "one")) + torn)
    assert [type_ for type_, _ in event_pairs(follower.look())] == ["text", "tool_use", "tool_result"]
    append(path, b"", user("u2", "three"))
    assert event_pairs(follower.look()) == [("user_prompt", "three")]
    assert follower.look() == []


def test_file_without_a_complete_line_reports_nothing(follower: Follower) -> None:
    path = builders.put(builders.chats(follower.root) / NAME, b"")
    assert follower.look() == []
    path.write_bytes(builders.line(header())[:40])
    assert follower.look() == []
    path.write_bytes(log(header(), user("u1", "one")))
    assert len(follower.look()) == 2


def test_later_results_are_reported_when_they_arrive(follower: Follower) -> None:
    asked = gemini("g1", "", tokens=tokens())
    path = write(follower, header(), user("u1"), asked)
    assert [type_ for type_, _ in event_pairs(follower.look())] == ["session_start", "user_prompt", "usage"]
    append(path, asked | {"toolCalls": [call("c1", status="executing", result=None)]})
    assert event_pairs(follower.look()) == [("tool_use", "c1")]
    append(path, user("u2", "hurry up", second=5), asked | {"toolCalls": [call("c1")]})
    assert event_pairs(follower.look()) == [("tool_result", "c1/result"), ("user_prompt", "hurry up")]
    append(path, asked | {"toolCalls": [call("c1"), call("c2")]})
    assert event_pairs(follower.look()) == [("tool_use", "c2"), ("tool_result", "c2/result")]


def test_rewind_reports_changed_fates(follower: Follower) -> None:
    path = write(follower, header(), user("u1", "one"), gemini("g1", "first"), user("u2", "two"))
    follower.look()
    append(path, rewind("g1"))
    events = follower.look()
    assert [(event["type"], event["metadata"]["message_id"], event["metadata"]["fate"]) for event in events] == [
        ("fate", "g1", "rewound"),
        ("fate", "u2", "rewound"),
    ]
    append(path, user("u3", "three"), checkpoint(user("u1", "one"), gemini("g1", "first"), user("u3", "three")))
    assert [(event["type"], event["id"]) for event in follower.look()] == [("fate", "g1/fate/2"), ("user_prompt", "u3")]


def test_rewind_reports_nothing_unless_fates_are_included(tmp_path: Path) -> None:
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
    assert [type_ for type_, _ in event_pairs(follower.look())] == ["user_prompt", "text", "usage"]


def test_log_that_resumes_a_document_reports_only_new_messages(follower: Follower) -> None:
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


@pytest.mark.parametrize("n_bytes", [0, 1, 200, 500])
def test_half_written_document_is_reported_when_it_is_complete(follower: Follower, n_bytes: int) -> None:
    path = builders.chats(follower.root) / f"{builders.NAME}.json"
    builders.put(path, builders.document(user("u1", "one")))
    assert len(follower.look()) == 2
    document = builders.document(user("u1", "one"), gemini("g1", "first"), user("u2", "two"))
    path.write_bytes(document[:n_bytes])
    assert follower.look() == []
    path.write_bytes(document)
    assert event_pairs(follower.look()) == [("text", "first"), ("user_prompt", "two")]


def test_document_that_stays_broken_is_reported_after_five_seconds(follower: Follower) -> None:
    path = builders.chats(follower.root) / f"{builders.NAME}.json"
    builders.put(path, builders.document(user("u1", "one"), user("u2", "two"))[:-60])
    assert follower.look() == []
    os.utime(path, (time.time() - 5, time.time() - 5))
    assert event_pairs(follower.look()) == [("session_start", f"{builders.SESSION}/start"), ("user_prompt", "one")]


def test_replaced_file_reports_only_new_messages(follower: Follower) -> None:
    path = write(follower, header(), user("u1", "one"), user("u2", "two"))
    follower.look()
    path.unlink()
    assert follower.look() == []
    path.write_bytes(log(user("u3", "three")))  # without a header, but the name contains the ID
    events = follower.look()
    assert event_pairs(events) == [("user_prompt", "three")]
    assert (events[0]["session_id"], events[0]["metadata"]["content_index"]) == (builders.SESSION, 2)
    path.write_bytes(log(header(), user("u1", "one"), user("u2", "two"), user("u3", "three"), user("u4", "four")))
    assert event_pairs(follower.look()) == [("user_prompt", "four")]
    path.write_bytes(log(header(), user("u1", "one")))
    assert follower.look() == []


def test_only_new_lines_of_a_log_are_read(follower: Follower, monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert event_pairs(follower.look()) == [("user_prompt", "four")]  # the file was replaced
    assert lines[5:] == [1, 2, 3, 4, 5, 6]
    write(follower, header(), name=NAME.replace("19-30", "19-31"))
    assert follower.look() == []
    assert lines[11:] == [1]


def test_complete_line_is_reported_once_before_its_newline(follower: Follower) -> None:
    path = write(follower, header(), user("u1", "one"))
    last = builders.line(user("u2", "two"))
    path.write_bytes(path.read_bytes() + last)
    assert [text for _, text in event_pairs(follower.look())][1:] == ["one", "two"]
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
    expected = exported(tmp_path)
    (main,) = {event["session_id"] for event in expected if "parent_session_id" not in event["metadata"]} - {
        event["session_id"] for event in expected if "parent_session_id" in event["metadata"]
    }
    shutil.rmtree(tmp_path / ".gemini" / "tmp" / "webapp" / "chats")
    follower = Follower(tmp_path, Session(main, "main", Project()))
    files = sorted(tree.glob("tmp/webapp/chats/**/*.jsonl"), key=lambda file: -len(file.parts))
    for file in files:  # the file of the main session comes last
        builders.put(tmp_path / ".gemini" / file.relative_to(tree), file.read_bytes())
        follower.look()
    by_session: dict[str, Events] = {event["session_id"]: [] for event in expected}
    for event in follower.reported:
        by_session[event["session_id"]].append(without_fate(event))
    assert len(by_session) == 4
    for session_id, events in by_session.items():
        own = [event for event in expected if event["session_id"] == session_id]
        assert events == comparable_events(own)
    uses = [event for event in follower.reported if "agent_session_id" in event["metadata"]]
    assert {event["metadata"]["agent_session_id"] for event in uses} == by_session.keys() - {main}


def test_named_file_is_followed_outside_a_home(tmp_path: Path) -> None:
    path = builders.put(tmp_path / "copy of a session.jsonl", log(header(), user("u1", "one")))
    live = LiveSession(SESSION, {}, clock=utc_now)
    ((session, group),) = live.look_at(path)
    assert (session.id, session.first_prompt, [message.text for message in group.messages()]) == (
        SESSION.id,
        "one",
        ["one"],
    )
    assert live.look_at(path) == []
    append(path, user("u2", "two"))
    ((_, group),) = live.look_at(path)
    assert [message.text for message in group.messages()] == ["one", "two"]
    path.write_bytes(b"")
    assert live.look_at(path) == []
    path.unlink()
    assert live.look_at(path) == []


def test_file_deleted_before_reading_is_skipped(tmp_path: Path) -> None:
    path = builders.put(builders.chats(tmp_path) / NAME, log(header(), user("u1", "one")))
    files = list(locate([builders.home(tmp_path)]).files)
    path.unlink()
    assert LiveSession(SESSION, {}, clock=utc_now).look(files) == []
