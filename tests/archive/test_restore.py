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
"""Where it is put when it is restored."""
BACK_WITH_NEW_ID = "tmp/webapp/chats/session-2026-11-15T19-30-0f0e0d0c-pfdd5f4f.jsonl"


class Desk:
    """A home, the archive of it, and what the client does to the one while the other stays."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = builders.home(root)
        self.archive: Archive = open_archive(root / "archive.db")
        builders.chats(root)  # the marker

    def put(self, path: str, data: bytes) -> None:
        put(self.home.root / path, data)

    def sync(self) -> None:
        refresh(self.archive, [self.home])

    def lose(self, folder: str = "tmp/webapp") -> dict[str, bytes]:
        """Keep all, then let the client delete everything but the marker."""
        self.sync()
        before = self.tree()
        for path in self.home.root.joinpath(folder).iterdir():
            if path.name != ".project_root":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        self.sync()
        return before

    def session(self, id_: str = SESSION) -> Session:
        found = open_session.history(self.archive.database, refresh(self.archive, [self.home]).located)
        return next(one for one in found.sessions if one.id == id_)

    def plan(self, id_: str = SESSION, **more: Any) -> WritePlan:  # noqa: ANN401  the options of the function
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
def desk(tmp_path: Path) -> Iterator[Desk]:
    found = Desk(tmp_path)
    yield found
    found.archive.close()


def whole(desk: Desk) -> None:
    """Put a session with everything that may belong to it."""
    desk.put(MAIN, LOG)
    desk.put(f"tmp/webapp/chats/{SESSION}/{AGENT}.jsonl", log(header(AGENT, kind="subagent"), user("a1"), gemini("a2")))
    desk.put(f"tmp/webapp/tool-outputs/session-{SESSION}/run_1.txt", b"long output")
    desk.put(f"tmp/webapp/tool-outputs/session-{AGENT}/deep/run_2.txt", b"long output of the subagent")
    desk.put(f"tmp/webapp/{SESSION}/plans/plan.md", b"# Plan")
    desk.put(f"tmp/webapp/logs/session-{SESSION}.jsonl", b"{}\n")
    desk.put("tmp/webapp/logs.json", b"[]")
    desk.put("tmp/webapp/chats/session-2026-11-15T19-30-b3e2640d.jsonl", log(header(builders.OTHER), user(), gemini()))


def test_all_of_a_session_comes_back_byte_for_byte(desk: Desk) -> None:
    whole(desk)
    before = desk.lose()
    plan = desk.restore()
    expected = {path: data for path, data in before.items() if SESSION in path or AGENT in path or "root" in path}
    assert desk.tree() == expected | {BACK: LOG + UPDATE}
    assert plan.files[-1].place == plan.main == desk.home.root / BACK
    assert (plan.id, plan.n_messages, plan.notes) == (SESSION, 5, ())


def test_the_client_sees_a_session_that_was_just_updated(desk: Desk) -> None:
    whole(desk)
    desk.lose()
    desk.restore()
    found = read(desk.home.root / BACK)
    assert found.replay.is_readable
    assert found.replay.metadata["lastUpdated"] == client_timestamp(NOW)
    assert found.replay.metadata["startTime"] == builders.at(0)
    assert not found.replay.problems


@pytest.mark.skipif(os.name == "nt", reason="modes are of POSIX")
def test_nobody_else_can_read_it(desk: Desk) -> None:
    whole(desk)
    desk.lose()
    plan = desk.restore()
    for one in plan.files:
        assert stat.S_IMODE(one.place.stat().st_mode) == 0o600
        assert one.place.stat().st_nlink == 1
    assert stat.S_IMODE(plan.main.parent.stat().st_mode) == 0o700


def test_it_can_be_restored_again_and_again(desk: Desk) -> None:
    desk.put(MAIN, LOG)
    desk.lose()
    desk.restore()
    with (desk.home.root / BACK).open("ab") as file:
        file.write(log(user("u3", "more")))
    desk.lose()
    desk.restore()
    assert desk.read() == LOG + UPDATE + log(user("u3", "more")) + UPDATE
    assert desk.session().counts["user"] == 3


def test_a_last_line_without_an_end_stays_a_line_of_its_own(desk: Desk) -> None:
    desk.put(MAIN, LOG + b'{"id":"torn')
    desk.lose()
    desk.restore()
    assert desk.read() == LOG + b'{"id":"torn\n' + UPDATE


def test_what_is_there_in_full_is_left_alone(desk: Desk) -> None:
    desk.put(MAIN, LOG)
    plan = desk.plan()
    assert (plan.files, plan.notes, plan.main) == ((), (), desk.home.root / MAIN)


def test_stub_next_to_an_existing_session_is_reported(desk: Desk) -> None:
    desk.put(MAIN, LOG)
    desk.put("tmp/webapp/chats/session-2026-11-15T20-00-6ece72aa.jsonl", log(header(), preamble()))
    plan = desk.plan()
    assert plan.files == ()
    assert "session-2026-11-15T20-00-6ece72aa.jsonl is a stub" in plan.notes[0]


def test_what_is_there_with_less_in_it_is_not_overwritten(desk: Desk) -> None:
    desk.put(MAIN, LOG)
    desk.lose()
    desk.put(MAIN, log(header(), user("u9", "something else")))
    with pytest.raises(CollisionError, match="with 1 of 5 messages and is not overwritten; use --new-id"):
        desk.plan()
    plan = desk.restore(new_id=NEW)
    assert plan.main.read_bytes() == LOG.replace(SESSION.encode(), NEW.encode()) + UPDATE


def test_what_the_client_cannot_read_is_not_overwritten_either(desk: Desk) -> None:
    desk.put(MAIN, LOG)
    desk.lose()
    desk.put(BACK, log(user("u9", "header-less")))
    with pytest.raises(CollisionError, match="exists already and is not overwritten"):
        desk.plan()
    (desk.home.root / BACK).unlink()
    (desk.home.root / BACK).mkdir()
    with pytest.raises(CollisionError, match="exists already and is not overwritten"):
        desk.plan()


@pytest.mark.parametrize("name", [f"{NAME}.jsonl", "session-2026-11-16T08-00-6ece72aa.json"])
@pytest.mark.parametrize("data", [log(header(), preamble()), log(user("u9", "header-less"))], ids=["stub", "no header"])
def test_what_the_client_is_going_to_delete_does_not_take_it_along(desk: Desk, name: str, data: bytes) -> None:
    desk.put(MAIN, LOG)
    desk.lose()
    desk.put(f"tmp/webapp/chats/{name}", data)
    desk.restore()
    assert desk.read(f"tmp/webapp/chats/{name}") == data
    assert desk.read() == LOG + UPDATE
    chats = [cleanup_file_from_reading(read(file.path), file, now=NOW) for file in locate([desk.home]).files]
    going = forecast_deletions(chats, retention_policy([]), now=NOW)
    assert [path.name for path, fate in going.items() if fate.due <= NOW] == [name]


def test_what_was_restored_is_the_same_session_as_before(desk: Desk) -> None:
    desk.put(MAIN, LOG)
    desk.lose()
    desk.restore()
    desk.sync()
    found = open_session.history(desk.archive.database, locate([desk.home]))
    assert [(one.id, one.deleted, one.counts["user"]) for one in found.sessions] == [(SESSION, False, 2)]


def test_a_new_id_stands_everywhere(desk: Desk) -> None:
    whole(desk)
    output = f"tool-outputs/session-{SESSION}/run_1.txt"
    started = gemini("g3", f"see /x/{output}", toolCalls=[builders.call(agentId=AGENT)])
    desk.put(MAIN, LOG + log(updates(sessionId=SESSION), started))
    before = desk.tree()
    plan = desk.restore(new_id=NEW)
    after = desk.tree()
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
    desk.sync()
    copy = desk.session(NEW)
    assert (copy.counts["user"], copy.children, desk.session().children) == (2, (agent,), (AGENT,))


def test_an_id_that_is_a_common_word_is_only_replaced_where_it_is_one(desk: Desk) -> None:
    name = "session-2026-11-15T19-30-agent.jsonl"
    text = 'the agent wrote {"sessionId":"agent"}: /x/tool-outputs/session-agent/1.txt'
    desk.put(f"tmp/webapp/chats/{name}", log(header("agent"), user("u1", text), {"id": "g1", "type": "gemini"}))
    desk.put("tmp/webapp/chats/agent/a1b2c3.jsonl", log(header("a1b2c3", kind="subagent"), user("s1", "a1b2c3")))
    plan = desk.restore("agent", new_id=NEW)
    _, words, *_ = [json.loads(one) for one in plan.main.read_bytes().splitlines()]
    assert words["content"] == text.replace("session-agent", f"session-{NEW}")
    assert read(plan.main).id == NEW
    [child] = (plan.main.parent / NEW).iterdir()
    assert b'"sessionId":"' + child.stem.encode() in child.read_bytes()
    assert b'"content":"a1b2c3"' in child.read_bytes()


def test_a_file_with_a_name_of_its_own_keeps_it(desk: Desk) -> None:
    path = "tmp/webapp/chats/session-by-hand.jsonl"
    desk.put(path, LOG)
    desk.lose()
    desk.restore()
    assert desk.read(path) == LOG + UPDATE
    assert desk.plan().files == ()
    assert desk.restore(new_id=NEW).main == desk.home.root / BACK_WITH_NEW_ID


def test_an_id_that_is_the_name_of_a_folder_takes_nothing_else_along(desk: Desk) -> None:
    desk.put("tmp/webapp/chats/session-2026-11-15T19-30-chats.jsonl", log(header("chats"), user(), gemini()))
    desk.put("tmp/webapp/chats/chats/a1b2c3.jsonl", log(header("a1b2c3", kind="subagent"), user("s1")))
    desk.put(MAIN, LOG)
    desk.lose()
    plan = desk.restore("chats")
    assert [one.place.name for one in plan.files] == ["a1b2c3.jsonl", "session-2026-11-15T19-30-chats-pe3c260f.jsonl"]


def test_a_log_that_has_lost_its_header_gets_one(desk: Desk) -> None:
    lines = log(user(), updates(lastUpdated=builders.at(3)), gemini())
    desk.put(MAIN, lines)
    desk.put("tmp/webapp/logs.json", json.dumps([{"sessionId": SESSION, "messageId": 0, "type": "user"}]).encode())
    desk.sync()
    id_ = next(
        one.id for one in open_session.history(desk.archive.database, refresh(desk.archive, []).located).sessions
    )
    desk.lose()
    plan = desk.restore(id_)
    first, _, rest = plan.main.read_bytes().partition(b"\n")
    assert rest == lines + UPDATE
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


def test_a_document_stays_one_with_only_its_time_changed(desk: Desk) -> None:
    name = MAIN.removesuffix("l")
    data = document(summary='"lastUpdated": "never"')
    desk.put(name, data)
    desk.lose()
    main = desk.restore().main
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
def test_document_that_the_client_cannot_read_is_rebuilt(desk: Desk, data: bytes) -> None:
    name = MAIN.removesuffix("l")
    desk.put(name, data)
    desk.lose()
    main = desk.restore().main
    found = read(main)
    assert found.replay.is_readable
    assert found.replay.metadata["lastUpdated"] == client_timestamp(NOW)
    assert [entry.id for entry in found.replay.timeline][:1] == ["u1"]
    assert json.loads(main.read_bytes())["sessionId"] == SESSION


def test_the_fullest_version_is_taken(desk: Desk) -> None:
    name = MAIN.removesuffix("l")
    desk.put(name, builders.document(user(), gemini(), user("u2"), gemini("g2")))
    desk.sync()
    desk.put(name, builders.document(user("u9", "another instance wrote over it"), lastUpdated=builders.at(50)))
    desk.lose()
    plan = desk.restore()
    assert plan.n_messages == 4
    assert b"another instance" not in plan.main.read_bytes()


def test_the_log_of_a_resumed_document_is_taken_and_not_its_twin(desk: Desk) -> None:
    desk.put(MAIN.removesuffix("l"), builders.document(user(), gemini()))
    desk.put(MAIN, log(header(), user(), gemini(), user("u2"), builders.checkpoint(user("u3", "<state_snapshot>"))))
    desk.lose()
    plan = desk.restore()
    assert [one.place for one in plan.files] == [desk.home.root / BACK]


def test_other_stretches_of_a_session_stay_in_the_archive(desk: Desk) -> None:
    desk.put("tmp/webapp/chats/session-2026-11-15T19-30-6ece72aa.json", builders.document(user(), gemini(), user("u2")))
    later = builders.document(user("u5", "after a clear"), gemini("g5"), lastUpdated=builders.at(200))
    desk.put("tmp/webapp/chats/session-2026-11-15T19-33-6ece72aa.json", later)
    desk.lose()
    plan = desk.restore()
    assert plan.main.name == "session-2026-11-15T19-33-6ece72aa-pc632d72.json"
    assert "only one file: session-2026-11-15T19-30-6ece72aa.json." in plan.notes[0]


def test_the_same_under_another_name_is_not_missed(desk: Desk) -> None:
    desk.put("tmp/webapp/chats/session-2026-11-15T18-00-6ece72aa.jsonl", LOG)
    desk.put(MAIN, LOG + log(user("u3", "more")))
    desk.lose()
    plan = desk.restore()
    assert (plan.main, plan.notes) == (desk.home.root / BACK, ())


def test_a_rescue_copy_gets_its_name_back(desk: Desk) -> None:
    desk.put(f"{MAIN}.unreadable-1763238600000", LOG)
    desk.lose()
    desk.restore()
    assert desk.read() == LOG + UPDATE


def test_a_session_without_a_conversation_is_not_restored(desk: Desk) -> None:
    desk.put(MAIN, log(header(), preamble(), user("u1", "/help")))
    desk.lose()
    with pytest.raises(RestoreError, match="has no messages to resume"):
        desk.plan()


EMPTIED = log(header(startTime=builders.at(60)), builders.checkpoint(preamble()))
"""What `session/load` of ACP appends to the file that it loads."""


def test_a_session_that_was_emptied_is_restored_as_it_was_before(desk: Desk) -> None:
    desk.put(MAIN, LOG + EMPTIED)
    desk.lose()
    plan = desk.restore()
    again = log(header(startTime=builders.at(60)))
    assert desk.read() == LOG + again + UPDATE
    assert [entry.id for entry in read(plan.main).replay.timeline] == [builders.PREAMBLE, "u1", "g1", "u2", "g2"]
    assert "the conversation before them is restored" in plan.notes[0]
    assert desk.plan().files == ()  # all of it is there


def test_the_last_conversation_before_it_was_emptied_is_restored(desk: Desk) -> None:
    later = log(user("u3", "once more"), gemini("g3", "again"))
    desk.put(MAIN, LOG + EMPTIED + later + log(builders.rewind("u3")))
    desk.lose()
    plan = desk.restore()
    assert desk.read() == LOG + EMPTIED + later + UPDATE
    assert [*read(plan.main).replay.state] == [builders.PREAMBLE, "u3", "g3"]


def test_a_message_in_the_header_is_conversation_too(desk: Desk) -> None:
    first = log(header(messages=[user()]))
    desk.put(MAIN, first + EMPTIED)
    desk.lose()
    desk.restore()
    assert desk.read().startswith(first)


def test_an_emptied_file_that_went_on_is_restored_whole(desk: Desk) -> None:
    later = log(user("u3", "once more"), gemini("g3", "again"))
    desk.put(MAIN, LOG + EMPTIED + later)
    desk.lose()
    plan = desk.restore()
    assert desk.read() == LOG + EMPTIED + later + UPDATE
    assert plan.notes == ()


SHARED = "tmp/webapp/chats/session-2026-11-15T19-30-nightly-.jsonl"
"""Where the client records sessions whose IDs begin alike, if they begin in the same minute."""


def _of_session(name: str) -> bytes:
    return log(
        header(f"nightly-{name}"), builders.checkpoint(preamble()), user(f"u{name}", f"job {name}"), gemini(f"g{name}")
    )


@pytest.mark.parametrize(("name", "others"), [("A", "nightly-B, nightly-C"), ("C", "nightly-A, nightly-B")])
def test_only_its_own_lines_of_a_file_that_holds_several_sessions_are_restored(
    desk: Desk, name: str, others: str
) -> None:
    desk.put(SHARED, b"".join(map(_of_session, "ABC")))
    desk.lose()
    plan = desk.restore(f"nightly-{name}")
    assert plan.main.read_bytes() == _of_session(name) + UPDATE
    assert plan.n_messages == 3
    assert plan.notes == (
        f"The file also contains other sessions, whose lines are not restored with this one: {others}.",
    )


def test_sessions_of_one_file_are_restored_beside_each_other(desk: Desk) -> None:
    desk.put(SHARED, _of_session("A") + _of_session("B") + log(builders.checkpoint(preamble())))
    desk.lose()
    first, second = desk.restore("nightly-A"), desk.restore("nightly-B")
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
def test_what_the_client_emptied_or_shared_in_the_corpus_can_be_resumed(
    desk: Desk, tree: str, id_: str, texts: list[str]
) -> None:
    shutil.copytree(tree_of(tree).folder / "gemini", desk.home.root, dirs_exist_ok=True)
    desk.lose()
    plan = desk.restore(id_)
    found = read(plan.main)
    assert (found.id, found.replay.is_readable, found.replay.earlier) == (id_, True, [])
    entries = [entry for entry in found.replay.timeline if entry.id in found.replay.state]
    assert [entry.prompt for entry in entries if entry.origin == Origin.HUMAN] == texts
    assert desk.plan(id_).files == ()


def test_a_subagent_comes_with_its_parent(desk: Desk) -> None:
    whole(desk)
    desk.lose()
    with pytest.raises(RestoreError, match=f"`pollux restore {SESSION}` restores both"):
        desk.plan(AGENT)


def test_what_is_left_of_it_keeps_its_contents(desk: Desk) -> None:
    whole(desk)
    desk.lose()
    desk.put(f"tmp/webapp/tool-outputs/session-{SESSION}/run_1.txt", b"long output")
    desk.put(f"tmp/webapp/logs/session-{SESSION}.jsonl", b"{}\n{}\n")
    (desk.home.root / f"tmp/webapp/{SESSION}").symlink_to(desk.root)
    (desk.root / "plans" / "plan.md").mkdir(parents=True)
    plan = desk.restore()
    assert not {one.place.name for one in plan.files} & {"run_1.txt", f"session-{SESSION}.jsonl", "plan.md"}
    assert desk.read(f"tmp/webapp/logs/session-{SESSION}.jsonl") == b"{}\n{}\n"
    assert [note.rpartition("/")[2] for note in plan.notes] == [
        "plan.md exists with other contents and is not changed."
    ]


def test_another_home_gets_a_folder_that_the_client_will_take_over(desk: Desk) -> None:
    whole(desk)
    desk.lose()
    bob = builders.home(desk.root / "bob")
    before = desk.tree()
    plan = desk.restore(to=bob)
    tree = desk.tree(bob)
    assert tree["tmp/webapp/.project_root"] == ROOT.encode()
    assert tree[BACK] == LOG + UPDATE
    assert plan.home == bob
    assert desk.tree() == before


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
def test_the_folder_is_the_one_where_the_client_looks(desk: Desk, files: dict[str, bytes], folder: str) -> None:
    desk.put(MAIN, LOG)
    desk.lose()
    bob = builders.home(desk.root / "bob")
    for path, data in files.items():
        put(bob.root / path, data)
    plan = desk.restore(to=bob)
    assert plan.main.relative_to(bob.tmp).parts[0] == folder
    tree = desk.tree(bob)
    assert {path: tree[path] for path in files} == files


def test_a_session_of_the_time_of_hashes(desk: Desk) -> None:
    shutil.rmtree(desk.home.tmp)
    path = f"tmp/{builders.HASH}/chats/{NAME}.json"
    desk.put(path, document())
    desk.put("projects.json", registry(webapp=ROOT))
    desk.lose(f"tmp/{builders.HASH}")
    name = f"{NAME}-pc632d72.json"
    assert desk.plan().main == desk.home.tmp / "webapp" / "chats" / name
    bob, carol = builders.home(desk.root / "bob"), builders.home(desk.root / "carol")
    put(carol.root / "projects.json", b"{}")
    assert desk.restore(to=bob).main == bob.tmp / builders.HASH / "chats" / name
    assert desk.restore(to=carol).main == carol.tmp / "webapp" / "chats" / name


def test_a_project_whose_path_nobody_knows_keeps_its_folder(desk: Desk) -> None:
    path = "tmp/Copied by hand/chats/session-2026-11-15T19-30-6ece72aa.jsonl"
    desk.put(path, log(header(projectHash="0" * 64), user(), gemini()))
    desk.lose("tmp/Copied by hand")
    assert [one.place for one in desk.restore().files] == [desk.home.root / path.replace(".jsonl", "-pc632d72.jsonl")]


def test_missing_home_is_replaced_by_the_first(desk: Desk) -> None:
    desk.put(MAIN, LOG)
    session = desk.session()
    shutil.rmtree(desk.home.root)
    bob = builders.home(desk.root / "bob")
    plan = restore.plan(desk.archive.database, session, [bob], now=NOW)
    assert plan.home == bob
    desk.home.root.mkdir()
    assert restore.plan(desk.archive.database, session, [bob], now=NOW).home == bob
    assert restore.plan(desk.archive.database, session, [bob, desk.home], now=NOW).home == desk.home
    with pytest.raises(RestoreError, match="no Gemini home to restore to"):
        restore.plan(desk.archive.database, session, [], now=NOW)


def test_an_imported_session_goes_to_the_first_home_and_never_where_the_import_says(desk: Desk) -> None:
    desk.put(MAIN, LOG)
    desk.sync()
    desk.lose()
    outside = desk.root / "outside"
    outside.mkdir()
    desk.archive.database.execute("UPDATE files SET home = ?, machine = 'elsewhere'", (str(outside),))
    desk.archive.database.execute("INSERT INTO imported SELECT id, 'other.db', 1 FROM versions")
    desk.archive.database.execute("UPDATE readings SET n_bytes = -1")
    plan = desk.restore()
    assert plan.home == desk.home
    assert not [*outside.iterdir()]


def test_what_this_machine_has_read_is_restored_before_a_fuller_import(desk: Desk, tmp_path: Path) -> None:
    desk.put(MAIN, LOG)
    desk.put(f"tmp/webapp/tool-outputs/session-{SESSION}/run_1.txt", b"ours")
    desk.sync()
    other = tmp_path / "other"
    put(other / ".gemini" / MAIN, LOG + log(user("u8", "forged"), gemini("g8")))
    put(other / ".gemini" / f"tmp/webapp/tool-outputs/session-{SESSION}/run_1.txt", b"theirs")
    put(other / ".gemini" / f"tmp/webapp/tool-outputs/session-{SESSION}/run_2.txt", b"theirs alone")
    with store.open_archive(tmp_path / "other.db") as theirs:
        refresh(theirs, [builders.home(other)])
        theirs.database.execute("UPDATE files SET home = ?", (f"{desk.home.root}",))
        theirs.database.execute("UPDATE files SET machine = 'a machine that comes first'")
    with foreign.open_foreign(tmp_path / "other.db") as theirs_opened:
        import_archive(desk.archive, theirs_opened, memory={}, now_us=1)
    desk.lose()
    plan = desk.restore()
    assert b"forged" not in plan.main.read_bytes()
    assert desk.read(f"tmp/webapp/tool-outputs/session-{SESSION}/run_1.txt") == b"ours"
    assert desk.read(f"tmp/webapp/tool-outputs/session-{SESSION}/run_2.txt") == b"theirs alone"
    assert "Not restored: 2 messages that only an import has; `pollux show` shows them." in plan.notes


def test_a_name_that_leads_elsewhere_is_refused(desk: Desk) -> None:
    whole(desk)
    desk.lose()
    desk.archive.database.execute(
        "UPDATE files SET path = ? WHERE path LIKE '%run_1.txt'",
        (f"tmp/webapp/tool-outputs/session-{SESSION}/../../../evil",),
    )
    with pytest.raises(RestoreError, match="cannot be a file name on this system: it is not a plain name"):
        desk.plan()


@pytest.mark.parametrize(
    ("name", "words"),
    [("run\0.txt", r"'run\\x00.txt' in the archive .* contains a NUL"), ("x" * 300, "longer than 255 bytes")],
)
def test_impossible_file_name_is_reported_in_one_line(desk: Desk, name: str, words: str) -> None:
    whole(desk)
    desk.lose()
    desk.archive.database.execute(
        "UPDATE files SET path = ? WHERE path LIKE '%run_1.txt'",
        (f"tmp/webapp/tool-outputs/session-{SESSION}/{name}",),
    )
    with pytest.raises(RestoreError, match=words):
        desk.plan()


def test_what_comes_into_being_meanwhile_is_not_overwritten(desk: Desk) -> None:
    whole(desk)
    desk.lose()
    plan = desk.plan()
    desk.put(BACK, b"written by somebody else")
    before = desk.tree()
    with pytest.raises(CollisionError, match="was created in the meantime; nothing was written"):
        restore.write_plan(plan)
    assert desk.tree() == before


def test_without_hard_links_it_is_moved_into_its_place(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    whole(desk)
    desk.lose()
    plan = desk.plan()
    monkeypatch.setattr(os, "link", _fails)
    restore.write_plan(plan)
    assert desk.read() == LOG + UPDATE
    assert not [path for path in desk.tree() if ".pollux-" in path]
    monkeypatch.undo()
    desk.lose()
    plan = desk.plan()
    monkeypatch.setattr(os, "link", _fails)
    desk.put(BACK, b"written by somebody else")
    with pytest.raises(CollisionError, match="in the meantime"):
        restore.write_plan(plan)
    assert desk.read() == b"written by somebody else"


def _fails(*_: object, **__: object) -> None:
    raise PermissionError(1, "Operation not permitted")


STEPS = [("os", "link", number) for number in range(6)]
STEPS += [("os", "fsync", number) for number in range(6)]
STEPS += [("tempfile", "mkstemp", number) for number in range(6)]


@pytest.mark.parametrize(("module", "name", "number"), STEPS)
@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=["full", "stopped"]
)
def test_a_restore_that_fails_leaves_nothing(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, module: str, name: str, number: int, error: BaseException
) -> None:
    whole(desk)
    desk.lose()
    before, folders = desk.tree(), _folders(desk)
    plan = desk.plan()
    assert len(plan.files) == 6
    _break(monkeypatch, sys.modules[module], name, number, error)
    if name == "link":
        monkeypatch.setattr(Path, "rename", _fails)
    with pytest.raises(RestoreError if isinstance(error, OSError) else KeyboardInterrupt):
        restore.write_plan(plan)
    monkeypatch.undo()
    assert desk.tree() == before
    assert _folders(desk) == folders
    desk.restore()
    assert desk.read() == LOG + UPDATE


def _folders(desk: Desk) -> set[Path]:
    return {path for path in desk.home.root.rglob("*") if path.is_dir()}


def _break(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, number: int, error: BaseException) -> None:  # noqa: ANN401
    real, left = getattr(module, name), iter(range(number))

    def broken(*args: Any, **more: Any) -> Any:  # noqa: ANN401  whatever it is
        if next(left, None) is None:
            raise error
        return real(*args, **more)

    monkeypatch.setattr(module, name, broken)


def test_a_tidying_up_that_fails_takes_nothing_back(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    whole(desk)
    desk.lose()
    plan = desk.plan()
    monkeypatch.setattr(Path, "unlink", _fails)
    monkeypatch.setattr(
        os, "open", lambda *args, _open=os.open: _fails() if len(args) == 2 and args[1] == 0 else _open(*args)
    )
    restore.write_plan(plan)
    monkeypatch.undo()
    assert desk.read() == LOG + UPDATE


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
def test_a_restore_that_is_killed_leaves_no_half_file_and_can_be_done_again(
    desk: Desk, module: str, name: str, number: int
) -> None:
    whole(desk)
    before = desk.lose()
    arguments = [sys.executable, "-c", textwrap.dedent(KILLED), str(desk.root), module, name, str(number), SESSION]
    desk.archive.database.execute("PRAGMA wal_checkpoint")
    assert subprocess.run(arguments, check=False).returncode == 9
    found = {path: data for path, data in desk.tree().items() if ".pollux-" not in path}
    expected = before | {BACK: LOG + UPDATE}
    assert found == {path: expected[path] for path in found}
    assert (BACK in found) is (name == "unlink")
    if name != "unlink":
        desk.restore()
    assert desk.read() == LOG + UPDATE
    assert desk.plan().files == ()


def test_characters_at_which_newer_releases_of_node_cut_a_line_are_escaped(desk: Desk) -> None:
    text = "a\u2028b\u2029c"
    prompt = json.dumps(user("u1", text), ensure_ascii=False).encode()
    agent = json.dumps(user("a1", text), ensure_ascii=False).encode()
    desk.put(MAIN, log(header(), prompt, gemini("g1")))
    desk.put(f"tmp/webapp/chats/{SESSION}/{AGENT}.jsonl", log(header(AGENT, kind="subagent"), agent, gemini("a2")))
    before = {
        message.id: message.text
        for message in open_session.open_session(desk.archive.database, synced(desk)).messages()
    }
    desk.lose()
    plan = desk.restore()
    for path in (plan.main, plan.main.parent / SESSION / f"{AGENT}.jsonl"):
        assert b"a\\u2028b\\u2029c" in path.read_bytes()
        assert not any(separator in path.read_bytes() for separator in SEPARATORS)
    after = {
        message.id: message.text
        for message in open_session.open_session(desk.archive.database, desk.session()).messages()
    }
    assert after == before
    assert after["u1"] == text


def synced(desk: Desk) -> Session:
    desk.sync()
    return desk.session()
