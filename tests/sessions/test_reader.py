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


def found_in(*roots: Path) -> History:
    return history([home(root) for root in roots])


def total(found: History) -> Tokens:
    return sum((call.tokens for session in found.sessions for call in session.calls), Tokens())


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """Make a home with two sessions, the newer with a subagent, a stub of a third, and one without a header."""
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


def test_all_sessions_newest_first(filled: Path) -> None:
    found = found_in(filled)
    assert [one.id for one in found.sessions] == ["agent1", OTHER, SESSION, "77777777-x", "88888888"]
    assert [one.id for one in found.main] == [OTHER, SESSION, "88888888"]
    assert total(found).total == 15 + 55 + 65
    assert not found.problems
    assert [problem.code for one in found.sessions for problem in one.problems] == ["no-header"]


def test_children(filled: Path) -> None:
    by_id = {one.id: one for one in found_in(filled).sessions}
    assert by_id[OTHER].children == ("agent1",)
    assert (by_id["agent1"].kind, by_id["agent1"].parent, by_id["agent1"].parent_call) == ("subagent", OTHER, "c1")


def test_progress(filled: Path) -> None:
    told: list[tuple[int, int]] = []
    history([home(filled)], progress=lambda done, everything: told.append((done, everything)))
    assert told
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1]


def test_no_home(tmp_path: Path) -> None:
    found = found_in(tmp_path)
    assert not found.sessions
    assert not found.problems


def test_homes_are_those_given(filled: Path) -> None:
    (one,) = homes(filled)
    assert history([one]).main


def test_an_import_is_counted_once(tmp_path: Path) -> None:
    put(chats(tmp_path) / f"{NAME}.jsonl", log(header(startTime=at(30)), ONE, TWO))
    new = gemini("g9", "new", tokens=tokens(90))
    imported = log(header(OTHER), notice("import-1", "Imported session from a"), ONE, TWO, new)
    put(chats(tmp_path) / "session-1794771361910-b3e2640d.jsonl", imported)
    found = found_in(tmp_path)
    calls = {one.id: [call.message_id for call in one.calls] for one in found.sessions}
    assert calls == {SESSION: ["g1"], OTHER: ["g9"]}
    assert total(found).total == 15 + 95
    assert {ref.role for one in found.sessions for ref in one.files} == {Role.MAIN, Role.IMPORT}


def test_equal_ids_with_other_counts_are_two_calls(tmp_path: Path) -> None:
    put(chats(tmp_path) / f"{NAME}.jsonl", log(header(), TWO))
    put(chats(tmp_path) / f"{OTHER_NAME}.jsonl", log(header(OTHER), TWO | {"tokens": tokens(20)}))
    assert total(found_in(tmp_path)).total == 15 + 25


def test_the_project(tmp_path: Path) -> None:
    put(chats(tmp_path) / f"{NAME}.jsonl", log(header(), ONE))
    (one,) = found_in(tmp_path).sessions
    assert (one.project.path, one.project.slug, one.project.hash, one.project.proven) == (ROOT, "webapp", HASH, True)


@pytest.mark.parametrize(
    ("records", "fields"),
    [
        ((preamble(), ONE), {}),
        ((ONE,), {"directories": [ROOT, 7]}),
        ((ONE, gemini("g1", "", toolCalls=[call(args={"file_path": f"{ROOT}/src/a.py"})])), {"directories": 7}),
    ],
)
def test_the_project_of_a_folder_without_a_marker(tmp_path: Path, records: tuple[object, ...], fields: Wire) -> None:
    put(chats(tmp_path, HASH) / f"{NAME}.jsonl", log(header(**fields), *records))
    (one,) = found_in(tmp_path).sessions
    assert (one.project.path, one.project.proven) == (ROOT, True)


def test_a_project_that_is_remembered(tmp_path: Path) -> None:
    put(chats(tmp_path, HASH) / f"{NAME}.jsonl", log(header(), ONE))
    assert found_in(tmp_path).sessions[0].project.path is None
    assert history([home(tmp_path)], memory={HASH: ROOT}).sessions[0].project.path == ROOT


@pytest.mark.parametrize("digest", [None, 7, ""])
def test_a_session_without_a_project_hash(tmp_path: Path, digest: object) -> None:
    put(chats(tmp_path) / f"{NAME}.json", document(ONE, projectHash=digest))
    (one,) = found_in(tmp_path).sessions
    assert (one.project.hash, one.project.slug) == (None, "webapp")


def test_a_broken_registry_is_reported(tmp_path: Path) -> None:
    put(chats(tmp_path) / f"{NAME}.jsonl", log(header(), ONE))
    put(tmp_path / ".gemini" / "projects.json", b"{")
    assert [problem.file for problem in found_in(tmp_path).problems] == [str(tmp_path / ".gemini" / "projects.json")]


def test_a_whole_id_from_the_logged_prompts(tmp_path: Path) -> None:
    logged = [
        {"sessionId": id_, "messageId": 0, "type": "user", "message": "x", "timestamp": at(0)}
        for id_ in (OTHER, SESSION)
    ]
    for name in (NAME, "session-2026-11-15T19-31-6ece72aa", "session-2026-11-15T19-32-99999999"):
        put(chats(tmp_path) / f"{name}.jsonl", log(user(name, "x")))
    assert {one.id for one in found_in(tmp_path).sessions} == {"6ece72aa", "99999999"}
    put(chats(tmp_path).parent / "logs.json", json.dumps(logged).encode())
    assert {one.id for one in found_in(tmp_path).sessions} == {SESSION, "99999999"}


def test_logged_prompts_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(chats(tmp_path) / f"{NAME}.jsonl", log(ONE))
    put(chats(tmp_path).parent / "logs.json", b"[]")

    def refuse(*_: object, **_options: object) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(reader, "read_side_file", refuse)
    assert [one.id for one in found_in(tmp_path).sessions] == ["6ece72aa"]


def test_a_file_without_permission_spoils_only_itself(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = read.open_regular

    def refuse(path: Path) -> FileIO:
        if path.name == f"{NAME}.jsonl":
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(source, "open_regular", refuse)
    found = found_in(filled)
    assert [one.id for one in found.main] == [OTHER, "88888888"]
    assert [(problem.code, Path(str(problem.file)).name) for problem in found.problems] == [
        ("unreadable-file", f"{NAME}.jsonl")
    ]
    with pytest.raises(UnreadableFileError, match="Permission denied"):
        from_file(chats(filled) / f"{NAME}.jsonl")


def test_a_session_is_opened_again(filled: Path) -> None:
    for session in found_in(filled).sessions:
        group = opened(session)
        assert (group.id, group.kind, group.parent) == (session.id, session.kind, session.parent)
        assert len(group.entries) == sum(session.fates.values())
    (agent,) = (one for one in found_in(filled).sessions if one.id == "agent1")
    assert [entry.origin for entry in opened(agent).entries] == [Origin.AGENT_PROMPT, Origin.MODEL]


def test_missing_session(filled: Path) -> None:
    session = select(found_in(filled), SESSION)
    shutil.rmtree(filled)
    with pytest.raises(UnreadableFileError, match=f"{NAME}.jsonl: No such file"):
        opened(session)


def test_a_file_that_somebody_names(filled: Path) -> None:
    session, group = from_file(chats(filled) / f"{NAME}.jsonl")
    assert (session.id, session.title, group.id) == (SESSION, "one", SESSION)
    assert session.project.path == ROOT
    with pytest.raises(UnreadableFileError, match="Cannot read"):
        from_file(filled / "none.jsonl")


@pytest.mark.parametrize(
    ("wanted", "expected"),
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
def test_select(filled: Path, wanted: str, expected: str) -> None:
    assert select(found_in(filled), wanted).id == expected


@pytest.mark.parametrize("wanted", ["zzz", "@0", "@4", "@", "@x", "@-1", "Latest", "@" + "9" * 5000])
def test_select_nothing(filled: Path, wanted: str) -> None:
    with pytest.raises(SessionNotFoundError, match=wanted):
        select(found_in(filled), wanted)


def test_select_in_an_empty_home(tmp_path: Path) -> None:
    with pytest.raises(SessionNotFoundError, match="there are no sessions"):
        select(found_in(tmp_path), "latest")


def test_select_several(tmp_path: Path) -> None:
    put(chats(tmp_path) / f"{NAME}.jsonl", log(header(), ONE))
    put(chats(tmp_path) / "session-2026-11-15T19-31-6ece72aa.jsonl", log(header("6ece72aa-other"), ONE))
    found = found_in(tmp_path)
    with pytest.raises(AmbiguousSessionError, match="2 sessions"):
        select(found, "6ece")
    assert select(found, "6ece72aa-o").id == "6ece72aa-other"


def test_a_main_session_before_its_subagents(tmp_path: Path) -> None:
    put(chats(tmp_path) / f"{NAME}.json", document(ONE))
    put(chats(tmp_path) / "session-2026-11-15T19-31-6ece72aa.json", document(user("u2", "x"), kind="subagent"))
    assert select(found_in(tmp_path), "6ece").id == SESSION


def without_files(session: Session) -> tuple[object, ...]:
    return (
        session.id,
        session.title,
        session.counts,
        session.fates,
        [(call.message_id, call.tokens) for call in session.calls],
    )


def test_copies_of_a_home_add_nothing(filled: Path, tmp_path: Path) -> None:
    for name in ("b", "c"):
        shutil.copytree(filled, tmp_path / name)
    alone, copied = found_in(filled), found_in(filled, tmp_path / "b", tmp_path / "c")
    assert total(alone) == total(copied)
    assert [without_files(one) for one in alone.sessions] == [without_files(one) for one in copied.sessions]


def test_reading_twice_gives_equal_values(filled: Path) -> None:
    assert found_in(filled) == found_in(filled)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5), st.booleans()), min_size=1, max_size=8))
def test_usage_does_not_depend_on_how_files_are_spread(tmp_path: Path, calls: list[tuple[str, int, bool]]) -> None:
    """Whatever the order and number of files, each message id of a session counts once."""
    shutil.rmtree(tmp_path / ".gemini", ignore_errors=True)
    records = [gemini(f"{id_}{n}", "", tokens=tokens(n)) for id_, n, _ in calls]
    split = sum(1 for *_, is_first in calls if is_first)
    put(chats(tmp_path) / f"{NAME}.jsonl", log(header(), *records[:split]))
    put(chats(tmp_path) / "session-2026-11-15T19-31-6ece72aa.jsonl", log(header(), *records[split:]))
    expected = {record["id"]: record["tokens"]["total"] for record in records}
    assert total(found_in(tmp_path)).total == sum(expected.values())


def test_no_file_stays_open(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files: list[Source] = []
    real = Source.__init__

    def remember(self: Source, *args: object, **more: object) -> None:
        real(self, *args, **more)  # type: ignore[arg-type]
        if self._file:
            files.append(self._file)  # type: ignore[arg-type]

    monkeypatch.setattr(Source, "__init__", remember)
    found_in(filled)
    assert len(files) == 5
    assert all(file.closed for file in files)  # type: ignore[attr-defined]


def test_sessions_that_say_they_started_each_other_have_no_children(tmp_path: Path) -> None:
    for own, parent in ((builders.SESSION, builders.OTHER), (builders.OTHER, builders.SESSION)):
        folder = builders.chats(tmp_path) / parent
        builders.put(folder / f"{own}.jsonl", builders.log(builders.header(own, kind="subagent"), builders.user()))
    found = history([builders.home(tmp_path)])
    assert {one.parent for one in found.sessions} == {builders.SESSION, builders.OTHER}
    assert not any(one.children for one in found.sessions)


def test_an_id_may_be_typed_in_capitals(tmp_path: Path) -> None:
    builders.put(builders.chats(tmp_path) / f"{builders.NAME}.jsonl", builders.log(builders.header(), builders.user()))
    found = history([builders.home(tmp_path)])
    assert select(found, builders.SESSION[:8].upper()).id == builders.SESSION


@pytest.mark.parametrize("name", ["read", "_assemble"])
def test_error_in_one_file_does_not_stop_the_others(filled: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    function = getattr(grouping, name)

    def fail(*args: object) -> object:
        if "b3e2640d" in repr(args[:2]):
            raise ZeroDivisionError("odd")
        return function(*args)

    monkeypatch.setattr(grouping, name, fail)
    found = found_in(filled)
    assert SESSION in {one.id for one in found.main}
    assert OTHER not in {one.id for one in found.sessions}
    (problem,) = (one for one in found.problems if one.file == str(chats(filled) / f"{OTHER_NAME}.jsonl"))
    assert problem.code == "cannot-derive"
    assert "ZeroDivisionError: odd" in problem.message


def test_integers_of_the_header_that_no_table_holds_are_rounded_and_reported(tmp_path: Path) -> None:
    header_with = header(directories=[2**64, "/srv"], memoryScratchpad={"version": -(2**80), "n": 5})
    file = put(chats(tmp_path) / f"{NAME}.jsonl", log(header_with, ONE))
    (session,) = found_in(tmp_path).sessions
    assert session.extra == {"directories": [2.0**64, "/srv"], "memoryScratchpad": {"version": -(2.0**80), "n": 5}}
    assert [(one.code, one.file) for one in session.problems] == [("value-out-of-range", str(file))] * 2


def test_number_of_thousands_of_digits_names_no_session(filled: Path) -> None:
    with pytest.raises(SessionNotFoundError):
        select(found_in(filled), "@" + "9" * 5000)
