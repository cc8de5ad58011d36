from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.builders import (
    HASH,
    NAME,
    OTHER,
    PREAMBLE,
    SESSION,
    Wire,
    answers,
    asks,
    at,
    call,
    chats,
    checkpoint,
    document,
    gemini,
    header,
    home,
    instant_of,
    log,
    notice,
    preamble,
    put,
    rewind,
    tokens,
    user,
)

from pollux import formats
from pollux.formats.source import Source
from pollux.model import Fate, Kind, Origin, Problem, Role
from pollux.sessions import grouping
from pollux.sessions.grouping import OpenSession, bundles, open_bundle, open_file, open_readings
from pollux.sessions.locate import SessionFile, locate
from pollux.sessions.replay import reading
from pollux.sessions.replay.reading import FileReading
from pollux.sessions.replay.replay import replay

ONE, TWO = user("u1", "one"), gemini("g1", "two", tokens=tokens(10))
THREE, FOUR = user("u2", "three", second=63), gemini("g2", "four", second=64, tokens=tokens(20))
LATER = "session-2026-11-15T19-31-6ece72aa"


def nobody_knows(_file: SessionFile, _id8: str) -> str | None:
    return None


def grouped(*roots: Path, full_id: grouping.FullId = nobody_knows) -> tuple[list[OpenSession], list[Problem]]:
    files = [*locate([home(root) for root in roots]).files]
    found: list[OpenSession] = []
    problems: list[Problem] = []
    for bundle in bundles(files):
        more, new = open_bundle(bundle, full_id)
        found += more
        problems += new
    return found, problems


def only(*roots: Path, **more: Any) -> OpenSession:  # noqa: ANN401
    (found,), problems = grouped(*roots, **more)
    assert not problems
    return found


def roles(group: OpenSession) -> dict[str, Role]:
    return {one.reading.path.name: one.role for one in group.files}


def ids(group: OpenSession) -> list[str]:
    return [entry.id for entry in group.entries]


def total(group: OpenSession) -> int:
    return sum(call.tokens.total for call in group.calls.values())


def test_one_file(tmp_path: Path) -> None:
    put(chats(tmp_path) / f"{NAME}.jsonl", log(header(), ONE, TWO))
    found = only(tmp_path)
    assert (found.id, found.kind, found.parent) == (SESSION, "main", None)
    assert roles(found) == {f"{NAME}.jsonl": Role.MAIN}
    assert [message.text for message in found.messages()] == ["one", "two"]
    (call,) = found.calls.values()
    assert (call.session_id, call.message_id, call.at, call.model) == (SESSION, "g1", instant_of(2), "gemini-2.5-pro")
    assert (call.fate, call.file, call.line) == (Fate.ACTIVE, str(found.main.reading.path), 3)


def test_a_stub(tmp_path: Path) -> None:
    put(chats(tmp_path) / f"{NAME}.jsonl", log(header(), ONE, TWO))
    put(chats(tmp_path) / f"{LATER}.jsonl", log(header(startTime=at(60), lastUpdated=at(60)), checkpoint(preamble())))
    found = only(tmp_path)
    assert roles(found) == {f"{NAME}.jsonl": Role.MAIN, f"{LATER}.jsonl": Role.STUB}
    assert ids(found)[:2] == ["u1", "g1"]


def test_a_twin(tmp_path: Path) -> None:
    put(chats(tmp_path) / f"{NAME}.json", document(ONE, TWO))
    put(chats(tmp_path) / f"{NAME}.jsonl", log(header(), ONE, TWO, THREE, FOUR))
    found = only(tmp_path)
    assert roles(found) == {f"{NAME}.json": Role.TWIN, f"{NAME}.jsonl": Role.MAIN}
    assert ids(found) == ["u1", "g1", "u2", "g2"]
    assert total(found) == 40


def test_a_copy(tmp_path: Path) -> None:
    put(chats(tmp_path, HASH) / f"{NAME}.json", document(ONE, TWO))
    put(chats(tmp_path) / f"{NAME}.json", document(ONE, TWO, THREE, FOUR, lastUpdated=at(64)))
    found = only(tmp_path)
    assert sorted(one.role for one in found.files) == [Role.COPY, Role.MAIN]
    assert found.main.file
    assert found.main.file.folder == "webapp"
    assert ids(found) == ["u1", "g1", "u2", "g2"]
    assert total(found) == 40


def test_two_homes_with_the_same_session(tmp_path: Path) -> None:
    put(chats(tmp_path / "a") / f"{NAME}.jsonl", log(header(), ONE, TWO))
    put(chats(tmp_path / "b") / f"{NAME}.jsonl", log(header(), ONE, TWO, THREE, FOUR))
    found = only(tmp_path / "a", tmp_path / "b")
    assert sorted(one.role for one in found.files) == [Role.COPY, Role.MAIN]
    assert ids(found) == ["u1", "g1", "u2", "g2"]


def test_a_part(tmp_path: Path) -> None:
    put(chats(tmp_path) / f"{NAME}.json", document(ONE, TWO))
    put(chats(tmp_path) / f"{LATER}.json", document(THREE, FOUR, startTime=at(60), lastUpdated=at(64)))
    found = only(tmp_path)
    assert roles(found) == {f"{NAME}.json": Role.PART, f"{LATER}.json": Role.MAIN}
    assert ids(found) == ["u1", "g1", "u2", "g2"]
    assert total(found) == 40


def test_an_import_and_its_stub(tmp_path: Path) -> None:
    name = "session-1794771361910-6ece72aa.jsonl"
    put(chats(tmp_path) / name, log(header(), notice("import-1", "Imported session from a"), ONE, TWO))
    put(chats(tmp_path) / f"{LATER}.jsonl", log(header(startTime=at(60), lastUpdated=at(99)), preamble()))
    found = only(tmp_path)
    assert roles(found) == {name: Role.IMPORT, f"{LATER}.jsonl": Role.STUB}
    assert found.main.reading.path.name == name


def test_leftovers(tmp_path: Path) -> None:
    put(chats(tmp_path) / f"{NAME}.jsonl", log(header(), THREE, FOUR))
    put(chats(tmp_path) / f"{NAME}.jsonl.unreadable-1794305668421", log(ONE, TWO, b"x"))
    found = only(tmp_path)
    assert roles(found)[f"{NAME}.jsonl.unreadable-1794305668421"] == Role.UNREADABLE
    assert ids(found) == ["u1", "g1", "u2", "g2"]
    assert total(found) == 40


def test_a_leftover_alone_is_the_session(tmp_path: Path) -> None:
    put(chats(tmp_path) / f"{NAME}.jsonl.tmp-77", log(header(), ONE))
    found = only(tmp_path)
    assert (found.id, [*roles(found).values()]) == (SESSION, [Role.MAIN])


def test_no_header_but_a_sibling(tmp_path: Path) -> None:
    put(chats(tmp_path) / f"{NAME}.jsonl", log(header(), ONE, TWO))
    put(chats(tmp_path) / f"{LATER}.jsonl", log(THREE, FOUR))
    found = only(tmp_path)
    assert found.id == SESSION
    assert roles(found) == {f"{NAME}.jsonl": Role.MAIN, f"{LATER}.jsonl": Role.PART}
    assert ids(found) == ["u1", "g1", "u2", "g2"]


def test_no_header_but_logged_prompts(tmp_path: Path) -> None:
    put(chats(tmp_path) / f"{NAME}.jsonl", log(ONE, TWO))
    assert only(tmp_path, full_id=lambda _file, id8: SESSION if id8 == "6ece72aa" else None).id == SESSION


def test_no_header_at_all(tmp_path: Path) -> None:
    put(chats(tmp_path) / f"{NAME}.jsonl", log({"id": "u1", "type": "user", "content": "one"}))
    found = only(tmp_path)
    assert found.id == "6ece72aa"
    assert found.main.started == instant_of(0)
    assert found.main.updated is None


def test_no_header_and_no_id_in_the_name(tmp_path: Path) -> None:
    put(chats(tmp_path) / "session-odd.jsonl", log(ONE))
    assert only(tmp_path).id == "session-odd"
    assert open_file(chats(tmp_path) / "session-odd.jsonl").id == "session-odd"
    assert open_file(put(tmp_path / f"{NAME}.jsonl", log(ONE))).id == "6ece72aa"


def test_sessions_of_the_same_beginning_stay_apart(tmp_path: Path) -> None:
    put(chats(tmp_path) / f"{NAME}.jsonl", log(header(), ONE))
    put(chats(tmp_path) / f"{LATER}.jsonl", log(header("6ece72aa-other"), THREE))
    found, _ = grouped(tmp_path)
    assert sorted(group.id for group in found) == [SESSION, "6ece72aa-other"]


def test_sessions_of_one_file(tmp_path: Path) -> None:
    """Two IDs that begin alike, in one minute: the client appends to the same file, and loads the last."""
    first, second = header("6ece72aa-first"), header("6ece72aa-second", startTime=at(9))
    five = gemini("g3", "five", second=5, tokens=tokens(30))
    data = log(first, checkpoint(preamble()), ONE, TWO, second, checkpoint(preamble()), THREE, FOUR, five)
    path = put(chats(tmp_path) / f"{NAME}.jsonl", data)
    found, _ = grouped(tmp_path)
    assert {group.id: ids(group)[1:] for group in found} == {
        "6ece72aa-first": ["u1", "g1"],
        "6ece72aa-second": ["u2", "g2", "g3"],
    }
    assert {group.id: total(group) for group in found} == {"6ece72aa-first": 15, "6ece72aa-second": 60}
    assert all(entry.fate == Fate.ACTIVE for group in found for entry in group.entries)
    assert [group.main.started for group in found] == [instant_of(0), instant_of(0)]
    assert ids(open_readings("main", "6ece72aa-first", [reading.read(path)])) == [PREAMBLE, "u1", "g1"]
    assert open_file(path).id == "6ece72aa-second", "as the client says"


def test_nested_subagents(tmp_path: Path) -> None:
    put(chats(tmp_path) / f"{NAME}.jsonl", log(header(), ONE, TWO))
    put(chats(tmp_path) / SESSION / f"{OTHER}.jsonl", log(header(OTHER, kind="subagent"), THREE, FOUR))
    put(chats(tmp_path) / SESSION / "nohead.jsonl", log(user("u9", "x")))
    put(chats(tmp_path) / SESSION / f"{OTHER}.jsonl.unreadable-1", log(user("u8", "y")))
    found, _ = grouped(tmp_path)
    assert {(group.kind, group.id, group.parent) for group in found} == {
        ("main", SESSION, None),
        ("subagent", OTHER, SESSION),
        ("subagent", "nohead", SESSION),
    }


def test_flat_subagents_have_a_name_of_their_own(tmp_path: Path) -> None:
    put(chats(tmp_path) / f"{NAME}.json", document(ONE, TWO))
    put(chats(tmp_path) / f"{LATER}.json", document(THREE, FOUR, kind="subagent"))
    found, _ = grouped(tmp_path)
    assert {(group.kind, group.id, group.parent) for group in found} == {
        ("main", SESSION, None),
        ("subagent", f"{SESSION}:{LATER}", SESSION),
    }


def test_a_named_subagent(tmp_path: Path) -> None:
    found = open_file(put(tmp_path / "a.jsonl", log(header(OTHER, kind="subagent"), ONE)))
    assert (found.kind, found.id, found.parent) == ("subagent", OTHER, None)


def test_session_is_grouped_from_its_files(tmp_path: Path) -> None:
    paths = [
        put(chats(tmp_path) / f"{NAME}.json", document(ONE, TWO)),
        put(chats(tmp_path) / f"{NAME}.jsonl", log(header(), ONE, TWO, THREE)),
    ]
    first, again = only(tmp_path), open_readings("main", SESSION, [reading.read(path) for path in reversed(paths)])
    assert [*first.messages()] == [*again.messages()]
    assert roles(first) == roles(again)


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), FileNotFoundError(2, "No such file")])
def test_a_file_that_cannot_be_read_spoils_only_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    good = put(chats(tmp_path) / f"{NAME}.jsonl", log(header(), ONE))
    bad = put(chats(tmp_path) / f"{LATER}.jsonl", log(header(), THREE))

    def read(path: Path) -> FileReading:
        if path == bad:
            raise error
        return reading.read(path)

    monkeypatch.setattr(grouping, "read", read)
    (found,), (problem,) = grouped(tmp_path)
    assert [one.reading.path for one in found.files] == [good]
    assert (problem.code, problem.file) == ("unreadable-file", str(bad))
    assert str(error.strerror) in problem.message


def test_a_file_that_vanishes_between_finding_and_reading(tmp_path: Path) -> None:
    path = put(chats(tmp_path) / f"{NAME}.jsonl", log(header(), ONE))
    files = [*locate([home(tmp_path)]).files]
    path.unlink()
    found, (problem,) = open_bundle(files, nobody_knows)
    assert not found
    assert problem.code == "unreadable-file"


def test_bundles_go_by_the_id_in_the_names(tmp_path: Path) -> None:
    for name in (
        f"{NAME}.jsonl",
        f"{LATER}.json",
        f"{SESSION}/a.jsonl",
        "session-2026-11-15T19-31-b3e2640d.jsonl",
        "session-x.json",
    ):
        put(chats(tmp_path) / name, b"{}")
    found = [{file.path.name for file in bundle} for bundle in bundles(locate([home(tmp_path)]).files)]
    assert {f"{NAME}.jsonl", f"{LATER}.json", "a.jsonl"} in found
    assert len(found) == 3


def test_the_fuller_recording_with_the_fate_of_the_main_file(tmp_path: Path) -> None:
    put(chats(tmp_path) / f"{NAME}.json", document(ONE, TWO, lastUpdated=at(5)))
    poor = {"id": "g1", "timestamp": at(30), "type": "gemini", "content": "two"}
    put(chats(tmp_path) / f"{NAME}.jsonl", log(header(lastUpdated=at(40)), ONE, poor, rewind("g1")))
    found = only(tmp_path)
    (message,) = (one for one in found.messages() if one.id == "g1")
    assert (message.fate, message.model, message.at) == (Fate.REWOUND, "gemini-2.5-pro", instant_of(2))
    assert {call.fate for call in found.calls.values()} == {Fate.REWOUND}


def test_alive_in_one_of_two_older_files_is_alive(tmp_path: Path) -> None:
    for name, records in ((NAME, (ONE, rewind("u1"))), (LATER, (ONE,))):
        put(chats(tmp_path) / f"{name}.jsonl", log(header(lastUpdated=at(1)), *records))
    put(
        chats(tmp_path) / "session-2026-11-15T19-32-6ece72aa.jsonl",
        log(header(lastUpdated=at(99), startTime=at(90)), THREE),
    )
    assert [entry.fate for entry in only(tmp_path).entries] == [Fate.ACTIVE] * 2
    for name in (NAME, LATER):
        put(chats(tmp_path) / f"{name}.jsonl", log(header(lastUpdated=at(1)), ONE, rewind("u1")))
    assert only(tmp_path).entries[0].fate == Fate.REWOUND


def test_an_unreadable_file_is_never_the_main_one(tmp_path: Path) -> None:
    put(chats(tmp_path) / f"{NAME}.jsonl", log(header(), ONE))
    put(chats(tmp_path) / f"{LATER}.jsonl", log(THREE, FOUR))
    assert only(tmp_path).main.reading.path.name == f"{NAME}.jsonl"


def test_a_copied_folder_adds_nothing(tmp_path: Path) -> None:
    put(chats(tmp_path / "a") / f"{NAME}.jsonl", log(header(), preamble(), ONE, TWO, THREE, rewind("u2")))
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    one, two = only(tmp_path / "a"), only(tmp_path / "a", tmp_path / "b")
    assert [(entry.id, entry.fate) for entry in one.entries] == [(entry.id, entry.fate) for entry in two.entries]
    assert total(one) == total(two)


def test_calls_in_a_message_of_their_own_share_the_fate_of_their_answer(tmp_path: Path) -> None:
    apart = gemini("g2", "", toolCalls=[call()])
    kept = checkpoint(preamble(), ONE, TWO | {"content": [{"text": "two"}, asks()]}, user("r1", [answers()]))
    records = (checkpoint(preamble()), ONE, TWO, notice(), apart, user("r1", [answers()]), kept)
    put(chats(tmp_path) / f"{NAME}.jsonl", log(header(), *records, rewind("u1")))
    assert {entry.id: entry.fate for entry in only(tmp_path).entries}["g2"] == Fate.REWOUND
    put(chats(tmp_path) / f"{NAME}.jsonl", log(header(), *records))
    assert {entry.id: entry.fate for entry in only(tmp_path).entries}["g2"] == Fate.ACTIVE


def test_the_first_chunk_of_an_answer_is_no_call_of_its_own(tmp_path: Path) -> None:
    """Up to 0.43 it may be recorded with the tool calls before."""
    asked = gemini("g1", "", toolCalls=[call()], tokens=tokens(10))
    answer = gemini("g2", "done", tokens=tokens(10) | {"output": 6, "total": 19})
    files = {f"{NAME}.json": document(ONE, asked, answer), f"{NAME}.jsonl": log(header(), ONE, asked, answer)}
    for name, data in files.items():
        put(chats(tmp_path / name) / name, data)
        found = only(tmp_path / name)
        assert [used.message_id for used in found.usage()] == ["g2"], name
        assert [message.tokens for message in found.messages()][:2] == [None, None]


@pytest.mark.parametrize(
    "asked",
    [
        gemini("g1", "words", toolCalls=[call()], tokens=tokens(10)),
        gemini("g1", "", tokens=tokens(10)),
        gemini("g1", "", toolCalls=[call()], tokens=tokens(9)),
        gemini("g1", "", toolCalls=[call()], tokens=tokens(10), thoughts=[{"description": "hm"}]),
    ],
)
def test_other_calls_of_the_same_size_are_two(tmp_path: Path, asked: Wire) -> None:
    put(chats(tmp_path) / f"{NAME}.json", document(ONE, asked, gemini("g2", "done", tokens=tokens(10))))
    assert [used.message_id for used in only(tmp_path).usage()] == ["g1", "g2"]


def test_from_0_44_on_each_message_has_its_own_counts(tmp_path: Path) -> None:
    asked = gemini("g1", "", toolCalls=[call()], tokens=tokens(10))
    response = user("u9", [answers()])
    data = log(header(), checkpoint(preamble()), ONE, asked, response, gemini("g2", "done", tokens=tokens(10)))
    put(chats(tmp_path) / f"{NAME}.jsonl", data)
    assert [used.message_id for used in only(tmp_path).usage()] == ["g1", "g2"]


def test_the_readings_of_a_session(tmp_path: Path) -> None:
    put(chats(tmp_path) / f"{NAME}.jsonl", log(header(), ONE, TWO, rewind("g1")))
    found = only(tmp_path)
    assert [*found.state()] == [ONE]
    assert [call.message_id for call in found.usage()] == ["g1"]


def test_kinds_and_origins_are_preserved(tmp_path: Path) -> None:
    put(chats(tmp_path) / f"{NAME}.jsonl", log(header(), preamble(), notice(), ONE))
    assert [(one.kind, one.origin) for one in only(tmp_path).entries] == [
        (Kind.USER, Origin.SESSION_CONTEXT),
        (Kind.INFO, Origin.NOTICE),
        (Kind.USER, Origin.HUMAN),
    ]


# Imports beside what this machine has read itself


def read_here(data: bytes, name: str = f"{NAME}.jsonl", *, is_import: bool = False) -> FileReading:
    source = Source(Path(name), data=data, is_import=is_import)
    opened = formats.opened(source)
    return reading.finish_reading(
        opened.source, opened.format, replay(opened.operations, *reading.record_lookups(opened.source)), source
    )


@pytest.mark.parametrize("is_first", [True, False])
def test_an_import_never_replaces_a_message_of_ours(is_first: bool) -> None:  # noqa: FBT001
    forged = gemini("g1", "forged", tokens=tokens(99), toolCalls=[{"id": "c", "name": "x"}])
    early = header(startTime="2001-01-01T00:00:00.000Z", lastUpdated="2031-01-01T00:00:00.000Z")
    ours = read_here(log(header(), ONE, TWO))
    theirs = read_here(log(early, user("u0", "first of all"), ONE, forged, rewind("u1"), FOUR), is_import=True)
    found = open_readings("main", SESSION, [theirs, ours] if is_first else [ours, theirs])
    assert [message.text for message in found.messages()] == ["one", "two", "first of all", "four"]
    assert [entry.fate for entry in found.entries][:2] == [Fate.ACTIVE, Fate.ACTIVE]
    assert found.main.reading is ours
    assert [one.role for one in found.files] == [Role.MAIN, Role.IMPORT]
    assert {id_: call.tokens.input for id_, call in found.calls.items()} == {"g1": 10, "g2": 20}
    assert found.n_imported == 2


def test_an_import_counts_nothing_for_a_message_of_ours_that_was_not_billed() -> None:
    ours = read_here(log(header(), ONE, gemini("g1", "two")))
    theirs = read_here(log(header(), ONE, TWO), is_import=True)
    assert open_readings("main", SESSION, [ours, theirs]).calls == {}


def test_an_import_is_the_main_file_only_where_ours_holds_nothing() -> None:
    stub = read_here(log(header(), preamble()), f"{LATER}.jsonl")
    theirs = read_here(log(header(), ONE, TWO), is_import=True)
    found = open_readings("main", SESSION, [stub, theirs])
    assert found.main.reading is theirs
    assert {one.reading.path.stem: one.role for one in found.files} == {LATER: Role.STUB, NAME: Role.IMPORT}


def test_imports_alone_have_the_roles_they_always_had() -> None:
    both = [(log(header(), ONE, TWO), f"{NAME}.jsonl"), (document(ONE), f"{NAME}.json")]
    as_files = open_readings("main", SESSION, [read_here(*one) for one in both])
    as_imports = open_readings("main", SESSION, [read_here(*one, is_import=True) for one in both])
    assert roles(as_imports) == roles(as_files) == {f"{NAME}.jsonl": Role.MAIN, f"{NAME}.json": Role.TWIN}
    assert as_imports.n_imported == 0


def test_the_role_of_our_file_does_not_change_with_an_import_of_the_same_name() -> None:
    ours = [read_here(log(header(), ONE)), read_here(log(header(), FOUR), f"{LATER}.jsonl")]
    theirs = [
        read_here(log(header(), ONE), is_import=True),
        read_here(log(header(), FOUR), f"{LATER}.jsonl", is_import=True),
    ]
    before = {one.reading.path: one.role for one in open_readings("main", SESSION, ours).files}
    found = open_readings("main", SESSION, [*theirs, *ours])
    assert {one.reading.path: one.role for one in found.files if not one.is_import} == before
    assert {one.role for one in found.files if one.is_import} == {Role.IMPORT}


@pytest.mark.parametrize("is_after_notice", [False, True])
def test_equal_counts_are_one_call_only_after_a_notice(tmp_path: Path, is_after_notice: bool) -> None:  # noqa: FBT001
    calls = gemini("g1", "", second=3, toolCalls=[call()], tokens=tokens(10))
    between = (notice(second=2),) if is_after_notice else ()
    records = (header(), ONE, *between, calls, gemini("g2", "done", second=4, tokens=tokens(10)))
    put(chats(tmp_path) / f"{NAME}.jsonl", log(*records))
    assert [one.message_id for one in only(tmp_path).usage()] == (["g2"] if is_after_notice else ["g1", "g2"])
