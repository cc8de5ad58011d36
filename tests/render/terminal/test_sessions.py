"""Lists of sessions and projects on a terminal and in a pipe, and the tree of one session."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.cells import cell_len

from pollux.archive.memory import in_memory
from pollux.model import Fate, FileRef, ModelCall, Problem, Project, Role, Session, Tokens
from pollux.render.terminal.screen import Console, Renderable
from pollux.render.terminal.sessions import draw_tree, project_lines, project_table, session_lines, session_table
from pollux.reports.projects import ProjectRow
from pollux.reports.sessions import SessionRow, rows
from pollux.sessions.family import build_tree

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
TMP = Path("/home/u/.gemini/tmp")


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


def drawn(renderable: Renderable, width: int) -> str:
    console = Console(width=width, color_system=None, force_terminal=False)
    with console.capture() as capture:
        console.print(renderable)
    return capture.get()


def listed(*sessions: Session) -> tuple[SessionRow, ...]:
    with closing(in_memory(sessions, [])) as database:
        return rows(database, sessions)


def table(width: int, *sessions: Session) -> list[str]:
    return drawn(session_table(listed(*sessions), now=NOW), width).splitlines()


@pytest.mark.parametrize("width", [30, 40, 52, 60, 72, 80, 100, 120, 200])
def test_table_fits_and_names_the_session(width: int) -> None:
    lines = table(width, session(), session("7ffa9413-x"))
    assert all(cell_len(line) <= width for line in lines)
    assert lines[1].split()[0] == "@1"
    assert "Count" in lines[1]


def test_least_important_columns_are_dropped_first() -> None:
    dropped = session(fates={"rewound": 2, "active": 5})
    wide = ["session", "used", "project", "title", "prompts", "tokens", "cost", "dropped"]
    assert table(120, dropped)[0].split() == wide
    assert table(120, session())[0].split() == wide[:-1]
    columns = {width: len(table(width, session())[0].split()) for width in range(30, 101)}
    assert (columns[100], columns[30]) == (7, 1)
    assert sorted(columns.values()) == list(columns.values())
    assert {"title", "cost"} <= set(table(80, session())[0].split())
    assert table(45, session())[0].split() == ["title", "cost"]
    assert table(40, session(), session("7ffa9413", kind="subagent"))[0].split()[0] == "session"
    assert table(80, session(kind="subagent"))[0].split()[0] == "session"


def test_words_before_a_title_mark_deleted_empty_and_due_sessions() -> None:
    lines = table(
        100,
        session("a", kind="subagent", title=""),
        session("b", is_stub=True, ended=None),
        session("c", problems=(Problem("x", "y"),), fates={"rewound": 2, "compressed": 30, "active": 5}, deleted=True),
    )
    assert "↳ (no prompt)" in lines[1]
    assert "empty Count" in lines[2]
    assert "deleted ! Count" in lines[3]
    assert "rewound 2, compressed 30" in table(160, session(fates={"rewound": 2, "compressed": 30}))[1]


def test_list_shows_the_cost_or_that_there_is_no_price() -> None:
    priced = ModelCall("p", "m", None, "gemini-2.5-pro", Fate.ACTIVE, Tokens(total=10), "f", 1)
    assert "no price" in table(100, session(calls=(priced,)))[1]


def test_projects_of_the_same_name_get_different_names() -> None:
    work, play = (Project(None, None, f"/home/u/{name}/api", "project_root", proven=True) for name in ("work", "play"))
    lines = table(120, session("a", project=work), session("b", project=play), session("c"))
    assert [line.split()[3] for line in lines[1:]] == ["work/api", "play/api", "web"]


def test_lines_have_one_field_per_column() -> None:
    header, line = session_lines(listed(session(title="one\ttwo\nthree\x1b[2J", ended=None)))
    assert header == "session\tused\tproject\ttitle\tprompts\ttool_calls\ttokens\tcost_usd\n"
    assert line.split("\t") == ["0363a0b0-afca", "", "/src/web", "one two three␛[2J", "3", "0", "12345", "\n"]
    assert next(session_lines(listed(session()), header=False)).startswith("0363a0b0-afca\t")


def test_projects_show_how_they_are_known() -> None:
    proven = Project("cd" * 32, "shop", "/src/shop", "project_root", proven=True)
    used = datetime(2026, 11, 14, tzinfo=UTC)
    web = Project("ab" * 32, "web", "/src/web", "arguments")
    projects = [
        ProjectRow(Project("ef" * 32), 1, 3, 12345, used),
        ProjectRow(web, 1, 3, 12345, used),
        ProjectRow(proven, 1, 3, 12345, None),
    ]
    wide = drawn(project_table(projects, now=NOW), 120)
    assert "/src/web ?" in wide
    assert "/src/shop  " in wide
    assert "hash only" in wide
    assert "[efefefef]" in wide
    assert drawn(project_table(projects, now=NOW), 80).split()[:4] == ["project", "path", "sessions", "prompts"]
    narrow = drawn(project_table(projects, now=NOW), 40).splitlines()
    assert narrow[0].split() == ["project", "sessions", "tokens", "used"]
    header, first, *_ = project_lines(projects)
    assert header == "project\tknown_by\tsessions\ttokens\tprompts\tused\n"
    assert first == "[efefefef]\t\t1\t12345\t3\t2026-11-14T00:00:00.000Z\n"
    assert [line.count("\t") for line in project_lines(projects)] == [5, 5, 5, 5]


def tree(session: Session, by_id: dict[str, Session], tops: tuple[Path, ...]) -> list[str]:
    return drawn(draw_tree(build_tree(session, by_id), now=NOW, tops=tops), 300).splitlines()


def with_files(id_: str, *files: FileRef, **more: object) -> Session:
    return Session(id=id_, kind="main", project=Project(), files=files, **more)  # type: ignore[arg-type]


def test_tree_shortens_paths_and_hashes() -> None:
    parent = "0363a0b0-afca-4534-b337-a9a75f51dac1"
    main = FileRef(TMP / ("ab" * 32) / "chats" / "session-1.json", Role.MAIN, "document")
    copy = FileRef(Path("/elsewhere/session-1.json"), Role.COPY, "document")
    agent = FileRef(TMP / "web" / "chats" / parent / f"{parent}.jsonl", Role.MAIN, "log")
    child = with_files("agent", agent, parent_call="call_1", title="Look")
    root = with_files(parent, main, copy, children=("agent", "deleted"), ended=NOW, title="Ask")
    assert tree(root, {"agent": child}, (TMP,)) == [
        "0363a0b0 Ask",
        "0 tool calls, 0 tokens, just now",
        "├── main  abababab…/chats/session-1.json",
        "├── copy  /elsewhere/session-1.json",
        "└── agent Look",
        "    0 tool calls, 0 tokens, started by call_1",
        f"    └── web/chats/0363a0b0…/{parent}.jsonl",
    ]
    assert tree(child, {}, ())[-1] == f"└── {agent.path}"
    assert tree(with_files("x"), {}, ())[0] == "x (no prompt)"
