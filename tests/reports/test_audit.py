"""An audit names every recording of every call, and its amounts add up to what the reports say."""

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


def audit(root: Path, wanted: str = builders.SESSION, others: tuple[str, ...] = ()) -> list[AuditedCall]:
    found = reader.history([home(root)])
    by_id = {one.id: one for one in found.sessions}
    groups = [(one, reader.opened(by_id[one])) for one in others]
    session: Session = by_id[wanted]
    with closing(in_memory(found.sessions, [], reader.opened)) as database:
        owners = call_owners(database, wanted)
    return list(audited(session, reader.opened(session), prices.load(), owners=owners, others=groups))


def _session(root: Path) -> Session:
    return reader.history([home(root)]).sessions[0]


def places(call: AuditedCall) -> list[tuple[str, int, str]]:
    return [(Path(one.file).name, one.line, one.reason) for one in call.duplicates]


def test_lines_written_again_and_checkpoints_are_named(tmp_path: Path) -> None:
    later = ONE | {"toolCalls": [builders.call()]}
    put(chats(tmp_path) / f"{builders.NAME}.jsonl", log(header(), user(), ONE, later, TWO, checkpoint(user(), ONE)))
    first, second = audit(tmp_path)
    assert (first.call.line, places(first)) == (
        6,
        [(f"{builders.NAME}.jsonl", 3, "recorded again"), (f"{builders.NAME}.jsonl", 4, "recorded again")],
    )
    assert (second.call.line, places(second)) == (5, [])
    assert first.recorded == tokens(1000)


def test_checkpoint_before_the_line_that_counts_is_named(tmp_path: Path) -> None:
    put(chats(tmp_path) / f"{builders.NAME}.jsonl", log(header(), user(), ONE, checkpoint(user(), ONE), ONE))
    (first,) = audit(tmp_path)
    assert [why for _, _, why in places(first)] == ["recorded again", "repeated by a checkpoint"]


def test_copies_and_twins_are_named(tmp_path: Path) -> None:
    for folder in ("webapp", builders.HASH):
        put(chats(tmp_path, folder) / f"{builders.NAME}.json", document(user(), ONE))
    put(chats(tmp_path) / f"{builders.NAME}.jsonl", log(header(lastUpdated=builders.at(50)), user(), ONE, TWO))
    first, second = audit(tmp_path)
    assert {why for _, _, why in places(first)} <= {
        *("a copy of the file in another folder", "the file that took over", "the .json before it was resumed"),
    }
    assert (len(first.duplicates), len(second.duplicates)) == (2, 0)


def test_versions_of_a_rewritten_file_are_named(tmp_path: Path) -> None:
    file = put(chats(tmp_path) / f"{builders.NAME}.json", document(user(), ONE, user("u2"), TWO))
    with store.open_archive(tmp_path / "archive.db") as archive:
        refresh(archive, [home(tmp_path)])
        put(file, document(user(), ONE, lastUpdated=builders.at(90)))  # an old client rewinds so
        result = refresh(archive, [home(tmp_path)])
        (session,) = open_session.history(archive.database, result.located).sessions
        group = open_session.open_session(archive.database, session)
        first, second = audited(session, group, prices.load(), owners={})
    assert [why for _, _, why in places(first)] == ["another version of the file"]
    assert (second.call.message_id, places(second)) == ("g2", [])


def imported(root: Path) -> None:
    put(chats(root) / f"{builders.NAME}.jsonl", log(header(), user(), ONE))
    head = header(builders.OTHER, startTime=builders.at(60))
    name = f"session-2026-11-15T19-31-{builders.OTHER[:8]}.jsonl"
    put(chats(root) / name, log(head, user("import-1"), ONE, TWO))


def test_imports_are_named_on_both_sides(tmp_path: Path) -> None:
    imported(tmp_path)
    (ours,) = audit(tmp_path, others=(builders.OTHER,))
    (repeat,) = ours.duplicates
    assert (repeat.reason, repeat.session_id, repeat.line) == ("repeated by another session", builders.OTHER, 3)
    first, second = audit(tmp_path, builders.OTHER)
    assert (first.owner, second.owner) == (builders.SESSION, None)
    assert call_row(first)["counted_in"] == builders.SESSION


def test_archive_knows_who_repeats_whom(tmp_path: Path) -> None:
    imported(tmp_path)
    with store.open_archive(tmp_path / "archive.db") as archive:
        refresh(archive, [home(tmp_path)])
        assert repeating(archive.database, builders.SESSION) == {builders.OTHER}
        assert repeating(archive.database, builders.OTHER) == set()


def test_call_is_counted_in_its_owner_though_only_another_home_is_asked_for(tmp_path: Path) -> None:
    imported(tmp_path)
    with store.open_archive(tmp_path / "archive.db") as archive:
        refresh(archive, [home(tmp_path)])
        database = archive.database
        (session,) = open_session.history(database, HomeScan((), ()), only={builders.OTHER}).sessions
        owners = call_owners(database, builders.OTHER)
        calls = [*audited(session, open_session.open_session(database, session), prices.load(), owners=owners)]
    assert [call.owner for call in calls] == [builders.SESSION, None]


def test_amounts_are_what_the_report_says(tmp_path: Path) -> None:
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
    assert sum(one.cost_nanousd or 0 for one in calls) == report.cost_nanousd
    assert [one.cost_nanousd is None for one in calls] == [False, False, False, True]
    for one in calls[:3]:
        assert (sum(each.amount for each in one.buckets) + 500) // 1000 == one.cost_nanousd
    assert calls[2].tier
    assert calls[2].tier.above == 200_000
    assert (call_row(calls[2])["consistent"], call_row(calls[3])["price"]) == (False, None)


def test_no_token_is_in_two_buckets() -> None:
    tier = prices.Tier(0, 4, None, 9)
    found = buckets(Tokens(10, 4, 3, 2, 1, 16), tier)
    assert [(one.name, one.tokens, one.picousd) for one in found] == [
        *(("input", 6, 4), ("tool", 1, 4), ("cached", 4, 4), ("output", 3, 9), ("thoughts", 2, 9)),
    ]


@pytest.mark.parametrize("left", [b"", b'{"id": 1'])
def test_file_that_changes_under_our_hands_is_no_crash(tmp_path: Path, left: bytes) -> None:
    file = put(chats(tmp_path) / f"{builders.NAME}.jsonl", log(header(), user(), ONE))
    (session,) = reader.history([home(tmp_path)]).sessions
    group = reader.opened(session)
    file.write_bytes(left)
    (call,) = audited(session, group, prices.load(), owners={})
    assert (call.recorded, call.duplicates) == (None, ())


def test_record_that_was_overwritten_has_no_counts(tmp_path: Path) -> None:
    file = put(chats(tmp_path) / f"{builders.NAME}.jsonl", log(header(), user(), ONE))
    (session,) = reader.history([home(tmp_path)]).sessions
    ((place,),) = audit_view._places(reader.opened(session).files).values()
    file.write_bytes(b"{" * file.stat().st_size)
    assert audit_view._recorded(place) is None


def test_audit_says_that_a_missing_total_was_computed(tmp_path: Path) -> None:
    without = {key: value for key, value in tokens(1000).items() if key != "total"}
    put(chats(tmp_path) / f"{builders.NAME}.jsonl", log(header(), user(), gemini("g1", tokens=without), TWO))
    first, second = audit(tmp_path)
    assert (first.call.tokens.total, first.is_total_computed) == (1005, True)
    assert (second.call.tokens.total, second.is_total_computed) == (2005, False)
    assert call_row(first)["total_computed"] is True
    report = AuditReport((SessionAudit(_session(tmp_path), (first,)),), "table", "date")
    assert "computed" in "\n".join(text.plain for text in audit_lines(report))
