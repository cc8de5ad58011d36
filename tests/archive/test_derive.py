"""All files of a changed bundle are read, whatever their names are."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from tests import builders
from tests.archive.growing import CHILD, content, rebuild
from tests.refreshing import refresh

from pollux.archive import derive, ingest, open_session, raw, schema, store
from pollux.sessions import reader as sessions
from pollux.sessions.locate import HomeScan


@pytest.mark.parametrize(
    ("name", "is_named"),
    [
        ("session-2026-11-15T19-30-6ece72aa.jsonl", True),
        ("session-2026-11-15T19-30-6ece72aa.json", True),
        ("session-2026-11-15T19-30-12-34567.json", True),
        ("session-2026-11-15T19-30-é漢ce72aa.json", True),
        ("session-2026-11-15T19-30-6ece72aa-p1234567.jsonl", False),
        ("session-2026-11-15T19-30-12-6ece72aa.json", False),
        ("session-1234567890123-6ece72aa.json", False),
        ("session-2026-11-15T19-30-ab\\cdefg.json", False),
        ("session-2026-11-15T19-30-6ece72aa.jsonx", False),
        ("session-some-6ece72aa.json", False),
    ],
)
def test_file_that_sql_takes_for_named_has_its_bundle_in_its_name(name: str, is_named: bool) -> None:  # noqa: FBT001
    path = f"tmp/webapp/chats/{name}"
    with sqlite3.connect(":memory:") as database:
        (taken,) = database.execute("SELECT ? GLOB ? OR ? GLOB ?", (path, derive._NAMED[0], path, derive._NAMED[1]))
    assert taken == (is_named,)
    if is_named:
        assert (derive.bundle_name(path) or "nothing") in name


@pytest.mark.parametrize("few", [0, 16])
def test_all_files_of_a_bundle_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    monkeypatch.setattr(derive, "_FEW", few)
    log, chats = builders.log(builders.header(), builders.user()), builders.chats(tmp_path)
    names = (
        f"{builders.NAME}.jsonl",
        f"{builders.NAME}-p1234567.jsonl",
        "session-of-old.jsonl",
        f"{builders.SESSION}/{CHILD}.jsonl",
    )
    for name in names:
        builders.put(chats / name, log if CHILD not in name else builders.log(builders.header(CHILD, kind="subagent")))
    builders.put(chats / "session-2026-11-14T08-00-b3e2640d.jsonl", builders.log(builders.header(builders.OTHER)))
    with store.open_archive(tmp_path / "archive.db") as archive:
        refresh(archive, [builders.home(tmp_path)])
        with (chats / names[0]).open("ab") as stream:
            stream.write(builders.log(builders.user("u2")))
        refresh(archive, [builders.home(tmp_path)], derives=False)
        (bundle,) = derive.pending(archive.database).values()
    assert {file.session_file.path for file in bundle} == {chats / name for name in names}


def test_calls_that_share_a_recording_have_a_row_each(tmp_path: Path) -> None:
    """Over ACP, the client records all calls of a session in one message repeatedly."""
    path = builders.chats(tmp_path) / f"{builders.NAME}.jsonl"
    first = builders.gemini("acp", "", toolCalls=[builders.call("c1")])
    later = first | {"toolCalls": [builders.call("c1"), builders.call("c2"), builders.call("c3")]}
    records = [builders.header(), builders.user(), first, builders.gemini("g2", "more"), later]
    rows = "SELECT message_id, idx, call_id FROM tool_calls ORDER BY message_id, idx"
    for n_records in (3, 4, 5):
        builders.put(path, builders.log(*records[:n_records]))
        with store.open_archive(tmp_path / "archive.db") as archive:
            refresh(archive, [builders.home(tmp_path)])
            call_rows = archive.database.execute(rows).fetchall()
    assert call_rows == [("acp", 0, "c1"), ("g2", 0, "c2"), ("g2", 1, "c3")]


def test_damage_in_project_files_does_not_stop_a_refresh(tmp_path: Path) -> None:
    builders.put(builders.chats(tmp_path) / f"{builders.NAME}.jsonl", builders.log(builders.header(), builders.user()))
    marker = builders.put(tmp_path / ".gemini" / "tmp" / "webapp" / ".project_root", b"/srv/webapp")
    builders.put(marker.with_name("logs.json"), b"[]")
    with store.open_archive(tmp_path / "archive.db") as archive:
        refresh(archive, [builders.home(tmp_path)], derives=False)
        archive.database.execute(
            """
            UPDATE segments SET data = x'00' WHERE version_id IN
                (SELECT version_id FROM files WHERE path LIKE '%/.project_root' OR path LIKE '%/logs.json')
            """
        )
        result = refresh(archive, [builders.home(tmp_path)])
        assert [(problem.code, problem.file) for problem in result.problems] == [("damaged-archive", str(marker))]
        assert result.sessions == {builders.SESSION}


def test_damaged_segment_does_not_stop_a_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest, "_MANY_SEGMENTS", 2)
    old = builders.chats(tmp_path) / "session-2026-11-14T08-00-b3e2640d.json"
    grown = builders.chats(tmp_path) / f"{builders.NAME}.jsonl"
    builders.put(old, builders.document(builders.user(), sessionId=builders.OTHER))
    builders.put(grown, builders.log(builders.header()))
    homes = [builders.home(tmp_path)]
    with store.open_archive(tmp_path / "archive.db") as archive:
        refresh(archive, homes)
        archive.database.execute("UPDATE segments SET data = x'00'")
        new = builders.put(old, builders.document(builders.user("u2", "new words"), sessionId=builders.OTHER))
        for number in range(4):
            with grown.open("ab") as stream:
                stream.write(builders.log(builders.user(f"u{number}")))
            refresh(archive, homes)
        (version,) = archive.database.execute("SELECT version_id FROM files WHERE path LIKE '%.json'")
        assert raw.reader(archive.database, version[0])(0, 1 << 20) == new.read_bytes()
        n_segments = "SELECT count(*) FROM segments JOIN files USING (version_id) WHERE path LIKE '%.jsonl'"
        assert archive.database.execute(n_segments).fetchone() == (5,)


@pytest.mark.parametrize("name", ["session-2026-05-01T18-34-aaaaaaaa.txt", "session-x.json.bak", "session-x.json~"])
def test_backup_beside_a_session_is_archived_but_is_not_a_session(tmp_path: Path, name: str) -> None:
    data = builders.log(builders.header(), builders.user(), builders.gemini(tokens=builders.tokens()))
    builders.put(builders.chats(tmp_path) / f"{builders.NAME}.jsonl", data)
    builders.put(builders.chats(tmp_path) / name, data.replace(b"6ece72aa", b"ffffffff"))
    with store.open_archive(tmp_path / "archive.db") as archive:
        refresh(archive, [builders.home(tmp_path)], memory={})
        sessions = archive.database.execute("SELECT session_id FROM sessions").fetchall()
        archived = archive.database.execute("SELECT count(*) FROM files WHERE path LIKE ?", (f"%{name}",)).fetchone()
        assert (sessions, archived) == ([(builders.SESSION,)], (1,))
        assert not schema.are_behind(archive.database)


def test_opened_session_has_the_fates_of_its_facts(tmp_path: Path) -> None:
    file = builders.chats(tmp_path) / f"{builders.NAME}.json"
    active = (builders.user("u1"), builders.gemini("g1"))
    dropped = (builders.user("u2", "again", second=3), builders.gemini("g2", second=4))
    later = (builders.user("u3", "more", second=5), builders.gemini("g3", second=6))
    with store.open_archive(tmp_path / "archive.db") as archive:
        for messages in ((*active, *dropped), (*active, *later)):
            builders.put(file, builders.document(*messages))
            refresh(archive, [builders.home(tmp_path)], memory={})
        (session,) = open_session.history(archive.database, HomeScan((), ())).sessions
        facts_of = dict(archive.database.execute("SELECT message_id, fate FROM messages"))
        shown = {
            message.id: str(message.fate) for message in open_session.open_session(archive.database, session).messages()
        }
    assert shown == facts_of
    assert [id_ for id_, fate in shown.items() if fate == "rewound"] == ["u2", "g2"]


@pytest.mark.parametrize("is_archived", [False, True])
def test_session_continued_after_another_in_one_file_is_complete(tmp_path: Path, is_archived: bool) -> None:  # noqa: FBT001
    other = "6ece72aa-0000-4000-8000-000000000002"
    records = (
        *(builders.header(), builders.user("u1"), builders.gemini("g1")),
        *(builders.header(other), builders.user("u2", "other", second=3), builders.gemini("g2", second=4)),
        *(builders.header(), builders.user("u3", "again", second=5), builders.gemini("g3", second=6)),
    )
    builders.put(builders.chats(tmp_path) / f"{builders.NAME}.jsonl", builders.log(*records))
    home = builders.home(tmp_path)
    with store.open_archive(tmp_path / "archive.db") as archive:
        located = refresh(archive, [home], memory={}).located
        history = open_session.history(archive.database, located) if is_archived else sessions.history([home])
        shown = {}
        for session in history.sessions:
            assert len(session.files) == 1
            group = open_session.open_session(archive.database, session) if is_archived else sessions.opened(session)
            shown[session.id] = [message.id for message in group.messages()]
    assert shown == {builders.SESSION: ["u1", "g1", "u3", "g3"], other: ["u2", "g2"]}


def test_version_stays_contained_when_another_session_begins_in_its_file(tmp_path: Path) -> None:
    """A newer version of a log has all messages of the older one, also after a header that ends their session."""
    home, path = builders.home(tmp_path), builders.chats(tmp_path) / f"{builders.NAME}.jsonl"
    first = [builders.header(), builders.user("u1", "one"), builders.gemini("g1")]
    with store.open_archive(tmp_path / "archive.db") as archive:
        builders.put(path, builders.log(*first))
        refresh(archive, [home])
        longer = builders.log(builders.header(lastUpdated=builders.at(50)), *first[1:], builders.user("u2", "two"))
        builders.put(path, longer)
        refresh(archive, [home])
        builders.put(path, longer + builders.log(builders.header(builders.OTHER), builders.user("u3", "three")))
        refresh(archive, [home])
        grown = content(archive)
        rebuild(archive, [home])
        assert content(archive) == grown
        assert len({row[0] for row in grown["session_files"]}) == 2
        assert [row[0] for row in archive.database.execute("SELECT is_superseded FROM readings ORDER BY 1")] == [0, 1]
