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


def no_full_id(_file: SessionFile, _id8: str) -> str | None:
    return None


def grouped(*roots: Path, full_id: grouping.FullId = no_full_id) -> tuple[list[OpenSession], list[Problem]]:
    files = [*locate([home(root) for root in roots]).files]
    groups: list[OpenSession] = []
    problems: list[Problem] = []
    for bundle in bundles(files):
        opened, new_problems = open_bundle(bundle, full_id)
        groups += opened
        problems += new_problems
    return groups, problems


def only(*roots: Path, **options: Any) -> OpenSession:  # noqa: ANN401
    (group,), problems = grouped(*roots, **options)
    assert not problems
    return group


def roles(group: OpenSession) -> dict[str, Role]:
    return {file.reading.path.name: file.role for file in group.files}


def ids(group: OpenSession) -> list[str]:
    return [entry.id for entry in group.entries]


def total(group: OpenSession) -> int:
    return sum(call.tokens.total for call in group.calls.values())


def test_session_of_one_file_has_its_messages_and_calls(tmp_path: Path) -> None:
    put(chats(tmp_path) / f"{NAME}.jsonl", log(header(), ONE, TWO))
    group = only(tmp_path)
    assert (group.id, group.kind, group.parent) == (SESSION, "main", None)
    assert roles(group) == {f"{NAME}.jsonl": Role.MAIN}
    assert [message.text for message in group.messages()] == ["one", "two"]
    (call,) = group.calls.values()
    assert (call.session_id, call.message_id, call.at, call.model) == (SESSION, "g1", instant_of(2), "gemini-2.5-pro")
    assert (call.fate, call.file, call.line) == (Fate.ACTIVE, str(group.main.reading.path), 3)


def test_later_file_without_messages_is_a_stub(tmp_path: Path) -> None:
    put(chats(tmp_path) / f"{NAME}.jsonl", log(header(), ONE, TWO))
    put(chats(tmp_path) / f"{LATER}.jsonl", log(header(startTime=at(60), lastUpdated=at(60)), checkpoint(preamble())))
    group = only(tmp_path)
    assert roles(group) == {f"{NAME}.jsonl": Role.MAIN, f"{LATER}.jsonl": Role.STUB}
    assert ids(group)[:2] == ["u1", "g1"]


def test_document_beside_a_log_of_the_same_name_is_a_twin(tmp_path: Path) -> None:
    put(chats(tmp_path) / f"{NAME}.json", document(ONE, TWO))
    put(chats(tmp_path) / f"{NAME}.jsonl", log(header(), ONE, TWO, THREE, FOUR))
    group = only(tmp_path)
    assert roles(group) == {f"{NAME}.json": Role.TWIN, f"{NAME}.jsonl": Role.MAIN}
    assert ids(group) == ["u1", "g1", "u2", "g2"]
    assert total(group) == 40


def test_shorter_file_in_another_folder_is_a_copy(tmp_path: Path) -> None:
    put(chats(tmp_path, HASH) / f"{NAME}.json", document(ONE, TWO))
    put(chats(tmp_path) / f"{NAME}.json", document(ONE, TWO, THREE, FOUR, lastUpdated=at(64)))
    group = only(tmp_path)
    assert sorted(file.role for file in group.files) == [Role.COPY, Role.MAIN]
    assert group.main.file
    assert group.main.file.folder == "webapp"
    assert ids(group) == ["u1", "g1", "u2", "g2"]
    assert total(group) == 40


def test_shorter_file_in_another_home_is_a_copy(tmp_path: Path) -> None:
    put(chats(tmp_path / "a") / f"{NAME}.jsonl", log(header(), ONE, TWO))
    put(chats(tmp_path / "b") / f"{NAME}.jsonl", log(header(), ONE, TWO, THREE, FOUR))
    group = only(tmp_path / "a", tmp_path / "b")
    assert sorted(file.role for file in group.files) == [Role.COPY, Role.MAIN]
    assert ids(group) == ["u1", "g1", "u2", "g2"]


def test_earlier_file_of_a_continued_session_is_a_part(tmp_path: Path) -> None:
    put(chats(tmp_path) / f"{NAME}.json", document(ONE, TWO))
    put(chats(tmp_path) / f"{LATER}.json", document(THREE, FOUR, startTime=at(60), lastUpdated=at(64)))
    group = only(tmp_path)
    assert roles(group) == {f"{NAME}.json": Role.PART, f"{LATER}.json": Role.MAIN}
    assert ids(group) == ["u1", "g1", "u2", "g2"]
    assert total(group) == 40


def test_imported_file_is_the_main_file_beside_its_stub(tmp_path: Path) -> None:
    name = "session-1794771361910-6ece72aa.jsonl"
    put(chats(tmp_path) / name, log(header(), notice("import-1", "Imported session from a"), ONE, TWO))
    put(chats(tmp_path) / f"{LATER}.jsonl", log(header(startTime=at(60), lastUpdated=at(99)), preamble()))
    group = only(tmp_path)
    assert roles(group) == {name: Role.IMPORT, f"{LATER}.jsonl": Role.STUB}
    assert group.main.reading.path.name == name


def test_messages_of_an_unreadable_leftover_are_kept(tmp_path: Path) -> None:
    put(chats(tmp_path) / f"{NAME}.jsonl", log(header(), THREE, FOUR))
    put(chats(tmp_path) / f"{NAME}.jsonl.unreadable-1794305668421", log(ONE, TWO, b"x"))
    group = only(tmp_path)
    assert roles(group)[f"{NAME}.jsonl.unreadable-1794305668421"] == Role.UNREADABLE
    assert ids(group) == ["u1", "g1", "u2", "g2"]
    assert total(group) == 40


def test_a_leftover_alone_is_the_session(tmp_path: Path) -> None:
    put(chats(tmp_path) / f"{NAME}.jsonl.tmp-77", log(header(), ONE))
    group = only(tmp_path)
    assert (group.id, [*roles(group).values()]) == (SESSION, [Role.MAIN])


def test_log_without_header_takes_the_id_of_its_sibling(tmp_path: Path) -> None:
    put(chats(tmp_path) / f"{NAME}.jsonl", log(header(), ONE, TWO))
    put(chats(tmp_path) / f"{LATER}.jsonl", log(THREE, FOUR))
    group = only(tmp_path)
    assert group.id == SESSION
    assert roles(group) == {f"{NAME}.jsonl": Role.MAIN, f"{LATER}.jsonl": Role.PART}
    assert ids(group) == ["u1", "g1", "u2", "g2"]


def test_log_without_header_takes_the_id_from_logged_prompts(tmp_path: Path) -> None:
    put(chats(tmp_path) / f"{NAME}.jsonl", log(ONE, TWO))
    assert only(tmp_path, full_id=lambda _file, id8: SESSION if id8 == "6ece72aa" else None).id == SESSION


def test_log_without_header_takes_the_id_from_its_name(tmp_path: Path) -> None:
    put(chats(tmp_path) / f"{NAME}.jsonl", log({"id": "u1", "type": "user", "content": "one"}))
    group = only(tmp_path)
    assert group.id == "6ece72aa"
    assert group.main.started == instant_of(0)
    assert group.main.updated is None


def test_log_without_any_id_takes_its_name(tmp_path: Path) -> None:
    put(chats(tmp_path) / "session-odd.jsonl", log(ONE))
    assert only(tmp_path).id == "session-odd"
    assert open_file(chats(tmp_path) / "session-odd.jsonl").id == "session-odd"
    assert open_file(put(tmp_path / f"{NAME}.jsonl", log(ONE))).id == "6ece72aa"


def test_sessions_whose_ids_begin_alike_stay_apart(tmp_path: Path) -> None:
    put(chats(tmp_path) / f"{NAME}.jsonl", log(header(), ONE))
    put(chats(tmp_path) / f"{LATER}.jsonl", log(header("6ece72aa-other"), THREE))
    groups, _ = grouped(tmp_path)
    assert sorted(group.id for group in groups) == [SESSION, "6ece72aa-other"]


def test_two_sessions_in_one_file_are_separated(tmp_path: Path) -> None:
    """Two IDs that begin alike, in one minute: the client appends to the same file, and loads the last."""
    first, second = header("6ece72aa-first"), header("6ece72aa-second", startTime=at(9))
    five = gemini("g3", "five", second=5, tokens=tokens(30))
    data = log(first, checkpoint(preamble()), ONE, TWO, second, checkpoint(preamble()), THREE, FOUR, five)
    path = put(chats(tmp_path) / f"{NAME}.jsonl", data)
    groups, _ = grouped(tmp_path)
    assert {group.id: ids(group)[1:] for group in groups} == {
        "6ece72aa-first": ["u1", "g1"],
        "6ece72aa-second": ["u2", "g2", "g3"],
    }
    assert {group.id: total(group) for group in groups} == {"6ece72aa-first": 15, "6ece72aa-second": 60}
    assert all(entry.fate == Fate.ACTIVE for group in groups for entry in group.entries)
    assert [group.main.started for group in groups] == [instant_of(0), instant_of(0)]
    assert ids(open_readings("main", "6ece72aa-first", [reading.read(path)])) == [PREAMBLE, "u1", "g1"]
    assert open_file(path).id == "6ece72aa-second", "the client loads the last header"


def test_files_in_the_folder_of_a_session_are_its_subagents(tmp_path: Path) -> None:
    put(chats(tmp_path) / f"{NAME}.jsonl", log(header(), ONE, TWO))
    put(chats(tmp_path) / SESSION / f"{OTHER}.jsonl", log(header(OTHER, kind="subagent"), THREE, FOUR))
    put(chats(tmp_path) / SESSION / "nohead.jsonl", log(user("u9", "x")))
    put(chats(tmp_path) / SESSION / f"{OTHER}.jsonl.unreadable-1", log(user("u8", "y")))
    groups, _ = grouped(tmp_path)
    assert {(group.kind, group.id, group.parent) for group in groups} == {
        ("main", SESSION, None),
        ("subagent", OTHER, SESSION),
        ("subagent", "nohead", SESSION),
    }


def test_flat_subagents_are_named_after_session_and_file(tmp_path: Path) -> None:
    put(chats(tmp_path) / f"{NAME}.json", document(ONE, TWO))
    put(chats(tmp_path) / f"{LATER}.json", document(THREE, FOUR, kind="subagent"))
    groups, _ = grouped(tmp_path)
    assert {(group.kind, group.id, group.parent) for group in groups} == {
        ("main", SESSION, None),
        ("subagent", f"{SESSION}:{LATER}", SESSION),
    }


def test_subagent_opened_alone_has_no_parent(tmp_path: Path) -> None:
    group = open_file(put(tmp_path / "a.jsonl", log(header(OTHER, kind="subagent"), ONE)))
    assert (group.kind, group.id, group.parent) == ("subagent", OTHER, None)


def test_order_of_files_does_not_change_a_session(tmp_path: Path) -> None:
    paths = [
        put(chats(tmp_path) / f"{NAME}.json", document(ONE, TWO)),
        put(chats(tmp_path) / f"{NAME}.jsonl", log(header(), ONE, TWO, THREE)),
    ]
    first, again = only(tmp_path), open_readings("main", SESSION, [reading.read(path) for path in reversed(paths)])
    assert [*first.messages()] == [*again.messages()]
    assert roles(first) == roles(again)


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), FileNotFoundError(2, "No such file")])
def test_unreadable_file_does_not_affect_other_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    good = put(chats(tmp_path) / f"{NAME}.jsonl", log(header(), ONE))
    bad = put(chats(tmp_path) / f"{LATER}.jsonl", log(header(), THREE))

    def read(path: Path) -> FileReading:
        if path == bad:
            raise error
        return reading.read(path)

    monkeypatch.setattr(grouping, "read", read)
    (group,), (problem,) = grouped(tmp_path)
    assert [file.reading.path for file in group.files] == [good]
    assert (problem.code, problem.file) == ("unreadable-file", str(bad))
    assert str(error.strerror) in problem.message


def test_file_that_vanishes_before_reading_is_a_problem(tmp_path: Path) -> None:
    path = put(chats(tmp_path) / f"{NAME}.jsonl", log(header(), ONE))
    files = [*locate([home(tmp_path)]).files]
    path.unlink()
    groups, (problem,) = open_bundle(files, no_full_id)
    assert not groups
    assert problem.code == "unreadable-file"


def test_files_are_bundled_by_the_id_in_their_names(tmp_path: Path) -> None:
    for name in (
        f"{NAME}.jsonl",
        f"{LATER}.json",
        f"{SESSION}/a.jsonl",
        "session-2026-11-15T19-31-b3e2640d.jsonl",
        "session-x.json",
    ):
        put(chats(tmp_path) / name, b"{}")
    bundled = [{file.path.name for file in bundle} for bundle in bundles(locate([home(tmp_path)]).files)]
    assert {f"{NAME}.jsonl", f"{LATER}.json", "a.jsonl"} in bundled
    assert len(bundled) == 3


def test_fuller_recording_wins_with_the_fate_from_the_main_file(tmp_path: Path) -> None:
    put(chats(tmp_path) / f"{NAME}.json", document(ONE, TWO, lastUpdated=at(5)))
    poor = {"id": "g1", "timestamp": at(30), "type": "gemini", "content": "two"}
    put(chats(tmp_path) / f"{NAME}.jsonl", log(header(lastUpdated=at(40)), ONE, poor, rewind("g1")))
    group = only(tmp_path)
    (message,) = (candidate for candidate in group.messages() if candidate.id == "g1")
    assert (message.fate, message.model, message.at) == (Fate.REWOUND, "gemini-2.5-pro", instant_of(2))
    assert {call.fate for call in group.calls.values()} == {Fate.REWOUND}


def test_message_active_in_one_of_two_older_files_is_active(tmp_path: Path) -> None:
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
    alone, copied = only(tmp_path / "a"), only(tmp_path / "a", tmp_path / "b")
    assert [(entry.id, entry.fate) for entry in alone.entries] == [(entry.id, entry.fate) for entry in copied.entries]
    assert total(alone) == total(copied)


def test_separate_message_of_calls_shares_the_fate_of_its_answer(tmp_path: Path) -> None:
    apart = gemini("g2", "", toolCalls=[call()])
    kept = checkpoint(preamble(), ONE, TWO | {"content": [{"text": "two"}, asks()]}, user("r1", [answers()]))
    records = (checkpoint(preamble()), ONE, TWO, notice(), apart, user("r1", [answers()]), kept)
    put(chats(tmp_path) / f"{NAME}.jsonl", log(header(), *records, rewind("u1")))
    assert {entry.id: entry.fate for entry in only(tmp_path).entries}["g2"] == Fate.REWOUND
    put(chats(tmp_path) / f"{NAME}.jsonl", log(header(), *records))
    assert {entry.id: entry.fate for entry in only(tmp_path).entries}["g2"] == Fate.ACTIVE


def test_first_chunk_of_an_answer_is_not_billed_twice(tmp_path: Path) -> None:
    """Up to 0.43 it may be recorded with the tool calls before."""
    asked = gemini("g1", "", toolCalls=[call()], tokens=tokens(10))
    answer = gemini("g2", "done", tokens=tokens(10) | {"output": 6, "total": 19})
    files = {f"{NAME}.json": document(ONE, asked, answer), f"{NAME}.jsonl": log(header(), ONE, asked, answer)}
    for name, data in files.items():
        put(chats(tmp_path / name) / name, data)
        group = only(tmp_path / name)
        assert [used.message_id for used in group.usage()] == ["g2"], name
        assert [message.tokens for message in group.messages()][:2] == [None, None]


@pytest.mark.parametrize(
    "asked",
    [
        gemini("g1", "words", toolCalls=[call()], tokens=tokens(10)),
        gemini("g1", "", tokens=tokens(10)),
        gemini("g1", "", toolCalls=[call()], tokens=tokens(9)),
        gemini("g1", "", toolCalls=[call()], tokens=tokens(10), thoughts=[{"description": "hm"}]),
    ],
)
def test_different_calls_with_equal_counts_are_both_billed(tmp_path: Path, asked: Wire) -> None:
    put(chats(tmp_path) / f"{NAME}.json", document(ONE, asked, gemini("g2", "done", tokens=tokens(10))))
    assert [used.message_id for used in only(tmp_path).usage()] == ["g1", "g2"]


def test_since_0_44_each_message_is_billed_by_its_own_counts(tmp_path: Path) -> None:
    asked = gemini("g1", "", toolCalls=[call()], tokens=tokens(10))
    response = user("u9", [answers()])
    data = log(header(), checkpoint(preamble()), ONE, asked, response, gemini("g2", "done", tokens=tokens(10)))
    put(chats(tmp_path) / f"{NAME}.jsonl", data)
    assert [used.message_id for used in only(tmp_path).usage()] == ["g1", "g2"]


def test_state_drops_rewound_messages_but_usage_keeps_them(tmp_path: Path) -> None:
    put(chats(tmp_path) / f"{NAME}.jsonl", log(header(), ONE, TWO, rewind("g1")))
    group = only(tmp_path)
    assert [*group.state()] == [ONE]
    assert [call.message_id for call in group.usage()] == ["g1"]


def test_kinds_and_origins_are_preserved(tmp_path: Path) -> None:
    put(chats(tmp_path) / f"{NAME}.jsonl", log(header(), preamble(), notice(), ONE))
    assert [(entry.kind, entry.origin) for entry in only(tmp_path).entries] == [
        (Kind.USER, Origin.SESSION_CONTEXT),
        (Kind.INFO, Origin.NOTICE),
        (Kind.USER, Origin.HUMAN),
    ]


# Imported files beside files of this machine


def read_data(data: bytes, name: str = f"{NAME}.jsonl", *, is_import: bool = False) -> FileReading:
    source = Source(Path(name), data=data, is_import=is_import)
    opened = formats.opened(source)
    return reading.finish_reading(
        opened.source, opened.format, replay(opened.operations, *reading.record_lookups(opened.source)), source
    )


@pytest.mark.parametrize("is_first", [True, False])
def test_import_never_replaces_a_local_message(is_first: bool) -> None:  # noqa: FBT001
    forged = gemini("g1", "forged", tokens=tokens(99), toolCalls=[{"id": "c", "name": "x"}])
    early = header(startTime="2001-01-01T00:00:00.000Z", lastUpdated="2031-01-01T00:00:00.000Z")
    ours = read_data(log(header(), ONE, TWO))
    theirs = read_data(log(early, user("u0", "first of all"), ONE, forged, rewind("u1"), FOUR), is_import=True)
    group = open_readings("main", SESSION, [theirs, ours] if is_first else [ours, theirs])
    assert [message.text for message in group.messages()] == ["one", "two", "first of all", "four"]
    assert [entry.fate for entry in group.entries][:2] == [Fate.ACTIVE, Fate.ACTIVE]
    assert group.main.reading is ours
    assert [file.role for file in group.files] == [Role.MAIN, Role.IMPORT]
    assert {id_: call.tokens.input for id_, call in group.calls.items()} == {"g1": 10, "g2": 20}
    assert group.n_imported == 2


def test_import_adds_no_tokens_to_a_local_message() -> None:
    ours = read_data(log(header(), ONE, gemini("g1", "two")))
    theirs = read_data(log(header(), ONE, TWO), is_import=True)
    assert open_readings("main", SESSION, [ours, theirs]).calls == {}


def test_import_is_the_main_file_only_beside_a_local_stub() -> None:
    stub = read_data(log(header(), preamble()), f"{LATER}.jsonl")
    theirs = read_data(log(header(), ONE, TWO), is_import=True)
    group = open_readings("main", SESSION, [stub, theirs])
    assert group.main.reading is theirs
    assert {file.reading.path.stem: file.role for file in group.files} == {LATER: Role.STUB, NAME: Role.IMPORT}


def test_imports_without_local_files_have_the_same_roles_as_files() -> None:
    files = [(log(header(), ONE, TWO), f"{NAME}.jsonl"), (document(ONE), f"{NAME}.json")]
    as_files = open_readings("main", SESSION, [read_data(*file) for file in files])
    as_imports = open_readings("main", SESSION, [read_data(*file, is_import=True) for file in files])
    assert roles(as_imports) == roles(as_files) == {f"{NAME}.jsonl": Role.MAIN, f"{NAME}.json": Role.TWIN}
    assert as_imports.n_imported == 0


def test_import_of_the_same_name_does_not_change_the_role_of_a_local_file() -> None:
    ours = [read_data(log(header(), ONE)), read_data(log(header(), FOUR), f"{LATER}.jsonl")]
    theirs = [
        read_data(log(header(), ONE), is_import=True),
        read_data(log(header(), FOUR), f"{LATER}.jsonl", is_import=True),
    ]
    before = {file.reading.path: file.role for file in open_readings("main", SESSION, ours).files}
    group = open_readings("main", SESSION, [*theirs, *ours])
    assert {file.reading.path: file.role for file in group.files if not file.is_import} == before
    assert {file.role for file in group.files if file.is_import} == {Role.IMPORT}


@pytest.mark.parametrize("is_after_notice", [False, True])
def test_equal_counts_are_billed_once_only_after_a_notice(tmp_path: Path, is_after_notice: bool) -> None:  # noqa: FBT001
    calls = gemini("g1", "", second=3, toolCalls=[call()], tokens=tokens(10))
    between = (notice(second=2),) if is_after_notice else ()
    records = (header(), ONE, *between, calls, gemini("g2", "done", second=4, tokens=tokens(10)))
    put(chats(tmp_path) / f"{NAME}.jsonl", log(*records))
    assert [usage.message_id for usage in only(tmp_path).usage()] == (["g2"] if is_after_notice else ["g1", "g2"])
