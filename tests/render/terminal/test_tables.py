"""Lists on a terminal and in a pipe."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime

import pytest
from rich.cells import cell_len
from rich.console import Console, RenderableType

from pollux.archive.memory import in_memory
from pollux.model import Fate, ModelCall, Problem, Project, Session, Tokens
from pollux.render.terminal.tables import counted, project_lines, project_table, session_lines, session_table, tabbed
from pollux.reports.projects import ProjectRow
from pollux.reports.sessions import SessionRow, rows

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


def session(id_: str = "0363a0b0-afca", **more: object) -> Session:
    fields: dict[str, object] = {
        "kind": "main",
        "project": Project("ab" * 32, "web", "/src/web", "arguments"),
        "title": "Count the 鶴 on the shore, and write them down one by one",
        "ended": datetime(2026, 11, 14, tzinfo=UTC),
        "counts": {"user": 3},
        "calls": (ModelCall(id_, "m", None, None, Fate.ACTIVE, Tokens(total=12345), "f", 1),),
    }
    return Session(id=id_, **fields | more)  # type: ignore[arg-type]


def drawn(what: RenderableType, width: int) -> str:
    console = Console(width=width, color_system=None, force_terminal=False)
    with console.capture() as capture:
        console.print(what)
    return capture.get()


def listed(*sessions: Session) -> tuple[SessionRow, ...]:
    with closing(in_memory(sessions, [])) as database:
        return rows(database, sessions)


def table(width: int, *sessions: Session) -> list[str]:
    return drawn(session_table(listed(*sessions), now=NOW, width=width), width).splitlines()


@pytest.mark.parametrize("width", [30, 40, 52, 60, 72, 80, 100, 120, 200])
def test_table_fits_and_names_the_session(width: int) -> None:
    lines = table(width, session(), session("7ffa9413-x"))
    assert all(cell_len(line) <= width for line in lines)
    assert lines[1].split()[0] == "@1"
    assert "Count" in lines[1]


def test_columns_make_way() -> None:
    assert table(80, session())[0].split() == ["session", "used", "project", "title", "asks", "tokens"]
    assert table(70, session())[0].split() == ["session", "used", "project", "title"]
    assert table(55, session())[0].split() == ["session", "used", "title"]
    assert table(40, session())[0].split() == ["used", "title"]
    assert table(40, session(), session("7ffa9413", kind="subagent"))[0].split() == ["session", "used", "title"]
    assert table(80, session(kind="subagent"))[0].split()[0] == "session"


def test_marks_tell_what_is_special() -> None:
    lines = table(
        80,
        session("a", kind="subagent", title=""),
        session("b", is_stub=True, ended=None),
        session("c", problems=(Problem("x", "y"),), fates={"rewound": 2, "active": 5}),
    )
    assert "↳ (no prompt)" in lines[1]
    assert "stub Count" in lines[2]
    assert "! ⑂2 Count" in lines[3]


def test_lines_have_seven_fields_whatever_is_in_them() -> None:
    (line,) = session_lines(listed(session(title="one\ttwo\nthree\x1b[2J", ended=None)))
    assert line.split("\t") == ["0363a0b0-afca", "", "/src/web", "one two three␛[2J", "3", "0", "12345\n"]


def test_projects_say_what_is_known() -> None:
    known = Project("cd" * 32, "shop", "/src/shop", "project_root", proven=True)
    unknown = Project("ef" * 32)
    used = datetime(2026, 11, 14, tzinfo=UTC)
    web = Project("ab" * 32, "web", "/src/web", "arguments")
    projects = [
        ProjectRow(unknown, 1, 3, 12345, used),
        ProjectRow(web, 1, 3, 12345, used),
        ProjectRow(known, 1, 3, 12345, None),
    ]
    wide = drawn(project_table(projects, now=NOW, width=120), 120)
    assert "/src/web ?" in wide
    assert "/src/shop  " in wide
    assert "hash only" in wide
    assert "efefefefefef" in wide
    assert drawn(project_table(projects, now=NOW, width=80), 80).split()[:4] == ["project", "path", "sessions", "asks"]
    narrow = drawn(project_table(projects, now=NOW, width=40), 40).splitlines()
    assert narrow[0].split() == ["project", "sessions", "tokens", "used"]
    assert next(project_lines(projects)) == "[efefefef]\t\t1\t12345\t3\t2026-11-14T00:00:00.000Z\n"
    assert [line.count("\t") for line in project_lines(projects)] == [5, 5, 5]


def test_words() -> None:
    assert (counted(1, "file"), counted(0, "file")) == ("1 file", "0 files")
    assert tabbed("a\tb", 1) == "a b\t1\n"
