"""Lists of touched files and of shell commands, on a terminal and in a pipe."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from rich.cells import cell_len

from pollux.model import Project
from pollux.render.terminal.screen import Console, Renderable
from pollux.render.terminal.search_lists import command_lines, command_table, file_lines, file_table, list_notes
from pollux.reports.freshness import Freshness, FreshnessState
from pollux.search.values import CommandRun, FilePage, TouchedFile

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
AT = datetime(2026, 11, 14, 12, tzinfo=UTC)
PROJECT = Project("ab" * 32, "skywatch", "/home/mara/src/skywatch", "arguments")
HOSTILE = "a\tb\nc\x1b[2J\u202e[red]x[/red]"


def touched(path: str = "skywatch/alerts.py", **more: object) -> TouchedFile:
    fields: dict[str, object] = {
        "op": "edit",
        "at": AT,
        "session_id": "602c50c2-52c5-4acc",
        "message_id": "9f7c1a52",
        "number": 11,
        "project": PROJECT,
        "title": "Find the cause",
        "lines_added": 3,
        "lines_removed": 1,
        "fate": "active",
    }
    return TouchedFile(path=path, **fields | more)  # type: ignore[arg-type]


def command(text: str = "pytest -q", **more: object) -> CommandRun:
    fields: dict[str, object] = {
        "program": "pytest",
        "at": AT,
        "session_id": "602c50c2-52c5-4acc",
        "message_id": "9f7c1a52",
        "number": 11,
        "project": PROJECT,
        "title": "Find the cause",
        "exit_code": None,
        "status": "success",
        "fate": "active",
    }
    return CommandRun(command=text, **fields | more)  # type: ignore[arg-type]


def drawn(renderable: Renderable, width: int = 80) -> list[str]:
    console = Console(width=width, color_system=None, force_terminal=False)
    with console.capture() as capture:
        console.print(renderable)
    return [line.rstrip() for line in capture.get().splitlines()]


def test_files_have_a_place_that_show_takes() -> None:
    rows = [
        touched("/home/mara/src/skywatch/skywatch/alerts.py"),
        touched("/etc/fstab", op="read", lines_added=None, lines_removed=None, fate="rewound", at=None),
    ]
    assert drawn(file_table(rows, now=NOW)) == [
        "message      used  access  file                lines  project   dropped",
        "602c50c2#12   24h  edit    skywatch/alerts.py  +3 -1  skywatch",
        "602c50c2#12        read    /etc/fstab                 skywatch  rewound",
    ]


def test_long_path_loses_its_beginning() -> None:
    (_, line) = drawn(file_table([touched("/one/very/long/path/of/folders/that/ends/here.py")], now=NOW), 40)
    assert line.endswith("/ends/here.py")
    assert "…" in line


def test_files_without_counted_lines_have_no_column_for_them() -> None:
    assert "lines" not in drawn(file_table([touched(lines_added=None, lines_removed=0)], now=NOW))[0]


def test_commands_show_how_they_ended() -> None:
    rows = [command(), command(exit_code=2, status="error"), command(status="cancelled"), command(exit_code=0)]
    ended = [line.split()[2:4] for line in drawn(command_table(rows, now=NOW))[1:]]
    assert ended == [["success", "pytest"], ["exit", "2"], ["cancelled", "pytest"], ["exit", "0"]]


@pytest.mark.parametrize("width", [30, 40, 60, 80, 160])
@pytest.mark.parametrize("text", ["x" * 400, "連接" * 100, HOSTILE, ""])
def test_tables_fit_and_keep_the_place(width: int, text: str) -> None:
    for table in (file_table([touched(text)], now=NOW), command_table([command(text)], now=NOW)):
        lines = drawn(table, width)
        assert max(map(cell_len, lines)) <= width
        assert "602c50c2#12" in lines[1]
        assert not set("\x1b\t\u202e") & set("".join(lines))


def test_pipe_has_a_field_per_column() -> None:
    header, line = file_lines([touched(HOSTILE)])
    assert header == "session\tmessage\tnumber\tat\taccess\tfile\tadded\tremoved\tfate\tproject\n"
    shown = "a b c␛[2J\\u{202e}[red]x[/red]"
    start = ["602c50c2-52c5-4acc", "9f7c1a52", "12", "2026-11-14T12:00:00.000Z"]
    assert line.split("\t") == [*start, "edit", shown, "3", "1", "active", "/home/mara/src/skywatch\n"]
    header, line = command_lines([command(HOSTILE)])
    assert header == "session\tmessage\tnumber\tat\tstatus\texit_code\tprogram\tcommand\tfate\tproject\n"
    assert line.split("\t") == [*start, "success", "", "pytest", shown, "active", "/home/mara/src/skywatch\n"]
    assert list(file_lines([])) == []


def page(*rows: TouchedFile, next_: str | None = None) -> FilePage:
    return FilePage(rows, next_, 120, ("A note.",), (), Freshness(FreshnessState.CURRENT))


def test_notes_name_what_is_missing_and_the_next_step() -> None:
    notes = list(list_notes(page(touched(), next_="c"), "x", "files", is_terminal=True))
    assert notes == [
        "A note.",
        "1 of 120 files are shown: add -n 5 to print more.",
        "`pollux show 602c50c2#12` opens the first one.",
    ]
    assert list(list_notes(page(touched()), "x", "files", is_terminal=False)) == ["A note."]
    nothing = list(list_notes(page(), "x", "files", is_terminal=True))[-1]
    assert nothing.startswith("Nothing matches 'x'. Try ")
