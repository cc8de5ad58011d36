"""How much a search reads: rows of the index, versions of files, statements; and how it ends when the time is over."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests import builders
from tests.builders import asks, call, document, gemini, header, log, user
from tests.library.searching import NOW, put_prompts, put_session, session_id

from pollux.archive import store
from pollux.archive.index_file import index_path
from pollux.archive.refresh import refresh
from pollux.search import candidates, deadline
from pollux.search.build import build_index
from pollux.search.corpus import EVERYTHING, Corpus, Request
from pollux.search.cursor import START
from pollux.search.deadline import InterruptedSearchError
from pollux.search.fact_tests import FactTests
from pollux.search.facts import FactPlace
from pollux.search.find import NO_LIMITS, Finder, MatchPage, SearchLimits
from pollux.search.index import NewestRows, SearchIndex, open_index
from pollux.search.parts import PartKind
from pollux.search.query import parse_query
from pollux.sessions.grouping import OpenSession


class Home:
    """The archive and the index of a small home."""

    def __init__(self, database: sqlite3.Connection, index: SearchIndex) -> None:
        self.database, self.index = database, index
        self.opened: list[str] = []

    def open_session(self, session_id: str) -> OpenSession:
        from pollux.archive.load_sessions import load_sessions  # noqa: PLC0415
        from pollux.archive.open_session import open_session  # noqa: PLC0415

        self.opened.append(session_id)
        return open_session(self.database, load_sessions(self.database, [session_id]).sessions[0])

    def finder(
        self,
        query: str,
        clock: Callable[[], float] = lambda: 0.0,
        limits: SearchLimits = NO_LIMITS,
        checked: dict[int, bytes] | None = None,
        **options: Any,  # noqa: ANN401  of a request
    ) -> Finder:
        facts = FactTests(self.database, FactPlace({}, Path("/"), Path("/")))
        corpus = Corpus(self.database, self.index, self.open_session, facts, checked=checked)
        return Finder(corpus, Request(parse_query(query, now=NOW), EVERYTHING, **options), clock, limits)

    def find(self, query: str, **options: Any) -> MatchPage:  # noqa: ANN401
        return self.finder(query, **options).find()


@contextmanager
def searchable(root: Path) -> Iterator[Home]:
    with store.open_archive(root / "archive.db") as archive:
        refresh(archive, [builders.home(root)], clock=lambda: NOW, memory={})
        build_index(archive.path, archive.database)
        index = open_index(archive.path, archive.database)
        assert index is not None
        try:
            yield Home(archive.database, index)
        finally:
            index.close()


def ids(found: MatchPage) -> list[int]:
    return [int(match.session_id[:8]) for match in found.matches]


class Statements:
    """The statements that a connection executes."""

    def __init__(self, *databases: sqlite3.Connection) -> None:
        self.texts: list[str] = []
        for database in databases:
            database.set_trace_callback(self.texts.append)


def test_only_the_page_is_read(tmp_path: Path) -> None:
    for number in range(40):
        put_prompts(tmp_path, number, "a word", "and a word")
    with searchable(tmp_path) as home:
        finder = home.finder("word", limit=5)
        found = finder.find()
        assert ids(found) == [39, 38, 37, 36, 35]
        assert finder.reader.n_versions == 5
        assert finder.reader.n_opened == 0
        assert home.opened == []


def test_statements_do_not_grow_with_the_number_of_sessions(tmp_path: Path) -> None:
    counts = []
    for n_sessions in (10, 60):
        root = tmp_path / str(n_sessions)
        for number in range(n_sessions):
            put_prompts(root, number, "a word", "and a word")
        with searchable(root) as home:
            statements = Statements(home.database, home.index.database)
            assert len(home.find("word", limit=5).matches) == 5
            counts.append(len(statements.texts))
    assert counts[0] == counts[1] <= 60


def test_a_common_word_walks_the_newest_rows_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "WORD_ROWS", 10)
    for number in range(30):
        put_prompts(tmp_path, number, "a word")
    with searchable(tmp_path) as home:
        walks: list[tuple[int, bool]] = []
        newest_rows = home.index.newest_rows

        def counted(*arguments: Any) -> NewestRows:  # noqa: ANN401
            newest = newest_rows(*arguments)
            walks.append((len(newest.rows), newest.is_complete))
            return newest

        monkeypatch.setattr(home.index, "newest_rows", counted)
        assert ids(home.find("word", limit=5)) == [29, 28, 27, 26, 25]
        assert walks == [(10, False)]


def test_walk_for_rare_kinds_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pollux.search.index._MOST_WALKED", 12)
    for number in range(30):
        put_prompts(tmp_path, number, "a word")
    with searchable(tmp_path) as home:
        newest = home.index.newest_rows('"word"', None, 100, 100)
        assert (len(newest.rows), newest.is_complete) == (12, False)
        assert ids(home.find("word", limit=30)) == [*range(29, -1, -1)]


def test_sessions_behind_the_newest_rows_follow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "WORD_ROWS", 10)
    for number in range(30):
        put_prompts(tmp_path, number, "a word")
    with searchable(tmp_path) as home:
        assert ids(home.find("word", limit=None)) == [*range(29, -1, -1)]
        pages: list[int] = []
        position = START
        for _ in range(10):
            found = home.finder("word", limit=4).find(position)
            pages += ids(found)
            if found.next is None:
                break
            position = found.next
        assert pages == [*range(29, -1, -1)]


def test_hits_behind_the_newest_rows_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "WORD_ROWS", 3)
    put_prompts(tmp_path, 1, *["a word"] * 7)
    put_prompts(tmp_path, 2, *["a word"] * 2)
    with searchable(tmp_path) as home:
        found = home.find("word in:prompt")
        assert {match.session_id[:8]: match.n_hits for match in found.matches} == {"00000001": 7, "00000002": 2}


@pytest.mark.parametrize("most", [1000, 8])
def test_a_prefix_is_looked_up_once_for_all_sessions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(candidates, "_MOST_COLLECTED", most)
    for number in range(10):
        put_prompts(tmp_path, number, f"prefix{number} words")
    with searchable(tmp_path) as home:
        looked_up: list[str] = []
        within = home.index.rows_within

        def counted(match: str, session_id: str, limit: int) -> list[int]:
            looked_up.append(session_id)
            return within(match, session_id, limit)

        monkeypatch.setattr(home.index, "rows_within", counted)
        assert ids(home.find("pref*", sort="newest")) == [*range(9, -1, -1)]
        assert len(looked_up) == max(0, 10 - most)


def test_a_prompt_precedes_newer_answers_and_output(tmp_path: Path) -> None:
    put_prompts(tmp_path, 1, "where is the lynx")
    put_session(tmp_path, 2, user(second=20), gemini("g2", "a lynx", second=21))
    output = [builders.answers(output="lynx lynx")]
    put_session(tmp_path, 3, user(second=30), gemini("g3", "", second=31, toolCalls=[call(result=output)]))
    with searchable(tmp_path) as home:
        assert ids(home.find("lynx")) == [1, 2, 3]
        assert ids(home.find("lynx", sort="newest")) == [3, 2, 1]
        assert ids(home.find("lynx in:answer,output")) == [2, 3]


def test_single_lines_are_enough_for_logs(tmp_path: Path) -> None:
    put_session(
        tmp_path,
        1,
        user("u1", "first tapir", second=1),
        gemini("g1", "second tapir", second=2, thoughts=[{"subject": "tapir", "description": "a thought of a tapir"}]),
        gemini("g2", "", second=3, toolCalls=[call(args={"file_path": "tapir.txt"})]),
        builders.notice("i1", "tapir notice", second=4),
    )
    with searchable(tmp_path) as home:
        finder = home.finder("tapir", hits_per_session=10)
        (match,) = finder.find().matches
        assert [(hit.number, hit.part) for hit in sorted(match.hits, key=lambda hit: (hit.number, hit.part))] == [
            (0, "prompt"),
            (1, "answer"),
            (1, "thoughts"),
            (2, "args"),
            (3, "notice"),
        ]
        assert (finder.reader.n_opened, finder.reader.n_versions) == (0, 1)


@pytest.mark.parametrize("is_document", [False, True])
def test_digests_of_messages_replace_those_of_segments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_document: bool
) -> None:
    monkeypatch.setattr("pollux.archive.raw._BLOCK", 64)
    messages = [user(f"u{number}", f"tapir {number} " + "filler " * 50, second=number) for number in range(20)]
    path = builders.chats(tmp_path) / f"session-2026-11-15T19-30-{builders.SESSION[:8]}"
    if is_document:
        builders.put(path.with_suffix(".json"), document(*messages))
    else:
        builders.put(path.with_suffix(".jsonl"), log(header(), *messages))
    with searchable(tmp_path) as home:
        checked: dict[int, bytes] = {}
        finder = home.finder("tapir 3", checked=checked)
        (match,) = finder.find().matches
        assert [hit.number for hit in match.hits] == [3]
        (beginning,) = finder.reader._beginnings.values()
        assert len(beginning._bytes.data) < beginning._bytes._most / 2, "only the beginning of the file is decompressed"
        assert checked == {}, "no segment was compared with its SHA-256"


def test_bytes_before_the_first_line_that_is_wanted_are_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pollux.archive.raw._BLOCK", 64)
    messages = [user(f"u{number}", f"tapir {number} " + "filler " * 50, second=number) for number in range(20)]
    builders.put(builders.chats(tmp_path) / "session-2026-11-15T19-30-1b671a64.jsonl", log(header(), *messages))
    with searchable(tmp_path) as home:
        reader = home.finder("tapir").reader
        (id_,) = (row[0] for row in home.database.execute("SELECT session_id FROM sessions"))
        reader.prepare({id_: [3, 16, 18]})
        for seqs in ([16, 18], [3]):
            parts = reader.quick(id_, reader.rows(id_, seqs))
            words = {seq: parts[seq][PartKind.PROMPT].split()[1] for seq in parts}
            assert words == {seq: str(seq) for seq in seqs}
            (beginning,) = reader._beginnings.values()
            assert beginning._bytes.start > beginning._bytes._most / 2
            assert beginning._start_of_line(5) is None


def test_segments_are_checked_where_a_digest_differs(tmp_path: Path) -> None:
    put_prompts(tmp_path, 1, "a tapir")
    with searchable(tmp_path) as home:
        before = home.find("tapir").matches
        with sqlite3.connect(index_path(tmp_path / "archive.db")) as database:
            database.execute("UPDATE signatures SET body = zeroblob(length(body))")
        checked: dict[int, bytes] = {}
        assert home.finder("tapir", checked=checked).find().matches == before
        assert len(checked) == 1


def test_damaged_bytes_are_a_problem(tmp_path: Path) -> None:
    put_prompts(tmp_path, 1, "a tapir")
    put_prompts(tmp_path, 2, "a tapir")
    with searchable(tmp_path) as home:
        home.database.execute(
            "UPDATE segments SET data = zeroblob(length(data)) WHERE version_id = "
            "(SELECT file_version_id FROM session_files WHERE session_id = ?)",
            (session_id(1),),
        )
        finder = home.finder("tapir")
        assert len(finder.find().matches) == 1
        assert [problem.code for problem in finder.problems] == ["unreadable-session"]


def test_a_session_is_opened_where_single_lines_are_not_enough(tmp_path: Path) -> None:
    requested = gemini("g1", [asks("c1", "read_file", file_path="okapi.txt")])
    put_session(tmp_path, 1, user(), requested, user("u2", [builders.answers("c1", output="an okapi")]))
    indented = json.dumps(header(builders.OTHER) | {"messages": [user("u5", "okapi in a document")]}, indent=1).encode()
    builders.put(builders.chats(tmp_path) / f"session-2026-11-15T19-30-{builders.OTHER[:8]}.json", indented)
    with searchable(tmp_path) as home:
        found = home.find("okapi")
        assert {match.session_id for match in found.matches} == {session_id(1), builders.OTHER}
        assert {hit.part for match in found.matches for hit in match.hits} == {"prompt", "args", "output"}
        assert sorted(home.opened) == [session_id(1), builders.OTHER]


def test_single_messages_of_a_document_are_read(tmp_path: Path) -> None:
    made = call(args={"file_path": "ocelot.txt"}, result=[builders.answers(output="} ocelot {\n    }\n")])
    path = builders.chats(tmp_path) / f"session-2026-11-15T19-30-{builders.SESSION[:8]}.json"
    builders.put(path, document(user("u1", "one ocelot"), gemini("g1", "two ocelots", toolCalls=[made])))
    with searchable(tmp_path) as home:
        finder = home.finder("ocelot*", hits_per_session=10)
        (match,) = finder.find().matches
        assert {(hit.number, hit.part) for hit in match.hits} == {
            (0, "prompt"),
            (1, "answer"),
            (1, "args"),
            (1, "output"),
        }
        assert home.opened == []


def test_a_line_of_several_megabytes_is_read(tmp_path: Path) -> None:
    put_session(tmp_path, 1, user("u1", "x " * 5_000_000 + "aardvark"), user("u2", "and an aardvark"))
    with searchable(tmp_path) as home:
        (match,) = home.find("aardvark").matches
        assert [hit.number for hit in match.hits] == [0, 1]


def test_old_mac_line_ends_are_read(tmp_path: Path) -> None:
    records = log(header(session_id(1)), user("u1", "one dugong"), user("u2", "two dugongs"))
    builders.put(builders.chats(tmp_path) / f"session-2026-11-15T19-30-{1:08}.jsonl", records.replace(b"\n", b"\r"))
    with searchable(tmp_path) as home:
        (match,) = home.find("dugong*").matches
        assert [hit.message_id for hit in match.hits] == ["u1", "u2"]


class Ticks:
    """A clock that goes on by a second with each look at it, from a moment on."""

    def __init__(self, n_before: int) -> None:
        self.now, self._n_before = 0.0, n_before

    def __call__(self) -> float:
        self._n_before -= 1
        if self._n_before < 0:
            self.now += 1.0
        return self.now


def test_a_scan_stops_after_its_time_and_goes_on_by_its_cursor(tmp_path: Path) -> None:
    for number in range(10):
        put_prompts(tmp_path, number, "a word")
    with searchable(tmp_path) as home:
        found = home.find("re:/wor./", clock=Ticks(14), limits=SearchLimits(whole=1.5))
        assert found.is_stopped
        first = ids(found)
        assert 1 < len(first) < 10
        assert (found.n_scanned, found.n_to_scan) == (len(first), 10)
        assert found.next is not None
        rest = home.finder("re:/wor./").find(found.next)
        assert first + ids(rest) == [*range(9, -1, -1)]
        assert not rest.is_stopped


def test_a_scan_makes_progress_however_little_time_it_has(tmp_path: Path) -> None:
    for number in range(3):
        put_prompts(tmp_path, number, "a word", "another word")
    with searchable(tmp_path) as home:
        position = START
        for _ in range(3):
            found = home.finder("re:/wor./", clock=Ticks(3), limits=SearchLimits(whole=0.5)).find(position)
            assert found.is_stopped
            assert found.n_scanned == 1
            assert found.next is not None
            position = found.next
        assert home.finder("re:/wor./").find(position) == MatchPage(n_to_scan=0)


def test_statements_stop_after_their_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadline, "_STEPS", 1)
    for number in range(3):
        put_prompts(tmp_path, number, "prefix1 prefix2")
    with searchable(tmp_path) as home:
        found = home.find("pre* OR pref*", clock=Ticks(2), limits=SearchLimits(statements=0.5))
        assert found == MatchPage(is_stopped=True)
        finder = home.finder("pre*", clock=Ticks(0), limits=SearchLimits(statements=0.5))
        assert finder.totals(MatchPage(next=START), is_first_page=True) == (None, None)
        assert finder.suggestions() == ()
        assert len(home.find("pre* OR pref*").matches) == 3


def test_the_time_is_over_while_texts_are_read(tmp_path: Path) -> None:
    for number in range(10):
        put_prompts(tmp_path, number, "a word")
    with searchable(tmp_path) as home:
        found = home.find("word", clock=Ticks(12), limits=SearchLimits(statements=None, whole=3.5))
        assert found.is_stopped
        assert found.next is not None
        first = ids(found)
        assert 0 < len(first) < 10
        assert first + ids(home.finder("word").find(found.next)) == [*range(9, -1, -1)]


@pytest.mark.parametrize("query", ["word", "re:/wor./"])
def test_another_thread_can_interrupt_a_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: str) -> None:
    monkeypatch.setattr(deadline, "_STEPS", 1)
    put_prompts(tmp_path, 1, "a word")
    with searchable(tmp_path) as home:
        busy = home.database if query.startswith("re:") else home.index.database
        n_steps = 0

        def interrupted_clock() -> int:  # SQLite calls it between two steps
            nonlocal n_steps
            n_steps += 1
            thread = threading.Thread(target=busy.interrupt)
            thread.start()
            thread.join()
            return 0

        finder = home.finder(query, clock=interrupted_clock, limits=SearchLimits(statements=60))
        if query.startswith("re:"):
            busy.set_progress_handler(interrupted_clock, 1)
        with pytest.raises(InterruptedSearchError, match="The search was stopped"):
            finder.find()
        assert n_steps


def test_words_are_counted_with_all_conditions(tmp_path: Path) -> None:
    for number in range(6):
        put_prompts(tmp_path, number, "alpha beta", "alpha")
    put_session(tmp_path, 7, user("u7", "alpha"), gemini("g7", "alpha"))
    with searchable(tmp_path) as home:
        assert home.finder("alpha", limit=None).count() == (14, 7)
        assert home.finder("alpha beta", limit=None).count() == (6, 6)
        assert home.finder("alpha -beta", limit=None).count() == (8, 7)
        assert home.finder("alpha ok", limit=None).count() == (0, 6)
        assert home.finder("alpha in:answer", limit=None).count() == (1, 1)
        assert home.finder("alpha role:user", limit=None).count() == (13, 7)
        assert home.finder("alpha (beta OR role:gemini)", limit=None).count() == (7, 7)
        assert home.finder("re:/bet./", limit=None).count() == (6, 6)
        assert home.finder('-"alpha beta" alpha', limit=None).count() == (8, 7)


def test_alternatives_of_words_and_fields_are_found_once(tmp_path: Path) -> None:
    put_session(tmp_path, 1, user("u1", "alpha beta"), gemini("g1", "alpha"), builders.notice("i1", "beta", second=3))
    with searchable(tmp_path) as home:
        (match,) = home.find("alpha (beta OR role:user)").matches
        assert [(hit.number, hit.part) for hit in match.hits] == [(0, "prompt")]
        assert match.n_hits == 1
        (match,) = home.find("(alpha role:gemini) OR (beta role:info)").matches
        assert {(hit.number, hit.part) for hit in match.hits} == {(1, "answer"), (2, "notice")}
