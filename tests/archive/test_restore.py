from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests import builders
from tests.builders import NAME, ROOT, SESSION, gemini, header, line, log, preamble, put, updates, user
from tests.corpus.trees import tree_of
from tests.refreshing import refresh

from pollux.archive import foreign, open_session, restore, store
from pollux.archive.import_archive import import_archive
from pollux.archive.restore import WritePlan
from pollux.archive.store import Archive, open_archive
from pollux.disk.write import CollisionError, RestoreError
from pollux.formats.log import SEPARATORS
from pollux.model import Origin, Session
from pollux.sessions.client_settings import retention_policy
from pollux.sessions.locate import Home, locate
from pollux.sessions.replay.reading import read
from pollux.sessions.retention import cleanup_file_from_reading, forecast_deletions
from pollux.text.times import client_timestamp

NOW = datetime(2026, 12, 31, 8, tzinfo=UTC)
UPDATE = line(updates(lastUpdated=client_timestamp(NOW))) + b"\n"
NEW = "0f0e0d0c-0b0a-4908-8706-050403020100"
AGENT = "0c1d2e3f-4a5b-4c6d-8e7f-901234567890"
LOG = log(header(), preamble(), user(), gemini(), user("u2", "and then?"), gemini("g2", "that is all"))
MAIN = f"tmp/webapp/chats/{NAME}.jsonl"
BACK = f"tmp/webapp/chats/{NAME}-pc632d72.jsonl"
"""The path of the restored file."""
BACK_WITH_NEW_ID = "tmp/webapp/chats/session-2026-11-15T19-30-0f0e0d0c-pfdd5f4f.jsonl"


class ArchivedHome:
    """A home and its archive, with functions that change the home as the client does."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = builders.home(root)
        self.archive: Archive = open_archive(root / "archive.db")
        builders.chats(root)  # the marker

    def put(self, path: str, data: bytes) -> None:
        put(self.home.root / path, data)

    def sync(self) -> None:
        refresh(self.archive, [self.home])

    def delete_files(self, folder: str = "tmp/webapp") -> dict[str, bytes]:
        """Archive all files, then delete all but the marker, and return the deleted ones."""
        self.sync()
        before = self.tree()
        for path in self.home.root.joinpath(folder).iterdir():
            if path.name != ".project_root":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        self.sync()
        return before

    def session(self, id_: str = SESSION) -> Session:
        history = open_session.history(self.archive.database, refresh(self.archive, [self.home]).located)
        return next(session for session in history.sessions if session.id == id_)

    def plan(self, id_: str = SESSION, **more: Any) -> WritePlan:  # noqa: ANN401  options of `restore.plan`
        return restore.plan(self.archive.database, self.session(id_), [self.home], now=NOW, **more)

    def restore(self, id_: str = SESSION, **more: Any) -> WritePlan:  # noqa: ANN401
        plan = self.plan(id_, **more)
        restore.write_plan(plan)
        return plan

    def tree(self, home: Home | None = None) -> dict[str, bytes]:
        root = (home or self.home).root
        return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}

    def read(self, path: str = BACK) -> bytes:
        return (self.home.root / path).read_bytes()


@pytest.fixture
def archived(tmp_path: Path) -> Iterator[ArchivedHome]:
    opened = ArchivedHome(tmp_path)
    yield opened
    opened.archive.close()


def put_session(archived: ArchivedHome) -> None:
    """Write a session with each kind of file that may belong to it."""
    archived.put(MAIN, LOG)
    archived.put(
        f"tmp/webapp/chats/{SESSION}/{AGENT}.jsonl", log(header(AGENT, kind="subagent"), user("a1"), gemini("a2"))
    )
    archived.put(f"tmp/webapp/tool-outputs/session-{SESSION}/run_1.txt", b"long output")
    archived.put(f"tmp/webapp/tool-outputs/session-{AGENT}/deep/run_2.txt", b"long output of the subagent")
    archived.put(f"tmp/webapp/{SESSION}/plans/plan.md", b"# Plan")
    archived.put(f"tmp/webapp/logs/session-{SESSION}.jsonl", b"{}\n")
    archived.put("tmp/webapp/logs.json", b"[]")
    archived.put(
        "tmp/webapp/chats/session-2026-11-15T19-30-b3e2640d.jsonl", log(header(builders.OTHER), user(), gemini())
    )


def test_all_files_of_a_session_are_restored_byte_for_byte(archived: ArchivedHome) -> None:
    put_session(archived)
    before = archived.delete_files()
    plan = archived.restore()
    expected = {path: data for path, data in before.items() if SESSION in path or AGENT in path or "root" in path}
    assert archived.tree() == expected | {BACK: LOG + UPDATE}
    assert plan.files[-1].place == plan.main == archived.home.root / BACK
    assert (plan.id, plan.n_messages, plan.notes) == (SESSION, 5, ())


def test_restored_session_is_readable_and_just_updated(archived: ArchivedHome) -> None:
    put_session(archived)
    archived.delete_files()
    archived.restore()
    reading = read(archived.home.root / BACK)
    assert reading.replay.is_readable
    assert reading.replay.metadata["lastUpdated"] == client_timestamp(NOW)
    assert reading.replay.metadata["startTime"] == builders.at(0)
    assert not reading.replay.problems


@pytest.mark.skipif(os.name == "nt", reason="modes are of POSIX")
def test_restored_files_are_readable_only_by_their_owner(archived: ArchivedHome) -> None:
    put_session(archived)
    archived.delete_files()
    plan = archived.restore()
    for file in plan.files:
        assert stat.S_IMODE(file.place.stat().st_mode) == 0o600
        assert file.place.stat().st_nlink == 1
    assert stat.S_IMODE(plan.main.parent.stat().st_mode) == 0o700


def test_session_can_be_restored_repeatedly(archived: ArchivedHome) -> None:
    archived.put(MAIN, LOG)
    archived.delete_files()
    archived.restore()
    with (archived.home.root / BACK).open("ab") as file:
        file.write(log(user("u3", "more")))
    archived.delete_files()
    archived.restore()
    assert archived.read() == LOG + UPDATE + log(user("u3", "more")) + UPDATE
    assert archived.session().counts["user"] == 3


def test_torn_last_line_stays_a_separate_line(archived: ArchivedHome) -> None:
    archived.put(MAIN, LOG + b'{"id":"torn')
    archived.delete_files()
    archived.restore()
    assert archived.read() == LOG + b'{"id":"torn\n' + UPDATE


def test_complete_existing_session_is_not_restored(archived: ArchivedHome) -> None:
    archived.put(MAIN, LOG)
    plan = archived.plan()
    assert (plan.files, plan.notes, plan.main) == ((), (), archived.home.root / MAIN)


def test_stub_next_to_an_existing_session_is_reported(archived: ArchivedHome) -> None:
    archived.put(MAIN, LOG)
    archived.put("tmp/webapp/chats/session-2026-11-15T20-00-6ece72aa.jsonl", log(header(), preamble()))
    plan = archived.plan()
    assert plan.files == ()
    assert "session-2026-11-15T20-00-6ece72aa.jsonl is a stub" in plan.notes[0]


def test_existing_shorter_session_is_not_overwritten(archived: ArchivedHome) -> None:
    archived.put(MAIN, LOG)
    archived.delete_files()
    archived.put(MAIN, log(header(), user("u9", "something else")))
    with pytest.raises(CollisionError, match="with 1 of 5 messages and is not overwritten; use --new-id"):
        archived.plan()
    plan = archived.restore(new_id=NEW)
    assert plan.main.read_bytes() == LOG.replace(SESSION.encode(), NEW.encode()) + UPDATE


def test_existing_unreadable_file_is_not_overwritten(archived: ArchivedHome) -> None:
    archived.put(MAIN, LOG)
    archived.delete_files()
    archived.put(BACK, log(user("u9", "header-less")))
    with pytest.raises(CollisionError, match="exists already and is not overwritten"):
        archived.plan()
    (archived.home.root / BACK).unlink()
    (archived.home.root / BACK).mkdir()
    with pytest.raises(CollisionError, match="exists already and is not overwritten"):
        archived.plan()


@pytest.mark.parametrize("name", [f"{NAME}.jsonl", "session-2026-11-16T08-00-6ece72aa.json"])
@pytest.mark.parametrize("data", [log(header(), preamble()), log(user("u9", "header-less"))], ids=["stub", "no header"])
def test_restored_session_survives_the_next_clean_up(archived: ArchivedHome, name: str, data: bytes) -> None:
    archived.put(MAIN, LOG)
    archived.delete_files()
    archived.put(f"tmp/webapp/chats/{name}", data)
    archived.restore()
    assert archived.read(f"tmp/webapp/chats/{name}") == data
    assert archived.read() == LOG + UPDATE
    chats = [cleanup_file_from_reading(read(file.path), file, now=NOW) for file in locate([archived.home]).files]
    going = forecast_deletions(chats, retention_policy([]), now=NOW)
    assert [path.name for path, fate in going.items() if fate.due <= NOW] == [name]


def test_restored_files_are_the_same_session_in_the_archive(archived: ArchivedHome) -> None:
    archived.put(MAIN, LOG)
    archived.delete_files()
    archived.restore()
    archived.sync()
    history = open_session.history(archived.archive.database, locate([archived.home]))
    assert [(session.id, session.deleted, session.counts["user"]) for session in history.sessions] == [
        (SESSION, False, 2)
    ]


def test_new_id_replaces_the_old_one_everywhere(archived: ArchivedHome) -> None:
    put_session(archived)
    output = f"tool-outputs/session-{SESSION}/run_1.txt"
    started = gemini("g3", f"see /x/{output}", toolCalls=[builders.call(agentId=AGENT)])
    archived.put(MAIN, LOG + log(updates(sessionId=SESSION), started))
    before = archived.tree()
    plan = archived.restore(new_id=NEW)
    after = archived.tree()
    assert {path: after[path] for path in before} == before
    new = {path: data for path, data in after.items() if path not in before}
    [agent] = [path.rpartition("/")[2][:36] for path in new if path.startswith(f"tmp/webapp/chats/{NEW}/")]
    assert sorted(new) == sorted(
        [
            BACK_WITH_NEW_ID,
            f"tmp/webapp/chats/{NEW}/{agent}.jsonl",
            f"tmp/webapp/tool-outputs/session-{NEW}/run_1.txt",
            f"tmp/webapp/tool-outputs/session-{agent}/deep/run_2.txt",
            f"tmp/webapp/{NEW}/plans/plan.md",
            f"tmp/webapp/logs/session-{NEW}.jsonl",
        ]
    )
    assert agent != AGENT
    for path, data in new.items():
        assert SESSION.encode() not in data, path
        assert AGENT.encode() not in data, path
    assert agent.encode() in plan.main.read_bytes()
    archived.sync()
    copy = archived.session(NEW)
    assert (copy.counts["user"], copy.children, archived.session().children) == (2, (agent,), (AGENT,))


def test_id_that_is_a_common_word_is_replaced_only_as_an_id(archived: ArchivedHome) -> None:
    name = "session-2026-11-15T19-30-agent.jsonl"
    text = 'the agent wrote {"sessionId":"agent"}: /x/tool-outputs/session-agent/1.txt'
    archived.put(f"tmp/webapp/chats/{name}", log(header("agent"), user("u1", text), {"id": "g1", "type": "gemini"}))
    archived.put("tmp/webapp/chats/agent/a1b2c3.jsonl", log(header("a1b2c3", kind="subagent"), user("s1", "a1b2c3")))
    plan = archived.restore("agent", new_id=NEW)
    _, words, *_ = [json.loads(line) for line in plan.main.read_bytes().splitlines()]
    assert words["content"] == text.replace("session-agent", f"session-{NEW}")
    assert read(plan.main).id == NEW
    [child] = (plan.main.parent / NEW).iterdir()
    assert b'"sessionId":"' + child.stem.encode() in child.read_bytes()
    assert b'"content":"a1b2c3"' in child.read_bytes()


def test_file_with_another_name_keeps_it(archived: ArchivedHome) -> None:
    path = "tmp/webapp/chats/session-by-hand.jsonl"
    archived.put(path, LOG)
    archived.delete_files()
    archived.restore()
    assert archived.read(path) == LOG + UPDATE
    assert archived.plan().files == ()
    assert archived.restore(new_id=NEW).main == archived.home.root / BACK_WITH_NEW_ID


def test_session_named_like_a_folder_restores_only_its_own_files(archived: ArchivedHome) -> None:
    archived.put("tmp/webapp/chats/session-2026-11-15T19-30-chats.jsonl", log(header("chats"), user(), gemini()))
    archived.put("tmp/webapp/chats/chats/a1b2c3.jsonl", log(header("a1b2c3", kind="subagent"), user("s1")))
    archived.put(MAIN, LOG)
    archived.delete_files()
    plan = archived.restore("chats")
    assert [file.place.name for file in plan.files] == ["a1b2c3.jsonl", "session-2026-11-15T19-30-chats-pe3c260f.jsonl"]


def test_log_without_a_header_gets_one(archived: ArchivedHome) -> None:
    lines = log(user(), updates(lastUpdated=builders.at(3)), gemini())
    archived.put(MAIN, lines)
    archived.put("tmp/webapp/logs.json", json.dumps([{"sessionId": SESSION, "messageId": 0, "type": "user"}]).encode())
    archived.sync()
    id_ = next(
        session.id
        for session in open_session.history(archived.archive.database, refresh(archived.archive, []).located).sessions
    )
    archived.delete_files()
    plan = archived.restore(id_)
    first, _, following = plan.main.read_bytes().partition(b"\n")
    assert following == lines + UPDATE
    assert json.loads(first) == {
        "sessionId": id_,
        "projectHash": builders.HASH,
        "startTime": builders.at(1),
        "lastUpdated": client_timestamp(NOW),
    }
    assert read(plan.main).replay.is_readable
    assert "the missing header was added" in plan.notes[0]


def document(**fields: Any) -> bytes:  # noqa: ANN401
    return builders.document(user(), gemini(), **fields)


def test_document_is_restored_with_only_its_time_changed(archived: ArchivedHome) -> None:
    name = MAIN.removesuffix("l")
    data = document(summary='"lastUpdated": "never"')
    archived.put(name, data)
    archived.delete_files()
    main = archived.restore().main
    assert main.read_bytes() == data.replace(
        f'"lastUpdated": "{builders.at(0)}"'.encode(), f'"lastUpdated": "{client_timestamp(NOW)}"'.encode()
    )
    assert read(main).replay.metadata["lastUpdated"] == client_timestamp(NOW)


@pytest.mark.parametrize(
    "data",
    [
        json.dumps(json.loads(document(summary="Title"))).encode(),
        b"\xef\xbb\xbf" + document(summary="Title"),
        document(summary="Title")[:-20].replace(b'  "summary": "Title"', b""),
    ],
    ids=["in one line", "with a mark", "cut short"],
)
def test_document_that_the_client_cannot_read_is_rebuilt(archived: ArchivedHome, data: bytes) -> None:
    name = MAIN.removesuffix("l")
    archived.put(name, data)
    archived.delete_files()
    main = archived.restore().main
    reading = read(main)
    assert reading.replay.is_readable
    assert reading.replay.metadata["lastUpdated"] == client_timestamp(NOW)
    assert [entry.id for entry in reading.replay.timeline][:1] == ["u1"]
    assert json.loads(main.read_bytes())["sessionId"] == SESSION


def test_fullest_version_is_restored(archived: ArchivedHome) -> None:
    name = MAIN.removesuffix("l")
    archived.put(name, builders.document(user(), gemini(), user("u2"), gemini("g2")))
    archived.sync()
    archived.put(name, builders.document(user("u9", "another instance wrote over it"), lastUpdated=builders.at(50)))
    archived.delete_files()
    plan = archived.restore()
    assert plan.n_messages == 4
    assert b"another instance" not in plan.main.read_bytes()


def test_log_of_a_resumed_document_is_restored_without_its_twin(archived: ArchivedHome) -> None:
    archived.put(MAIN.removesuffix("l"), builders.document(user(), gemini()))
    archived.put(MAIN, log(header(), user(), gemini(), user("u2"), builders.checkpoint(user("u3", "<state_snapshot>"))))
    archived.delete_files()
    plan = archived.restore()
    assert [file.place for file in plan.files] == [archived.home.root / BACK]


def test_other_parts_of_a_session_are_not_restored(archived: ArchivedHome) -> None:
    archived.put(
        "tmp/webapp/chats/session-2026-11-15T19-30-6ece72aa.json", builders.document(user(), gemini(), user("u2"))
    )
    later = builders.document(user("u5", "after a clear"), gemini("g5"), lastUpdated=builders.at(200))
    archived.put("tmp/webapp/chats/session-2026-11-15T19-33-6ece72aa.json", later)
    archived.delete_files()
    plan = archived.restore()
    assert plan.main.name == "session-2026-11-15T19-33-6ece72aa-pc632d72.json"
    assert "only one file: session-2026-11-15T19-30-6ece72aa.json." in plan.notes[0]


def test_equal_part_under_another_name_is_not_reported(archived: ArchivedHome) -> None:
    archived.put("tmp/webapp/chats/session-2026-11-15T18-00-6ece72aa.jsonl", LOG)
    archived.put(MAIN, LOG + log(user("u3", "more")))
    archived.delete_files()
    plan = archived.restore()
    assert (plan.main, plan.notes) == (archived.home.root / BACK, ())


def test_unreadable_copy_is_restored_under_its_original_name(archived: ArchivedHome) -> None:
    archived.put(f"{MAIN}.unreadable-1763238600000", LOG)
    archived.delete_files()
    archived.restore()
    assert archived.read() == LOG + UPDATE


def test_session_without_a_conversation_is_not_restored(archived: ArchivedHome) -> None:
    archived.put(MAIN, log(header(), preamble(), user("u1", "/help")))
    archived.delete_files()
    with pytest.raises(RestoreError, match="has no messages to resume"):
        archived.plan()


EMPTIED = log(header(startTime=builders.at(60)), builders.checkpoint(preamble()))
"""The line that `session/load` of ACP appends to the file that it loads."""


def test_emptied_session_is_restored_with_its_earlier_messages(archived: ArchivedHome) -> None:
    archived.put(MAIN, LOG + EMPTIED)
    archived.delete_files()
    plan = archived.restore()
    again = log(header(startTime=builders.at(60)))
    assert archived.read() == LOG + again + UPDATE
    assert [entry.id for entry in read(plan.main).replay.timeline] == [builders.PREAMBLE, "u1", "g1", "u2", "g2"]
    assert "the conversation before them is restored" in plan.notes[0]
    assert archived.plan().files == ()  # it is complete


def test_last_conversation_before_a_session_was_emptied_is_restored(archived: ArchivedHome) -> None:
    later = log(user("u3", "once more"), gemini("g3", "again"))
    archived.put(MAIN, LOG + EMPTIED + later + log(builders.rewind("u3")))
    archived.delete_files()
    plan = archived.restore()
    assert archived.read() == LOG + EMPTIED + later + UPDATE
    assert [*read(plan.main).replay.state] == [builders.PREAMBLE, "u3", "g3"]


def test_messages_in_the_header_are_restored(archived: ArchivedHome) -> None:
    first = log(header(messages=[user()]))
    archived.put(MAIN, first + EMPTIED)
    archived.delete_files()
    archived.restore()
    assert archived.read().startswith(first)


def test_emptied_file_that_continued_is_restored_completely(archived: ArchivedHome) -> None:
    later = log(user("u3", "once more"), gemini("g3", "again"))
    archived.put(MAIN, LOG + EMPTIED + later)
    archived.delete_files()
    plan = archived.restore()
    assert archived.read() == LOG + EMPTIED + later + UPDATE
    assert plan.notes == ()


SHARED = "tmp/webapp/chats/session-2026-11-15T19-30-nightly-.jsonl"
"""The file in which the client records sessions whose IDs begin alike and that start in the same minute."""


def _of_session(name: str) -> bytes:
    return log(
        header(f"nightly-{name}"), builders.checkpoint(preamble()), user(f"u{name}", f"job {name}"), gemini(f"g{name}")
    )


@pytest.mark.parametrize(("name", "others"), [("A", "nightly-B, nightly-C"), ("C", "nightly-A, nightly-B")])
def test_only_own_lines_of_a_shared_file_are_restored(archived: ArchivedHome, name: str, others: str) -> None:
    archived.put(SHARED, b"".join(map(_of_session, "ABC")))
    archived.delete_files()
    plan = archived.restore(f"nightly-{name}")
    assert plan.main.read_bytes() == _of_session(name) + UPDATE
    assert plan.n_messages == 3
    assert plan.notes == (
        f"The file also contains other sessions, whose lines are not restored with this one: {others}.",
    )


def test_sessions_of_one_file_are_restored_as_separate_files(archived: ArchivedHome) -> None:
    archived.put(SHARED, _of_session("A") + _of_session("B") + log(builders.checkpoint(preamble())))
    archived.delete_files()
    first, second = archived.restore("nightly-A"), archived.restore("nightly-B")
    assert first.main.read_bytes() == _of_session("A") + UPDATE
    assert second.main.read_bytes() == _of_session("B") + UPDATE
    assert len(second.notes) == 2


@pytest.mark.parametrize(
    ("tree", "id_", "texts"),
    [
        ("0.61.0/acp-load", "2e421544-497f-41d8-980d-733afa7780fc", ["Question one.", "After the cancel?"]),
        ("0.61.0/h-sameminute", "nightly-B", ["Job A?", "Job B?"]),
        ("0.61.0/h-sameminute", "nightly-C", ["Job C?"]),
    ],
)
def test_emptied_and_shared_files_of_the_corpus_can_be_resumed(
    archived: ArchivedHome, tree: str, id_: str, texts: list[str]
) -> None:
    shutil.copytree(tree_of(tree).folder / "gemini", archived.home.root, dirs_exist_ok=True)
    archived.delete_files()
    plan = archived.restore(id_)
    reading = read(plan.main)
    assert (reading.id, reading.replay.is_readable, reading.replay.earlier) == (id_, True, [])
    entries = [entry for entry in reading.replay.timeline if entry.id in reading.replay.state]
    assert [entry.prompt for entry in entries if entry.origin == Origin.HUMAN] == texts
    assert archived.plan(id_).files == ()


def test_subagent_is_not_restored_without_its_parent(archived: ArchivedHome) -> None:
    put_session(archived)
    archived.delete_files()
    with pytest.raises(RestoreError, match=f"`pollux restore {SESSION}` restores both"):
        archived.plan(AGENT)


def test_existing_files_of_a_session_keep_their_contents(archived: ArchivedHome) -> None:
    put_session(archived)
    archived.delete_files()
    archived.put(f"tmp/webapp/tool-outputs/session-{SESSION}/run_1.txt", b"long output")
    archived.put(f"tmp/webapp/logs/session-{SESSION}.jsonl", b"{}\n{}\n")
    (archived.home.root / f"tmp/webapp/{SESSION}").symlink_to(archived.root)
    (archived.root / "plans" / "plan.md").mkdir(parents=True)
    plan = archived.restore()
    assert not {file.place.name for file in plan.files} & {"run_1.txt", f"session-{SESSION}.jsonl", "plan.md"}
    assert archived.read(f"tmp/webapp/logs/session-{SESSION}.jsonl") == b"{}\n{}\n"
    assert [note.rpartition("/")[2] for note in plan.notes] == [
        "plan.md exists with other contents and is not changed."
    ]


def test_restore_into_another_home_creates_a_folder_known_to_the_client(archived: ArchivedHome) -> None:
    put_session(archived)
    archived.delete_files()
    bob = builders.home(archived.root / "bob")
    before = archived.tree()
    plan = archived.restore(to=bob)
    tree = archived.tree(bob)
    assert tree["tmp/webapp/.project_root"] == ROOT.encode()
    assert tree[BACK] == LOG + UPDATE
    assert plan.home == bob
    assert archived.tree() == before


def registry(**folders: str) -> bytes:
    return json.dumps({"projects": {path: name for name, path in folders.items()}}).encode()


@pytest.mark.parametrize(
    ("files", "folder"),
    [
        ({"projects.json": registry(web=ROOT)}, "web"),
        ({"projects.json": registry(web=ROOT), "tmp/web/.project_root": b"/other"}, "webapp"),
        ({"tmp/web-3/.project_root": ROOT.encode()}, "web-3"),
        ({"history/web-4/.project_root": ROOT.encode()}, "web-4"),
        ({"tmp/webapp/.project_root": b"/other/webapp"}, "webapp-1"),
        ({"history/webapp/.project_root": b"/other/webapp"}, "webapp-1"),
        ({"tmp/webapp/.project_root": b"no path at all"}, "webapp-1"),
        ({"projects.json": registry(webapp="/a/webapp", **{"webapp-1": "/b/webapp"})}, "webapp-2"),
    ],
)
def test_session_is_restored_into_the_folder_that_the_client_reads(
    archived: ArchivedHome, files: dict[str, bytes], folder: str
) -> None:
    archived.put(MAIN, LOG)
    archived.delete_files()
    bob = builders.home(archived.root / "bob")
    for path, data in files.items():
        put(bob.root / path, data)
    plan = archived.restore(to=bob)
    assert plan.main.relative_to(bob.tmp).parts[0] == folder
    tree = archived.tree(bob)
    assert {path: tree[path] for path in files} == files


def test_session_of_an_old_release_is_restored_into_a_hashed_folder(archived: ArchivedHome) -> None:
    shutil.rmtree(archived.home.tmp)
    path = f"tmp/{builders.HASH}/chats/{NAME}.json"
    archived.put(path, document())
    archived.put("projects.json", registry(webapp=ROOT))
    archived.delete_files(f"tmp/{builders.HASH}")
    name = f"{NAME}-pc632d72.json"
    assert archived.plan().main == archived.home.tmp / "webapp" / "chats" / name
    bob, carol = builders.home(archived.root / "bob"), builders.home(archived.root / "carol")
    put(carol.root / "projects.json", b"{}")
    assert archived.restore(to=bob).main == bob.tmp / builders.HASH / "chats" / name
    assert archived.restore(to=carol).main == carol.tmp / "webapp" / "chats" / name


def test_project_with_an_unknown_path_keeps_its_folder(archived: ArchivedHome) -> None:
    path = "tmp/Copied by hand/chats/session-2026-11-15T19-30-6ece72aa.jsonl"
    archived.put(path, log(header(projectHash="0" * 64), user(), gemini()))
    archived.delete_files("tmp/Copied by hand")
    assert [file.place for file in archived.restore().files] == [
        archived.home.root / path.replace(".jsonl", "-pc632d72.jsonl")
    ]


def test_missing_home_is_replaced_by_the_first(archived: ArchivedHome) -> None:
    archived.put(MAIN, LOG)
    session = archived.session()
    shutil.rmtree(archived.home.root)
    bob = builders.home(archived.root / "bob")
    plan = restore.plan(archived.archive.database, session, [bob], now=NOW)
    assert plan.home == bob
    archived.home.root.mkdir()
    assert restore.plan(archived.archive.database, session, [bob], now=NOW).home == bob
    assert restore.plan(archived.archive.database, session, [bob, archived.home], now=NOW).home == archived.home
    with pytest.raises(RestoreError, match="no Gemini home to restore to"):
        restore.plan(archived.archive.database, session, [], now=NOW)


def test_imported_session_is_restored_into_the_first_home(archived: ArchivedHome) -> None:
    archived.put(MAIN, LOG)
    archived.sync()
    archived.delete_files()
    outside = archived.root / "outside"
    outside.mkdir()
    archived.archive.database.execute("UPDATE files SET home = ?, machine = 'elsewhere'", (str(outside),))
    archived.archive.database.execute("INSERT INTO imported SELECT id, 'other.db', 1 FROM versions")
    archived.archive.database.execute("UPDATE readings SET n_bytes = -1")
    plan = archived.restore()
    assert plan.home == archived.home
    assert not [*outside.iterdir()]


def test_own_files_are_preferred_to_a_fuller_import(archived: ArchivedHome, tmp_path: Path) -> None:
    archived.put(MAIN, LOG)
    archived.put(f"tmp/webapp/tool-outputs/session-{SESSION}/run_1.txt", b"ours")
    archived.sync()
    other = tmp_path / "other"
    put(other / ".gemini" / MAIN, LOG + log(user("u8", "forged"), gemini("g8")))
    put(other / ".gemini" / f"tmp/webapp/tool-outputs/session-{SESSION}/run_1.txt", b"theirs")
    put(other / ".gemini" / f"tmp/webapp/tool-outputs/session-{SESSION}/run_2.txt", b"theirs alone")
    with store.open_archive(tmp_path / "other.db") as theirs:
        refresh(theirs, [builders.home(other)])
        theirs.database.execute("UPDATE files SET home = ?", (f"{archived.home.root}",))
        theirs.database.execute("UPDATE files SET machine = 'a machine that comes first'")
    with foreign.open_foreign(tmp_path / "other.db") as theirs_opened:
        import_archive(archived.archive, theirs_opened, memory={}, now_us=1)
    archived.delete_files()
    plan = archived.restore()
    assert b"forged" not in plan.main.read_bytes()
    assert archived.read(f"tmp/webapp/tool-outputs/session-{SESSION}/run_1.txt") == b"ours"
    assert archived.read(f"tmp/webapp/tool-outputs/session-{SESSION}/run_2.txt") == b"theirs alone"
    assert "Not restored: 2 messages that only an import has; `pollux show` shows them." in plan.notes


def test_name_that_leads_outside_is_rejected(archived: ArchivedHome) -> None:
    put_session(archived)
    archived.delete_files()
    archived.archive.database.execute(
        "UPDATE files SET path = ? WHERE path LIKE '%run_1.txt'",
        (f"tmp/webapp/tool-outputs/session-{SESSION}/../../../evil",),
    )
    with pytest.raises(RestoreError, match="cannot be a file name on this system: it is not a plain name"):
        archived.plan()


@pytest.mark.parametrize(
    ("name", "words"),
    [("run\0.txt", r"'run\\x00.txt' in the archive .* contains a NUL"), ("x" * 300, "longer than 255 bytes")],
)
def test_impossible_file_name_is_reported_in_one_line(archived: ArchivedHome, name: str, words: str) -> None:
    put_session(archived)
    archived.delete_files()
    archived.archive.database.execute(
        "UPDATE files SET path = ? WHERE path LIKE '%run_1.txt'",
        (f"tmp/webapp/tool-outputs/session-{SESSION}/{name}",),
    )
    with pytest.raises(RestoreError, match=words):
        archived.plan()


def test_file_created_meanwhile_is_not_overwritten(archived: ArchivedHome) -> None:
    put_session(archived)
    archived.delete_files()
    plan = archived.plan()
    archived.put(BACK, b"written by somebody else")
    before = archived.tree()
    with pytest.raises(CollisionError, match="was created in the meantime; nothing was written"):
        restore.write_plan(plan)
    assert archived.tree() == before


def test_file_is_moved_without_hard_links(archived: ArchivedHome, monkeypatch: pytest.MonkeyPatch) -> None:
    put_session(archived)
    archived.delete_files()
    plan = archived.plan()
    monkeypatch.setattr(os, "link", _fails)
    restore.write_plan(plan)
    assert archived.read() == LOG + UPDATE
    assert not [path for path in archived.tree() if ".pollux-" in path]
    monkeypatch.undo()
    archived.delete_files()
    plan = archived.plan()
    monkeypatch.setattr(os, "link", _fails)
    archived.put(BACK, b"written by somebody else")
    with pytest.raises(CollisionError, match="in the meantime"):
        restore.write_plan(plan)
    assert archived.read() == b"written by somebody else"


def _fails(*_: object, **__: object) -> None:
    raise PermissionError(1, "Operation not permitted")


STEPS = [("os", "link", number) for number in range(6)]
STEPS += [("os", "fsync", number) for number in range(6)]
STEPS += [("tempfile", "mkstemp", number) for number in range(6)]


@pytest.mark.parametrize(("module", "name", "number"), STEPS)
@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=["full", "stopped"]
)
def test_failed_restore_leaves_no_files(
    archived: ArchivedHome,
    monkeypatch: pytest.MonkeyPatch,
    module: str,
    name: str,
    number: int,
    error: BaseException,
) -> None:
    put_session(archived)
    archived.delete_files()
    before, folders = archived.tree(), _folders(archived)
    plan = archived.plan()
    assert len(plan.files) == 6
    _break(monkeypatch, sys.modules[module], name, number, error)
    if name == "link":
        monkeypatch.setattr(Path, "rename", _fails)
    with pytest.raises(RestoreError if isinstance(error, OSError) else KeyboardInterrupt):
        restore.write_plan(plan)
    monkeypatch.undo()
    assert archived.tree() == before
    assert _folders(archived) == folders
    archived.restore()
    assert archived.read() == LOG + UPDATE


def _folders(archived: ArchivedHome) -> set[Path]:
    return {path for path in archived.home.root.rglob("*") if path.is_dir()}


def _break(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, number: int, error: BaseException) -> None:  # noqa: ANN401
    real, left = getattr(module, name), iter(range(number))

    def broken(*args: Any, **more: Any) -> Any:  # noqa: ANN401  any arguments
        if next(left, None) is None:
            raise error
        return real(*args, **more)

    monkeypatch.setattr(module, name, broken)


def test_failed_clean_up_does_not_undo_a_restore(archived: ArchivedHome, monkeypatch: pytest.MonkeyPatch) -> None:
    put_session(archived)
    archived.delete_files()
    plan = archived.plan()
    monkeypatch.setattr(Path, "unlink", _fails)
    monkeypatch.setattr(
        os, "open", lambda *args, _open=os.open: _fails() if len(args) == 2 and args[1] == 0 else _open(*args)
    )
    restore.write_plan(plan)
    monkeypatch.undo()
    assert archived.read() == LOG + UPDATE


KILLED = """
import os, sys, tempfile
from datetime import datetime, UTC
from pathlib import Path
from pollux.archive import open_session, restore, store
from pollux.sessions.locate import Home, locate

root, module, name, number = Path(sys.argv[1]), sys.modules[sys.argv[2]], sys.argv[3], int(sys.argv[4])
home = Home(root / ".gemini", root / ".gemini" / "tmp", "--home")
archive = store.open_archive(root / "archive.db", write=False)
[session] = [one for one in open_session.history(archive.database, locate([home])).sessions if one.id == sys.argv[5]]
plan = restore.plan(archive.database, session, [home], now=datetime(2026, 12, 31, 8, tzinfo=UTC))
real, left = getattr(module, name), iter(range(number))

def dies(*args, **more):
    if next(left, None) is None:
        os._exit(9)
    return real(*args, **more)

setattr(module, name, dies)
restore.write_plan(plan)
"""


@pytest.mark.parametrize(("module", "name", "number"), [*STEPS[::2], ("os", "unlink", 2)])
def test_killed_restore_leaves_no_partial_file_and_can_be_repeated(
    archived: ArchivedHome, module: str, name: str, number: int
) -> None:
    put_session(archived)
    before = archived.delete_files()
    arguments = [
        sys.executable,
        "-c",
        textwrap.dedent(KILLED),
        str(archived.root),
        module,
        name,
        str(number),
        SESSION,
    ]
    archived.archive.database.execute("PRAGMA wal_checkpoint")
    assert subprocess.run(arguments, check=False).returncode == 9
    restored = {path: data for path, data in archived.tree().items() if ".pollux-" not in path}
    expected = before | {BACK: LOG + UPDATE}
    assert restored == {path: expected[path] for path in restored}
    assert (BACK in restored) is (name == "unlink")
    if name != "unlink":
        archived.restore()
    assert archived.read() == LOG + UPDATE
    assert archived.plan().files == ()


def test_unicode_line_separators_are_escaped(archived: ArchivedHome) -> None:
    text = "a\u2028b\u2029c"
    prompt = json.dumps(user("u1", text), ensure_ascii=False).encode()
    agent = json.dumps(user("a1", text), ensure_ascii=False).encode()
    archived.put(MAIN, log(header(), prompt, gemini("g1")))
    archived.put(f"tmp/webapp/chats/{SESSION}/{AGENT}.jsonl", log(header(AGENT, kind="subagent"), agent, gemini("a2")))
    before = {
        message.id: message.text
        for message in open_session.open_session(archived.archive.database, synced(archived)).messages()
    }
    archived.delete_files()
    plan = archived.restore()
    for path in (plan.main, plan.main.parent / SESSION / f"{AGENT}.jsonl"):
        assert b"a\\u2028b\\u2029c" in path.read_bytes()
        assert not any(separator in path.read_bytes() for separator in SEPARATORS)
    after = {
        message.id: message.text
        for message in open_session.open_session(archived.archive.database, archived.session()).messages()
    }
    assert after == before
    assert after["u1"] == text


def synced(archived: ArchivedHome) -> Session:
    archived.sync()
    return archived.session()
