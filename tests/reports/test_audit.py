"""An audit lists each recording of each call, and its amounts add up to the sums of the reports."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from tests import builders
from tests.builders import chats, checkpoint, document, gemini, header, home, log, put, rewind, tokens, user
from tests.refreshing import refresh

from pollux import prices
from pollux.archive import open_session, store
from pollux.archive.memory import in_memory
from pollux.archive.pricing import price_calls
from pollux.model import Session, Tokens
from pollux.render.terminal.usage import audit_lines
from pollux.reports import audit as audit_view
from pollux.reports import usage, usage_sql
from pollux.reports.audit import AuditedCall, AuditReport, SessionAudit, audited, buckets, call_owners, repeating
from pollux.sessions import reader
from pollux.sessions.locate import HomeScan
from pollux.views.contracts.usage import call_row

ONE = gemini("g1", tokens=tokens(1000))
TWO = gemini("g2", second=3, tokens=tokens(2000))


def audit(root: Path, session_id: str = builders.SESSION, others: tuple[str, ...] = ()) -> list[AuditedCall]:
    history = reader.history([home(root)])
    by_id = {session.id: session for session in history.sessions}
    groups = [(entry, reader.opened(by_id[entry])) for entry in others]
    session: Session = by_id[session_id]
    with closing(in_memory(history.sessions, [], reader.opened)) as database:
        owners = call_owners(database, session_id)
    return list(audited(session, reader.opened(session), prices.load(), owners=owners, others=groups))


def _session(root: Path) -> Session:
    return reader.history([home(root)]).sessions[0]


def duplicates_of(call: AuditedCall) -> list[tuple[str, int, str]]:
    return [(Path(duplicate.file).name, duplicate.line, duplicate.reason) for duplicate in call.duplicates]


def test_repeated_lines_and_checkpoints_are_listed(tmp_path: Path) -> None:
    later = ONE | {"toolCalls": [builders.call()]}
    put(chats(tmp_path) / f"{builders.NAME}.jsonl", log(header(), user(), ONE, later, TWO, checkpoint(user(), ONE)))
    first, second = audit(tmp_path)
    assert (first.call.line, duplicates_of(first)) == (
        6,
        [(f"{builders.NAME}.jsonl", 3, "recorded again"), (f"{builders.NAME}.jsonl", 4, "recorded again")],
    )
    assert (second.call.line, duplicates_of(second)) == (5, [])
    assert first.recorded == tokens(1000)


def test_checkpoint_before_the_counted_line_is_listed(tmp_path: Path) -> None:
    put(chats(tmp_path) / f"{builders.NAME}.jsonl", log(header(), user(), ONE, checkpoint(user(), ONE), ONE))
    (first,) = audit(tmp_path)
    assert [why for _, _, why in duplicates_of(first)] == ["recorded again", "repeated by a checkpoint"]


def test_copies_and_twins_are_listed(tmp_path: Path) -> None:
    for folder in ("webapp", builders.HASH):
        put(chats(tmp_path, folder) / f"{builders.NAME}.json", document(user(), ONE))
    put(chats(tmp_path) / f"{builders.NAME}.jsonl", log(header(lastUpdated=builders.at(50)), user(), ONE, TWO))
    first, second = audit(tmp_path)
    assert {why for _, _, why in duplicates_of(first)} <= {
        *("a copy of the file in another folder", "the file that took over", "the .json before it was resumed"),
    }
    assert (len(first.duplicates), len(second.duplicates)) == (2, 0)


def test_versions_of_a_rewritten_file_are_listed(tmp_path: Path) -> None:
    file = put(chats(tmp_path) / f"{builders.NAME}.json", document(user(), ONE, user("u2"), TWO))
    with store.open_archive(tmp_path / "archive.db") as archive:
        refresh(archive, [home(tmp_path)])
        put(file, document(user(), ONE, lastUpdated=builders.at(90)))  # an old client rewinds by rewriting the file
        result = refresh(archive, [home(tmp_path)])
        (session,) = open_session.history(archive.database, result.located).sessions
        group = open_session.open_session(archive.database, session)
        first, second = audited(session, group, prices.load(), owners={})
    assert [why for _, _, why in duplicates_of(first)] == ["another version of the file"]
    assert (second.call.message_id, duplicates_of(second)) == ("g2", [])


def imported(root: Path) -> None:
    put(chats(root) / f"{builders.NAME}.jsonl", log(header(), user(), ONE))
    head = header(builders.OTHER, startTime=builders.at(60))
    name = f"session-2026-11-15T19-31-{builders.OTHER[:8]}.jsonl"
    put(chats(root) / name, log(head, user("import-1"), ONE, TWO))


def test_imported_call_is_listed_in_both_sessions(tmp_path: Path) -> None:
    imported(tmp_path)
    (ours,) = audit(tmp_path, others=(builders.OTHER,))
    (repeat,) = ours.duplicates
    assert (repeat.reason, repeat.session_id, repeat.line) == ("repeated by another session", builders.OTHER, 3)
    first, second = audit(tmp_path, builders.OTHER)
    assert (first.owner, second.owner) == (builders.SESSION, None)
    assert call_row(first)["counted_in"] == builders.SESSION


def test_archive_finds_sessions_that_repeat_another(tmp_path: Path) -> None:
    imported(tmp_path)
    with store.open_archive(tmp_path / "archive.db") as archive:
        refresh(archive, [home(tmp_path)])
        assert repeating(archive.database, builders.SESSION) == {builders.OTHER}
        assert repeating(archive.database, builders.OTHER) == set()


def test_call_is_counted_in_its_owner_in_another_home(tmp_path: Path) -> None:
    imported(tmp_path)
    with store.open_archive(tmp_path / "archive.db") as archive:
        refresh(archive, [home(tmp_path)])
        database = archive.database
        (session,) = open_session.history(database, HomeScan((), ()), only={builders.OTHER}).sessions
        owners = call_owners(database, builders.OTHER)
        calls = [*audited(session, open_session.open_session(database, session), prices.load(), owners=owners)]
    assert [call.owner for call in calls] == [builders.SESSION, None]


def test_amounts_add_up_to_those_of_the_report(tmp_path: Path) -> None:
    huge = gemini("g3", second=4, tokens=tokens(300_000) | {"tool": 7, "total": 1})
    unknown = gemini("g4", second=5, tokens=tokens(5), model="gemini-9.9-ultra")
    put(
        chats(tmp_path) / f"{builders.NAME}.jsonl",
        log(header(), user(), ONE, TWO, user("u2"), huge, rewind("u2"), unknown),
    )
    calls = audit(tmp_path)
    with store.open_archive(tmp_path / "archive.db") as archive:
        refresh(archive, [home(tmp_path)])
        price_calls(archive.database, prices.load())
        report = usage.total(usage_sql.call_sums(archive.database))
    assert sum(call.cost_nanousd or 0 for call in calls) == report.cost_nanousd
    assert [call.cost_nanousd is None for call in calls] == [False, False, False, True]
    for call in calls[:3]:
        assert (sum(each.amount for each in call.buckets) + 500) // 1000 == call.cost_nanousd
    assert calls[2].tier
    assert calls[2].tier.above == 200_000
    assert (call_row(calls[2])["consistent"], call_row(calls[3])["price"]) == (False, None)


def test_each_token_is_in_one_bucket() -> None:
    tier = prices.Tier(0, 4, None, 9)
    result = buckets(Tokens(10, 4, 3, 2, 1, 16), tier)
    assert [(bucket.name, bucket.tokens, bucket.picousd) for bucket in result] == [
        *(("input", 6, 4), ("tool", 1, 4), ("cached", 4, 4), ("output", 3, 9), ("thoughts", 2, 9)),
    ]


@pytest.mark.parametrize("left", [b"", b'{"id": 1'])
def test_file_changed_during_an_audit_raises_nothing(tmp_path: Path, left: bytes) -> None:
    file = put(chats(tmp_path) / f"{builders.NAME}.jsonl", log(header(), user(), ONE))
    (session,) = reader.history([home(tmp_path)]).sessions
    group = reader.opened(session)
    file.write_bytes(left)
    (call,) = audited(session, group, prices.load(), owners={})
    assert (call.recorded, call.duplicates) == (None, ())


def test_overwritten_record_has_no_counts(tmp_path: Path) -> None:
    file = put(chats(tmp_path) / f"{builders.NAME}.jsonl", log(header(), user(), ONE))
    (session,) = reader.history([home(tmp_path)]).sessions
    ((place,),) = audit_view._places(reader.opened(session).files).values()
    file.write_bytes(b"{" * file.stat().st_size)
    assert audit_view._recorded(place) is None


def test_computed_total_is_marked(tmp_path: Path) -> None:
    without = {key: value for key, value in tokens(1000).items() if key != "total"}
    put(chats(tmp_path) / f"{builders.NAME}.jsonl", log(header(), user(), gemini("g1", tokens=without), TWO))
    first, second = audit(tmp_path)
    assert (first.call.tokens.total, first.is_total_computed) == (1005, True)
    assert (second.call.tokens.total, second.is_total_computed) == (2005, False)
    assert call_row(first)["total_computed"] is True
    report = AuditReport((SessionAudit(_session(tmp_path), (first,)),), "table", "date")
    assert "computed" in "\n".join(text.plain for text in audit_lines(report))
