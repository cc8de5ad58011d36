"""Files with the same session ID are joined to one session, in any order and under any name."""

from __future__ import annotations

import random
from itertools import permutations
from pathlib import Path

import pytest
from tests import builders
from tests.archive.growing import comparable, content, rebuild
from tests.refreshing import refresh

from pollux.archive import derive, ingest, open_session
from pollux.archive.damage import VerifyReport
from pollux.archive.derive import merge_bundles, merged_bundles
from pollux.archive.store import Archive, open_archive
from pollux.archive.verify_facts import verify_deeply
from pollux.sessions.locate import locate
from pollux.sessions.reader import history as live_history
from pollux.text.times import microseconds

NAMES = (f"{builders.NAME}.jsonl", "session-2026-11-15T19-50-abcdef12.jsonl", "session-2026-11-15T19-55-12abcdef.jsonl")


def put(root: Path, name: str, n: int) -> None:
    """Write a file of the session with a different turn."""
    turn = builders.user("u1"), builders.gemini("g1", tokens=builders.tokens(10))
    own = builders.gemini(f"g{name}", second=n, tokens=builders.tokens(100 + n))
    builders.put(builders.chats(root) / name, builders.log(builders.header(), *turn, own))


def check_complete(archive: Archive, root: Path, n_calls: int) -> None:
    homes = [builders.home(root)]
    (archived,) = open_session.history(archive.database, locate(homes)).sessions
    (live,) = live_history(homes).sessions
    assert comparable(archived) == comparable(live)
    assert len(archived.calls) == n_calls
    grown = content(archive)
    rebuild(archive, homes)
    assert content(archive) == grown
    report = VerifyReport()
    verify_deeply(archive, report, memory={})
    assert report.damage == []


@pytest.mark.parametrize("names", [*permutations(NAMES, 2), *permutations(NAMES)])
def test_files_added_one_by_one_are_joined(tmp_path: Path, names: tuple[str, ...]) -> None:
    with open_archive(tmp_path / "archive.db") as archive:
        for number, name in enumerate(names):
            put(tmp_path, name, number)
            refresh(archive, [builders.home(tmp_path)])
        check_complete(archive, tmp_path, 1 + len(names))


@pytest.mark.parametrize("worth", [(0, 0), (1 << 62, 0)], ids=["others", "alone"])
@pytest.mark.parametrize("piece", [0, 1 << 20])
def test_files_added_together_are_joined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, worth: tuple[int, int], piece: int
) -> None:
    monkeypatch.setattr(ingest, "_WORKERS_FROM", worth)
    monkeypatch.setattr(ingest, "_WORKER_BYTES", piece)
    for number, name in enumerate(NAMES):
        put(tmp_path, name, number)
    with open_archive(tmp_path / "archive.db") as archive:
        refresh(archive, [builders.home(tmp_path)])
        assert set(merged_bundles(archive.database).values()) == {"12abcdef"}
        check_complete(archive, tmp_path, 4)


@pytest.mark.parametrize("name", NAMES)
def test_joined_session_is_complete_after_any_file_grows(tmp_path: Path, name: str) -> None:
    for number, key in enumerate(NAMES):
        put(tmp_path, key, number)
    with open_archive(tmp_path / "archive.db") as archive:
        refresh(archive, [builders.home(tmp_path)])
        with (builders.chats(tmp_path) / name).open("ab") as stream:
            stream.write(builders.log(builders.gemini("g9", second=9, tokens=builders.tokens(9))))
        refresh(archive, [builders.home(tmp_path)])
        check_complete(archive, tmp_path, 5)


@pytest.mark.parametrize("first", [0, 1])
def test_message_takes_its_time_from_another_file(tmp_path: Path, first: int) -> None:
    call = {"id": "c1", "name": "read_file", "args": {}, "status": "success"}
    untimed = {**builders.gemini("g1"), "toolCalls": [call]}
    del untimed["timestamp"]
    answers = [untimed, builders.gemini("g1", second=7)]
    with open_archive(tmp_path / "archive.db") as archive:
        for number in (first, 1 - first):
            chats = builders.chats(tmp_path)
            builders.put(chats / NAMES[number], builders.log(builders.header(), builders.user("u1"), answers[number]))
            refresh(archive, [builders.home(tmp_path)])
        check_complete(archive, tmp_path, 0)
        at_us = archive.database.execute("SELECT at_us FROM messages WHERE message_id = 'g1'").fetchone()[0]
        assert at_us == microseconds(builders.instant_of(7))


def test_files_may_have_many_names(tmp_path: Path) -> None:
    names = [f"session-2026-11-15T19-50-{number:08}.jsonl" for number in range(derive._FEW + 4)]
    for number, name in enumerate(names):
        put(tmp_path, name, number)
    with open_archive(tmp_path / "archive.db") as archive:
        refresh(archive, [builders.home(tmp_path)])
        with (builders.chats(tmp_path) / names[-1]).open("ab") as stream:
            stream.write(builders.log(builders.gemini("g9", second=59, tokens=builders.tokens(9))))
        refresh(archive, [builders.home(tmp_path)])
        check_complete(archive, tmp_path, len(names) + 2)


def test_damage_is_reported_once(tmp_path: Path) -> None:
    builders.put(builders.chats(tmp_path) / "session-2026-11-14T08-00-b3e2640d.jsonl", builders.log(builders.user()))
    with open_archive(tmp_path / "archive.db") as archive:
        refresh(archive, [builders.home(tmp_path)], derives=False)
        archive.database.execute(
            """
            UPDATE segments SET data = x'00' WHERE version_id IN
                (SELECT version_id FROM files WHERE path LIKE '%b3e2640d.jsonl')
            """
        )
        for number, name in enumerate(NAMES):
            put(tmp_path, name, number)
        result = refresh(archive, [builders.home(tmp_path)])
        assert [problem.code for problem in result.problems] == ["damaged-archive"]
        assert len(merged_bundles(archive.database)) == 2


IDS = ("aaaaaaaa-1", "bbbbbbbb-2", "cccccccc-3", "dddddddd-4")
ANY_NAMES = (
    *(f"session-2026-11-15T19-3{number}-{id_[:8]}.jsonl" for number in range(2) for id_ in IDS),
    "session-2026-11-15T19-30-[*?]zzé.jsonl",
    "session-odd.jsonl",
    "session-1763235000000-bbbbbbbb.jsonl",
    "aaaaaaaa-1/x1.jsonl",
    "bbbbbbbb-2/x1.jsonl",
    "cccccccc-3/x2.jsonl",
)


@pytest.mark.parametrize("seed", range(170, 210))
def test_joined_sessions_equal_a_rebuild_for_any_names_and_ids(tmp_path: Path, seed: int) -> None:
    rng, chats, number = random.Random(seed), builders.chats(tmp_path / "home"), 0  # noqa: S311
    with open_archive(tmp_path / "archive.db") as archive:
        for _ in range(rng.randint(2, 5)):
            for _ in range(rng.randint(1, 3)):
                number += 1
                live_on(rng, chats / rng.choice(ANY_NAMES), number)
            refresh(archive, [builders.home(tmp_path / "home")])
        report = VerifyReport()
        verify_deeply(archive, report, memory={})
    assert report.damage == []


def live_on(rng: random.Random, path: Path, number: int) -> None:
    """Let a file grow, be deleted, or start again with any session; some calls repeat those of others."""
    path.parent.mkdir(parents=True, exist_ok=True)
    call = f"g{rng.choice([number, number, 1])}"
    turn = (
        builders.user(f"u{number}", second=number),
        builders.gemini(call, second=number, tokens=builders.tokens(rng.choice([number, 1]))),
    )
    what, id_ = rng.choice(["new", "grow", "grow", "grow", "new", "go"]), rng.choice([*IDS, None])
    if what == "grow" and path.exists():
        with path.open("ab") as stream:
            stream.write(builders.log(*turn))
    elif what == "go" and path.exists():
        path.unlink()
    else:
        kind = "subagent" if path.parent.name != "chats" else "main"
        builders.put(path, builders.log(*([builders.header(id_, kind=kind)] if id_ else []), *turn))


def test_chain_of_merged_bundles_has_one_name(tmp_path: Path) -> None:
    with open_archive(tmp_path / "archive.db") as archive:
        refresh(archive, [builders.home(tmp_path)])
        for bundle, other in (("c", "d"), ("d", "c"), ("b", "e"), ("e", "c"), ("a", "d")):
            merge_bundles(archive.database, bundle, other)
        assert merged_bundles(archive.database) == dict.fromkeys("bcde", "a")
