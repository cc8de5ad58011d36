"""Facts that five earlier readers of Gemini sessions were tested with, and the example files of their documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests import builders
from tests.builders import Wire, call, gemini, notice, user
from tests.cli.running import Runner

from pollux import homes
from pollux.exports import events
from pollux.exports.calls import records
from pollux.exports.source import ExportOptions
from pollux.formats.tools import tool
from pollux.model import Attachment, Code, CodeResult, Kind, Message, Project, Session, Text, Tokens, ToolCall
from pollux.sessions.projects import search
from pollux.sessions.projects.paths import project_hash
from pollux.sessions.reader import from_file, history
from pollux.views.bodies import Output
from pollux.views.contracts import rfc3339
from pollux.views.transcript import (
    AnswerBlock,
    Detail,
    NoticeBlock,
    PromptBlock,
    ThoughtBlock,
    ToolBlock,
    TranscriptOptions,
    UsageBlock,
    blocks,
)

DATA = Path(__file__).parent / "data" / "seeds"
HISTORY = DATA / "session-2025-09-18T02-45-3b44bc68.json"
AUDITED = DATA / "session-2026-02-10T17-27-08c1f87b.json"
COUNTED = DATA / "session-2026-05-01T18-34-90a6c51d.json"
TOLD = DATA / "session-2026-01-27T15-21-a82545c4.json"
LISTED = DATA / "session-2025-12-03T06-35-477739d0.json"
MYPROJECT = "/Users/alice/dev/myproject"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Runner:
    return Runner(monkeypatch, capsys)


def example(path: Path) -> Wire:
    found = json.loads(path.read_bytes())
    assert isinstance(found, dict)
    return found


def as_document(wire: object) -> bytes:
    """Write as the client does: in lines."""
    return json.dumps(wire, ensure_ascii=False, indent=2).encode()


def read(folder: Path, data: object, name: str = f"{builders.NAME}.json") -> tuple[Session, list[Message]]:
    raw = data if isinstance(data, bytes) else as_document(data)
    session, group = from_file(builders.put(folder / name, raw))
    return session, list(group.messages())


def messages_of(path: Path) -> list[Message]:
    return list(from_file(path)[1].messages())


def only_message(folder: Path, message: Wire) -> Message:
    (found,) = read(folder, builders.document(message))[1]
    return found


def only_call(folder: Path, value: Wire) -> ToolCall:
    (found,) = only_message(folder, gemini(toolCalls=[value])).tool_calls
    return found


def counted(folder: Path, data: object, name: str = f"{builders.NAME}.json") -> list[dict[str, Any]]:
    raw = data if isinstance(data, bytes) else as_document(data)
    return list(records(builders.subject(builders.put(folder / name, raw))))


def without(wire: Wire, *names: str) -> Wire:
    return {name: value for name, value in wire.items() if name not in names}


def archive_of(folder: Path, *files: Path) -> Path:
    """Put examples where the client keeps them: in the folder of their project's hash."""
    for file in files:
        hash_ = example(file)["projectHash"]
        builders.put(folder / ".gemini" / "tmp" / hash_ / "chats" / file.name, file.read_bytes())
    return folder


# 000: a session is a history of contents.


def test_history_example_is_a_session() -> None:
    session, group = from_file(HISTORY)
    asked, called, answered, said = group.messages()
    assert (session.id, session.title) == ("session-2025-09-18T02-45-3b44bc68", "help me fix this bug")
    assert (rfc3339(session.started), session.problems) == ("2025-09-18T02:45:00.000Z", ())
    assert (session.counts["user"], session.counts["gemini"], session.tool_calls) == (1, 2, 1)
    assert [one.kind for one in (asked, called, answered, said)] == ["user", "gemini", "user", "gemini"]
    assert (asked.text, answered.text, said.text) == ("help me fix this bug", "", "The file contains...")
    (one,) = called.tool_calls
    assert (one.name, one.canonical, one.category) == ("read_file", "file_read", "Read")
    assert (one.args, one.status, one.output, one.error) == (
        {"target_file": "/src/main.ts"},
        "success",
        "file contents...",
        None,
    )
    assert asked.at is not None
    assert asked.at < (called.at or asked.at) < (answered.at or asked.at) < (said.at or asked.at)


@pytest.mark.parametrize(
    ("content", "status", "output", "error"),
    [
        ("file contents...", "success", "file contents...", None),
        ({"error": "command not found"}, "error", None, "command not found"),
        ({"error": {"code": 127}}, "error", None, '{"code": 127}'),
    ],
)
def test_response_of_a_history_tells_whether_the_call_failed(
    tmp_path: Path, content: object, status: str, output: str | None, error: str | None
) -> None:
    wire = example(HISTORY)
    wire["history"][2]["parts"][0]["functionResponse"]["response"]["content"] = content
    (one,) = read(tmp_path, wire, HISTORY.name)[1][1].tool_calls
    assert (one.status, one.output, one.error) == (status, output, error)


@pytest.mark.parametrize(
    ("name", "canonical", "category"),
    [
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
        ("My_Own", "my_own", "Other"),
    ],
)
def test_names_have_canonical_names_and_categories(name: str, canonical: str, category: str) -> None:
    found = tool(name)
    assert (found.name, found.canonical, found.category) == (name, canonical, category)


def events_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in b"".join(events.render(builders.subject(path))).splitlines()]


def history_events(folder: Path, *entries: object) -> list[dict[str, Any]]:
    """Return the events of a history, without its beginning and end."""
    found = events_of(builders.put(folder / HISTORY.name, json.dumps({"history": entries}).encode()))
    assert [one["type"] for one in (found[0], found[-1])] == ["session_start", "session_end"]
    return found[1:-1]


def calls_for(*names: str) -> Wire:
    return {"role": "model", "parts": [{"functionCall": {"name": name, "args": {}}} for name in names]}


def responds(name: str, content: object) -> Wire:
    return {
        "role": "user",
        "parts": [{"functionResponse": {"name": name, "response": {"name": name, "content": content}}}],
    }


def test_history_example_gives_the_events_of_its_document() -> None:
    stem = "session-2025-09-18T02-45-3b44bc68"
    found = events_of(HISTORY)
    assert [one["type"] for one in found] == ["session_start", "user_prompt", "tool_use", "tool_result", "session_end"]
    assert {(one["session_id"], one["harness"]) for one in found} == {(stem, "gemini_cli")}
    assert [one["timestamp"] for one in found] == [
        "2025-09-18T02:45:00.000Z",
        "2025-09-18T02:45:01.001Z",
        "2025-09-18T02:45:02.001Z",
        "2025-09-18T02:45:03.001Z",
        "2025-09-18T02:45:05.000Z",
    ]
    _, asked, used, answered, _ = found
    assert asked["message"] == "help me fix this bug"
    assert (used["tool_name"], used["tool_input"]) == ("file_read", {"target_file": "/src/main.ts"})
    assert (answered["tool_name"], answered["tool_result"]) == (
        "file_read",
        {"success": True, "output": "file contents..."},
    )
    assert [one["metadata"]["content_index"] for one in (asked, used, answered)] == [0, 1, 2]
    assert used["metadata"]["raw_tool_name"] == answered["metadata"]["raw_tool_name"] == "read_file"
    assert all(one["metadata"]["synthesised"] == ["id", "timestamp"] for one in found)
    assert len({one["id"] for one in found}) == 5
    assert not any("cwd" in one for one in found)


@pytest.mark.parametrize(
    ("content", "result"),
    [
        ("file contents here", {"success": True, "output": "file contents here"}),
        ({"error": "command not found"}, {"success": False, "error": "command not found"}),
        ({"error": {"code": 404, "why": "no"}}, {"success": False, "error": '{"code":404,"why":"no"}'}),
        ({"files": ["a.ts", "b.ts"]}, {"success": True, "output": '{"files":["a.ts","b.ts"]}'}),
        (["a", 1], {"success": True, "output": '["a",1]'}),
    ],
)
def test_response_is_a_result_with_or_without_its_call(tmp_path: Path, content: object, result: Wire) -> None:
    (alone,) = history_events(tmp_path, responds("run_shell_command", content))
    assert (alone["type"], alone["tool_name"], alone["tool_result"]) == ("tool_result", "shell_exec", result)
    _, answer = history_events(tmp_path, calls_for("run_shell_command"), responds("run_shell_command", content))
    assert answer["tool_result"] == result


def test_responses_of_the_client_itself_are_understood_too(tmp_path: Path) -> None:
    responses = [{"output": "fine"}, {"error": "broken"}, {"error": "cut", "output": "so far"}, None, "plain"]
    parts = [{"functionResponse": {"id": str(n), "name": "glob", "response": one}} for n, one in enumerate(responses)]
    found = history_events(tmp_path, {"role": "user", "parts": parts})
    assert [one["tool_result"] for one in found] == [
        {"success": True, "output": "fine"},
        {"success": False, "error": "broken"},
        {"success": False, "output": "so far", "error": "cut"},
        {"success": True},
        {"success": True, "output": "plain"},
    ]
    assert (
        found[0]["metadata"] | {"content_index": 0, "call_id": "0", "synthesised": ["timestamp"]}
        == (found[0]["metadata"])
    )
    assert [one["id"] for one in found] == [f"{n}/result" for n in range(5)]


def test_events_use_canonical_names(tmp_path: Path) -> None:
    names = {
        "run_shell_command": ("shell_exec", "Execute"),
        "write_file": ("file_write", "Edit"),
        "replace": ("file_edit", "Edit"),
        "read_file": ("file_read", "Read"),
        "list_directory": ("file_read", "Read"),
        "glob": ("file_search", "Search"),
        "search_file_content": ("file_search", "Search"),
        "grep_search": ("file_search", "Search"),
        "web_fetch": ("web_access", "Fetch"),
        "google_web_search": ("web_access", "Fetch"),
        "save_memory": ("memory", "Think"),
        "write_todos": ("planning", "Plan"),
        "codebase_investigator": ("file_search", "Search"),
        "activate_skill": ("skill", "Other"),
        "CustomTool": ("customtool", "Other"),
    }
    found = history_events(tmp_path, calls_for(*names))
    assert {one["metadata"]["raw_tool_name"]: (one["tool_name"], one["metadata"]["category"]) for one in found} == names


def test_several_calls_of_a_turn_are_separate_and_a_millisecond_apart(tmp_path: Path) -> None:
    found = history_events(tmp_path, calls_for("read_file", "read_file"))
    assert [(one["type"], one["timestamp"][17:]) for one in found] == [
        ("tool_use", "01.001Z"),
        ("tool_use", "01.002Z"),
    ]
    assert not any("tool_input" in one for one in found)


def test_model_text_is_no_event_and_thoughts_keep_their_place(tmp_path: Path) -> None:
    parts = [{"text": "hm", "thought": True}, {"text": "I read."}, {"functionCall": {"name": "glob", "args": {}}}]
    (only,) = history_events(tmp_path, {"role": "model", "parts": parts})
    assert (only["type"], only["timestamp"][17:], only["id"]) == ("tool_use", "01.003Z", f"{HISTORY.stem}#0.2")
    path = builders.put(tmp_path / HISTORY.name, json.dumps({"history": [{"role": "model", "parts": parts}]}).encode())
    options = ExportOptions(include=frozenset({"text", "thoughts"}))
    lines = b"".join(events.render(builders.subject(path, options=options))).splitlines()
    assert [json.loads(line)["type"] for line in lines[1:-1]] == ["thought", "text", "tool_use"]


def test_odd_entries_of_a_history_are_passed_over(tmp_path: Path) -> None:
    odd: list[object] = [None, 42, "text", {}, {"parts": []}, {"role": "user"}]
    found = history_events(tmp_path, *odd, {"role": "user", "parts": [{"text": "valid"}]})
    assert [(one["message"], one["metadata"]["content_index"]) for one in found] == [("valid", 6)]


def test_words_beside_a_response_are_a_prompt(tmp_path: Path) -> None:
    entry = responds("glob", "none")
    entry["parts"] += [{"text": "stop that"}, {"text": "<hook_context>x</hook_context>"}]
    assert [one.get("message") for one in history_events(tmp_path, entry)] == [None, "stop that"]


def test_preamble_of_a_history_is_nobodys_prompt(tmp_path: Path) -> None:
    preamble = {
        "role": "user",
        "parts": [{"text": "This is the Gemini CLI. We are setting up the context for our chat."}],
    }
    assert history_events(tmp_path, preamble) == []
    path = builders.put(tmp_path / HISTORY.name, json.dumps({"history": [preamble]}).encode())
    (only,) = b"".join(
        events.render(builders.subject(path, options=ExportOptions(include=frozenset({"notices"}))))
    ).splitlines()[1:-1]
    assert json.loads(only)["metadata"]["origin"] == "session_context"


@pytest.mark.parametrize("example_file", [AUDITED, COUNTED, TOLD, LISTED], ids=lambda file: file.stem[-8:])
def test_other_examples_give_events_of_their_own_times_and_ids(example_file: Path) -> None:
    wire = example(example_file)
    start, *found, end = events_of(example_file)
    assert {one["session_id"] for one in (start, *found, end)} == {wire["sessionId"]}
    assert start["timestamp"] == wire["startTime"]
    calls = [call for message in wire["messages"] for call in message.get("toolCalls", [])]
    assert [one["metadata"]["raw_tool_name"] for one in found if one["type"] == "tool_use"] == [
        call["name"] for call in calls
    ]
    prompts = [message for message in wire["messages"] if message["type"] == "user"]
    assert [one["id"] for one in found if one["type"] == "user_prompt"] == [message["id"] for message in prompts]
    timed = [message["timestamp"] for message in prompts if "timestamp" in message]
    marked = [one for one in found if one["type"] == "user_prompt" and "synthesised" not in one["metadata"]]
    assert [one["timestamp"] for one in marked] == timed


# 001: nothing is dropped.


def test_audited_example_keeps_what_the_record_drops() -> None:
    session, _ = from_file(AUDITED)
    asked, called, said = messages_of(AUDITED)
    assert session.id == "08c1f87b-ff3b-48ff-9d6f-524e2bbf89b9"
    assert session.project.hash == "79b1946573b55334fbdb6d41866f54789477fe12ecee2ed364ceea086a02ef82"
    assert (rfc3339(session.started), rfc3339(session.updated)) == (
        "2026-02-10T17:27:58.644Z",
        "2026-02-10T17:35:55.624Z",
    )
    assert (asked.text, called.text) == ("Fix the bug in frame.c", "")
    assert said.text == "I have fixed the issue where `get_coffset` in `blosc/frame.c` was..."
    assert [one.subject for one in said.thoughts] == ["Concluding the Problem", "Assessing the Performance Impact"]
    assert said.thoughts[1].text == "I've reproduced the issue and verified..."
    assert [rfc3339(one.at) for one in called.thoughts] == ["2026-02-10T17:28:03.479Z"]


def test_audited_example_has_a_call_with_its_result() -> None:
    (one,) = messages_of(AUDITED)[1].tool_calls
    assert one.id == "search_file_content-1770744484519-a47bac6cd4faf"
    assert (one.name, one.args, one.status) == ("search_file_content", {"pattern": "blosc_getitem"}, "success")
    assert one.output == 'Found 22 matches for pattern "blosc_getitem"...'
    assert (one.display_name, one.description, one.markdown) == (
        "SearchText",
        "FAST, optimized search powered by `ripgrep`...",
        True,
    )
    assert rfc3339(one.at) == "2026-02-10T17:28:05.832Z"


def test_thinking_tokens_are_counted_and_totals_match() -> None:
    session, _ = from_file(AUDITED)
    assert [one.tokens.thoughts for one in session.calls] == [248, 10978]
    assert all(one.tokens.is_consistent for one in session.calls)
    assert sum((one.tokens for one in session.calls), Tokens()) == Tokens(167315, 151027, 1303, 11226, 0, 179844)
    assert [one["reasoning_tokens"] for one in records(builders.subject(AUDITED))] == [248, 10978]
    assert session.models == ("gemini-3-pro-preview",)


@pytest.mark.parametrize("status", ["success", "error", "cancelled"])
def test_status_of_a_call_without_result_is_read(tmp_path: Path, status: str) -> None:
    one = only_call(tmp_path, call(status=status, result=None))
    assert (one.status, one.output, one.error) == (status, None, None)


@pytest.mark.parametrize(("result", "status"), [(None, "pending"), (call()["result"], "success")])
def test_call_without_status_has_one_by_its_result(tmp_path: Path, result: object, status: str) -> None:
    assert only_call(tmp_path, without(call(result=result), "status")).status == status


def test_missing_display_loses_no_output(tmp_path: Path) -> None:
    wire = example(AUDITED)
    del wire["messages"][1]["toolCalls"][0]["resultDisplay"]
    (one,) = read(tmp_path, wire)[1][1].tool_calls
    assert (one.display, one.output) == (None, 'Found 22 matches for pattern "blosc_getitem"...')
    assert messages_of(AUDITED)[1].tool_calls[0].display is not None


# 002: what is counted.


def as_log(wire: Wire) -> bytes:
    return builders.log(without(wire, "messages"), *wire["messages"])


@pytest.mark.parametrize("suffix", [".json", ".jsonl"])
def test_counted_example(tmp_path: Path, suffix: str) -> None:
    data = COUNTED.read_bytes() if suffix == ".json" else as_log(example(COUNTED))
    path = tmp_path / f"session{suffix}"
    session, (asked, answered) = read(tmp_path, data, path.name)
    assert (session.id, session.project.hash) == ("90a6c51d-c8dd-480c-a6a4-30b0265bb001", "project-hash")
    assert rfc3339(session.started) == "2026-05-01T18:34:30.869Z"
    assert (asked.text, asked.at, answered.model) == ("run tests", None, "gemini-2.5-pro")
    assert session.files[0].format == {".json": "document", ".jsonl": "log"}[suffix]
    (one,) = records(builders.subject(path))
    names = ("input_tokens", "output_tokens", "cached_input_tokens", "cache_read_input_tokens", "reasoning_tokens")
    assert [one[name] for name in names] == [100, 35, 20, 20, 5]
    assert one["cache_creation_input_tokens"] == 0
    assert (one["model"], one["timestamp"]) == ("gemini-2.5-pro", "2026-05-01T18:34:40.000Z")
    assert (one["tools"], one["bash_commands"]) == (["Bash"], ["cargo test"])
    assert one["dedup_key"] == "gemini:90a6c51d-c8dd-480c-a6a4-30b0265bb001:g1"
    assert one["user_message"] == "run tests"


def test_set_lines_of_the_log_are_no_messages(tmp_path: Path) -> None:
    data = as_log(example(COUNTED)) + builders.log(builders.updates(lastUpdated="2026-05-01T18:40:00.000Z"))
    session, found = read(tmp_path, data, "session.jsonl")
    assert (len(found), len(session.calls), rfc3339(session.updated)) == (2, 1, "2026-05-01T18:40:00.000Z")


@pytest.mark.parametrize(
    ("name", "display", "label"),
    [
        ("read_file", None, "Read"),
        ("ReadFile", None, "Read"),
        ("write_file", None, "Write"),
        ("create_file", None, "Write"),
        ("WriteFile", None, "Write"),
        ("edit_file", None, "Edit"),
        ("EditFile", None, "Edit"),
        ("replace", None, "Edit"),
        ("delete_file", None, "Delete"),
        ("list_dir", None, "LS"),
        ("ListDir", None, "LS"),
        ("grep_search", None, "Grep"),
        ("search_files", None, "Grep"),
        ("SearchText", None, "Grep"),
        ("find_files", None, "Glob"),
        ("run_command", None, "Bash"),
        ("Shell", None, "Bash"),
        ("web_search", None, "WebSearch"),
        ("strange_name", "Shell", "Bash"),
        ("strange_name", "ReadFile", "Read"),
        ("read_file", "Shell", "Read"),
        ("strange_Name", "Strange", "strange_Name"),
    ],
)
def test_names_have_labels(tmp_path: Path, name: str, display: str | None, label: str) -> None:
    assert only_call(tmp_path, call(name=name, displayName=display)).label == label


@pytest.mark.parametrize(
    ("args", "commands"),
    [
        ({"command": "cargo test | tail -5"}, ["cargo test", "tail -5"]),
        ({"cmd": "cd src; make"}, ["cd src", "make"]),
        ('{"command": "make && make install || echo no"}', ["make", "make install", "echo no"]),
        ({"command": "echo 'a | b; c'"}, ["echo 'a | b; c'"]),
    ],
)
def test_shell_commands_are_split(tmp_path: Path, args: object, commands: list[str]) -> None:
    wire = example(COUNTED)
    wire["messages"][1]["toolCalls"] = [{"name": "run_command", "args": args}]
    (one,) = counted(tmp_path, wire)
    assert one["bash_commands"] == commands


def test_more_cached_than_sent_leaves_no_input(tmp_path: Path) -> None:
    wire = example(COUNTED)
    wire["messages"][1]["tokens"]["cached"] = 500
    (one,) = counted(tmp_path, wire)
    assert (one["input_tokens"], one["cached_input_tokens"]) == (0, 500)


def test_message_without_id_is_counted_once(tmp_path: Path) -> None:
    wire = example(COUNTED)
    del wire["messages"][1]["id"]
    (one,) = counted(tmp_path, wire)
    (again,) = counted(tmp_path, wire)
    beginning = "gemini:90a6c51d-c8dd-480c-a6a4-30b0265bb001:2026-05-01T18:34:40.000Z:gemini-2.5-pro:120:30:20:5"
    assert one["dedup_key"].startswith(beginning)
    assert again["dedup_key"] == one["dedup_key"]


@pytest.mark.parametrize("suffix", [".json", ".jsonl"])
def test_message_without_id_is_never_lost_in_silence(tmp_path: Path, suffix: str) -> None:
    wire = example(COUNTED)
    del wire["messages"][1]["id"]
    session, _ = read(tmp_path, as_document(wire) if suffix == ".json" else as_log(wire), f"session{suffix}")
    assert [one.line for one in session.problems] == [11 if suffix == ".json" else 3]


@pytest.mark.parametrize("at", [None, "yesterday", 7])
def test_call_without_a_time_has_that_of_the_session(tmp_path: Path, at: object) -> None:
    wire = example(COUNTED)
    wire["messages"][1]["timestamp"] = at
    (one,) = counted(tmp_path, wire)
    assert (one["timestamp"], one["timestamp_from"]) == ("2026-05-01T18:34:30.869Z", "session")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"not JSON\n",
        builders.log(without(example(COUNTED), "messages")),
        builders.line(example(COUNTED) | {"messages": []}),
        builders.line(example(COUNTED) | {"messages": example(COUNTED)["messages"][:1]}),
    ],
    ids=["empty", "no JSON", "metadata alone", "no messages", "prompt alone"],
)
@pytest.mark.parametrize("suffix", [".json", ".jsonl"])
def test_nothing_is_counted_where_nothing_is(tmp_path: Path, data: bytes, suffix: str) -> None:
    path = tmp_path / f"session{suffix}"
    session, _ = read(tmp_path, data, path.name)
    assert session.calls == ()
    assert list(records(builders.subject(path))) == []


def test_other_names_and_folders_are_no_sessions(tmp_path: Path) -> None:
    data = COUNTED.read_bytes()
    project = tmp_path / ".gemini" / "tmp" / "abc"
    for name in ("chats/notes.json", "chats/session-1.txt", "other/session-1.json", "logs.json", "checkpoint-a.json"):
        builders.put(project / name, data)
    path = builders.put(project / "chats" / COUNTED.name, data)
    found = history([builders.home(tmp_path)])
    assert [[ref.path for ref in one.files] for one in found.sessions] == [[path]]


# 003: the index, the dialogue and the project.


def test_index_of_the_described_example() -> None:
    session, _ = from_file(TOLD)
    assert session.id == "a82545c4-4f3f-4c3d-8b12-0a580eae4df4"
    assert (session.title, session.title_from) == ("Optional AI-generated summary", "summary")
    assert (rfc3339(session.started), rfc3339(session.updated)) == (
        "2026-01-27T15:22:34.666Z",
        "2026-01-27T15:30:46.002Z",
    )
    assert session.first_prompt == session.last_prompt == "Help me configure TypeScript for my project"


def test_first_and_last_prompt_are_the_humans(tmp_path: Path) -> None:
    wire = example(TOLD)
    wire["messages"] = [
        builders.preamble(),
        *wire["messages"],
        user("u2", "Grüße, now the tests", second=5),
        notice("i1", "Request cancelled.", second=6),
        gemini("g2", "Done.", second=7),
    ]
    session, _ = read(tmp_path, wire)
    assert session.first_prompt == "Help me configure TypeScript for my project"
    assert session.last_prompt == "Grüße, now the tests"
    assert session.counts["user"] == 2


@pytest.mark.parametrize(
    "content", ["Help me", {"text": "Help me"}, [{"text": "Help "}, {"text": "me"}]], ids=["string", "Part", "Part[]"]
)
@pytest.mark.parametrize("make", [user, gemini])
def test_content_of_every_form(tmp_path: Path, content: object, make: Any) -> None:  # noqa: ANN401  builders
    assert only_message(tmp_path, make("m", content)).text == "Help me"


@pytest.mark.parametrize("content", ["Help me", {"text": "Help me"}, [{"text": "Help "}, {"text": "me"}]])
def test_prompt_of_every_form_is_in_the_index(tmp_path: Path, content: object) -> None:
    session, _ = read(tmp_path, builders.document(user("u", content)))
    assert (session.first_prompt, session.title) == ("Help me", "Help me")


@pytest.mark.parametrize(
    ("name", "args", "shown"),
    [
        ("read_file", {"file_path": "src/auth.ts"}, "src/auth.ts"),
        ("run_shell_command", {"command": "npm test"}, "npm test"),
        ("list_directory", {"path": "src"}, "src"),
        ("list_directory", {"dir_path": "src"}, "src"),
        ("search_file_content", {"pattern": "login"}, "'login'"),
        ("google_web_search", {"query": "tsconfig"}, "tsconfig"),
    ],
)
def test_key_argument_tells_a_call(tmp_path: Path, name: str, args: Wire, shown: str) -> None:
    one = only_message(tmp_path, gemini("g1", "", toolCalls=[call(name=name, args=args)]))
    (block,) = blocks([one])
    assert isinstance(block, ToolBlock)
    assert block.summary.text == shown


@pytest.mark.parametrize(("status", "is_failed"), [("error", True), ("success", False), ("cancelled", False)])
def test_failed_call_is_noted(tmp_path: Path, status: str, is_failed: bool) -> None:  # noqa: FBT001  a fact of a table
    result = [{"functionResponse": {"id": "c1", "name": "read_file", "response": {"error": "File not found"}}}]
    one = only_message(tmp_path, gemini("g1", "", toolCalls=[call(status=status, result=result)]))
    (block,) = blocks([one])
    assert isinstance(block, ToolBlock)
    assert (block.status, block.is_failed, one.tool_calls[0].error) == (status, is_failed, "File not found")
    assert ("cancelled" in block.summary.outcome) == (status == "cancelled")


def test_dialogue_skips_thoughts_tokens_and_notices(tmp_path: Path) -> None:
    wire = example(TOLD)
    wire["messages"] += [notice("i", "an info"), notice("w", "a warning", kind="warning")]
    found = read(tmp_path, wire)[1]
    assert [type(block) for block in blocks(found, TranscriptOptions(Detail.DIALOGUE))] == [PromptBlock, AnswerBlock]
    full = [type(block) for block in blocks(found, TranscriptOptions(Detail.FULL))]
    assert full == [PromptBlock, ThoughtBlock, AnswerBlock, ToolBlock, UsageBlock, NoticeBlock, NoticeBlock]


def test_error_messages_are_noted(tmp_path: Path) -> None:
    wire = example(TOLD)
    wire["messages"].append(notice("e", "[API Error: quota]", kind="error"))
    block = list(blocks(read(tmp_path, wire)[1]))[-1]
    assert isinstance(block, NoticeBlock)
    assert (block.kind, block.text.head) == (Kind.ERROR, "[API Error: quota]")


def test_hash_is_of_the_path() -> None:
    assert project_hash(MYPROJECT) == example(TOLD)["projectHash"]


def test_project_is_found_by_hashing_folders(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    within, beyond = root / "dev" / "clients" / "myproject", root / "a" / "b" / "c" / "d" / "myproject"
    for folder in (within, beyond):
        folder.mkdir(parents=True)
    wanted = {project_hash(str(folder)) for folder in (within, beyond)}
    assert search.scan([root], wanted) == {project_hash(str(within)): str(within)}


def test_project_is_found_by_a_part_of_its_name() -> None:
    known = [Project(path=MYPROJECT), Project(path="/Users/alice/dev/other")]
    for query in ("myproject", "MyProj", "mypoject"):
        assert search.find(known, query, Path("/"), Path("/Users/alice")) == (known[0],)
    assert search.find(known, "zzz", Path("/"), Path("/Users/alice")) == ()


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("read_file", {"file_path": f"{MYPROJECT}/src/auth.ts"}),
        ("run_shell_command", {"command": f"cat {MYPROJECT}/src/auth.ts | wc"}),
    ],
)
def test_arguments_of_calls_prove_the_project(tmp_path: Path, name: str, args: Wire) -> None:
    wire = example(TOLD)
    wire["messages"][1]["toolCalls"] = [call(name=name, args=args)]
    project = read(tmp_path, wire)[0].project
    assert (project.path, project.source, project.proven) == (MYPROJECT, "arguments", True)
    assert from_file(TOLD)[0].project.path is None


def test_arguments_of_another_folder_prove_nothing(tmp_path: Path) -> None:
    wire = example(TOLD)
    wire["messages"][1]["toolCalls"][0]["args"] = {"file_path": "/Users/alice/dev/other/src/auth.ts"}
    assert read(tmp_path, wire)[0].project.path is None


@pytest.mark.parametrize("below", ["", ".gemini"], ids=["what holds .gemini", "what this reader took for it"])
def test_home_of_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, below: str) -> None:
    monkeypatch.setenv("GEMINI_CLI_HOME", str(archive_of(tmp_path, TOLD) / below))
    found = history(homes())
    assert [one.id for one in found.main] == ["a82545c4-4f3f-4c3d-8b12-0a580eae4df4"]


# 004: listing and export.


def test_listed_example() -> None:
    session, _ = from_file(LISTED)
    asked, answered = messages_of(LISTED)
    assert (asked.kind, asked.text) == (Kind.USER, "User's message here")
    assert (answered.kind, answered.text, answered.model) == (
        Kind.GEMINI,
        "Model response here...",
        "gemini-2.5-pro",
    )
    assert [(one.subject, one.text) for one in answered.thoughts] == [
        ("Considering Code Review Scope", "I'm currently focused on the scope of the code review...")
    ]
    assert answered.tokens == Tokens(input=2678, output=591, thoughts=874, total=4143)
    (one,) = answered.tool_calls
    assert (one.name, one.display_name, one.output) == (
        "codebase_investigator",
        "Codebase Investigator Agent",
        "Tool output here...",
    )
    assert session.counts == {"user": 1, "gemini": 1, "info": 0, "warning": 0, "error": 0}
    assert (rfc3339(session.started), rfc3339(session.ended)) == (
        "2025-12-03T06:35:37.302Z",
        "2025-12-03T06:35:51.334Z",
    )


@pytest.mark.parametrize("kind", ["info", "warning", "error"])
def test_notices_have_kinds_of_their_own(tmp_path: Path, kind: str) -> None:
    session, (one,) = read(tmp_path, builders.document(notice("n", "Request cancelled.", kind=kind)))
    assert (one.kind, one.origin, one.text) == (kind, "notice", "Request cancelled.")
    assert (session.counts[kind], session.counts["user"], session.first_prompt) == (1, 0, "")


def test_parts_of_every_kind(tmp_path: Path) -> None:
    content = [
        {"text": "Look: "},
        {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}},
        {"executableCode": {"language": "PYTHON", "code": "print(1)"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1\n"}},
    ]
    one = only_message(tmp_path, gemini("g", content))
    assert one.parts == (
        Text("Look: "),
        Attachment("image/png", 8, data="iVBORw0KGgo="),
        Code("python", "print(1)"),
        CodeResult("OUTCOME_OK", "1\n"),
    )
    assert one.text == "Look: "


@pytest.mark.parametrize(
    ("thoughts", "expected"),
    [
        ([], []),
        ([{"subject": "S", "description": "D"}], [("S", "D")]),
        (["plain"], [("", "plain")]),
        ([{"subject": "S", "description": "x" * 201}], [("S", "x" * 201)]),
        ([{"description": "D"}, "plain"], [("", "D"), ("", "plain")]),
        (None, []),
    ],
    ids=["none", "object", "string", "long", "mixed", "null"],
)
def test_thoughts_of_every_form(tmp_path: Path, thoughts: object, expected: list[tuple[str, str]]) -> None:
    one = only_message(tmp_path, gemini(thoughts=thoughts))
    assert [(thought.subject, thought.text) for thought in one.thoughts] == expected


@pytest.mark.parametrize(
    ("value", "name", "args"),
    [
        (without(call(), "args"), "read_file", {}),
        (without(call(), "name"), "", {"file_path": "a.txt"}),
        (call(args="not an object"), "read_file", "not an object"),
        (call(args=None), "read_file", None),
    ],
    ids=["no args", "no name", "bad args", "null args"],
)
def test_odd_calls_are_read(tmp_path: Path, value: Wire, name: str, args: object) -> None:
    one = only_call(tmp_path, value)
    assert (one.name, one.args, one.output) == (name, args, "text of the file")


@pytest.mark.parametrize(("detail", "n_shown"), [(Detail.DIALOGUE, 0), (Detail.NORMAL, 10), (Detail.FULL, 21)])
def test_long_output_is_whole_in_full_detail(tmp_path: Path, detail: Detail, n_shown: int) -> None:
    output = "\n".join(["x" * 99] * 21)
    result = [{"functionResponse": {"id": "c1", "name": "my_own", "response": {"output": output}}}]
    one = only_message(tmp_path, gemini(toolCalls=[call(name="my_own", result=result)]))
    bodies = [
        body
        for block in blocks([one], TranscriptOptions(detail))
        if isinstance(block, ToolBlock)
        for body in block.bodies
    ]
    texts = [body.text for body in bodies if isinstance(body, Output)]
    assert sum((text.head + text.tail).count("x") for text in texts) == n_shown * 99
    assert sum(text.hidden_lines for text in texts) == (21 - n_shown if texts else 0)


@pytest.mark.parametrize("data", [b"{}", b"{ not json", b"null"])
def test_file_without_a_session_is_reported(tmp_path: Path, run: Runner, data: bytes) -> None:
    session, found = read(tmp_path, data)
    assert (found, session.calls) == ([], ())
    assert session.problems
    ended = run("show", str(tmp_path / f"{builders.NAME}.json"))
    assert (ended.status, ended.out) == (1, "")
    assert "contains no session" in ended.err


def test_empty_home_has_no_sessions(tmp_path: Path, run: Runner) -> None:
    (tmp_path / ".gemini" / "tmp").mkdir(parents=True)
    ended = run("ls", home=tmp_path)
    assert (ended.status, ended.out) == (1, "")
    assert ended.err
    assert run("ls", "--json").json["sessions"] == []


def test_missing_home_is_reported(tmp_path: Path, run: Runner) -> None:
    ended = run("ls", "--home", str(tmp_path / "gone"))
    assert (ended.status, ended.out) == (2, "")
    assert f"{tmp_path / 'gone'} does not exist" in ended.err


def test_list_is_newest_first_with_counts(tmp_path: Path, run: Runner) -> None:
    archive_of(tmp_path, LISTED, AUDITED, TOLD)
    rows = [line.split("\t") for line in run("ls", "--no-header", home=tmp_path).out.splitlines()]
    assert [row[0][:8] for row in rows] == ["08c1f87b", "a82545c4", "477739d0"]
    assert [row[4:6] for row in rows] == [["1", "1"]] * 3
    found = run("ls", "--json").json["sessions"]
    assert [one["messages"]["gemini"] for one in found] == [2, 1, 1]
    assert [one["tokens"]["total"] for one in found] == [179844, 6053, 4143]


def test_unknown_hash_is_shown_by_its_first_digits(tmp_path: Path, run: Runner) -> None:
    archive_of(tmp_path, LISTED)
    assert run("ls", "--no-header", home=tmp_path).out.split("\t")[2] == "[8876362f]"
    assert run("ls", "--no-header", "--project", "8876362f").out.startswith("477739d0")


def test_hash_is_learned_from_the_working_directory(
    tmp_path: Path, run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = (tmp_path / "work" / "webapp").resolve()
    here.mkdir(parents=True)
    name = project_hash(str(here))
    data = builders.line(example(LISTED) | {"projectHash": name})
    builders.put(tmp_path / ".gemini" / "tmp" / name / "chats" / LISTED.name, data)
    assert run("ls", "--no-header", home=tmp_path).out.split("\t")[2] == f"[{name[:8]}]"
    monkeypatch.chdir(here)
    assert run("ls", "--no-header", "--project", ".").out.split("\t")[2] == str(here)
    monkeypatch.chdir(tmp_path)
    assert run("ls", "--no-header").out.split("\t")[2] == str(here)


@pytest.mark.parametrize("format_", ["json", "jsonl", "gemini"])
def test_export_to_the_standard_output(run: Runner, format_: str) -> None:
    ended = run("export", str(LISTED), "-f", format_, "-o", "-")
    assert (ended.status, ended.err) == (0, "")
    assert not Path("-").exists()
    if format_ == "jsonl":
        lines = [json.loads(line) for line in ended.out.splitlines()]
        assert [line["type"] for line in lines] == ["session", "message", "message", "model_call"]
    elif format_ == "json":
        timeline = ended.json["timeline"]
        assert [one["parts"][0]["text"] for one in timeline] == ["User's message here", "Model response here..."]
    else:
        assert ended.json["messages"] == example(LISTED)["messages"]


def test_less_detail_is_shorter(run: Runner) -> None:
    shown = [run("show", str(LISTED), "--detail", detail).out for detail in ("prompts", "dialogue", "normal", "full")]
    lengths = [len(one) for one in shown]
    assert lengths == sorted(set(lengths))
    assert ["Tool output here" in one for one in shown][1:] == [False, True, True]
    assert ["Model response here" in one for one in shown] == [False, True, True, True]
