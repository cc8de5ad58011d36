"""Reading an index: rows, places, sessions and counts."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests import builders
from tests.search.indexing import found, indexed, opened, put_session, session_id, synced

from pollux.archive import store
from pollux.archive.index_file import index_path
from pollux.search.index import DamagedIndexError, SearchIndex, loosened, open_index, unusable_reason
from pollux.search.parts import PartKind


def test_the_file_is_named_after_the_archive() -> None:
    assert index_path(Path("/data/archive.db")) == Path("/data/archive.search.db")
    assert index_path(Path("/data/team.sqlite")) == Path("/data/team.sqlite.search.db")


def test_rows_are_newest_first_and_can_be_continued(tmp_path: Path) -> None:
    for number in range(5):
        put_session(tmp_path, number, "common words")
    indexed(tmp_path)
    with opened(tmp_path) as index:
        rows = index.rows('"common"')
        sessions = [index.places([row])[row].session_id for row in rows]
        assert sessions == [session_id(number) for number in (4, 4, 3, 3, 2, 2, 1, 1, 0, 0)]
        first = index.rows('"common"', limit=3)
        assert first + index.rows('"common"', below=first[-1]) == rows


def test_rows_of_some_kinds(tmp_path: Path) -> None:
    put_session(tmp_path, 0, "common words")
    indexed(tmp_path)
    with opened(tmp_path) as index:
        prompts = index.rows('"common"', kinds=[PartKind.PROMPT])
        assert [place.kind for place in index.places(prompts).values()] == [PartKind.PROMPT]
        assert index.count('"common"', [PartKind.PROMPT]) == 1
        assert index.count('"common"', [PartKind.PROMPT, PartKind.ANSWER]) == index.count('"common"') == 2
        assert index.rows('"common"', kinds=[]) == []


def test_rows_within_a_session(tmp_path: Path) -> None:
    for number in range(3):
        put_session(tmp_path, number, "common one", "common two", "rare")
    indexed(tmp_path)
    with opened(tmp_path) as index:
        rows = index.rows_within('"common"', session_id(1), 3)
        assert [index.places([row])[row].seq for row in rows] == [3, 2, 1]
        assert index.rows_within('"common"', "no such session", 3) == []


def test_sessions_with_words_in_different_messages(tmp_path: Path) -> None:
    put_session(tmp_path, 0, "alpha", "beta")
    put_session(tmp_path, 1, "alpha")
    indexed(tmp_path)
    with opened(tmp_path) as index:
        assert index.sessions_with('"alpha"') & index.sessions_with('"beta"') == {session_id(0)}
        assert index.sessions_with('"alpha beta"') == {session_id(0)}, "a phrase counts as its words"
        assert index.sessions_with('"alp" *') == {session_id(0), session_id(1)}
        assert matches_nothing(index, '"alpha beta"')


def matches_nothing(index: SearchIndex, match: str) -> bool:
    return not index.rows(match)


@pytest.mark.parametrize(
    ("match", "loose"),
    [
        ('"one"', '"one"'),
        ('"one two"', '("one" AND "two")'),
        ('"one two" *', '("one" AND "two"*)'),
        ('"one"*', '"one"*'),
        ('"one" + "two"', '"one" AND "two"'),
        ('("a" OR "b c") AND "d"', '("a" OR ("b" AND "c")) AND "d"'),
        ('"a.b/c"', '("a" AND "b" AND "c")'),
        ('"超时 时错"', '("超时" AND "时错")'),
    ],
)
def test_loose_expressions(match: str, loose: str) -> None:
    assert loosened(match) == loose


def test_a_session_that_changed_is_left_out_until_it_is_indexed_again(tmp_path: Path) -> None:
    put_session(tmp_path, 0, "stable words")
    file = put_session(tmp_path, 1, "stable words")
    indexed(tmp_path)
    with file.open("ab") as stream:
        stream.write(builders.log(builders.user("u9", "stable again", second=30)))
    with synced(tmp_path):
        pass
    with opened(tmp_path) as index:
        assert index.coverage.missing == (session_id(1),)
        assert (index.coverage.n_sessions, index.coverage.n_indexed) == (2, 1)
        assert not index.coverage.is_complete
        assert {place.session_id for place in index.places(index.rows('"stable"')).values()} == {session_id(0)}
        assert index.sessions_with('"stable"') == {session_id(0)}
        assert index.rows_within('"stable"', session_id(1), 10) == []
        assert index.count('"stable"') == 2
    indexed(tmp_path)
    assert len(found(tmp_path, "stable")) == 5


def test_cut_parts_are_listed(tmp_path: Path) -> None:
    long = "\n".join(f"line {n}" for n in range(9000))
    result = [{"functionResponse": {"id": "c1", "name": "read_file", "response": {"output": long}}}]
    answer = builders.gemini("g1", "done", toolCalls=[builders.call(result=result)])
    builders.put(builders.chats(tmp_path) / f"{builders.NAME}.jsonl", builders.log(builders.header(), answer))
    indexed(tmp_path)
    with opened(tmp_path) as index:
        assert index.coverage.n_cut_parts == 1
        assert index.cut_parts() == [(builders.SESSION, 0, PartKind.OUTPUT)]
        assert index.rows('"8999"')
        assert not index.rows('"5000"')


def test_without_an_index_there_is_none(tmp_path: Path) -> None:
    with store.open_archive(tmp_path / "archive.db") as archive:
        assert open_index(archive.path, archive.database) is None
        assert unusable_reason(archive.path, archive.database) == "there is none yet"
        assert not index_path(archive.path).exists()


def test_an_index_of_another_version_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_session(tmp_path, 0, "words")
    indexed(tmp_path)
    monkeypatch.setattr("pollux.search.tokenizer.VERSION", "next")
    with store.open_archive(tmp_path / "archive.db", write=False) as archive:
        assert open_index(archive.path, archive.database) is None
        assert unusable_reason(archive.path, archive.database) == "it belongs to another version of Pollux"
    indexed(tmp_path)
    assert found(tmp_path, "words")


def test_damage_is_reported_when_it_is_read(tmp_path: Path) -> None:
    for number in range(40):
        put_session(tmp_path, number, " ".join(f"word{number}x{n}" for n in range(300)))
    indexed(tmp_path)
    path = index_path(tmp_path / "archive.db")
    with path.open("r+b") as file:  # all pages behind those of the schema and of the small tables
        file.seek(20 * 4096)
        file.write(b"\xff" * (path.stat().st_size - 20 * 4096))
    with opened(tmp_path) as index, pytest.raises(DamagedIndexError):
        _read_all(index)


def _read_all(index: SearchIndex) -> None:
    for number in range(40):
        index.rows(f'"word{number}x7"')


def test_places_of_many_rows_are_found_at_once(tmp_path: Path) -> None:
    put_session(tmp_path, 0, *(f"common {n}" for n in range(20)))
    indexed(tmp_path)
    with opened(tmp_path) as index:
        statements: list[str] = []
        rows = index.rows('"common"')
        index.database.set_trace_callback(statements.append)
        assert len(index.places(rows)) == 40
        assert len(statements) == 1
