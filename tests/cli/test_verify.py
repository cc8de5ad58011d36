"""`pollux verify` reports damage, repairs what it can, and never fails with a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests import builders
from tests.archive.test_verify import (
    LOG,
    archived_home,
    content_of,
    damage,
    flip,
    grown,
    rewritten,
    segments_of,
    synced,
)
from tests.cli.running import Runner

from pollux.archive import raw
from pollux.archive.lock import WriterLock
from pollux.cli import COMMANDS, Command


@pytest.fixture(autouse=True)
def _commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(COMMANDS, "verify", Command("pollux.cli.verify", ""))


@pytest.fixture
def place(run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root, archive = archived_home(tmp_path)
    monkeypatch.setenv("POLLUX_HOME", str(root))
    monkeypatch.setenv("POLLUX_ARCHIVE", str(archive))
    del run
    return archive


@pytest.mark.parametrize("args", [(), ("--deep",), ("--repair",), ("--repair", "--deep")])
@pytest.mark.usefixtures("place")
def test_intact_archive_is_reported(run: Runner, args: tuple[str, ...]) -> None:
    result = run("verify", *args)
    assert (result.status, result.err) == (0, "")
    assert "is undamaged" in result.out


def test_damage_is_reported_and_repaired(run: Runner, place: Path) -> None:
    segment_id, _, start, length = segments_of(place, LOG)[0]
    flip(place, segment_id)
    result = run("verify")
    assert result.status == 1
    assert f"bytes {start}–{start + length} of version 1" in result.out
    assert "can be repaired from" in result.out
    assert "1 damaged" in result.err
    assert "--repair" in result.err
    result = run("verify", "--repair")
    assert result.status == 0
    assert "repaired from" in result.out
    assert "1 repaired, 0 damaged" in result.err
    assert run("verify").status == 0


def test_unrepairable_damage_is_reported(run: Runner, place: Path) -> None:
    damage(place, "UPDATE segments SET sha256 = zeroblob(32) WHERE id = 1")
    result = run("verify", "--repair", "--deep")
    assert result.status == 1
    assert "there is no other copy" in result.out
    assert "not compared" in result.err
    assert "puts back" not in result.err


def test_wrong_facts_are_rebuilt(run: Runner, place: Path) -> None:
    damage(place, "DELETE FROM messages WHERE seq = 0")
    assert run("verify").status == 1
    result = run("verify", "--repair", "--deep")
    assert result.status == 0
    assert "rebuilt" in result.out
    damage(place, "UPDATE messages SET line = 77")
    assert run("verify").status == 1
    assert run("verify", "--deep").status == 1
    assert run("verify", "--deep", "--repair").status == 0
    assert run("verify", "--deep").status == 0


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE model_calls SET tok_input = tok_input + 1000000 WHERE message_id = 'g1'",
        "UPDATE sessions SET title = 'forged'",
        "UPDATE messages SET n_chars = 1 WHERE message_id = 'u1'",
        "UPDATE tool_calls SET status = 'error'",
        "UPDATE tool_calls SET fate = 'rewound'",
        "UPDATE tool_calls SET args_json = '{}'",
        "UPDATE call_digests SET sha256 = x'00'",
        "INSERT INTO file_touches SELECT session_id, 'g2', 0, '/etc/passwd', 'read', 0, 0, 'args' FROM sessions",
        "UPDATE readings SET cleanup_traits = x''",
        "DELETE FROM model_calls",
        "DELETE FROM session_digests",
        "UPDATE session_digests SET sha256 = x'00'",
    ],
)
def test_altered_rows_are_detected_by_their_digest(run: Runner, place: Path, statement: str) -> None:
    damage(place, statement)
    result = run("verify")
    assert result.status == 1
    assert "are not those that were derived" in result.out
    assert run("verify", "--repair").status == 0
    assert run("verify", "--deep").status == 0


def test_rebuilt_facts_do_not_hide_altered_sessions(
    run: Runner, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rewritten(tmp_path / "home", 11)
    synced(place, tmp_path / "home")
    monkeypatch.setattr("pollux.archive.open_session.compare_versions", lambda _versions: [])
    result = run("verify", "--deep", "--repair")
    assert result.status == 1
    assert "`show` and the rows differ in fate; rebuilt" in result.out
    assert "`show` and the rows differ in fate\n" in result.out


def test_what_was_not_compared_is_listed(run: Runner, place: Path) -> None:
    del place
    plain, deep = run("verify"), run("verify", "--deep")
    assert "Not checked: the facts" in plain.out
    assert "`pollux verify --deep` checks the facts" in plain.out
    assert "Not checked: prices and project paths" in deep.out
    assert [one.split()[1] for one in run("verify", "--json").json["not_compared"]] == ["facts", "and"]
    assert len(run("verify", "--deep", "--json").json["not_compared"]) == 1


def test_edited_file_is_archived_again(
    run: Runner, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(raw, "COMPARED_WHOLE", 100)
    file = tmp_path / "home" / ".gemini" / "tmp/webapp/run_shell_18.txt"
    file.write_bytes(b"x" * 20_000)
    assert run("sync").status == 0
    damage(place, "UPDATE files SET compared = 19000")
    content = bytearray(file.read_bytes() + b"more")
    content[10_000:10_003] = b"---"
    with file.open("r+b") as stream:
        stream.write(content)
    monkeypatch.setattr(raw, "_next_segments", lambda segments, _position: (segments[:0], 0))
    assert run("sync").status == 0
    result = run("verify")
    assert result.status == 1
    assert "edited inside the bytes" in result.out
    assert run("verify", "--repair").status == 0
    assert run("verify").status == 0
    assert content_of(place, "tmp/webapp/run_shell_18.txt")[-1] == bytes(content)


def test_missing_segment_is_archived_again(run: Runner, place: Path, tmp_path: Path) -> None:
    root = tmp_path / "home"
    for number in (3, 4):
        grown(root, LOG, builders.log(builders.user(f"u{number}", "long " * 3000, second=5)))
        synced(place, root)
    damage(place, f"DELETE FROM segments WHERE id = {segments_of(place, LOG)[2][0]}")  # noqa: S608  our own number
    assert "as a new version" in run("verify").out
    assert run("verify", "--repair").status == 1
    assert content_of(place, LOG)[-1] == (root / ".gemini" / LOG).read_bytes()


def test_json(run: Runner, place: Path) -> None:
    flip(place, segments_of(place, LOG)[0][0])
    found = run("verify", "--json").json
    assert found.keys() == {
        "schema",
        "archive",
        "ok",
        "deep",
        "segments",
        "bytes",
        "damage",
        "notes",
        "not_compared",
    }
    assert (found["schema"], found["archive"], found["ok"]) == ("pollux.verify/1", str(place), False)
    (row,) = found["damage"]
    assert row.keys() == {"code", "message", "machine", "file", "version", "start", "end", "source", "repaired"}


def test_only_a_repair_needs_to_write(run: Runner, place: Path) -> None:
    lock = WriterLock(place)
    assert lock.take()
    assert run("verify").status == 0
    result = run("verify", "--repair")
    assert result.status == 1
    assert lock.owner() in result.err
    lock.release()


def test_invalid_archive_gets_one_sentence(run: Runner, place: Path) -> None:
    whole = place.read_bytes()
    for other in place.parent.glob("archive.db-*"):
        other.unlink()
    for data in (b"", b"a letter" * 1000, whole[:5000], whole[: len(whole) // 2], whole[:-1]):
        place.write_bytes(data)
        for args in ((), ("--deep",), ("--repair",)):
            if args == ("--repair",) and not data:
                continue  # an empty file is an archive to be
            result = run("verify", *args)
            assert result.status in (1, 2)
            assert result.err
    missing = run("verify", "--archive", str(place.with_name("none.db")))
    assert (missing.status, "no archive" in missing.err) == (1, True)
