"""The table of tool names.

Canonical names and categories are for statistics, labels are those of other usage reports, and kinds are those that the
client reports to editors over ACP (its own `agent` is `think` there, its `plan` and `communicate` are `other`).
"""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec


class ToolInfo(msgspec.Struct, frozen=True):
    """Facts about a tool."""

    name: str
    """As recorded."""
    canonical: str
    category: str
    kind: str
    label: str
    """The name itself if usage reports have no label for it."""
    display: str
    """The name that the newest client displays."""
    paths: tuple[str, ...] = ()
    """Arguments that contain a path or a list of paths, newest spelling first."""
    commands: tuple[str, ...] = ()
    """Arguments that contain a shell command."""
    is_agent: bool = False
    """Whether a call starts a subagent."""
    mcp_server: str | None = None
    mcp_tool: str | None = None


_FILE = ("file_path", "absolute_path", "path", "target_file")
_FOLDER = ("dir_path", "path", "directory")

# Of the Chrome DevTools MCP server; the browser agent calls them without naming the server.
_BROWSER = (
    *("analyze_screenshot", "click", "click_at", "close_page", "drag", "emulate", "emulate_cpu", "emulate_network"),
    *("evaluate_script", "fill", "fill_form", "get_console_message", "get_network_request", "get_tab_id"),
    *("handle_dialog", "hover", "list_console_messages", "list_network_requests", "list_pages", "navigate_page"),
    *("navigate_page_history", "new_page", "performance_analyze_insight", "performance_start_trace"),
    *("performance_stop_trace", "press_key", "resize_page", "select_page", "take_memory_snapshot", "take_screenshot"),
    *("take_snapshot", "type_text", "upload_file", "wait_for"),
)


def _passed(name: str, canonical: str, category: str, kind: str, display: str, paths: tuple[str, ...] = ()) -> ToolInfo:
    return ToolInfo(name, canonical, category, kind, name, display, paths)


def _agent(name: str, canonical: str, category: str, display: str) -> ToolInfo:
    return ToolInfo(name, canonical, category, "think", name, display, is_agent=True)


ROWS: tuple[ToolInfo, ...] = (
    ToolInfo("run_shell_command", "shell_exec", "Execute", "execute", "Bash", "Shell", _FOLDER, ("command", "cmd")),
    ToolInfo("write_file", "file_write", "Edit", "edit", "Write", "WriteFile", _FILE),
    ToolInfo("replace", "file_edit", "Edit", "edit", "Edit", "Edit", _FILE),
    ToolInfo("delete_file", "file_delete", "Edit", "delete", "Delete", "DeleteFile", _FILE),
    ToolInfo("read_file", "file_read", "Read", "read", "Read", "ReadFile", _FILE),
    ToolInfo("read_many_files", "file_read", "Read", "read", "Read", "ReadManyFiles", ("include", "paths")),
    ToolInfo("list_directory", "file_read", "Read", "search", "LS", "ReadFolder", _FOLDER),
    ToolInfo("glob", "file_search", "Search", "search", "Glob", "FindFiles", _FOLDER),
    ToolInfo("grep_search", "file_search", "Search", "search", "Grep", "SearchText", _FOLDER),
    ToolInfo("google_web_search", "web_access", "Fetch", "search", "WebSearch", "GoogleSearch"),
    ToolInfo("web_fetch", "web_access", "Fetch", "fetch", "WebFetch", "WebFetch"),
    _passed("list_background_processes", "shell_background", "Read", "read", "List Background Processes"),
    _passed("read_background_output", "shell_background", "Read", "read", "Read Background Output"),
    _passed("list_mcp_resources", "mcp_resource", "Search", "search", "List MCP Resources"),
    _passed("read_mcp_resource", "mcp_resource", "Read", "read", "Read MCP Resource"),
    _passed("get_internal_docs", "docs", "Read", "think", "GetInternalDocs"),  # `path`: in the client's own manual
    _passed("save_memory", "memory", "Think", "think", "SaveMemory"),
    _passed("update_topic", "topic", "Think", "think", "Update Topic Context"),
    _passed("write_todos", "planning", "Plan", "other", "WriteTodos"),
    _passed("enter_plan_mode", "planning", "Plan", "other", "Enter Plan Mode"),
    _passed("exit_plan_mode", "planning", "Plan", "other", "Exit Plan Mode", ("plan_filename", "plan_path")),
    _passed("tracker_create_task", "planning", "Plan", "edit", "Create Task"),
    _passed("tracker_update_task", "planning", "Plan", "edit", "Update Task"),
    _passed("tracker_get_task", "planning", "Plan", "read", "Get Task"),
    _passed("tracker_list_tasks", "planning", "Plan", "search", "List Tasks"),
    _passed("tracker_add_dependency", "planning", "Plan", "edit", "Add Dependency"),
    _passed("tracker_visualize", "planning", "Plan", "read", "Visualize Tracker"),
    _passed("activate_skill", "skill", "Other", "other", "Activate Skill"),
    _passed("ask_user", "user_question", "Other", "other", "Ask User"),
    _passed("complete_task", "agent_result", "Other", "other", "Complete Task"),
    _agent("codebase_investigator", "file_search", "Search", "Codebase Investigator Agent"),
    _agent("invoke_agent", "agent", "Think", "Invoke Subagent"),
    _agent("delegate_to_agent", "agent", "Think", "Delegate to Agent"),
    _agent("cli_help", "agent", "Think", "CLI Help Agent"),
    _agent("introspection_agent", "agent", "Think", "Introspection Agent"),
    _agent("generalist", "agent", "Think", "Generalist Agent"),
    _agent("browser_agent", "agent", "Think", "Browser Agent"),
    _agent("confucius", "agent", "Think", "Skill Extractor"),
    *(_passed(name, "browser", "Fetch", "other", name, ("filePath",)) for name in _BROWSER),
)

# Older names of the client, and names that other readers of its sessions know.
ALIASES: dict[str, str] = {
    "search_file_content": "grep_search",
    "write_todos_list": "write_todos",
    "Save Memory": "save_memory",
    "Write Todos": "write_todos",
    "run_command": "run_shell_command",
    "create_file": "write_file",
    "edit_file": "replace",
    "EditFile": "replace",
    "list_dir": "list_directory",
    "ListDir": "list_directory",
    "find_files": "glob",
    "search_files": "grep_search",
    "web_search": "google_web_search",
}


def _renamed(row: ToolInfo, name: str) -> ToolInfo:
    return msgspec.structs.replace(row, name=name, label=name if row.label == row.name else row.label)


_BY_NAME = {row.name: row for row in ROWS}
_KNOWN = {row.display: row for row in ROWS} | {alias: _BY_NAME[name] for alias, name in ALIASES.items()} | _BY_NAME

TOOLS: dict[str, ToolInfo] = {name: _renamed(row, name) for name, row in _KNOWN.items()}
"""Every known name, including display names and aliases."""

_DISCOVERED = "discovered_tool_"
_MCP_DISPLAY = " MCP Server)"
_MCP_NAME = re.compile(r"mcp_([^_]+)_(.+)", re.DOTALL)  # since 0.33
_MCP_NAME_TAKEN = re.compile(r"(.*?[^_])__([^_].*)", re.DOTALL)  # until 0.32, where the plain name was taken


@lru_cache(maxsize=4096)
def tool(name: str, display_name: str | None = None) -> ToolInfo:
    """Return the facts about a tool, by its name or else its display name; an unknown tool keeps its name."""
    row = TOOLS.get(name)
    if row is None and display_name in _KNOWN:
        row = _renamed(_KNOWN[display_name], name)
    if row is None:
        row = ToolInfo(name, name.lower(), "Other", "other", name, display_name or name)
    server, mcp_tool = _mcp_names(name, display_name)
    return msgspec.structs.replace(row, mcp_server=server, mcp_tool=mcp_tool) if server else row


def is_known(name: str, display_name: str | None = None) -> bool:
    """Return whether a tool is in the table, from an MCP server, or from the user's discovery command."""
    if name in TOOLS or display_name in TOOLS or name.startswith(_DISCOVERED):
        return True
    return tool(name, display_name).mcp_server is not None


def strip_call_prefix(call_id: str, name: str) -> str:
    """Return a call ID without the tool's name, which the client prepends to the API's IDs since 0.43."""
    return call_id.removeprefix(f"{name.strip() or 'generic_tool'}__")


def _mcp_names(name: str, display_name: str | None) -> tuple[str, str] | tuple[None, None]:
    """Return server and tool; a server's name may contain `_`, so only the display name separates them for certain."""
    if display_name and display_name.endswith(_MCP_DISPLAY):
        mcp_tool, _, server = display_name.removesuffix(_MCP_DISPLAY).rpartition(" (")
        if mcp_tool and server:
            return server, mcp_tool
    if match := _MCP_NAME.fullmatch(name) or _MCP_NAME_TAKEN.fullmatch(name):
        return match[1], match[2]
    return None, None
