"""`doctor` reports unknown records, changed files and lost sessions."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests import builders

from pollux.formats import prompts
from pollux.formats.source import Source, Span
from pollux.model import Problem, Project, Session
from pollux.reports.doctor import Diagnosis, Unknowns, generations, inspect_file, sessions_only_in_log
from pollux.sessions.locate import locate
from pollux.sessions.reader import History
from pollux.sessions.replay.reading import FileReading, read
from pollux.views.contracts import to_json


def examined(folder: Path, *records: object) -> Unknowns:
    builders.put(builders.chats(folder) / f"{builders.NAME}.jsonl", builders.log(builders.header(), *records))
    unknowns = Unknowns()
    for file in locate([builders.home(folder)]).files:
        inspect_file(file, unknowns)
    return unknowns


def test_known_records_have_no_findings(tmp_path: Path) -> None:
    findings = examined(
        tmp_path, builders.user(), builders.gemini(toolCalls=[builders.call()], tokens=builders.tokens())
    )
    assert (findings.fields, findings.tools, findings.kinds) == ({}, {}, {})


def test_unknown_records_are_counted(tmp_path: Path) -> None:
    call = builders.call(name="teleport", whither="there")
    findings = examined(
        tmp_path,
        builders.user(mood="good"),
        builders.gemini(toolCalls=[call], mood="bad"),
        builders.gemini("g2", toolCalls="none"),
        builders.gemini("g3", toolCalls=["none"]),
        builders.notice("x1", kind="telegram"),
    )
    assert findings.fields["mood"] == 2
    assert findings.fields["toolCalls.whither"] == 1
    assert findings.tools == {"teleport": 1}
    assert findings.kinds == {"telegram": 1}


@pytest.mark.parametrize("data", [b"{torn", b"[]"])
def test_file_changed_during_an_examination_is_not_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes
) -> None:
    def changed(_source: Source, _span: Span) -> bytes:
        return data

    builders.put(builders.chats(tmp_path) / f"{builders.NAME}.jsonl", builders.log(builders.header(), builders.user()))
    (file,) = locate([builders.home(tmp_path)]).files
    unknowns = Unknowns()

    def then_changed(path: Path) -> FileReading:
        reading = read(path)
        monkeypatch.setattr(Source, "slice", changed)
        return reading

    monkeypatch.setattr("pollux.reports.doctor.read", then_changed)
    inspect_file(file, unknowns)
    assert unknowns.fields == {}


def test_operators_are_counted_from_the_problems() -> None:
    problems = [
        Problem("unknown-operator", "unknown operator $push, $pull"),
        Problem("unknown-operator", "unknown operator $push"),
        Problem("torn-line", "unknown operator $no"),
    ]
    health = Diagnosis(History(locate([])), Unknowns(), {}, problems)
    assert health.unknown["operators"] == {"$push": 2, "$pull": 1}
    assert to_json(health)["problems"]


def test_generations_are_counted() -> None:
    sessions = [
        Session(id=str(n), kind="main", project=Project(), generation=g)
        for n, g in enumerate(("jsonl", "json-parts", "jsonl"))
    ]
    assert generations(sessions) == {"json-parts": 1, "jsonl": 2}


def test_session_with_only_logged_prompts_is_lost() -> None:
    def logged(session: str, number: int, text: str) -> dict[str, object]:
        return {
            "sessionId": session,
            "messageId": number,
            "type": "user",
            "message": text,
            "timestamp": builders.at(number),
        }

    data = builders.line(
        [logged("kept", 0, "hello"), logged("lost", 0, "hello"), logged("lost", 1, "/quit"), logged("idle", 0, "/quit")]
    )
    findings = sessions_only_in_log(prompts.read(data).prompts, [Session(id="kept", kind="main", project=Project())])
    assert [(id_, len(typed)) for id_, typed in findings.items()] == [("lost", 2)]


def test_session_with_an_unreadable_file_is_not_lost(tmp_path: Path) -> None:
    builders.put(builders.chats(tmp_path) / f"{builders.NAME}.jsonl", b"")
    typed = {
        "sessionId": builders.SESSION,
        "messageId": 0,
        "type": "user",
        "message": "hi",
        "timestamp": builders.at(0),
    }
    logged = prompts.read(builders.line([typed])).prompts
    assert sessions_only_in_log(logged, []).keys() == {builders.SESSION}
    assert sessions_only_in_log(logged, [], locate([builders.home(tmp_path)]).files) == {}
