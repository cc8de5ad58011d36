"""Sessions whose IDs no client would make are found like others."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.builders import chats, header, log, put, user

from pollux.library.config import configure
from pollux.library.library import Library


@pytest.mark.parametrize("has_archive", [True, False], ids=["archive", "files"])
def test_id_with_a_nul_character_names_its_own_session(tmp_path: Path, *, has_archive: bool) -> None:
    put(chats(tmp_path) / "session-2026-11-15T19-30-aaaaaaaa.jsonl", log(header("a"), user("u1", "short")))
    put(chats(tmp_path) / "session-2026-11-15T19-31-bbbbbbbb.jsonl", log(header("a\0b"), user("u2", "long")))
    archive = tmp_path / "archive.db" if has_archive else None
    with Library(configure(named_homes=[tmp_path], archive=archive)) as library:
        assert {row.id for row in library.sessions().rows} == {"a", "a\0b"}
        for session_id, text in (("a", "short"), ("a\0b", "long")):
            row = library.session(session_id)
            assert (row.id, row.title) == (session_id, text)
