"""Forecasts of what the client deletes at its next start equal its recorded clean-ups, and follow each rule."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests import builders

from pollux.sessions.client_settings import (
    ClientSettings,
    RetentionPolicy,
    is_trusted,
    parse_settings,
    retention_policy,
)
from pollux.sessions.locate import Home, SessionFile, locate
from pollux.sessions.replay.reading import read
from pollux.sessions.retention import (
    CleanupFile,
    Deletion,
    DeletionReason,
    cleanup_file_from_reading,
    forecast_deletions,
)

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
RECORDED = json.loads((Path(__file__).parents[1] / "data" / "retention" / "cleanups.json").read_text("utf-8"))
ENVIRON = {"RET_AGE": "4d"}
"""The environment of the recorded client."""
DEFAULT = retention_policy([])


def days(number: float) -> timedelta:
    return timedelta(days=number)


def chat(id_: str = "6ece72aa", age: float = 1, *, minute: int = 0, suffix: str = "jsonl", **more: Any) -> CleanupFile:  # noqa: ANN401
    path = Path(f"/chats/session-2026-11-15T10-{minute:02}-{id_}.{suffix}")
    return CleanupFile(path, **{"session_id": id_, "kind": "main", "updated": NOW - days(age), **more})


def session_file(path: Path) -> SessionFile:
    return SessionFile(str(path), Home(path, path, "test"), "webapp", None, path.stat().st_size, 0, 0, "session")


def cleanup_file(folder: Path, data: bytes, name: str = f"{builders.NAME}.jsonl") -> CleanupFile:
    path = builders.put(folder / name, data)
    return cleanup_file_from_reading(read(path), session_file(path), now=NOW)


def retention(**values: Any) -> ClientSettings:  # noqa: ANN401  invalid values too
    return ClientSettings("settings.json", {"general": {"sessionRetention": values}})


def forecast_reasons(*chats: CleanupFile, rules: RetentionPolicy = DEFAULT) -> list[tuple[str | None, bool]]:
    """Return for each file the reason why the client deletes it, and whether it does so at its next start."""
    deletions = forecast_deletions(chats, rules, now=NOW)
    return [
        (str(deletion.reason), deletion.due <= NOW) if (deletion := deletions.get(chat.path)) else (None, False)
        for chat in chats
    ]


@pytest.mark.parametrize("case", RECORDED["cases"], ids=lambda case: case["name"])
def test_forecast_equals_the_recorded_clean_up(case: dict[str, Any], tmp_path: Path) -> None:
    now = datetime.fromisoformat(RECORDED["now"])
    chats = tmp_path / "tmp" / "webapp" / "chats"
    for name, text in case["files"].items():
        builders.put(chats / name, text.encode())
    below = [parse_settings("user", case["user"].encode(), ENVIRON)] if "user" in case else []
    rules = {"/dev": "TRUST_FOLDER", "/": "DO_NOT_TRUST"} if "trusted" in case else {}
    own = [parse_settings("project", case["project"].encode(), ENVIRON)] if "project" in case else []
    layers = [*below, *(own if is_trusted("/dev/webapp", below, rules) else [])]
    (folder,) = locate([Home(tmp_path, tmp_path / "tmp", "test")]).folders
    files = [
        CleanupFile(file.path, file.parent)
        if file.parent
        else cleanup_file_from_reading(read(file.path), file, now=now)
        for file in folder.files
        if file.what != "leftover"
    ]
    forecast = {
        path for path, fate in forecast_deletions(files, retention_policy(layers), now=now).items() if fate.due <= now
    }
    assert sorted(path.relative_to(chats).as_posix() for path in forecast) == case["deleted"]


@pytest.mark.parametrize("version", ["0.51.0", "0.60.0"])
def test_stub_of_a_resumed_session_deletes_the_full_file(corpus: Path, version: str) -> None:
    """The manifest lists the files before and after; the client ended before it deleted the stub."""
    steps = json.loads((corpus / version / "resume-loss" / "manifest.json").read_text("utf-8"))["steps"]
    listings = [[Path(name) for name in step["files"]] for step in steps if step["do"] == "chats now"]
    (full, stub), after = listings[1], listings[2]
    chats = [CleanupFile(full, updated=NOW), CleanupFile(stub, updated=NOW, is_resumable=False)]
    deletions = forecast_deletions(chats, DEFAULT, now=NOW)
    assert deletions == {full: Deletion(DeletionReason.STUB, NOW, stub), stub: Deletion(DeletionReason.EMPTY, NOW)}
    assert full not in after


@pytest.mark.parametrize("version", ["0.40.1", "0.60.0", "0.61.0"])
def test_file_of_a_waiting_client_is_deleted_as_headerless(corpus: Path, version: str) -> None:
    home = corpus / version / "i-concurrent" / "gemini"
    (folder,) = locate([Home(home, home / "tmp", "test")]).folders
    chats = [cleanup_file_from_reading(read(file.path), file, now=NOW) for file in folder.files]
    deletions = forecast_deletions(chats, DEFAULT, now=max(file.updated for file in chats if file.updated))
    assert [fate.reason for fate in deletions.values() if not fate.caused_by and fate.reason != DeletionReason.AGE] == [
        DeletionReason.HEADERLESS
    ]


def test_deletion_by_age_is_due_on_the_day_it_expires() -> None:
    deletions = forecast_deletions([chat(age=29)], DEFAULT, now=NOW)
    assert [*deletions.values()] == [Deletion(DeletionReason.AGE, NOW + days(1))]
    assert forecast_reasons(chat(age=30.1)) == [("age", True)]
    assert forecast_reasons(chat(age=29)) == [("age", False)]


def test_each_fault_has_its_own_reason() -> None:
    chats = [
        chat("aaaaaaaa", is_readable=False),
        chat("bbbbbbbb", is_readable=False, is_headerless=True),
        chat("cccccccc", is_resumable=False),
        chat("dddddddd", kind="subagent"),
    ]
    assert forecast_reasons(*chats) == [("unreadable", True), ("headerless", True), ("empty", True), ("subagent", True)]


def test_files_of_a_session_are_deleted_with_the_first_and_name_it() -> None:
    full, stub = chat(), chat(minute=1, is_resumable=False)
    assert forecast_deletions([full, stub], DEFAULT, now=NOW)[full.path] == Deletion(
        DeletionReason.STUB, NOW, stub.path
    )
    old, new = chat(age=25, suffix="json"), chat(age=1)
    assert forecast_deletions([old, new], DEFAULT, now=NOW)[new.path] == Deletion(
        DeletionReason.AGE, NOW + days(5), old.path
    )
    timeless = chat(minute=2, updated=None)
    assert forecast_reasons(timeless) == [(None, False)]
    assert forecast_reasons(old, timeless) == [("age", False), ("age", False)]


def test_files_are_only_matched_by_ids_of_eight_characters() -> None:
    full, stub = chat("my_ident"), chat("my_ident", minute=1, is_resumable=False)
    assert forecast_reasons(full, stub) == [("age", False), ("empty", True)]


def test_subagents_are_deleted_with_the_file_that_names_their_folder() -> None:
    inner = CleanupFile(Path("/chats/6ece72aa/x.jsonl"), "6ece72aa")
    orphan = CleanupFile(Path("/chats/other/x.jsonl"), "other")
    full, stub = chat(), chat(minute=1, is_resumable=False)
    deletions = forecast_deletions([full, stub, inner, orphan], DEFAULT, now=NOW)
    assert deletions[inner.path] == Deletion(DeletionReason.STUB, NOW, stub.path)
    assert orphan.path not in deletions
    odd = chat("ab", is_resumable=False)
    assert Path("/chats/ab/x.jsonl") not in forecast_deletions(
        [odd, CleanupFile(Path("/chats/ab/x.jsonl"), "ab")], DEFAULT, now=NOW
    )


def test_files_over_the_maximum_count_are_deleted_oldest_first() -> None:
    rules = retention_policy([retention(maxCount=1)])
    chats = [chat("aaaaaaaa", 2), chat("bbbbbbbb", 1), chat("cccccccc", 40)]
    assert forecast_reasons(*chats, rules=rules) == [("count", True), ("age", False), ("age", True)]


def test_unlimited_age_deletes_nothing() -> None:
    rules = retention_policy([retention(maxAge="9" * 30 + "d")])
    assert rules.max_age == timedelta.max
    assert forecast_reasons(chat(age=9999), rules=rules) == [(None, False)]


def test_disabled_clean_up_deletes_nothing() -> None:
    assert forecast_deletions([chat(age=99)], retention_policy([retention(enabled=False)]), now=NOW) == {}


def test_clean_up_reads_id_kind_and_time_of_a_log(tmp_path: Path) -> None:
    file = cleanup_file(
        tmp_path, builders.log(builders.header(lastUpdated="2026-11-01T00:00:00.000Z"), builders.user())
    )
    assert (file.id8, file.session_id, file.kind) == ("6ece72aa", builders.SESSION, "main")
    assert (file.updated, file.fault) == (datetime(2026, 11, 1, tzinfo=UTC), None)


@pytest.mark.parametrize(
    ("value", "updated"),
    [
        ("", NOW),
        ("some day", None),
        (1_000, datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)),
        (10**30, None),
    ],
)
def test_odd_times_of_a_log_are_parsed_as_the_client_does(
    tmp_path: Path, value: object, updated: datetime | None
) -> None:
    assert cleanup_file(tmp_path, builders.log(builders.header(lastUpdated=value), builders.user())).updated == updated


def test_document_without_times_has_the_time_of_its_file(tmp_path: Path) -> None:
    data = builders.document(builders.user(), lastUpdated=None, startTime=None)
    file = cleanup_file(tmp_path, data, f"{builders.NAME}.json")
    assert file.updated is not None
    assert (file.session_id, file.fault) == (builders.SESSION, None)


def test_files_without_an_id_are_headerless_or_unreadable(tmp_path: Path) -> None:
    headerless = cleanup_file(tmp_path, builders.log(builders.user(), builders.gemini()))
    assert (headerless.session_id, headerless.fault) == (None, DeletionReason.HEADERLESS)
    number = cleanup_file(tmp_path, b"7\n")
    assert (number.session_id, number.fault) == (None, DeletionReason.UNREADABLE)
    broken = cleanup_file(tmp_path, builders.document(builders.user())[:-9], f"{builders.NAME}.json")
    assert (broken.session_id, broken.fault) == (None, DeletionReason.UNREADABLE)
