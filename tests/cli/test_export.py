"""Sessions are handed over whole, to where they are wanted, and nothing is overwritten by half."""

from __future__ import annotations

import csv
import errno
import json
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import builders
from tests.cli.running import Runner

from pollux import sessions
from pollux.cli import export_folder
from pollux.cli.demo import HOME as DEMO
from pollux.errors import UnreadableFileError
from pollux.exports.calls import COLUMNS
from pollux.grouping import Group
from pollux.model import Session

CHATS = DEMO / ".gemini" / "tmp" / "skywatch" / "chats"


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir() if file.name != export_folder.MEMORY)


def test_one_session_goes_into_one_file(run: Runner, tmp_path: Path) -> None:
    target = tmp_path / "one.json"
    ended = run("export", "@1", "-o", str(target))
    assert (ended.status, ended.err) == (0, f"1 session written to {target}\n")
    assert json.loads(target.read_bytes())["session"]["id"].startswith("0363a0b0")
    assert [*tmp_path.iterdir()] == [target]


def test_several_go_into_a_folder_under_stable_names(run: Runner, tmp_path: Path) -> None:
    for attempt in range(2):
        ended = run("export", "@1", "@2", "latest", "-o", str(tmp_path / "new" / "folder"))
        again = ", 2 of them unchanged since" if attempt else ""
        assert (ended.status, ended.err) == (0, f"2 sessions written to {tmp_path / 'new' / 'folder'}{again}\n")
    assert names(tmp_path / "new" / "folder") == [
        "2026-11-11T17-26_451ea5d6-1dc2-4957-ae3a-eacc836dc4fa.json",
        "2026-11-12T08-15_0363a0b0-afca-4534-b337-a9a75f51dac1.json",
    ]


def test_one_goes_into_a_folder_that_is_there(run: Runner, tmp_path: Path) -> None:
    assert run("export", "@1", "-o", str(tmp_path)).err == f"1 session written to {tmp_path}\n"
    assert run("export", "@1", "-o", f"{tmp_path}/new/").status == 0
    assert len([*tmp_path.rglob("2026*.json")]) == 2


def test_all_that_fit_go_into_a_folder(run: Runner, tmp_path: Path) -> None:
    ended = run("export", "--all", "74dc5fc5", "--project", "tide-tables", "-f", "jsonl", "-o", str(tmp_path / "tides"))
    assert ended.status == 0
    assert len(names(tmp_path / "tides")) == 4


def test_files_of_one_session_do_not_overwrite_each_other(run: Runner, tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        builders.put(tmp_path / f"{name}.jsonl", builders.log(builders.header(), builders.user("u", name)))
    run("export", *(str(tmp_path / f"{name}.jsonl") for name in "abc"), "-o", str(tmp_path / "out"))
    assert names(tmp_path / "out") == [f"2026-11-15T19-30_{builders.SESSION}{more}.json" for more in ("-2", "-3", "")]


def test_lines_of_several_make_one_stream(run: Runner, tmp_path: Path) -> None:
    streamed = run("export", "@1", "@2", "-f", "jsonl").out
    assert run("export", "@1", "@2", "-f", "jsonl", "-o", str(tmp_path / "two.jsonl")).status == 0
    assert (tmp_path / "two.jsonl").read_text("utf-8") == streamed
    assert sum(json.loads(line)["type"] == "session" for line in streamed.splitlines()) == 2


def test_tables_of_several_make_one_table(run: Runner, tmp_path: Path) -> None:
    run("export", "--all", "-f", "calls-csv", "-o", str(tmp_path / "all.csv"))
    run("export", "--all", "-f", "calls", "-o", str(tmp_path / "all.jsonl"))
    with (tmp_path / "all.csv").open(encoding="utf-8", newline="") as file:
        ids = [row["message_id"] for row in csv.DictReader(file)]
    assert ids == [json.loads(line)["message_id"] for line in (tmp_path / "all.jsonl").read_bytes().splitlines()]
    with_agent = run("export", "e92f6bc2", "-f", "calls-csv")
    assert (with_agent.status, with_agent.out.count("session_id,")) == (0, 2)  # its own and its parent's, once


def test_data_set_has_a_file_for_a_subagent_too(run: Runner) -> None:
    ended = run("export", "e92f6bc2", "-f", "hf")
    assert (ended.status, ended.out) == (2, "")
    assert "2 sessions (1 of them a subagent) do not fit into one .jsonl file" in ended.err


def test_file_is_no_folder(run: Runner, tmp_path: Path) -> None:
    target = builders.put(tmp_path / "notes", b"mine")
    ended = run("export", "@1", "@2", "-o", str(target))
    assert (ended.status, ended.err) == (2, f"{target} is a file: give a folder, as in `-o exports/`.\n")
    assert target.read_bytes() == b"mine"


@pytest.mark.skipif(os.name == "nt", reason="no such permissions there")
def test_folder_is_for_its_owner_alone(run: Runner, tmp_path: Path) -> None:
    run("export", "@1", "-o", f"{tmp_path}/new/")
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


def test_all_tells_of_what_cannot_be_read(run: Runner, tmp_path: Path) -> None:
    builders.put(builders.chats(tmp_path) / f"{builders.NAME}.jsonl", builders.log(builders.header(), builders.user()))
    (builders.chats(tmp_path) / f"session-2026-11-15T10-00-{builders.OTHER[:8]}.jsonl").symlink_to("nowhere")
    ended = run("export", "--all", "-f", "jsonl", home=tmp_path)
    assert (ended.status, builders.OTHER[:8] in ended.err) == (1, True)


def test_problems_are_told_after_the_data(run: Runner) -> None:
    ended = run("export", "408a8bb2")
    assert ended.status == 1
    assert ended.json["problems"]
    assert "408a8bb2.jsonl:48: " in ended.err


SAMPLES = Path(__file__).parents[1] / "data"
EMPTY = "empty.jsonl"
COUNTLESS = ("shared/0.61.0.md", "stream/tools.jsonl", "history/checkpoint-second.json", EMPTY)


@pytest.mark.parametrize(
    ("name", "sample", "missing"),
    [
        *((name, sample, "model call") for name in ("calls", "calls-csv") for sample in COUNTLESS),
        *((name, sample, "turn") for name in ("chat", "sharegpt") for sample in ("stream/output.json", EMPTY)),
    ],
)
def test_a_session_with_nothing_to_give_says_so(
    run: Runner, tmp_path: Path, name: str, sample: str, missing: str
) -> None:
    builders.put(tmp_path / EMPTY, builders.log(builders.header()))
    file = tmp_path / sample if sample == EMPTY else SAMPLES / sample
    ended = run("export", str(file), "-f", name)
    assert ended.status == 0
    assert ended.out.splitlines() == ([",".join(COLUMNS)] if name == "calls-csv" else [])
    (sentence,) = ended.err.splitlines()
    assert re.fullmatch(rf"Session \S+ has nothing for {name}: no {missing} .*`--format json` .*\.", sentence)
    into_file = run("export", str(file), "-f", name, "-o", str(tmp_path / "out"))
    assert (into_file.status, into_file.err) == (0, ended.err)


def test_of_several_sessions_only_those_with_nothing_are_counted(run: Runner, tmp_path: Path) -> None:
    empty = builders.put(tmp_path / "empty.jsonl", builders.log(builders.header()))
    ended = run("export", "@1", str(empty), "-f", "calls")
    assert (ended.status, ended.out.count("\n") > 0) == (0, True)
    assert "1 of 2 sessions has nothing for calls: no model call" in ended.err
    assert not run("export", "@1", "-f", "calls").err


def test_link_and_device_stay_what_they_are(run: Runner, tmp_path: Path) -> None:
    (tmp_path / "link.json").symlink_to(tmp_path / "real.json")
    run("export", "@1", "-o", str(tmp_path / "link.json"))
    assert (tmp_path / "link.json").is_symlink()
    assert (tmp_path / "real.json").stat().st_size
    run("export", "@1", "-o", "/dev/null")
    assert not Path("/dev/null").is_file()


def test_half_a_file_is_never_left(tmp_path: Path) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"half"
        raise OSError(errno.ENOSPC, "No space left on device")

    target = builders.put(tmp_path / "old.json", b"old")
    with pytest.raises(OSError, match="No space"):
        export_folder.write(target, pieces())
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("old.json", b"old")]


def test_session_that_went_away_does_not_stop_the_others(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = sessions.opened

    def gone(session: Session) -> Group:
        if session.id.startswith("0363a0b0"):
            raise UnreadableFileError("gone.jsonl", "No such file or directory")
        return opened(session)

    monkeypatch.setattr(sessions, "opened", gone)
    ended = run("export", "@1", "@2", "--no-archive", "-o", str(tmp_path / "out"))
    assert ended.status == 1
    assert "1 session written" in ended.err
    assert "gone.jsonl cannot be read" in ended.err


def test_state_of_an_id_is_that_of_its_main_file(run: Runner) -> None:
    file = CHATS / "session-2026-11-12T08-15-0363a0b0.jsonl"
    by_id = run("export", "0363a0b0", "-f", "gemini").out
    assert by_id == run("export", str(file), "-f", "gemini").out
    assert json.loads(by_id)["sessionId"].startswith("0363a0b0")


def test_stubs_beside_a_session_do_not_change_its_state(run: Runner) -> None:
    file = CHATS / "session-1794418000167-451ea5d6.jsonl"
    assert run("export", "451ea5d6", "-f", "gemini").out == run("export", str(file), "-f", "gemini").out
