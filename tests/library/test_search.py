"""Search end to end: on small homes, with and without an archive, while sessions grow and are forgotten."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from tests import builders
from tests.builders import answers, call, checkpoint, gemini, log, rewind, tokens, updates, user
from tests.library.searching import (
    notes_with,
    numbers,
    open_library,
    parts,
    put_prompts,
    put_session,
    put_subagent,
    session_file,
    session_id,
)

from pollux.archive.index_file import index_path
from pollux.errors import InvalidQueryError, PolluxError, ProjectNotFoundError
from pollux.library.library import Library
from pollux.library.search import matching_sessions, parse
from pollux.reports.filters import Filter
from pollux.reports.sessions import Page
from pollux.search.values import HitPage
from pollux.views.contracts import to_json

ALL = Page(None)


@pytest.fixture(params=[True, False], ids=["archive", "files"])
def library(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Library]:
    """Open a library whose home the test fills before its first search."""
    with open_library(tmp_path, archive=request.param) as opened:
        yield opened


@pytest.fixture
def archived(tmp_path: Path) -> Iterator[Library]:
    with open_library(tmp_path) as opened:
        yield opened


def only_hit(page: HitPage) -> str:
    (part,) = parts(page)
    return part


def test_a_message_that_was_recorded_five_times_is_one_hit(library: Library, tmp_path: Path) -> None:
    message = gemini("g1", "the pangolin curls up")
    put_session(tmp_path, 1, user(), *[message] * 4, checkpoint(user(), message))
    page = library.search("pangolin")
    assert only_hit(page) == "1:1 answer"
    assert (page.total, page.n_sessions, page.sessions[0].n_hits) == (1, 1, 1)


def test_a_rewound_message_is_found_and_marked(library: Library, tmp_path: Path) -> None:
    put_session(tmp_path, 1, user(), gemini(), user("u2", "try kumquat"), rewind("u2"), user("u3", "try mango"))
    (session,) = library.search("kumquat").sessions
    assert [(hit.message_id, hit.fate) for hit in session.hits] == [("u2", "rewound")]
    assert library.search("mango").sessions[0].hits[0].score > session.hits[0].score


def test_a_subagent_has_its_own_id_and_its_parents(library: Library, tmp_path: Path) -> None:
    put_session(tmp_path, 1, user(content="look for it"))
    put_subagent(tmp_path, 1, "quokka-agent", user("a1", "find the quokka"), gemini("a2", "none"))
    (session,) = library.search("quokka").sessions
    assert (session.row.id, session.row.parent_id, session.row.kind) == ("quokka-agent", session_id(1), "subagent")
    hits = to_json(library.search("quokka"))["hits"]
    assert isinstance(hits, list)
    assert [(hit["session"], hit["parent"]) for hit in hits] == [("quokka-agent", session_id(1))]


def test_the_original_of_masked_output_is_found(library: Library, tmp_path: Path) -> None:
    full = gemini("g1", "", toolCalls=[call(result=[answers(output="a wombat in the log")])])
    masked = gemini("g1", "", toolCalls=[call(result=[answers(output="<tool_output_masked>x</tool_output_masked>")])])
    put_session(tmp_path, 1, user(), full, masked)
    assert only_hit(library.search("wombat")) == "1:1 output"


def test_in_names_the_part(library: Library, tmp_path: Path) -> None:
    put_session(tmp_path, 1, user(), gemini(toolCalls=[call(name="write_file", args={"content": "zebra crossing"})]))
    assert only_hit(library.search("zebra in:args")) == "1:1 args"
    assert not library.search("zebra in:output").sessions
    assert not library.search("zebra -in:args").sessions


def test_the_middle_of_a_giant_output_is_read_by_scan_alone(archived: Library, tmp_path: Path) -> None:
    lines = [f"line {number} of the log" for number in range(3000)]
    lines[1500] = "narwhal in the middle"
    put_session(tmp_path, 1, user(), gemini(toolCalls=[call(result=[answers(output="\n".join(lines))])]))
    page = archived.search("narwhal")
    assert not page.sessions
    assert page.coverage.n_cut_parts == 1
    assert page.notes == ("1 long tool call is indexed in part; --scan reads all of them.",)
    scanned = archived.search("narwhal", scan=True)
    assert only_hit(scanned) == "1:1 output"
    assert not scanned.notes


def test_words_in_several_messages_follow_those_in_one(library: Library, tmp_path: Path) -> None:
    put_prompts(tmp_path, 1, "albatross and penguin")
    put_prompts(tmp_path, 2, "an albatross", "a penguin")
    put_prompts(tmp_path, 3, "an albatross alone")
    page = library.search("albatross penguin")
    assert {session.row.id[:8]: session.scope for session in page.sessions} == {
        "00000001": "message",
        "00000002": "session",
    }
    if page.freshness.state == "current":
        assert numbers(page) == [1, 2]
    spread = next(session for session in page.sessions if session.scope == "session")
    assert {hit.message_id for hit in spread.hits} == {"u2-0", "u2-1"}


def test_a_negation_concerns_the_part(library: Library, tmp_path: Path) -> None:
    put_prompts(tmp_path, 1, "apple", "banana cherry", "banana", "cherry")
    assert parts(library.search("apple OR banana -cherry")) == ["1:0 prompt", "1:4 prompt"]
    assert parts(library.search("cherry -banana")) == ["1:6 prompt"]
    assert not library.search("apple -apple").sessions


def test_a_quotation_mark_without_end_is_an_error(library: Library) -> None:
    with pytest.raises(InvalidQueryError, match="quotation mark"):
        library.search('"unbalanced')


def test_forgotten_words_are_not_in_the_index(archived: Library, tmp_path: Path) -> None:
    path = put_prompts(tmp_path, 1, "xylophone lesson")
    put_prompts(tmp_path, 2, "piano lesson")
    assert numbers(archived.search("xylophone")) == [1]
    index = index_path(tmp_path / "archive.db")
    assert b"xylophone" in b"".join(file.read_bytes() for file in tmp_path.glob(f"{index.name}*"))
    path.unlink()
    archived.archive.forget([session_id(1)], undo=False)
    assert not archived.search("xylophone").sessions
    assert numbers(archived.search("piano")) == [2]
    assert b"xylophone" not in b"".join(file.read_bytes() for file in tmp_path.glob(f"{index.name}*"))


def test_a_session_that_grew_is_found_by_its_new_words(library: Library, tmp_path: Path) -> None:
    path = put_prompts(tmp_path, 1, "first marmot")
    assert only_hit(library.search("marmot")) == "1:0 prompt"
    with path.open("ab") as file:
        file.write(log(user("u9", "then an ibex", second=20)))
    library.refresh()
    assert only_hit(library.search("ibex")) == "1:2 prompt"
    page = library.search("marmot")
    assert (only_hit(page), page.total) == ("1:0 prompt", 1)


def test_an_archive_put_back_from_a_backup_is_noticed(tmp_path: Path) -> None:
    put_prompts(tmp_path, 1, "the oldest heron")
    with open_library(tmp_path) as library:
        assert numbers(library.search("heron")) == [1]
    shutil.copy(tmp_path / "archive.db", tmp_path / "backup.db")
    path = put_prompts(tmp_path, 2, "a later stork")
    with open_library(tmp_path) as library:
        assert numbers(library.search("stork")) == [2]
    path.unlink()
    for file in tmp_path.glob("archive.db*"):
        file.unlink()
    shutil.copy(tmp_path / "backup.db", tmp_path / "archive.db")
    put_prompts(tmp_path, 3, "a crane instead")
    with open_library(tmp_path) as library:
        assert not library.search("stork").sessions
        assert numbers(library.search("crane")) == [3]
        assert numbers(library.search("heron")) == [1]


@pytest.mark.parametrize("query", ["AND", "NEAR(a b, 2)", "col:x", "^x", "{a b}: c", "a + b", "NOT", "abc* bcd*"])
def test_the_syntax_of_the_index_is_not_the_language(archived: Library, tmp_path: Path, query: str) -> None:
    put_prompts(tmp_path, 1, "AND NEAR(a b, 2) then col:x and ^x, {a b}: c, a + b, NOT, abc bcd")
    assert numbers(archived.search(query)) == [1]


def test_a_common_word_has_a_true_count(archived: Library, tmp_path: Path) -> None:
    for number in range(30):
        put_prompts(tmp_path, number, "the first", "and the second")
    page = archived.search("the", Page(5))
    assert numbers(page) == [29, 28, 27, 26, 25]
    assert (page.total, page.n_sessions) == (60, None)
    for query in ("the", "re:/th./", 'the -"no such"', "the role:user"):
        counted = archived.search(query, count=True)
        assert (counted.total, counted.n_sessions, counted.sessions) == (60, 30, ())


def test_nul_and_lone_surrogates_are_texts(library: Library, tmp_path: Path) -> None:
    escaped = (
        b'{"id":"u1","timestamp":"%b","type":"user","content":"an \\u0000 odd\\ud800 gnu"}' % builders.at(1).encode()
    )
    put_session(tmp_path, 1)
    with session_file(tmp_path, 1).open("ab") as file:
        file.write(escaped + b"\n")
    assert only_hit(library.search("gnu")) == "1:0 prompt"
    assert only_hit(library.search("odd")) == "1:0 prompt"
    assert to_json(library.search("gnu"))


def test_commands_and_files_are_found_by_their_fields(library: Library, tmp_path: Path) -> None:
    put_session(
        tmp_path,
        1,
        user(),
        gemini(
            toolCalls=[
                call("c1", "run_shell_command", args={"command": "docker compose up -d"}),
                call("c2", "read_file", args={"file_path": f"{builders.ROOT}/src/services/userRepository.ts"}),
            ]
        ),
    )
    assert only_hit(library.search("cmd:compose")) == "1:1 args"
    (hit,) = library.search("file:userRepository.ts").sessions[0].hits
    assert any(snippet.spans for snippet in hit.snippets)
    assert not library.search("cmd:npm").sessions
    assert [row.path for row in library.touched_files("userRepository").rows]
    assert [row.command for row in library.commands_run("docker").rows] == ["docker compose up -d"]


def test_a_field_and_a_word_belong_to_one_message(library: Library, tmp_path: Path) -> None:
    put_session(
        tmp_path,
        1,
        user("u1", "deploy with compose"),
        gemini("g1", "done", toolCalls=[call("c1", "run_shell_command", args={"command": "docker compose up"})]),
    )
    assert parts(library.search("compose cmd:docker")) == ["1:1 args"]
    assert parts(library.search("compose (cmd:docker OR role:user)")) == ["1:0 prompt", "1:1 args"]
    assert parts(library.search("compose -cmd:docker")) == ["1:0 prompt"]
    (session,) = library.search("deploy cmd:docker").sessions
    assert session.scope == "session"
    assert "u1" in {hit.message_id for hit in session.hits}
    assert not library.search("deploy cmd:npm").sessions
    assert not library.search("deploy role:gemini").sessions


def test_fields_alone_find_sessions(library: Library, tmp_path: Path) -> None:
    put_prompts(tmp_path, 1, "one")
    put_prompts(tmp_path, 2, "two")
    put_subagent(tmp_path, 2, "helper", user("a1", "three"))
    page = library.search("project:webapp")
    assert numbers(page) == [2, 1]
    assert [session.hits for session in page.sessions] == [(), ()]
    assert [session.row.id for session in library.search("kind:subagent").sessions] == ["helper"]


def test_a_negated_word_excludes_sessions_where_only_fields_remain(library: Library, tmp_path: Path) -> None:
    put_prompts(tmp_path, 1, "alarms at night", "then nothing")
    put_prompts(tmp_path, 2, "only a word")
    page = library.search("-alarms project:webapp")
    assert numbers(page) == [2]
    assert page.sessions[0].hits == ()
    assert parts(library.search("-alarms role:user")) == ["2:0 prompt", "1:2 prompt"]


def test_a_field_that_no_session_matches_is_explained(library: Library, tmp_path: Path) -> None:
    put_prompts(tmp_path, 1, "a word")
    assert not notes_with(library.search("word project:webap"), "No session matches")
    (note,) = notes_with(library.search("word project:webbap"), "No session matches")
    assert 'Did you mean "project:webapp"?' in note
    assert notes_with(library.search("word model:nothing"), "No session matches")


def test_a_title_that_is_in_no_message_is_found(library: Library, tmp_path: Path) -> None:
    put_session(tmp_path, 1, user(content="please help"), updates(summary="Find the cause of Duplicate Alerts"))
    put_session(tmp_path, 2, user(content="duplicate alerts here"), updates(summary="Something else"))
    put_session(tmp_path, 3, user(content="bonjour"), updates(summary="Un café après minuit"))
    page = library.search("duplicate alerts")
    assert {session.row.id[:8]: (session.scope, session.n_hits) for session in page.sessions} == {
        "00000001": ("title", 0),
        "00000002": ("message", 1),
    }
    assert all(session.score > 3 for session in page.sessions)
    for query in ("cause", "CAUSE find", '"the cause"', "caus*", "cause -minuit", "cause project:webapp"):
        assert numbers(library.search(query)) == [1], query
    assert numbers(library.search("cafe")) == [3]
    assert numbers(library.search("cause", scan=True)) == [1]
    assert numbers(library.search("cause", sort="oldest")) == [1]
    for query in (
        "cause in:prompt",
        "cause -alerts",
        "re:/cause/",
        "cause role:user",
        '"cause the"',
        "cause project:x",
    ):
        assert not library.search(query).sessions, query
    counted = library.search("duplicate", count=True)
    assert (counted.total, counted.n_sessions) == (1, 2)
    with library.snapshot(tools=True) as snapshot:
        report = library._report
        found = matching_sessions(snapshot, parse(library.config, "cause"), Filter(), report, lambda _note: None)
    assert found.ids == {session_id(1)}


def test_an_empty_query_lists_the_newest_sessions(library: Library, tmp_path: Path) -> None:
    for number in range(3):
        put_prompts(tmp_path, number, "text")
    page = library.search("", Page(2))
    assert numbers(page) == [2, 1]
    assert numbers(library.search("", Page(2, page.next))) == [0]


def test_filters_limit_a_search(library: Library, tmp_path: Path) -> None:
    put_prompts(tmp_path, 1, "same word")
    put_prompts(tmp_path, 60, "same word")
    assert numbers(library.search("same", wanted=Filter(since=builders.instant_of(300)))) == [60]
    assert numbers(library.search("same", wanted=Filter(until=builders.instant_of(300)))) == [1]
    with pytest.raises(ProjectNotFoundError):
        library.search("same", wanted=Filter(project="nothing"))


def test_sorts(library: Library, tmp_path: Path) -> None:
    for number, cost in ((1, 500), (2, 9000), (3, 20)):
        put_session(
            tmp_path,
            number,
            user(f"u{number}", "same word", second=number * 10),
            gemini(f"g{number}", "ok", second=number * 10, tokens=tokens(cost)),
        )
    assert numbers(library.search("word", sort="newest")) == [3, 2, 1]
    assert numbers(library.search("word", sort="oldest")) == [1, 2, 3]
    assert numbers(library.search("word", sort="cost")) == [2, 1, 3]
    with pytest.raises(PolluxError, match="There is no order 'size'"):
        library.search("word", sort="size")


@pytest.mark.parametrize("sort", ["relevance", "newest", "oldest", "cost"])
@pytest.mark.parametrize("query", ["word", "two parts", "word project:webapp", "role:user", "re:/wor./"])
def test_pages_continue_each_other(library: Library, tmp_path: Path, query: str, sort: str) -> None:
    for number in range(7):
        put_prompts(tmp_path, number, "a word in two", "parts")
    whole = numbers(library.search(query, ALL, sort=sort))
    assert sorted(whole) == [*range(7)]
    pages: list[int] = []
    after = None
    for _ in range(5):
        page = library.search(query, Page(2, after), sort=sort)
        pages += numbers(page)
        after = page.next
        if after is None:
            break
    assert sorted(pages) == sorted(whole)
    if sort != "relevance":
        assert pages == whole


@pytest.mark.parametrize("query", ["word", "word project:webapp", "re:/wor./"])
def test_a_cursor_survives_new_sessions(library: Library, tmp_path: Path, query: str) -> None:
    for number in range(6):
        put_prompts(tmp_path, number, "a word")
    first = library.search(query, Page(3))
    assert numbers(first) == [5, 4, 3]
    put_prompts(tmp_path, 7, "a new word")
    library.refresh()
    second = library.search(query, Page(3, first.next))
    assert numbers(second) == [2, 1, 0]
    assert second.next is None


def test_a_cursor_of_another_search_is_refused(library: Library, tmp_path: Path) -> None:
    for number in range(3):
        put_prompts(tmp_path, number, "a word in a text")
    after = library.search("word", Page(1)).next
    with pytest.raises(PolluxError, match="belongs to another search"):
        library.search("text", Page(1, after))
    for broken in ("x", "é", "AAAA", "{}"):
        with pytest.raises(PolluxError, match="The cursor is not valid"):
            library.search("word", Page(1, broken))


def test_a_typing_error_gets_suggestions(archived: Library, tmp_path: Path) -> None:
    put_prompts(tmp_path, 1, "deploy to kubernetes")
    page = archived.search("in:prompt kuberntes deploy")
    assert page.suggestions == ("in:prompt kubernetes deploy",)
    assert archived.search("zzzzzz").suggestions == ()


def test_left_out_operators_are_named(library: Library, tmp_path: Path) -> None:
    put_prompts(tmp_path, 1, "a word")
    page = library.search("word - OR")
    assert numbers(page) == [1]
    assert notes_with(page, "Left out of the query")


def test_without_an_archive_a_note_says_so(tmp_path: Path) -> None:
    put_prompts(tmp_path, 1, "a word")
    with open_library(tmp_path, archive=False) as library:
        page = library.search("word")
        assert numbers(page) == [1]
        assert notes_with(page, "Without an archive")
        assert (page.coverage.n_indexed, page.coverage.n_sessions) == (0, 1)
    assert not (tmp_path / "archive.db").exists()


def test_what_is_not_indexed_is_scanned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pollux.library.search._INDEXED_AT_ONCE", 2000)
    put_prompts(tmp_path, 1, "old word " + "x " * 1000)
    put_prompts(tmp_path, 2, "new word")
    with open_library(tmp_path) as library:
        page = library.search("word")
        assert numbers(page) == [2, 1]
        assert page.coverage.missing == (session_id(1),)
        (note,) = page.notes
        assert note.startswith("1 of 2 sessions are indexed; the others were read directly.")
        assert (page.total, page.n_sessions) == (2, 2)
        assert numbers(library.search("word", sort="oldest")) == [1, 2]
        counted = library.search("word", count=True)
        assert (counted.total, counted.n_sessions) == (2, 2)


def test_an_index_that_is_damaged_inside_is_built_again(tmp_path: Path) -> None:
    for number in range(40):
        put_prompts(tmp_path, number, f"word{number} " + " ".join(f"filler{number}x{n}" for n in range(200)))
    with open_library(tmp_path) as library:
        assert numbers(library.search("word7")) == [7]
    index = index_path(tmp_path / "archive.db")
    data = bytearray(index.read_bytes())
    for offset in range(4096 * 12, len(data) - 4096, 4096):
        data[offset : offset + 2000] = b"\xff" * 2000
    index.write_bytes(bytes(data))
    with open_library(tmp_path) as library:
        assert numbers(library.search("word7")) == [7]


def test_a_folder_that_cannot_be_written_is_scanned(tmp_path: Path) -> None:
    put_prompts(tmp_path, 1, "a word")
    with open_library(tmp_path) as library:
        library.refresh()
        index_path(tmp_path / "archive.db").mkdir()
        page = library.search("word")
    assert numbers(page) == [1]
    assert notes_with(page, "The search index cannot be used")


@pytest.mark.parametrize("scan", [False, True])
def test_a_damaged_session_is_a_problem_and_the_others_are_found(
    archived: Library, tmp_path: Path, *, scan: bool
) -> None:
    put_prompts(tmp_path, 1, "a word")
    put_prompts(tmp_path, 2, "a word")
    assert numbers(archived.search("word")) == [2, 1]
    with closing(sqlite3.connect(tmp_path / "archive.db")) as database, database:
        query = "SELECT version_id FROM files JOIN versions ON versions.id = version_id WHERE path LIKE '%00000002%'"
        (version_id,) = database.execute(query).fetchone()
        database.execute("UPDATE segments SET data = zeroblob(length(data)) WHERE version_id = ?", (version_id,))
    page = archived.search("word", scan=scan)
    assert numbers(page) == [1]
    (problem,) = page.problems
    assert problem.code == "unreadable-session"
    assert "00000002" in problem.message


def test_a_file_that_vanishes_is_a_problem(tmp_path: Path) -> None:
    path = put_prompts(tmp_path, 1, "a word")
    put_prompts(tmp_path, 2, "a word")
    with open_library(tmp_path, archive=False) as library:
        assert numbers(library.search("word")) == [2, 1]
        path.unlink()
        page = library.search("word")
    assert numbers(page) == [2]
    assert [problem.code for problem in page.problems] == ["unreadable-session"]


def test_searches_go_on_while_sessions_grow(archived: Library, tmp_path: Path) -> None:
    path = put_prompts(tmp_path, 1, "word0")
    put_prompts(tmp_path, 2, "other")
    is_done = threading.Event()

    def ask(number: int) -> int:
        n_answers = 0
        while not is_done.is_set() or n_answers < 3:
            page = archived.search("word*", hits_per_session=100)
            assert numbers(page) == [1]
            (session,) = page.sessions
            assert sorted({hit.number for hit in session.hits}) == [2 * n for n in range(len(session.hits))]
            assert numbers(archived.search("other")) == [2], number
            n_answers += 1
        return n_answers

    archived.refresh()
    with ThreadPoolExecutor(4) as pool:
        running = [pool.submit(ask, number) for number in range(4)]
        for number in range(1, 8):
            turn = [user(f"v{number}", f"word{number}", second=20 + number), gemini(f"w{number}", second=20 + number)]
            with path.open("ab") as file:
                file.write(log(*turn))
            archived.refresh()
        is_done.set()
        assert all(future.result() >= 3 for future in running)
    assert len(archived.search("word*", hits_per_session=100).sessions[0].hits) == 8


def test_threads_share_a_library(archived: Library, tmp_path: Path) -> None:
    for number in range(20):
        put_prompts(tmp_path, number, f"common word{number}")

    def ask(number: int) -> list[int]:
        assert len(archived.search("common", ALL).sessions) == 20
        return numbers(archived.search(f"word{number}"))

    with ThreadPoolExecutor(8) as pool:
        answers_ = list(pool.map(ask, range(20)))
    assert answers_ == [[number] for number in range(20)]


def test_sessions_for_a_list(library: Library, tmp_path: Path) -> None:
    put_prompts(tmp_path, 1, "an albatross", "and a penguin")
    put_prompts(tmp_path, 2, "an albatross")
    put_session(tmp_path, 3, user(content="look for it"))
    put_subagent(tmp_path, 3, "agent", user("a1", "the penguin of an albatross"))

    def ids(query: str) -> set[str]:
        parsed = parse(library.config, query)
        with library.snapshot(tools=True) as snapshot:
            report = library._report
            return {*matching_sessions(snapshot, parsed, Filter(), report, lambda _note: None).ids}

    assert ids("albatross penguin") == {session_id(1), session_id(3), "agent"}
    assert ids('"a penguin"') == {session_id(1)}
    assert ids("albatross -penguin") == {session_id(1), session_id(2)}
    assert ids("re:/alba.*oss$/") == {session_id(1), session_id(2), session_id(3), "agent"}
    assert ids("kind:main") == {session_id(1), session_id(2), session_id(3)}


def test_a_page_is_a_value(archived: Library, tmp_path: Path) -> None:
    put_prompts(tmp_path, 1, "a <b>bold</b> [red]word[/red]")
    page = archived.search("bold")
    assert msgspec.to_builtins(page.sessions[0].hits)
    document = to_json(page)
    assert document.keys() == {
        *("schema", "query", "hits", "sessions", "more", "cursor", "total", "suggestions", "coverage", "notes"),
        "problems",
    }
    assert isinstance(document["hits"], list)
    (hit,) = document["hits"]
    assert hit.keys() >= {"session", "message", "part", "at", "project", "title", "fate", "snippet", "score"}
    assert hit["number"] == 1
    (snippet,) = hit["snippets"]
    ((start, end),) = snippet["highlights"]
    assert snippet["text"][start:end] == "bold"
