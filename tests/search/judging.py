"""Asks a library for the hits of a query and writes them as `judged.toml` does."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec
from tests.search.judged_home import SESSIONS, session_id

from pollux.library import search
from pollux.library.config import configure
from pollux.library.filters import ignore_note
from pollux.library.freshness import no_report
from pollux.library.library import Library
from pollux.reports.filters import ALL
from pollux.reports.sessions import Page
from pollux.search.values import MESSAGE_SCOPE, SESSION_SCOPE, HitPage, SessionHits

JUDGED: Mapping[str, Mapping[str, str]] = tomllib.loads(
    Path(__file__).with_name("judged.toml").read_text(encoding="utf-8")
)
"""Expected hits by class and query."""
KEYS = {session_id(key): key for key in SESSIONS}
_ALL = 10_000


@contextmanager
def opened_library(homes: Iterable[Path], folder: Path) -> Iterator[Library]:
    """Open a library over some homes that stores everything below a folder."""
    config = configure(named_homes=[*homes], archive=folder / "archive.db", zone="UTC", environ={})
    places = {"user_home": folder, "data_dir": folder, "config_dir": folder, "keys_dir": folder / "keys"}
    with Library(msgspec.structs.replace(config, **places)) as library:
        library.sync()
        yield library


def search_all(library: Library, query: str, *, scan: bool = False) -> HitPage:
    """Return all hits of a query on one page, however long that takes."""
    parsed = search.parse(library.config, query)
    options = search.SearchOptions(scan=scan, hits_per_session=_ALL, seconds=_stopped_clock)
    with library.snapshot(tools=search.needs_messages(parsed)) as snapshot:
        return search.search_page(snapshot, parsed, ALL, Page(_ALL), options, no_report, ignore_note)


def _stopped_clock() -> float:
    return 0.0


def hit_names(page: HitPage, keys: Mapping[str, str] = KEYS) -> set[str]:
    """Return the parts and sessions that a page names, as `judged.toml` writes them."""
    return {name for session in page.sessions for name in _names_in(session, keys)}


def expected_names(text: str) -> set[str]:
    return {name.strip() for name in text.split(",") if name.strip()}


def _names_in(session: SessionHits, keys: Mapping[str, str]) -> Iterator[str]:
    key = keys.get(session.row.id, session.row.id)
    if session.scope != MESSAGE_SCOPE:
        yield key if session.scope == SESSION_SCOPE else f"{key} {session.scope}"
        return
    assert session.n_hits == len(session.hits), f"{session.n_hits} hits in {key}, but {len(session.hits)} are returned"
    for hit in session.hits:
        assert hit.session_id == session.row.id
        yield f"{key}/{hit.number} {hit.part}"
