"""Each row of the table of tool names is found by its names."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pollux.formats.tools import ALIASES, ROWS, TOOLS, ToolInfo, is_known, strip_call_prefix, tool

CANONICAL = [
    ("run_shell_command", "shell_exec", "Execute"),
    ("write_file", "file_write", "Edit"),
    ("replace", "file_edit", "Edit"),
    ("read_file", "file_read", "Read"),
    ("list_directory", "file_read", "Read"),
    ("glob", "file_search", "Search"),
    ("search_file_content", "file_search", "Search"),
    ("grep_search", "file_search", "Search"),
    ("web_fetch", "web_access", "Fetch"),
    ("google_web_search", "web_access", "Fetch"),
    ("save_memory", "memory", "Think"),
    ("write_todos", "planning", "Plan"),
    ("codebase_investigator", "file_search", "Search"),
    ("activate_skill", "skill", "Other"),
]

LABELS = [
    ("read_file", "Read"),
    ("ReadFile", "Read"),
    ("write_file", "Write"),
    ("create_file", "Write"),
    ("WriteFile", "Write"),
    ("edit_file", "Edit"),
    ("EditFile", "Edit"),
    ("replace", "Edit"),
    ("delete_file", "Delete"),
    ("list_dir", "LS"),
    ("ListDir", "LS"),
    ("grep_search", "Grep"),
    ("search_files", "Grep"),
    ("SearchText", "Grep"),
    ("find_files", "Glob"),
    ("run_command", "Bash"),
    ("Shell", "Bash"),
    ("web_search", "WebSearch"),
    # The same tools under the client's own names.
    ("run_shell_command", "Bash"),
    ("list_directory", "LS"),
    ("ReadFolder", "LS"),
    ("search_file_content", "Grep"),
    ("glob", "Glob"),
    ("FindFiles", "Glob"),
    ("google_web_search", "WebSearch"),
    ("web_fetch", "WebFetch"),
    # Unknown names are kept.
    ("write_todos", "write_todos"),
    ("write_todos_list", "write_todos_list"),
    ("invoke_agent", "invoke_agent"),
    ("NoSuchTool", "NoSuchTool"),
]

# Names, display name and arguments that contain paths, as the client defines them.
CLIENT = [
    ("read_file", "ReadFile", ("file_path", "absolute_path")),
    ("read_many_files", "ReadManyFiles", ("include", "paths")),
    ("write_file", "WriteFile", ("file_path",)),
    ("replace", "Edit", ("file_path",)),
    ("run_shell_command", "Shell", ("dir_path", "directory")),
    ("list_background_processes", "List Background Processes", ()),
    ("read_background_output", "Read Background Output", ()),
    ("search_file_content", "SearchText", ("dir_path", "path")),
    ("grep_search", "SearchText", ("dir_path", "path")),
    ("glob", "FindFiles", ("dir_path", "path")),
    ("list_directory", "ReadFolder", ("dir_path", "path")),
    ("google_web_search", "GoogleSearch", ()),
    ("web_fetch", "WebFetch", ()),
    ("save_memory", "SaveMemory", ()),
    ("write_todos_list", "WriteTodos", ()),
    ("write_todos", "WriteTodos", ()),
    ("get_internal_docs", "GetInternalDocs", ()),
    ("activate_skill", "Activate Skill", ()),
    ("ask_user", "Ask User", ()),
    ("enter_plan_mode", "Enter Plan Mode", ()),
    ("exit_plan_mode", "Exit Plan Mode", ("plan_filename", "plan_path")),
    ("tracker_create_task", "Create Task", ()),
    ("tracker_update_task", "Update Task", ()),
    ("tracker_get_task", "Get Task", ()),
    ("tracker_list_tasks", "List Tasks", ()),
    ("tracker_add_dependency", "Add Dependency", ()),
    ("tracker_visualize", "Visualize Tracker", ()),
    ("update_topic", "Update Topic Context", ()),
    ("list_mcp_resources", "List MCP Resources", ()),
    ("read_mcp_resource", "Read MCP Resource", ()),
    ("complete_task", "Complete Task", ()),
    ("codebase_investigator", "Codebase Investigator Agent", ()),
    ("delegate_to_agent", "Delegate to Agent", ()),
    ("cli_help", "CLI Help Agent", ()),
    ("generalist", "Generalist Agent", ()),
    ("browser_agent", "Browser Agent", ()),
    ("introspection_agent", "Introspection Agent", ()),
    ("confucius", "Skill Extractor", ()),
    ("invoke_agent", "Invoke Subagent", ()),
    ("click", "click", ()),
    ("fill", "fill", ()),
    ("navigate_page", "navigate_page", ()),
    ("take_snapshot", "take_snapshot", ("filePath",)),
    ("type_text", "type_text", ()),
    ("analyze_screenshot", "analyze_screenshot", ()),
]

KINDS = [
    ("run_shell_command", "execute"),
    ("replace", "edit"),
    ("delete_file", "delete"),
    ("read_file", "read"),
    ("list_directory", "search"),
    ("google_web_search", "search"),
    ("web_fetch", "fetch"),
    ("save_memory", "think"),
    ("get_internal_docs", "think"),
    ("write_todos", "other"),
    ("exit_plan_mode", "other"),
    ("ask_user", "other"),
    ("tracker_create_task", "edit"),
    ("invoke_agent", "think"),
    ("codebase_investigator", "think"),
    ("click", "other"),
]

AGENTS = {
    *("codebase_investigator", "delegate_to_agent", "cli_help", "generalist", "browser_agent", "introspection_agent"),
    *("confucius", "invoke_agent"),
}

# Name, display name, server, tool.
MCP = [
    ("mcp_tickets_lookup_ticket", "lookup_ticket (tickets MCP Server)", "tickets", "lookup_ticket"),
    ("mcp_my_server_do_it", "do_it (my_server MCP Server)", "my_server", "do_it"),
    ("mcp_my_server_do_it", None, "my", "server_do_it"),
    ("mcp_my_server_do_it", "mcp_my_server_do_it", "my", "server_do_it"),
    ("lookup_ticket", "lookup_ticket (tickets MCP Server)", "tickets", "lookup_ticket"),
    ("Get_it_", "Get it! (v2) (odd one MCP Server)", "odd one", "Get it! (v2)"),
    ("tickets__lookup_ticket", None, "tickets", "lookup_ticket"),
    ("tickets__lookup_ticket", "lookup_ticket (tickets MCP Server)", "tickets", "lookup_ticket"),
    ("my_server__get__all", None, "my_server", "get__all"),
]

NOT_MCP = [
    "mcp_",
    "mcp_x",
    "mcp__",
    "__init__",
    "a__",
    "__a",
    "first_28_characters___last_32_characters",
    " MCP Server)",
]


@pytest.mark.parametrize(("name", "canonical", "category"), CANONICAL)
def test_canonical_name_and_category(name: str, canonical: str, category: str) -> None:
    assert (tool(name).canonical, tool(name).category) == (canonical, category)


@pytest.mark.parametrize(("name", "label"), LABELS)
def test_label_is_the_short_name(name: str, label: str) -> None:
    assert tool(name).label == label


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("read_file", "file_path"),
        ("read_file", "target_file"),
        ("write_file", "file_path"),
        ("edit_file", "file_path"),
        ("list_directory", "path"),
        ("search_files", "path"),
        ("run_shell_command", "directory"),
    ],
)
def test_path_arguments_are_listed(name: str, key: str) -> None:
    assert key in tool(name).paths


@pytest.mark.parametrize(("name", "display", "paths"), CLIENT)
def test_names_of_the_client_are_known(name: str, display: str, paths: tuple[str, ...]) -> None:
    info = tool(name, display)
    assert is_known(name)
    assert is_known(display)
    assert (info.name, info.display) == (name, display)
    assert set(paths) <= set(info.paths)
    assert info.is_agent == (name in AGENTS)
    assert tool("renamed", display).canonical == tool(display).canonical == info.canonical


@pytest.mark.parametrize(("name", "kind"), KINDS)
def test_kind_of_a_tool(name: str, kind: str) -> None:
    assert tool(name).kind == kind


def test_only_shells_have_commands() -> None:
    assert {name for name, row in TOOLS.items() if row.commands} == {"run_shell_command", "run_command", "Shell"}
    assert tool("run_command").commands == ("command", "cmd")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_row_has_known_values(row: ToolInfo) -> None:
    assert row.category in {"Execute", "Edit", "Read", "Search", "Fetch", "Think", "Plan", "Other"}
    assert row.kind in {"read", "edit", "delete", "search", "execute", "think", "fetch", "other"}
    assert row.canonical == row.canonical.lower()
    assert tool(row.name) == row == TOOLS[row.name]
    assert row.is_agent == (row.name in AGENTS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_renamed_tool_is_found_by_its_display_name(row: ToolInfo) -> None:
    label = "renamed" if row.label == row.name else row.label
    assert tool("renamed", row.display) == msgspec.structs.replace(row, name="renamed", label=label)


def test_rows_and_aliases_do_not_overlap() -> None:
    assert len({row.name for row in ROWS}) == len({row.display for row in ROWS}) == len(ROWS)
    assert not {row.name for row in ROWS} & ALIASES.keys()
    assert not {row.display for row in ROWS} & ALIASES.keys()


def test_legacy_alias_has_the_same_row() -> None:
    assert tool("search_file_content") == msgspec.structs.replace(tool("grep_search"), name="search_file_content")


def test_tool_with_an_unknown_name_is_found_by_its_display_name() -> None:
    assert tool("terminal", "Shell") == ToolInfo(
        *("terminal", "shell_exec", "Execute", "execute", "Bash", "Shell", ("dir_path", "path", "directory")),
        commands=("command", "cmd"),
    )
    assert is_known("terminal", "Shell")


def test_name_precedes_display_name() -> None:
    assert tool("read_file", "Shell").canonical == "file_read"


@pytest.mark.parametrize(("name", "display", "server", "mcp_tool"), MCP)
def test_mcp_names_are_split_into_server_and_tool(name: str, display: str | None, server: str, mcp_tool: str) -> None:
    info = tool(name, display)
    assert (info.mcp_server, info.mcp_tool) == (server, mcp_tool)
    assert (info.canonical, info.category, info.kind) == (name.lower(), "Other", "other")
    assert (info.label, info.display) == (name, display or name)
    assert is_known(name, display)


def test_mcp_tool_with_a_known_name_keeps_its_server() -> None:
    info = tool("edit_file", "edit_file (files MCP Server)")
    assert (info.label, info.mcp_server, info.mcp_tool) == ("Edit", "files", "edit_file")
    assert tool("edit_file").mcp_server is None


@pytest.mark.parametrize("name", NOT_MCP)
def test_other_names_have_no_server(name: str) -> None:
    assert tool(name, name).mcp_server is None
    assert not is_known(name, name)


def test_discovered_tool_is_known() -> None:
    assert is_known("discovered_tool_Deploy")
    info = tool("discovered_tool_Deploy")
    assert (info.canonical, info.label) == ("discovered_tool_deploy", "discovered_tool_Deploy")


def test_unknown_tool_keeps_its_name() -> None:
    assert tool("NoSuchTool") == ToolInfo("NoSuchTool", "nosuchtool", "Other", "other", "NoSuchTool", "NoSuchTool")
    assert tool("x", "An X").display == "An X"
    assert not is_known("NoSuchTool")
    assert not is_known("")


@pytest.mark.parametrize(
    ("call_id", "name", "stripped"),
    [
        ("read_file__read_file_1794771141695_0", "read_file", "read_file_1794771141695_0"),
        ("read_file__call_abc123", "read_file", "call_abc123"),
        ("generic_tool__call_1", " ", "call_1"),
        ("read_file_1794773730895_0", "read_file", "read_file_1794773730895_0"),
        ("f4e447a9#2-0", "complete_task", "f4e447a9#2-0"),
        ("replace__1", "read_file", "replace__1"),
    ],
)
def test_strip_call_prefix(call_id: str, name: str, stripped: str) -> None:
    assert strip_call_prefix(call_id, name) == stripped


@given(name=st.text() | st.sampled_from(sorted(TOOLS)), display=st.none() | st.text() | st.sampled_from(sorted(TOOLS)))
def test_any_name_has_a_row(name: str, display: str | None) -> None:
    info = tool(name, display)
    assert info.name == name
    assert (info.mcp_server is None) == (info.mcp_tool is None)
    assert is_known(name, display) or info.canonical == name.lower()


@given(server=st.from_regex(r"[a-z][a-z_. -]*", fullmatch=True), plain=st.from_regex(r"\w[\w-]*", fullmatch=True))
def test_server_is_read_from_the_display_name(server: str, plain: str) -> None:
    info = tool(f"mcp_{server}_{plain}", f"{plain} ({server} MCP Server)")
    assert (info.mcp_server, info.mcp_tool) == (server, plain)


@given(st.text(), st.text(min_size=1))
def test_call_prefix_is_removed(call_id: str, name: str) -> None:
    prefix = name.strip() or "generic_tool"
    assert strip_call_prefix(f"{prefix}__{call_id}", name) == call_id
