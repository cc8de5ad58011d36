"""Messages are kept, noted or left out of a dev log by one table of rules."""

from __future__ import annotations

import pytest
from tests.views.build import ROOT, START, added, call, message, notice, prompt

from pollux.exports.devlog_entries import (
    ARGUMENT,
    FAILURE,
    RULES,
    DevlogRule,
    DialogueEntry,
    Entry,
    NoteEntry,
    ToolEntry,
    entries,
    rule_of,
)
from pollux.model import Attachment, Fate, Json, Kind, Message, Origin, TextDisplay, Thought, Tokens, ToolCall
from pollux.views.transcript import Branches

SHELL = "I ran the following shell command:\n```sh\nls -l\n```\n\nThis produced the following result:\n```\na\n```"


def entries_of(*messages: Message, branches: Branches = Branches.ACTIVE) -> list[Entry]:
    return [*entries(messages, branches=branches, root=ROOT)]


def only_tool_entry(tool_call: ToolCall) -> ToolEntry:
    (tool_entry,) = (entry for entry in entries_of(message(tool_calls=(tool_call,))) if isinstance(entry, ToolEntry))
    return tool_entry


def test_each_kind_of_message_has_a_rule() -> None:
    notices = {Kind.INFO, Kind.WARNING, Kind.ERROR, Kind.UNKNOWN}
    assert set(RULES) == {*Origin, *notices} - {Origin.NOTICE}
    assert rule_of(notice("x", Kind.ERROR)) is DevlogRule.NOTE
    assert rule_of(message("x", kind=Kind.UNKNOWN, origin=Origin.MODEL)) is DevlogRule.SKIP


def test_text_precedes_calls_in_its_order() -> None:
    result = entries_of(
        prompt("Help me configure TypeScript"),
        message("I'll help you.", minute=1, tool_calls=(call("read_file", {"file_path": f"{ROOT}/src/auth.ts"}),)),
    )
    assert [type(entry) for entry in result] == [DialogueEntry, DialogueEntry, ToolEntry]
    asked, answered, called = result
    assert isinstance(asked, DialogueEntry)
    assert isinstance(answered, DialogueEntry)
    assert (asked.origin, asked.text.head, asked.at) == (Origin.HUMAN, "Help me configure TypeScript", START)
    assert (answered.origin, answered.text.head) == (Origin.MODEL, "I'll help you.")
    assert called == ToolEntry(answered.at, Fate.ACTIVE, "read_file", "src/auth.ts")


@pytest.mark.parametrize(
    "skipped",
    [
        notice("Update available", Kind.INFO),
        notice("Careful", Kind.WARNING),
        added(Origin.SESSION_CONTEXT, "<session_context>"),
        added(Origin.HOOK_CONTEXT, "<hook_context>"),
        added(Origin.IDE_CONTEXT, "Here is"),
        added(Origin.CONTINUE, "Please continue."),
        added(Origin.TOOL_RESPONSE, ""),
        message("Got it. Thanks for the context!", origin=Origin.SYNTHETIC),
        message(thoughts=(Thought("secret"),), tokens=Tokens(1, total=1)),
        message("  "),
    ],
    ids=lambda message: str(message.origin),
)
def test_messages_of_other_kinds_are_left_out(skipped: Message) -> None:
    assert entries_of(skipped) == []


@pytest.mark.parametrize(
    ("noted", "words", "code"),
    [
        (notice("[API Error: quota]\nmore", Kind.ERROR), "error", "[API Error: quota] more"),
        (notice("x" * 300, Kind.ERROR), "error", "x" * (FAILURE - 1) + "…"),
        (added(Origin.SHELL_MODE, SHELL), "the human ran", "ls -l"),
        (added(Origin.STATE_SNAPSHOT, "<state_snapshot>"), "the conversation so far was replaced by a summary", ""),
    ],
    ids=["error", "long error", "shell mode", "summary"],
)
def test_events_of_a_session_are_noted(noted: Message, words: str, code: str) -> None:
    assert entries_of(noted) == [NoteEntry(START, Fate.ACTIVE, words, code)]


@pytest.mark.parametrize(
    ("name", "args", "about"),
    [
        ("read_file", {"file_path": f"{ROOT}/a.ts", "limit": 2}, "a.ts, lines 1-2"),
        ("write_file", {"file_path": "a.ts", "content": "never this"}, "a.ts"),
        ("run_shell_command", {"command": "npm test"}, "npm test"),
        ("list_directory", {"dir_path": f"{ROOT}/src"}, "src"),
        ("glob", {"pattern": "*.ts", "path": "src"}, "'*.ts' in src"),
        ("google_web_search", {"query": "tsconfig"}, "tsconfig"),
        ("my_own", {"path": "a", "query": "b", "body": "never this"}, "a, b"),
        ("my_own", {"command": "make", "file_path": "Makefile"}, "Makefile, make"),
        ("my_own", {"body": "never this"}, ""),
        ("my_own", "not an object", ""),
        ("mcp_tickets_close", {"key": "SKY-118"}, "key: SKY-118"),
        ("run_shell_command", {"command": "x" * 300}, "x" * (ARGUMENT - 1) + "…"),
    ],
)
def test_calls_are_described_by_their_important_arguments(name: str, args: Json, about: str) -> None:
    entry = only_tool_entry(call(name, args, output="never this either"))
    assert (entry.name, entry.arguments, entry.failure) == (name, about, "")


@pytest.mark.parametrize(
    ("failed", "trouble"),
    [
        (call("read_file", status="error", error="File not found: a\nstack"), "failed: File not found: a"),
        (call("my_own", status="error", display=TextDisplay("It broke")), "failed: It broke"),
        (call("my_own", status="error", error="y" * 300), f"failed: {'y' * (FAILURE - 1)}…"),
        (call("my_own", status="error"), "failed"),
        (call("my_own", status="cancelled", error="[Operation Cancelled] Reason: user"), "cancelled"),
        (call("my_own", status="pending"), "no result was recorded"),
        (call("run_shell_command", {"command": "false"}, exit_code=1), "ended with exit code 1"),
        (call("run_shell_command", {"command": "true"}, exit_code=0), ""),
    ],
)
def test_failed_calls_have_a_description(failed: ToolCall, trouble: str) -> None:
    assert only_tool_entry(failed).failure == trouble


def test_answer_to_a_question_is_a_text_of_the_human() -> None:
    args = {"questions": [{"question": "Which colour?"}, {"question": "Which size?"}]}
    question = call("ask_user", args, output='{"answers": {"0": "Red"}}', at=START)
    result = entries_of(message(tool_calls=(question,)))
    assert [type(entry) for entry in result] == [ToolEntry, DialogueEntry]
    assert result[0] == ToolEntry(START, Fate.ACTIVE, "ask_user", "Which colour?; Which size?")
    assert isinstance(result[1], DialogueEntry)
    assert (result[1].origin, result[1].text.head) == (Origin.HUMAN, "Red")


def test_only_prompts_are_shortened() -> None:
    long = "\n".join(f"line {number}" for number in range(1000))
    asked, answered = entries_of(prompt(long), message(long))
    assert isinstance(asked, DialogueEntry)
    assert isinstance(answered, DialogueEntry)
    assert (asked.text.hidden_lines, answered.text.head) == (920, long)


def test_attachments_are_listed_with_their_prompt() -> None:
    picture = Attachment("image/png", 8)
    (entry,) = entries_of(prompt(picture))
    assert isinstance(entry, DialogueEntry)
    assert entry.attachments == (picture,)


def test_compressed_messages_are_described_too() -> None:
    result = entries_of(prompt("one", fate=Fate.COMPRESSED), message("answer", fate=Fate.COMPRESSED), prompt("two"))
    assert [entry.text.head for entry in result if isinstance(entry, DialogueEntry)] == ["one", "answer", "two"]


def test_dropped_branch_leaves_one_line() -> None:
    rewound, rolled = Fate.REWOUND, Fate.ROLLED_BACK
    messages = (
        prompt("one"),
        prompt("two", fate=rewound),
        message("answer", fate=rewound, tool_calls=(call("read_file"),)),
        notice("hidden", fate=rewound),
        prompt("three", fate=rolled),
        prompt("four"),
        prompt("five", fate=rewound),
    )
    assert [
        entry.text if isinstance(entry, NoteEntry) else entry.text.head
        for entry in entries_of(*messages)
        if not isinstance(entry, ToolEntry)
    ] == [
        "one",
        "2 messages rewound",
        "1 message rolled back",
        "four",
        "1 message rewound",
    ]
    every = entries_of(*messages, branches=Branches.ALL)
    assert [entry.fate for entry in every] == ["active", rewound, rewound, rewound, rolled, "active", rewound]


def test_text_recorded_under_the_id_of_a_notice_is_described() -> None:
    (entry,) = entries_of(notice("instead", kind=Kind.USER))
    assert isinstance(entry, DialogueEntry)
    assert entry.text.head == "instead"
