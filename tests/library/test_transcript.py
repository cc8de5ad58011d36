"""A session is read by any name, with or without an archive."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests import builders
from tests.builders import chats, gemini, header, log, put, tokens, user

from pollux.errors import PolluxError
from pollux.library.config import configure
from pollux.library.library import Library
from pollux.library.references import NoSessionInFileError


def write_session(home: Path, session_id: str, *records: object) -> Path:
    """Write a session of a few records into a home."""
    name = f"session-2026-11-15T19-30-{session_id[:8]}.jsonl"
    return put(chats(home) / name, log(header(session_id), *(records or (user(), gemini(tokens=tokens())))))


def open_library(home: Path, archive: Path | None) -> Library:
    return Library(configure(named_homes=[home], archive=archive))


@pytest.mark.parametrize("has_archive", [True, False], ids=["archive", "files"])
def test_messages_are_read_by_their_numbers(tmp_path: Path, *, has_archive: bool) -> None:
    records = [user(f"u{number}", f"prompt {number}") for number in range(5)]
    path = write_session(tmp_path, builders.SESSION, *records)
    with open_library(tmp_path, tmp_path / "archive.db" if has_archive else None) as library:
        assert [message.text for message in library.messages("latest", 1, 3)] == ["prompt 1", "prompt 2"]
        assert [message.text for message in library.messages(path, 4)] == ["prompt 4"]
        assert len([*library.messages()]) == 5
        assert [record["id"] for record in library.state() if isinstance(record, dict)] == [
            f"u{number}" for number in range(5)
        ]


@pytest.mark.parametrize("has_archive", [True, False], ids=["archive", "files"])
def test_transcript_has_what_the_list_has(tmp_path: Path, *, has_archive: bool) -> None:
    path = write_session(tmp_path, builders.SESSION)
    with open_library(tmp_path, tmp_path / "archive.db" if has_archive else None) as library:
        (listed,) = library.sessions().rows
        with library.transcript("latest") as transcript:
            assert (transcript.row, transcript.session.id) == (listed, builders.SESSION)
            assert len([*transcript.blocks()]) == 2
        with library.transcript(path) as transcript:
            assert transcript.row.usage == listed.usage
            assert transcript.row.usage.cost_nanousd


def test_file_without_a_session_is_an_error_of_its_own(tmp_path: Path) -> None:
    with open_library(tmp_path, None) as library:
        with (
            pytest.raises(NoSessionInFileError, match="contains no session"),
            library.transcript(put(tmp_path / "x.json", b'{"name": 1}')),
        ):
            pass
        with pytest.raises(PolluxError, match="There is no file"), library.transcript(tmp_path / "none.json"):
            pass
