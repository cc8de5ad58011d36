"""A small home with an archive and its index, and what the index says about it."""

from __future__ import annotations

import random
import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests import builders
from tests.refreshing import refresh

from pollux.archive import store
from pollux.archive.open_session import open_session
from pollux.archive.store import Archive
from pollux.model import Project, Session
from pollux.search import tokenizer
from pollux.search.build import BuildResult, build_index
from pollux.search.index import SearchIndex, open_index
from pollux.search.parts import PartText, limited, message_parts

Entry = tuple[str, int, int]
"""Session, position of a message and kind of a part."""
_TOKEN = re.compile(r"[0-9a-z\x80-\U0010ffff]+")


def session_id(number: int) -> str:
    return f"{number:08}-{builders.SESSION[9:]}"


def session_file(root: Path, number: int = 0) -> Path:
    return builders.chats(root) / f"session-2026-11-15T19-30-{number:08}.jsonl"


def put_session(root: Path, number: int, *texts: str) -> Path:
    """Write a session with a prompt and an answer for each text; later numbers are newer."""
    records = [builders.header(session_id(number))]
    for place, text in enumerate(texts):
        second = number * 60 + place
        records += [
            builders.user(f"u{number}-{place}", text, second=second),
            builders.gemini(f"g{number}-{place}", f"answer to {text}", second=second),
        ]
    return builders.put(session_file(root, number), builders.log(*records))


@contextmanager
def synced(root: Path) -> Iterator[Archive]:
    """Open the archive of a home after a refresh."""
    with store.open_archive(root / "archive.db", wait=lambda _process: None) as archive:
        refresh(archive, (builders.home(root),))
        yield archive


def indexed(root: Path, budget: int | None = None) -> BuildResult:
    with synced(root) as archive:
        return build_index(archive.path, archive.database, budget=budget)


@contextmanager
def opened(root: Path) -> Iterator[SearchIndex]:
    """Open the index of a home's archive, which must be there."""
    with store.open_archive(root / "archive.db", write=False) as archive:
        index = open_index(archive.path, archive.database)
        assert index is not None
        try:
            yield index
        finally:
            index.close()


def found(root: Path, word: str) -> set[Entry]:
    with opened(root) as index:
        return matches(index, f'"{word}"')


def matches(index: SearchIndex, match: str) -> set[Entry]:
    rows = index.rows(match, limit=1_000_000)
    assert rows == sorted(rows, reverse=True)
    places = [*index.places(rows).values()]
    assert len(set(places)) == len(places) == index.count(match)
    return {(place.session_id, place.seq, int(place.kind)) for place in places}


def all_parts(database: sqlite3.Connection) -> Iterator[tuple[Entry, PartText]]:
    """Yield every part of every session of an archive."""
    rows = database.execute("SELECT session_id, kind, parent_session_id, parent_call_id FROM sessions").fetchall()
    for id_, kind, parent, parent_call in rows:
        session = Session(id_, kind, Project(), parent=parent, parent_call=parent_call)
        for seq, message in enumerate(open_session(database, session).messages()):
            for part in message_parts(message):
                yield (id_, seq, int(part.kind)), part


def expected(parts: Iterable[tuple[Entry, PartText]]) -> dict[str, set[Entry]]:
    """Return the places of every token, computed without the index."""
    tokens: dict[str, set[Entry]] = {}
    for entry, part in parts:
        for token in _TOKEN.findall(tokenizer.index_text(limited(part)[0]).lower()):
            tokens.setdefault(token, set()).add(entry)
    return tokens


def check(root: Path, rng: random.Random | None = None, n_tokens: int = 60) -> None:
    """Check that an index is complete and answers a sample of tokens as the texts themselves do, and others not."""
    with store.open_archive(root / "archive.db", write=False) as archive, opened(root) as index:
        assert index.coverage.is_complete, index.coverage
        tokens = expected(all_parts(archive.database))
        sample = sorted(tokens)
        if rng is not None:
            sample = rng.sample(sample, min(n_tokens, len(sample)))
        ids = [id_ for (id_,) in archive.database.execute("SELECT session_id FROM sessions")]
        for token in sample:
            match = f'"{token}"'
            assert matches(index, match) == tokens[token], token
            sessions = {entry[0] for entry in tokens[token]}
            assert index.sessions_with(match) == sessions, token
            some = {id_ for number, id_ in enumerate(sorted(ids)) if number % 2}
            assert index.sessions_among(match, some) == sessions & some, token
            for id_ in sessions:
                rows = index.rows_within(match, id_, 1_000_000)
                assert {place.seq for place in index.places(rows).values()} == {
                    seq for session, seq, _ in tokens[token] if session == id_
                }
