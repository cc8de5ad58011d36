from __future__ import annotations

import json
import shutil
from io import FileIO
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests import builders
from tests.builders import (
    HASH,
    NAME,
    OTHER,
    ROOT,
    SESSION,
    Wire,
    at,
    call,
    chats,
    document,
    gemini,
    header,
    home,
    log,
    notice,
    preamble,
    put,
    tokens,
    user,
)

from pollux import homes
from pollux.disk import read
from pollux.errors import AmbiguousSessionError, SessionNotFoundError, UnreadableFileError
from pollux.formats import source
from pollux.formats.source import Source
from pollux.model import Origin, Role, Session, Tokens
from pollux.sessions import grouping, reader
from pollux.sessions.reader import History, from_file, history, opened, select

ONE, TWO = user("u1", "one"), gemini("g1", "two", tokens=tokens(10))
OTHER_NAME = "session-2026-11-15T19-40-b3e2640d"


def read_homes(*roots: Path) -> History:
    return history([home(root) for root in roots])


def total(read_history: History) -> Tokens:
    return sum((call.tokens for session in read_history.sessions for call in session.calls), Tokens())


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """Return a home with two sessions, the newer with a subagent, a stub of a third, and one without a header."""
    root = tmp_path / "filled"
    put(chats(root) / f"{NAME}.jsonl", log(header(), preamble(), ONE, TWO))
    agent = call("c1", "invoke_agent", args={"agent_name": "a", "prompt": "look"}, agentId="agent1")
    asked = gemini("g5", "", second=601, tokens=tokens(50), toolCalls=[agent])
    put(
        chats(root) / f"{OTHER_NAME}.jsonl",
        log(header(OTHER, startTime=at(600)), user("u5", "five", second=600), asked),
    )
    inner = gemini("g6", "six", second=602, tokens=tokens(60))
    agent_log = log(header("agent1", kind="subagent", startTime=at(601)), user("u6", "look", second=601), inner)
    put(chats(root) / OTHER / "agent1.jsonl", agent_log)
    put(
        chats(root) / "session-2026-11-15T19-50-77777777.jsonl",
        log(header("77777777-x", startTime=at(900)), preamble()),
    )
    put(chats(root) / "session-2026-11-15T19-20-88888888.jsonl", log(user("u8", "eight", second=0)))
    return root


def test_sessions_are_sorted_newest_first(filled: Path) -> None:
    result = read_homes(filled)
    assert [session.id for session in result.sessions] == ["agent1", OTHER, SESSION, "77777777-x", "88888888"]
    assert [session.id for session in result.main] == [OTHER, SESSION, "88888888"]
    assert total(result).total == 15 + 55 + 65
    assert not result.problems
    assert [problem.code for session in result.sessions for problem in session.problems] == ["no-header"]


def test_subagent_is_linked_to_its_parent_and_call(filled: Path) -> None:
    by_id = {session.id: session for session in read_homes(filled).sessions}
    assert by_id[OTHER].children == ("agent1",)
    assert (by_id["agent1"].kind, by_id["agent1"].parent, by_id["agent1"].parent_call) == ("subagent", OTHER, "c1")


def test_progress_ends_with_all_bytes_done(filled: Path) -> None:
    steps: list[tuple[int, int]] = []
    history([home(filled)], progress=lambda done, size: steps.append((done, size)))
    assert steps
    assert steps == sorted(steps)
    assert steps[-1][0] == steps[-1][1]


def test_missing_home_has_neither_sessions_nor_problems(tmp_path: Path) -> None:
    result = read_homes(tmp_path)
    assert not result.sessions
    assert not result.problems


def test_home_given_by_path_is_read(filled: Path) -> None:
    (home_found,) = homes(filled)
    assert history([home_found]).main


def test_calls_of_an_import_are_counted_once(tmp_path: Path) -> None:
    put(chats(tmp_path) / f"{NAME}.jsonl", log(header(startTime=at(30)), ONE, TWO))
    new = gemini("g9", "new", tokens=tokens(90))
    imported = log(header(OTHER), notice("import-1", "Imported session from a"), ONE, TWO, new)
    put(chats(tmp_path) / "session-1794771361910-b3e2640d.jsonl", imported)
    result = read_homes(tmp_path)
    calls = {session.id: [call.message_id for call in session.calls] for session in result.sessions}
    assert calls == {SESSION: ["g1"], OTHER: ["g9"]}
    assert total(result).total == 15 + 95
    assert {ref.role for session in result.sessions for ref in session.files} == {Role.MAIN, Role.IMPORT}


def test_equal_ids_with_other_counts_are_two_calls(tmp_path: Path) -> None:
    put(chats(tmp_path) / f"{NAME}.jsonl", log(header(), TWO))
    put(chats(tmp_path) / f"{OTHER_NAME}.jsonl", log(header(OTHER), TWO | {"tokens": tokens(20)}))
    assert total(read_homes(tmp_path)).total == 15 + 25


def test_project_is_proven_by_its_marker(tmp_path: Path) -> None:
    put(chats(tmp_path) / f"{NAME}.jsonl", log(header(), ONE))
    (session,) = read_homes(tmp_path).sessions
    assert (session.project.path, session.project.slug, session.project.hash, session.project.proven) == (
        ROOT,
        "webapp",
        HASH,
        True,
    )


@pytest.mark.parametrize(
    ("records", "fields"),
    [
        ((preamble(), ONE), {}),
        ((ONE,), {"directories": [ROOT, 7]}),
        ((ONE, gemini("g1", "", toolCalls=[call(args={"file_path": f"{ROOT}/src/a.py"})])), {"directories": 7}),
    ],
)
def test_project_without_a_marker_is_proven_by_its_session(
    tmp_path: Path, records: tuple[object, ...], fields: Wire
) -> None:
    put(chats(tmp_path, HASH) / f"{NAME}.jsonl", log(header(**fields), *records))
    (session,) = read_homes(tmp_path).sessions
    assert (session.project.path, session.project.proven) == (ROOT, True)


def test_project_is_found_in_the_memory(tmp_path: Path) -> None:
    put(chats(tmp_path, HASH) / f"{NAME}.jsonl", log(header(), ONE))
    assert read_homes(tmp_path).sessions[0].project.path is None
    assert history([home(tmp_path)], memory={HASH: ROOT}).sessions[0].project.path == ROOT


@pytest.mark.parametrize("digest", [None, 7, ""])
def test_session_without_a_project_hash_has_the_slug_of_its_folder(tmp_path: Path, digest: object) -> None:
    put(chats(tmp_path) / f"{NAME}.json", document(ONE, projectHash=digest))
    (session,) = read_homes(tmp_path).sessions
    assert (session.project.hash, session.project.slug) == (None, "webapp")


def test_broken_registry_is_a_problem(tmp_path: Path) -> None:
    put(chats(tmp_path) / f"{NAME}.jsonl", log(header(), ONE))
    put(tmp_path / ".gemini" / "projects.json", b"{")
    assert [problem.file for problem in read_homes(tmp_path).problems] == [str(tmp_path / ".gemini" / "projects.json")]


def test_full_id_is_taken_from_logged_prompts(tmp_path: Path) -> None:
    logged = [
        {"sessionId": id_, "messageId": 0, "type": "user", "message": "x", "timestamp": at(0)}
        for id_ in (OTHER, SESSION)
    ]
    for name in (NAME, "session-2026-11-15T19-31-6ece72aa", "session-2026-11-15T19-32-99999999"):
        put(chats(tmp_path) / f"{name}.jsonl", log(user(name, "x")))
    assert {session.id for session in read_homes(tmp_path).sessions} == {"6ece72aa", "99999999"}
    put(chats(tmp_path).parent / "logs.json", json.dumps(logged).encode())
    assert {session.id for session in read_homes(tmp_path).sessions} == {SESSION, "99999999"}


def test_unreadable_logged_prompts_leave_the_short_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(chats(tmp_path) / f"{NAME}.jsonl", log(ONE))
    put(chats(tmp_path).parent / "logs.json", b"[]")

    def refuse(*_: object, **_options: object) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(reader, "read_side_file", refuse)
    assert [session.id for session in read_homes(tmp_path).sessions] == ["6ece72aa"]


def test_file_without_permission_does_not_affect_others(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = read.open_regular

    def refuse(path: Path) -> FileIO:
        if path.name == f"{NAME}.jsonl":
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(source, "open_regular", refuse)
    result = read_homes(filled)
    assert [session.id for session in result.main] == [OTHER, "88888888"]
    assert [(problem.code, Path(str(problem.file)).name) for problem in result.problems] == [
        ("unreadable-file", f"{NAME}.jsonl")
    ]
    with pytest.raises(UnreadableFileError, match="Permission denied"):
        from_file(chats(filled) / f"{NAME}.jsonl")


def test_opened_session_equals_its_summary(filled: Path) -> None:
    for session in read_homes(filled).sessions:
        group = opened(session)
        assert (group.id, group.kind, group.parent) == (session.id, session.kind, session.parent)
        assert len(group.entries) == sum(session.fates.values())
    (agent,) = (candidate for candidate in read_homes(filled).sessions if candidate.id == "agent1")
    assert [entry.origin for entry in opened(agent).entries] == [Origin.AGENT_PROMPT, Origin.MODEL]


def test_opening_a_deleted_session_raises(filled: Path) -> None:
    session = select(read_homes(filled), SESSION)
    shutil.rmtree(filled)
    with pytest.raises(UnreadableFileError, match=f"{NAME}.jsonl: No such file"):
        opened(session)


def test_named_file_is_read_as_a_session(filled: Path) -> None:
    session, group = from_file(chats(filled) / f"{NAME}.jsonl")
    assert (session.id, session.title, group.id) == (SESSION, "one", SESSION)
    assert session.project.path == ROOT
    with pytest.raises(UnreadableFileError, match="Cannot read"):
        from_file(filled / "none.jsonl")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (SESSION, SESSION),
        ("6ece", SESSION),
        (OTHER, OTHER),
        (NAME, SESSION),
        (f"{NAME}.jsonl", SESSION),
        ("latest", OTHER),
        ("@1", OTHER),
        ("@2", SESSION),
        ("@3", "88888888"),
        ("agent", "agent1"),
        ("7777", "77777777-x"),
    ],
)
def test_select_finds_a_session_by_id_name_or_number(filled: Path, query: str, expected: str) -> None:
    assert select(read_homes(filled), query).id == expected


@pytest.mark.parametrize("query", ["zzz", "@0", "@4", "@", "@x", "@-1", "Latest", "@" + "9" * 5000])
def test_select_without_a_match_raises(filled: Path, query: str) -> None:
    with pytest.raises(SessionNotFoundError, match=query):
        select(read_homes(filled), query)


def test_select_in_an_empty_home_raises(tmp_path: Path) -> None:
    with pytest.raises(SessionNotFoundError, match="there are no sessions"):
        select(read_homes(tmp_path), "latest")


def test_select_with_two_matches_raises(tmp_path: Path) -> None:
    put(chats(tmp_path) / f"{NAME}.jsonl", log(header(), ONE))
    put(chats(tmp_path) / "session-2026-11-15T19-31-6ece72aa.jsonl", log(header("6ece72aa-other"), ONE))
    result = read_homes(tmp_path)
    with pytest.raises(AmbiguousSessionError, match="2 sessions"):
        select(result, "6ece")
    assert select(result, "6ece72aa-o").id == "6ece72aa-other"


def test_select_prefers_a_main_session_to_its_subagents(tmp_path: Path) -> None:
    put(chats(tmp_path) / f"{NAME}.json", document(ONE))
    put(chats(tmp_path) / "session-2026-11-15T19-31-6ece72aa.json", document(user("u2", "x"), kind="subagent"))
    assert select(read_homes(tmp_path), "6ece").id == SESSION


def without_files(session: Session) -> tuple[object, ...]:
    return (
        session.id,
        session.title,
        session.counts,
        session.fates,
        [(call.message_id, call.tokens) for call in session.calls],
    )


def test_copied_homes_add_no_calls(filled: Path, tmp_path: Path) -> None:
    for name in ("b", "c"):
        shutil.copytree(filled, tmp_path / name)
    alone, copied = read_homes(filled), read_homes(filled, tmp_path / "b", tmp_path / "c")
    assert total(alone) == total(copied)
    assert [without_files(session) for session in alone.sessions] == [
        without_files(session) for session in copied.sessions
    ]


def test_reading_twice_gives_equal_values(filled: Path) -> None:
    assert read_homes(filled) == read_homes(filled)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5), st.booleans()), min_size=1, max_size=8))
def test_usage_does_not_depend_on_how_files_are_spread(tmp_path: Path, calls: list[tuple[str, int, bool]]) -> None:
    """Each message ID of a session counts once, in any order and number of files."""
    shutil.rmtree(tmp_path / ".gemini", ignore_errors=True)
    records = [gemini(f"{id_}{n}", "", tokens=tokens(n)) for id_, n, _ in calls]
    split = sum(1 for *_, is_first in calls if is_first)
    put(chats(tmp_path) / f"{NAME}.jsonl", log(header(), *records[:split]))
    put(chats(tmp_path) / "session-2026-11-15T19-31-6ece72aa.jsonl", log(header(), *records[split:]))
    expected = {record["id"]: record["tokens"]["total"] for record in records}
    assert total(read_homes(tmp_path)).total == sum(expected.values())


def test_no_file_stays_open(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files: list[Source] = []
    real = Source.__init__

    def remember(self: Source, *args: object, **options: object) -> None:
        real(self, *args, **options)  # type: ignore[arg-type]
        if self._file:
            files.append(self._file)  # type: ignore[arg-type]

    monkeypatch.setattr(Source, "__init__", remember)
    read_homes(filled)
    assert len(files) == 5
    assert all(file.closed for file in files)  # type: ignore[attr-defined]


def test_sessions_with_circular_parents_have_no_children(tmp_path: Path) -> None:
    for own, parent in ((builders.SESSION, builders.OTHER), (builders.OTHER, builders.SESSION)):
        folder = builders.chats(tmp_path) / parent
        builders.put(folder / f"{own}.jsonl", builders.log(builders.header(own, kind="subagent"), builders.user()))
    result = history([builders.home(tmp_path)])
    assert {session.parent for session in result.sessions} == {builders.SESSION, builders.OTHER}
    assert not any(session.children for session in result.sessions)


def test_select_ignores_the_case_of_an_id(tmp_path: Path) -> None:
    builders.put(builders.chats(tmp_path) / f"{builders.NAME}.jsonl", builders.log(builders.header(), builders.user()))
    result = history([builders.home(tmp_path)])
    assert select(result, builders.SESSION[:8].upper()).id == builders.SESSION


@pytest.mark.parametrize("name", ["read", "_assemble"])
def test_error_in_one_file_does_not_stop_the_others(filled: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    function = getattr(grouping, name)

    def fail(*args: object) -> object:
        if "b3e2640d" in repr(args[:2]):
            raise ZeroDivisionError("odd")
        return function(*args)

    monkeypatch.setattr(grouping, name, fail)
    found = read_homes(filled)
    assert SESSION in {one.id for one in found.main}
    assert OTHER not in {one.id for one in found.sessions}
    (problem,) = (one for one in found.problems if one.file == str(chats(filled) / f"{OTHER_NAME}.jsonl"))
    assert problem.code == "cannot-derive"
    assert "ZeroDivisionError: odd" in problem.message


def test_header_integers_over_64_bits_are_rounded_and_reported(tmp_path: Path) -> None:
    header_with = header(directories=[2**64, "/srv"], memoryScratchpad={"version": -(2**80), "n": 5})
    file = put(chats(tmp_path) / f"{NAME}.jsonl", log(header_with, ONE))
    (session,) = read_homes(tmp_path).sessions
    assert session.extra == {"directories": [2.0**64, "/srv"], "memoryScratchpad": {"version": -(2.0**80), "n": 5}}
    assert [(problem.code, problem.file) for problem in session.problems] == [("value-out-of-range", str(file))] * 2


def test_number_with_thousands_of_digits_selects_no_session(filled: Path) -> None:
    with pytest.raises(SessionNotFoundError):
        select(read_homes(filled), "@" + "9" * 5000)
