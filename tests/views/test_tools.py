from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.views.build import ROOT, call

from pollux.formats.tools import ROWS, ToolInfo
from pollux.model import (
    Activity,
    AgentDisplay,
    Cell,
    DiffDisplay,
    FileDisplay,
    GrepMatch,
    Json,
    MatchDisplay,
    ScreenDisplay,
    TextDisplay,
    Todo,
    TodoDisplay,
    UnknownDisplay,
)
from pollux.views.bodies import Agent, Data, FileList, Input, Matches, Output, Question, Questions, Screen, Todos
from pollux.views.diffs import Diff, DiffLine, LineChange
from pollux.views.excerpts import Excerpt, Limits
from pollux.views.tool_views import ToolView, describe_call, is_failed
from pollux.views.tools import TOOLS, Icon, title_of_label

SHORT = Limits(head=2, tail=1, chars=120)


def view(name: str, args: Json = None, *, limits: Limits | None = SHORT, **more: Any) -> ToolView:  # noqa: ANN401
    return describe_call(call(name, args, **more), limits=limits, root=ROOT)


def words(telling: ToolView) -> str:
    summary = telling.summary
    return f"{summary.label} {summary.text}".strip() + (f" | {summary.outcome}" if summary.outcome else "")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_known_tool_has_a_row(row: Any) -> None:  # noqa: ANN401
    if row.canonical != "browser":
        assert row.name in TOOLS


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("run_shell_command", {"command": "ls -l\n"}, "Shell ls -l"),
        (
            "run_shell_command",
            {"command": "cat <<E\na\nE", "dir_path": f"{ROOT}/app"},
            "Shell cat <<E … 2 more lines (in app)",
        ),
        ("run_shell_command", {"command": "make", "is_background": True}, "Shell make (in the background)"),
        ("run_command", {"cmd": "make"}, "Shell make"),
        ("read_file", {"file_path": f"{ROOT}/a.py"}, "Read a.py"),
        ("read_file", {"absolute_path": f"{ROOT}/a.py", "offset": 10, "limit": 5}, "Read a.py, lines 11-15"),
        ("read_file", {"absolute_path": "/x/a.py", "limit": 5}, "Read /x/a.py, lines 1-5"),
        ("read_file", {"file_path": "a.py", "offset": 10}, "Read a.py, from line 11"),
        ("read_file", {"file_path": "a.py", "start_line": 3, "end_line": 9}, "Read a.py, lines 3-9"),
        ("read_file", {"file_path": "a.py", "end_line": 9}, "Read a.py, lines 1-9"),
        ("read_many_files", {"include": [f"{ROOT}/a.py", "b.py"]}, "Read a.py, b.py"),
        ("read_many_files", {"paths": "*.py"}, "Read *.py"),
        ("list_directory", {"dir_path": ROOT}, "List ."),
        ("list_directory", {"path": f"{ROOT}2/x"}, f"List {ROOT}2/x"),
        ("glob", {"pattern": "*.py", "dir_path": f"{ROOT}/app"}, "Find '*.py' in app"),
        ("search_file_content", {"pattern": "def ", "include": "*.py"}, "Search 'def ' (*.py)"),
        ("google_web_search", {"query": "x"}, "Web search x"),
        ("web_fetch", {"url": "http://x/"}, "Fetch http://x/"),
        ("save_memory", {"fact": "I am."}, "Remember I am."),
        ("update_topic", {"title": "A", "summary": "B"}, "Topic A: B"),
        ("ask_user", {"questions": [{"question": "Red?"}, "Blue?"]}, "Ask Red?; Blue?"),
        ("ask_user", {"questions": "odd"}, "Ask"),
        ("invoke_agent", {"agent_name": "cli_help", "prompt": "Why?"}, "Agent cli_help: Why?"),
        ("codebase_investigator", {"objective": "Why?"}, "Agent codebase_investigator Why?"),
        ("complete_task", {"result": "Done."}, "Result result: Done."),
        ("complete_task", {"report": {"a": 1}}, "Result"),
        ("exit_plan_mode", {"plan_path": "p.md"}, "Plan p.md"),
        ("activate_skill", {"name": "s"}, "Skill s"),
        ("mcp_tickets_lookup", {"ticket": "T-7"}, "tickets/lookup ticket: T-7"),
        ("no_such_tool", {"a": [1, {"b": None}], "": "x"}, 'no_such_tool a: [1, {"b": null}], x'),
        ("no_such_tool", "odd", "no_such_tool odd"),
        ("write_todos", {"todos": 3}, "Todos"),
    ],
)
def test_summary_line(name: str, args: Json, expected: str) -> None:
    assert words(view(name, args)) == expected


def test_custom_agent_is_recognised_by_its_session_or_display() -> None:
    assert words(view("reviewer", {"query": "Look"}, agent_id="a1")) == "Agent reviewer Look"
    assert words(view("reviewer", {}, display=AgentDisplay("reviewer", state="running"))) == "Agent reviewer | running"


def test_mcp_tool_of_old_releases_is_recognised_by_its_display_name() -> None:
    telling = view("lookup", {"ticket": "T-7"}, display_name="lookup (tickets MCP Server)", mcp_server="tickets")
    assert words(telling) == "tickets/lookup ticket: T-7"


def test_outcome() -> None:
    assert words(view("run_shell_command", {"command": "x"}, exit_code=3)) == "Shell x | exit 3"
    assert words(view("run_shell_command", {"command": "x"}, status="cancelled")) == "Shell x | cancelled"
    assert words(view("run_shell_command", {"command": "x"}, status="pending")) == "Shell x | no result recorded"
    assert words(view("glob", {"pattern": "x"}, display=TextDisplay("Found 5"))) == "Find 'x' | Found 5"
    assert words(view("glob", {"pattern": "x"}, display=TextDisplay("No"), status="error")) == "Find 'x'"
    assert words(view("list_directory", {"path": "."}, display=FileDisplay("3 items", ()))) == "List . | 3 items"


def test_command_that_exits_with_an_error_is_failed() -> None:
    assert is_failed(call("run_shell_command", exit_code=1))
    assert is_failed(call("read_file", status="error"))
    assert not is_failed(call("run_shell_command", exit_code=0))


def test_shell_output_is_the_display_or_the_output_without_field_names() -> None:
    shown = view("run_shell_command", {"command": "x"}, display=TextDisplay("shown"), output="Output: sent")
    assert shown.bodies == (Output(Excerpt("shown")),)
    old = "Command: x\nDirectory: (root)\nOutput: a\nb\nError: (none)\nExit Code: 0\nSignal: (none)"
    assert view("run_shell_command", {"command": "x"}, output=old).bodies == (Output(Excerpt("a\nb")),)
    new = "<untrusted_context>\nOutput: a\nProcess Group PGID: 7\n</untrusted_context>"
    assert view("run_shell_command", {"command": "x"}, output=new).bodies == (Output(Excerpt("a")),)
    assert view("run_shell_command", {"command": "x"}, output="Output: (empty)").bodies == ()
    assert view("run_shell_command", {"command": "x"}, output="as it is").bodies == (Output(Excerpt("as it is")),)


def test_screen_is_cut_in_the_middle_and_at_the_edge() -> None:
    lines = tuple((Cell(str(n)),) for n in range(9))
    blank = ((Cell("  "),), (Cell(" ", inverse=True),))
    screen = view("run_shell_command", {"command": "x"}, display=ScreenDisplay(lines + blank)).bodies[0]
    assert screen == Screen(lines[:2], lines[8:], 6)
    full = view("run_shell_command", {"command": "x"}, display=ScreenDisplay(lines + blank), limits=None).bodies[0]
    assert full == Screen(lines)
    assert view("run_shell_command", {"command": "x"}, display=ScreenDisplay(blank)).bodies == ()
    wide = view("run_shell_command", {"command": "x"}, display=ScreenDisplay(((Cell("a" * 300), Cell("b")),))).bodies[0]
    assert wide == Screen(((Cell("a" * 200 + "…"),),))


DIFF = """\
Index: board.py
===================================================================
--- board.py\tCurrent
+++ board.py\tProposed
@@ -16,4 +16,4 @@
 kept
--- gone
+new

\\ No newline at end of file
@@ -30 +30 @@
-x
+y
"""


def test_diff_has_line_numbers() -> None:
    telling = view("replace", {"file_path": f"{ROOT}/board.py"}, display=DiffDisplay(DIFF, "board.py"), limits=None)
    assert words(telling) == "Edit board.py | +2 -2"
    assert telling.bodies == (
        Diff(
            "board.py",
            (
                DiffLine(LineChange.HUNK, "@@ -16,4 +16,4 @@"),
                DiffLine(LineChange.CONTEXT, "kept", 16, 16),
                DiffLine(LineChange.DELETE, "-- gone", 17),
                DiffLine(LineChange.ADD, "new", None, 17),
                DiffLine(LineChange.CONTEXT, "", 18, 18),
                DiffLine(LineChange.CONTEXT, "\\ No newline at end of file"),
                DiffLine(LineChange.HUNK, "@@ -30 +30 @@"),
                DiffLine(LineChange.DELETE, "x", 30),
                DiffLine(LineChange.ADD, "y", None, 30),
            ),
            2,
            2,
        ),
    )


def test_long_diff_is_shortened_but_counts_all_lines() -> None:
    diff = "@@ -0,0 +1,50 @@\n" + "\n".join("+" + "x" * 300 for _ in range(50))
    telling = view("write_file", {"file_path": "a"}, display=DiffDisplay(diff, is_new=True))
    body = telling.bodies[0]
    assert words(telling) == "Write a | new, +50 -0"
    assert isinstance(body, Diff)
    assert (len(body.lines), body.hidden_lines, len(body.lines[1].text)) == (6, 45, 201)


def test_edit_without_a_display_is_compared() -> None:
    args = {"file_path": "a", "old_string": "one\ntwo\n", "new_string": "one\nthree\n"}
    telling = view("replace", args, output="Successfully modified file")
    assert words(telling) == "Edit a | +1 -1"
    assert telling.bodies == (
        Diff(
            "a",
            (
                DiffLine(LineChange.CONTEXT, "one"),
                DiffLine(LineChange.DELETE, "two"),
                DiffLine(LineChange.ADD, "three"),
            ),
            1,
            1,
        ),
    )
    long = {"old_string": "a\n" * 1500, "new_string": "b\n" * 1500}
    assert words(view("replace", long)) == "Edit | +1500 -1500"
    assert words(view("write_file", {"file_path": "a", "content": "x\ny"})) == "Write a | +2 -0"


def test_edit_that_cannot_be_rebuilt_shows_its_output() -> None:
    assert view("replace", {"file_path": "a"}, output="Done").bodies == (Output(Excerpt("Done")),)
    assert view("replace", "odd", output="Done").bodies == (Output(Excerpt("Done")),)


def test_todos_come_from_the_display_or_the_arguments() -> None:
    todos = (Todo("Read", "completed"), Todo("Write", "pending"))
    args: Json = {"todos": [{"description": todo.description, "status": todo.status} for todo in todos]}
    for telling in (view("write_todos", args), view("write_todos", args, display=TodoDisplay(todos))):
        assert words(telling) == "Todos 2 items | 1/2 done"
        assert telling.bodies == (Todos(todos),)


def test_matches_and_files_are_shortened() -> None:
    matches = tuple(GrepMatch("a.py", n, "x" * 300) for n in range(9))
    telling = view("grep_search", {"pattern": "x"}, display=MatchDisplay("Found 9", matches))
    assert words(telling) == "Search 'x' | Found 9"
    body = telling.bodies[0]
    assert isinstance(body, Matches)
    assert (len(body.matches), body.hidden, len(body.matches[0].text)) == (2, 7, 201)
    files = view("list_directory", {"path": "."}, display=FileDisplay("3", ("a", "b", "c")), limits=None)
    assert files.bodies == (FileList(("a", "b", "c")),)
    assert view("list_directory", {"path": "."}, display=FileDisplay("3", ("a", "b", "c"))).bodies == ()


def test_agent_has_steps_and_a_result() -> None:
    steps = tuple(Activity("tool_call", f"step {n}", "completed") for n in range(5))
    telling = view(
        "invoke_agent", {"agent_name": "x"}, display=AgentDisplay("x", "completed", None, None, steps), output="Fin"
    )
    assert telling.bodies == (Agent("x", steps[:2], 3, Excerpt("Fin")),)
    assert view("invoke_agent", {}, display=AgentDisplay("x")).bodies == (Agent("x"),)


def test_questions_have_answers() -> None:
    args: Json = {"questions": [{"question": "Colour?", "options": [{"label": "Red"}, "Blue"]}, {"header": "Size?"}]}
    telling = view("ask_user", args, output='{"answers":{"0":"Red"}}', display=TextDisplay("**User answered:**"))
    assert telling.bodies == (Questions((Question("Colour?", ("Red", "Blue"), "Red"), Question("Size?"))),)
    refused = view("ask_user", args, output="User dismissed ask_user dialog")
    assert refused.bodies[0] == Output(Excerpt("User dismissed ask_user dialog"))
    assert view("ask_user", "odd").bodies == ()


def test_subagent_returns_text_or_data() -> None:
    assert view("complete_task", {"result": "Fin"}).bodies == (Output(Excerpt("Fin"), is_markdown=True),)
    assert view("complete_task", {"report": [1]}, limits=None).bodies == (Data(Excerpt("[\n  1\n]")),)
    assert view("complete_task", "odd").bodies == ()


def test_errors_come_last_and_replace_the_display() -> None:
    telling = view("web_fetch", {"url": "x"}, status="error", error="No host: x", display=TextDisplay("Error: No host"))
    assert telling.bodies == (Output(Excerpt("No host: x"), is_error=True),)
    mcp = view("mcp_t_x", {}, status="error", error="Down: x", display=TextDisplay("Down"))
    assert mcp.bodies == (Output(Excerpt("Down: x"), is_error=True),)
    cancelled = view(
        "run_shell_command",
        {"command": "x"},
        status="cancelled",
        error="[Operation Cancelled] User cancelled.",
        display=TextDisplay("partial"),
    )
    assert cancelled.bodies == (Output(Excerpt("partial")), Output(Excerpt("User cancelled.")))


def test_quiet_tool_shows_its_output_only_in_full_detail() -> None:
    assert view("read_file", {"file_path": "a"}, output="text", display=TextDisplay("")).bodies == ()
    full = view("read_file", {"file_path": "a"}, output="text", display=TextDisplay(""), limits=None)
    assert full.bodies == (Output(Excerpt("text")),)


def test_full_detail_shows_every_argument_once() -> None:
    args = {"file_path": "a", "old_string": "x", "new_string": "y", "instruction": "Do it."}
    bodies = view("replace", args, display=DiffDisplay("@@ -1 +1 @@\n-x\n+y"), limits=None).bodies
    assert bodies[0] == Input(Excerpt("instruction: Do it."), "text")
    shell = view("run_shell_command", {"command": "a\nb", "description": "why"}, limits=None).bodies
    assert shell == (Input(Excerpt("a\nb"), "sh"), Input(Excerpt("description: why"), "text"))
    assert view("run_shell_command", {"command": "a"}, limits=None).bodies == ()
    assert view("mcp_t_x", {"a": 1}, limits=None).bodies == ()
    long = view("mcp_t_x", {"a": "x" * 300}, limits=None)
    assert (len(long.summary.text), long.bodies) == (200, (Input(Excerpt("a: " + "x" * 300), "text"),))


def test_odd_results_are_data() -> None:
    assert view("x", {}, display=UnknownDisplay({"a": 1})).bodies == (Data(Excerpt('{\n  "a": 1\n}')),)
    assert view("x", {}, response={"content": []}).bodies == (Data(Excerpt('{\n  "content": []\n}')),)
    assert view("x", {}, response={"content": []}, output="out").bodies == (Output(Excerpt("out")),)


@pytest.mark.parametrize(
    ("output", "text", "note"),
    [
        (
            "Output too large. Showing first 8,000 and last 32,000 characters. For full output see: /t/o.txt\nrest",
            "rest",
            "shortened by Gemini CLI; full output: /t/o.txt",
        ),
        (
            "<tool_output_masked>\nhead\n...\nFull output available at: /t/o.txt\n</tool_output_masked>",
            "head\n...\nFull output available at: /t/o.txt",
            "masked by Gemini CLI to save context; full output: /t/o.txt",
        ),
        ("<tool_output_masked>\ngone\n</tool_output_masked>", "gone", "masked by Gemini CLI to save context"),
    ],
)
def test_masked_and_shortened_outputs_have_a_note(output: str, text: str, note: str) -> None:
    telling = view("x", {}, output=output)
    assert (telling.bodies, telling.notes) == ((Output(Excerpt(text)),), (note,))


ANY: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(["command", "file_path", "offset", "start_line", "todos", "questions", "content", "old_string"])


@given(
    st.sampled_from([*TOOLS, "x", "mcp_a_b"]),
    ANY | st.dictionaries(KEYS, ANY),
    st.none() | st.text(),
    st.sampled_from([None, SHORT]),
    st.sampled_from(["success", "error", "cancelled", "pending", "odd"]),
)
def test_any_call_can_be_described(
    name: str, args: Json, output: str | None, limits: Limits | None, status: str
) -> None:
    telling = describe_call(call(name, args, status=status, output=output, error=output), limits=limits, root=ROOT)
    assert telling.summary.icon in Icon
    assert "\n" not in telling.summary.text


@pytest.mark.parametrize("row", [row for row in ROWS if row.name in TOOLS], ids=lambda row: row.name)
def test_reports_and_transcripts_use_the_same_name_for_a_tool(row: ToolInfo) -> None:
    """Reports group calls by label (`Bash`), transcripts start from the recorded name (`run_shell_command`)."""
    in_transcript = describe_call(call(row.name)).summary.label
    assert title_of_label(row.label) == in_transcript
    assert title_of_label(row.name) == in_transcript


def test_title_of_a_label_that_the_table_does_not_have() -> None:
    assert title_of_label("mcp_tickets_close_ticket") == "tickets/close_ticket"
    assert title_of_label("write_todos_list") == "Todos"
    assert title_of_label("finder_chart") == "finder_chart"
