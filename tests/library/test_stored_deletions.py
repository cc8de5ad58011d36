"""The forecast of deletions that the archive stores is never used after something has changed."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests import builders
from tests.builders import gemini, header, log, put, tokens, user

import pollux.reports.status as stored
from pollux.library import expiry, status
from pollux.library.config import configure
from pollux.library.library import Library

IDS = tuple(f"{digit * 8}-1111-4222-8333-444455556666" for digit in "abcd")
NOW = datetime(2026, 12, 13, 12, tzinfo=UTC)
"""Two days before the client deletes what was last used on 15 November."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(status, "_WORTH_STORING", 0)
    for session_id in IDS:
        write(tmp_path, session_id)
    (builders.chats(tmp_path).parent / ".project_root").write_text("/srv/webapp", encoding="utf-8")
    return tmp_path


def write(home: Path, session_id: str, *more: object) -> None:
    turn = [user("u", "ask"), gemini("g", tokens=tokens(1))]
    put(
        builders.chats(home) / f"session-2026-11-15T19-30-{session_id[:8]}.jsonl", log(header(session_id), *turn, *more)
    )


def deletions(home: Path, now: datetime = NOW) -> dict[str, str]:
    config = configure(named_homes=[home], archive=home / "archive.db", zone="UTC", environ={}, clock=lambda: now)
    with Library(config) as library:
        return library.deletions()


def is_stored(home: Path, monkeypatch: pytest.MonkeyPatch, now: datetime = NOW) -> bool:
    """Return whether the next answer comes from the archive, and check that it is the answer of a new forecast."""
    calls = []
    real = expiry.forecast

    def counted(*args: object, **options: object) -> object:
        calls.append(args)
        return real(*args, **options)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(status, "forecast", counted)
        answer = deletions(home, now)
        was_stored = not calls
        patch.setattr(stored, "_FORECAST", "another name")
        assert deletions(home, now) == answer
    return was_stored


def test_second_answer_comes_from_the_archive(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert deletions(home) == dict.fromkeys(IDS, "2d left")
    assert is_stored(home, monkeypatch)


def test_time_that_passes_needs_no_new_forecast(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deletions(home)
    for days in (-9, -1, 1, 2, 3, 40):
        assert is_stored(home, monkeypatch, NOW + timedelta(days=days))
    assert set(deletions(home, NOW + timedelta(days=3)).values()) == {"due"}


def test_change_on_the_disk_is_seen(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deletions(home)
    write(home, IDS[0], user("later", "again", second=50))
    assert not is_stored(home, monkeypatch)
    assert is_stored(home, monkeypatch)
    write(home, "eeeeeeee-1111-4222-8333-444455556666")
    assert not is_stored(home, monkeypatch)
    for path in builders.chats(home).glob("*aaaaaaaa*"):
        path.unlink()
    assert not is_stored(home, monkeypatch)


def test_other_settings_are_seen(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deletions(home)
    settings = {"general": {"sessionRetention": {"enabled": True, "maxAge": "90d"}}}
    (home / ".gemini" / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    assert not is_stored(home, monkeypatch)
    assert deletions(home) == {}


def test_forgotten_session_is_not_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deletions(home)
    config = configure(named_homes=[home], archive=home / "archive.db", zone="UTC", environ={}, clock=lambda: NOW)
    with Library(config) as library:
        library.archive.forget([IDS[1]])
    assert not is_stored(home, monkeypatch)
    assert IDS[1] not in deletions(home)


def test_unstable_forecast_is_computed_once_a_minute_by_one_library(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, calls = [NOW], []
    real = expiry.forecast

    def counted(*args: object, **options: object) -> object:
        calls.append(args)
        made = real(*args, **options)  # type: ignore[arg-type]
        made.is_stable = False
        return made

    monkeypatch.setattr(status, "forecast", counted)
    config = configure(named_homes=[home], archive=home / "archive.db", zone="UTC", environ={}, clock=lambda: now[0])
    with Library(config) as library:
        first = library.deletions()
        assert library.deletions() == first
        assert len(calls) == 1
        now[0] += timedelta(minutes=1)
        library.deletions()
        assert len(calls) == 2
