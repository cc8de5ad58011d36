"""The status of each session: when the client deletes it, and whether it is archived."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests import builders
from tests.refreshing import refresh

from pollux.archive import store
from pollux.model import FileRef, Problem, Project, Role, Session
from pollux.reports.status import (
    DeletionTime,
    FolderPolicy,
    StatusReport,
    archive_key,
    archived_files,
    days_left,
    status_rows,
)
from pollux.sessions.client_settings import RetentionPolicy
from pollux.sessions.locate import locate
from pollux.sessions.retention import HASHED, Deletion, DeletionReason
from pollux.text.encode import encode
from pollux.views.contracts import to_json

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
A, B, STUB, AGENT = (Path(f"/chats/{name}.jsonl") for name in ("a", "b", "stub", "agent"))


def session(id_: str, *paths: Path, role: Role = Role.MAIN, updated: int | None = 1, **more: object) -> Session:
    at = NOW - timedelta(days=updated) if updated is not None else None
    fields = {"id": id_, "kind": "main", "project": Project(slug="web"), "updated": at, **more}
    return Session(files=tuple(FileRef(path, role, "log") for path in paths), **fields)  # type: ignore[arg-type]


def deletion_in(days: float, why: DeletionReason = DeletionReason.AGE, caused_by: Path | None = None) -> Deletion:
    return Deletion(why, NOW + timedelta(days=days), caused_by)


def test_sessions_are_sorted_by_time_of_deletion() -> None:
    paths = {name: Path(f"/chats/{name}.jsonl") for name in ("never", "later", "soon", "old", "new", "timeless")}
    ages = {"old": 40, "new": 3, "timeless": None}
    sessions = [session(name, path, updated=ages.get(name, 1)) for name, path in paths.items()]
    fates = {paths["later"]: deletion_in(20), paths["soon"]: deletion_in(5)}
    fates |= {paths[name]: deletion_in(-1) for name in ("old", "new", "timeless")}
    gone = session("gone", Path("/chats/gone.jsonl"), deleted=True)
    rows = status_rows([*sessions, gone], fates, dict.fromkeys(paths.values(), False), now=NOW)
    assert [(row.session.id, str(row.deletion_time)) for row in rows] == [
        ("new", "next"),
        ("old", "next"),
        ("timeless", "next"),
        ("soon", "soon"),
        ("later", "later"),
        ("never", "never"),
        ("gone", "deleted"),
    ]
    assert [row.session.id for row in rows if row.is_at_risk] == ["new", "old", "timeless", "soon"]


def test_session_of_a_missing_home_is_left_out() -> None:
    assert status_rows([session("elsewhere", A)], {}, {}, now=NOW) == []


def test_session_is_archived_only_with_all_files_and_subagents() -> None:
    parent = session("p", A, children=("c", "unknown"))
    child = session("c", AGENT, kind="subagent", parent="p", children=("p",))
    orphan = session("o", B, kind="subagent", parent="nobody")
    fates = {A: deletion_in(-1), AGENT: deletion_in(-1, caused_by=A)}
    for is_kept in (True, False):
        rows = status_rows([parent, child, orphan], fates, {A: True, AGENT: is_kept, B: True}, now=NOW)
        assert [row.session.id for row in rows] == ["p", "o"]
        assert (rows[0].is_archived, rows[0].is_at_risk) == (is_kept, not is_kept)
        assert rows[0].deleted_files == (A, AGENT)
        assert rows[1].remaining_files == (B,)


def test_sessions_with_circular_parents_are_listed() -> None:
    first, second = (session(id_, path, kind="subagent", parent=by) for id_, path, by in (("a", A, "b"), ("b", B, "a")))
    rows = status_rows([first, second], {}, {A: True, B: True}, now=NOW)
    assert [row.session.id for row in rows] == ["a", "b"]


def test_stub_decides_only_without_other_files() -> None:
    stub = FileRef(STUB, Role.STUB, "log")
    both = session("both", A)
    both = Session(id="both", kind="main", project=both.project, files=(*both.files, stub))
    (row,) = status_rows([both], {STUB: deletion_in(0, DeletionReason.EMPTY)}, {A: False, STUB: False}, now=NOW)
    assert (row.deletion_time, row.deleted_files, row.remaining_files) == (DeletionTime.NEVER, (STUB,), (A,))
    fates = {A: deletion_in(0, DeletionReason.STUB, STUB), STUB: deletion_in(0, DeletionReason.EMPTY)}
    (row,) = status_rows([both], fates, {A: False, STUB: False}, now=NOW)
    assert row.deletion == fates[A]
    alone = session("alone", STUB, role=Role.MAIN, is_stub=True)
    (row,) = status_rows([alone], fates, {STUB: False}, now=NOW)
    assert (row.deletion, row.is_at_risk) == (fates[STUB], False)


def test_days_left_are_rounded_down() -> None:
    assert [days_left(deletion_in(days).due, NOW) for days in (-3, 0.5, 2.5)] == [0, 0, 2]


def test_json_contains_all_fields() -> None:
    sessions = [session("a", A, title="One"), session("b", B), session("gone", STUB, deleted=True)]
    rows = status_rows(
        sessions, {A: deletion_in(0, DeletionReason.STUB, STUB), B: deletion_in(9)}, {A: False, B: True}, now=NOW
    )
    policy = FolderPolicy(Path("/f"), "/home/alice/webapp", RetentionPolicy(off=HASHED, sources=("s",), notes=("n",)))
    problem = Problem("code", "message", "file", 1)
    report = StatusReport(tuple(rows), (policy,), (problem,), Path("/x.db"), NOW)
    document = json.loads(encode(to_json(report)))
    assert {**document, "sessions": None} == {
        "schema": "pollux.status/1",
        "client": "0.61.0",
        "now": "2026-11-15T12:00:00.000Z",
        "archive": str(Path("/x.db")),
        "policies": [
            {
                "folder": str(Path("/f")),
                "project": "/home/alice/webapp",
                "deletes": False,
                "off": HASHED,
                "is_fault": False,
                "settings": {},
                "sources": ["s"],
                "notes": ["n"],
            }
        ],
        "sessions": None,
        "counts": {"next": 1, "soon": 0, "later": 1, "never": 0, "deleted": 1},
        "at_risk": 1,
        "problems": [{"code": "code", "message": "message", "file": "file", "line": 1}],
    }
    assert document["sessions"][0] == {
        "id": "a",
        "kind": "main",
        "title": "One",
        "project": {"path": None, "hash": None, "slug": "web"},
        "updated": "2026-11-14T12:00:00.000Z",
        "deletion": "next",
        "reason": "stub",
        "caused_by": str(STUB),
        "due": None,
        "days_left": 0,
        "stub": False,
        "archived": False,
        "at_risk": True,
        "deleted_files": [str(A)],
        "remaining_files": [],
    }
    assert [(session["due"], session["days_left"]) for session in document["sessions"][1:]] == [
        ("2026-11-24T12:00:00.000Z", 9),
        (None, None),
    ]
    assert to_json(StatusReport((), (), (), None, NOW))["archive"] is None


def test_only_completely_archived_files_are_archived(tmp_path: Path) -> None:
    chats = builders.chats(tmp_path)
    path = builders.put(chats / f"{builders.NAME}.jsonl", builders.log(builders.header(), builders.user()))
    builders.put(chats / builders.SESSION / "agent.jsonl", builders.log(builders.header()))
    home = builders.home(tmp_path)
    with store.open_archive(tmp_path / "archive.db") as archive:
        machine = archive.machine
        assert archived_files(archive.database, machine) == {}
        refresh(archive, [home])
        kept = archived_files(archive.database, machine)
        files = {file.path.name: file for file in locate([home]).files}
        assert all(kept[archive_key(file)].is_complete(file) for file in files.values())
        assert kept[archive_key(files[path.name])].cleanup_traits is not None
        with path.open("ab") as grown:
            grown.write(b"{}\n")
        (file,) = (file for file in locate([home]).files if file.path == path)
        assert not kept[archive_key(file)].is_complete(file)
