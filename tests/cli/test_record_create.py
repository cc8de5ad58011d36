"""`pollux record create` writes records to files and pipes, as JSON and CBOR, and reports every error."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import cbor2
import pytest
from tests import builders
from tests.cli.running import NOW, Runner
from tests.exports.vac_schema import problems

ID = "0363a0b0"


def test_record_goes_to_stdout(run: Runner) -> None:
    ended = run("record", "create", ID)
    assert (ended.status, ended.err) == (0, "")
    assert ended.json["id"].startswith(ID)
    assert problems(ended.json) == []


def test_both_formats_are_written_to_private_files(run: Runner, tmp_path: Path) -> None:
    for name in ("json", "cbor"):
        assert run("record", "create", ID, "--format", name, "-o", str(tmp_path / name)).status == 0
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
    found = json.loads((tmp_path / "json").read_bytes())
    assert cbor2.loads((tmp_path / "cbor").read_bytes()) == found
    assert found == run("record", "create", ID).json


def test_export_writes_the_same_record(run: Runner) -> None:
    for more in ((), ("--branches", "all")):
        assert run("export", ID, "--format", "vac", *more).out == run("record", "create", ID, *more).out


def test_all_branches_are_included_on_request(run: Runner, tmp_path: Path) -> None:
    records = (builders.user("u1"), builders.user("u2", "again"), builders.rewind("u2"))
    file = builders.put(tmp_path / "s.jsonl", builders.log(builders.header(), *records))
    events = [
        run("record", "create", str(file), *more).json["session"]["entries"][1]
        for more in ((), ("--branches", "active"), ("--branches", "all"))
    ]
    assert ["children" in event for event in events] == [False, False, True]


@pytest.mark.parametrize(
    ("said", "written"),
    [("now", NOW.strftime("%Y-%m-%dT%H:%M:%S.000Z")), ("2026-01-02T03:04:05+02:00", "2026-01-02T01:04:05.000Z")],
)
def test_creation_time_is_recorded(run: Runner, said: str, written: str) -> None:
    assert run("record", "create", ID, "--created", said).json["created"] == written


def test_invalid_creation_time_is_refused(run: Runner) -> None:
    ended = run("record", "create", ID, "--created", "tomorrowish")
    assert ended.status == 2
    assert "Invalid value for --created: 'tomorrowish'" in ended.err


def test_git_state_of_an_existing_folder_is_recorded(run: Runner, tmp_path: Path) -> None:
    root = tmp_path / "webapp"
    builders.put(root / ".git" / "HEAD", b"1" * 40)
    chats = tmp_path / "home" / ".gemini" / "tmp" / "webapp" / "chats"
    builders.put(chats.parent / ".project_root", str(root).encode())
    head = builders.header(projectHash=hashlib.sha256(str(root).encode()).hexdigest())
    builders.put(chats / f"{builders.NAME}.jsonl", builders.log(head, builders.user()))
    ended = run("record", "create", "latest", "--vcs", home=tmp_path / "home")
    assert ended.json["vcs"] == {"type": "git", "observed": "when the record was made", "revision": "1" * 40}
    assert "vcs" not in run("record", "create", "latest").json


@pytest.mark.parametrize("is_proven", [True, False])
def test_unknown_git_state_is_noted(run: Runner, tmp_path: Path, *, is_proven: bool) -> None:
    chats = builders.chats(tmp_path)
    head = builders.header(**({} if is_proven else {"projectHash": "0" * 64}))
    builders.put(chats / f"{builders.NAME}.jsonl", builders.log(head, builders.user()))
    ended = run("record", "create", "latest", "--vcs", home=tmp_path)
    assert ended.status == 0
    assert ("is not in a git repository" in ended.err) is is_proven
    assert ("is not proven" in ended.err) is not is_proven
    assert "vcs" not in ended.json


def test_changes_to_values_are_reported(run: Runner, tmp_path: Path) -> None:
    file = builders.put(tmp_path / "s.jsonl", builders.log(builders.header(), builders.user("u", "half \ud83d")))
    ended = run("record", "create", str(file))
    assert (ended.status, ended.err) == (0, "text with an unpaired surrogate, replaced: 1 ×\n")


def test_problems_of_the_file_are_reported(run: Runner, tmp_path: Path) -> None:
    file = builders.put(tmp_path / "s.jsonl", builders.log(builders.header(), builders.user(), b'{"id":"torn'))
    ended = run("record", "create", str(file))
    assert ended.status == 1
    assert "s.jsonl:3" in ended.err
    assert ended.json["problems"]


def test_unwritable_file_is_reported(run: Runner, tmp_path: Path) -> None:
    ended = run("record", "create", ID, "-o", str(tmp_path / "no" / "where.json"))
    assert (ended.status, "cannot be written: No such file or directory" in ended.err) == (1, True)


def test_cbor_is_not_shown_on_a_terminal(run: Runner) -> None:
    ended = run("record", "create", ID, "--format", "cbor", columns=80)
    assert (ended.status, "name a file with `-o`" in ended.err) == (2, True)


@pytest.mark.parametrize(("wanted", "status"), [("nobody", 1), ("./nowhere.json", 1)])
def test_unknown_session_is_reported(run: Runner, wanted: str, status: int) -> None:
    assert run("record", "create", wanted).status == status


@pytest.mark.parametrize("status", ["pending", "executing", "awaiting_approval", "scheduled", "validating"])
def test_call_that_never_ended_has_no_result(run: Runner, tmp_path: Path, status: str) -> None:
    call = builders.call("c1", status=status, result=None, resultDisplay="so far")
    answer = builders.gemini("g1", toolCalls=[call])
    file = builders.put(tmp_path / "s.jsonl", builders.log(builders.header(), builders.user(), answer))
    (child,) = run("record", "create", str(file)).json["session"]["entries"][1]["children"]
    assert (child["type"], child["status"], child["display"]["text"]) == ("tool-call", status, "so far")


def test_finished_call_without_a_result_has_an_empty_one(run: Runner, tmp_path: Path) -> None:
    answer = builders.gemini("g1", toolCalls=[builders.call("c1", status="cancelled", result=None)])
    file = builders.put(tmp_path / "s.jsonl", builders.log(builders.header(), builders.user(), answer))
    _, result = run("record", "create", str(file)).json["session"]["entries"][1]["children"]
    assert (result["type"], result["status"], result["output"]) == ("tool-result", "cancelled", [])


def test_seed_profile_has_the_fields_of_the_document_and_no_others(run: Runner, tmp_path: Path) -> None:
    thoughts = [{"subject": "S", "description": "D", "timestamp": builders.at(2)}]
    answer = builders.gemini("g1", toolCalls=[builders.call()], thoughts=thoughts, tokens=builders.tokens())
    records = (builders.header(), builders.user(), builders.notice(), answer)
    file = builders.put(tmp_path / "s.jsonl", builders.log(*records))
    ended = run("record", "create", str(file), "--profile", "seed")
    found = ended.json
    user, assistant = found["session"]["entries"]
    reasoning, call, result = assistant["children"]
    assert set(found) == {"version", "id", "created", "session"}
    assert found["created"] == found["session"]["session-start"]
    assert set(found["session"]) == {"session-id", "session-start", "agent-meta", "entries"}
    assert set(found["session"]["agent-meta"]) == {"model-id", "model-provider", "cli-name"}
    assert set(user) == {"type", "id", "timestamp", "content"}
    assert set(assistant) == {"type", "id", "timestamp", "content", "model-id", "children"}
    assert set(reasoning) == {"type", "content", "subject"}
    assert set(call) == {"type", "name", "input", "call-id", "timestamp", "status"}
    assert set(result) == {"type", "output", "call-id", "timestamp", "status"}
    assert problems(found) == []
    assert "left out: 1 ×" in ended.err
    cbor = tmp_path / "s.cbor"
    run("record", "create", str(file), "--profile", "seed", "-f", "cbor", "-o", str(cbor))
    assert cbor2.loads(cbor.read_bytes()) == found
    assert run("record", "create", str(file), "--profile", "seed", "--vcs").status == 2
