"""Messages, calls and counts that the client's recorder lost or changed, for each tree; each row is tested.

A row names a tree, or all trees that match a pattern, and lists exactly what its files contain instead of what was
typed, called or answered. The facts are those of the README of the corpus.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple, TypeVar

INVALID_STREAM = "fact 9: answers that were blocked or malformed were tried again, and not recorded"
BROKEN_OFF = "the connection was lost after one chunk, whose counts were recorded"
TAKEN_FOR_SUMMARY = "the fake server took a prompt with <state_snapshot> for a compression"
LEFT_OUT = "the folder tmp/bin, which the client made for a project of that name, was not copied into the corpus"
SAME_ID = "of two calls with one ID in an answer the client makes one"
REFUSED = "a hook refused the prompt, and the client did not record it"
AN_OPTION = "the client took a prompt that begins with a hyphen for an option"
NEVER_LOADED = "a session that ACP could not load again, and what ACP adds to a prompt for files"
NO_FILES = "releases before 0.4 write no session files"
MERGED = "fact 9: to 0.31 a turn of nothing but tool calls is merged into the message before it, its counts are lost"
AGENT_MERGED = "fact 10: to 0.31 a subagent's turns stand in its parent's file, and their counts are lost"
AGENT_UNRECORDED = "fact 9: 0.34 and 0.36 write no file for a subagent"
AGENT_INSIDE = "fact 10: to 0.32 a subagent's turns stand in its parent's file, without its tool calls"
NO_USAGE_SENT = "fact 9: one answer came without counts, one was empty and tried again"
LOOP = "fact 9: the answer that ran in a loop, and the one after it, were never recorded"
DISK_FULL = "fact 13: the disk was full, nothing after that was recorded"
KILLED_WRITE = "fact 13: killed while it wrote; a .json is empty then, a .jsonl lacks what was not yet written"
REALLY_REWOUND = "fact 7: /rewind in a .json really deletes"
DELETED = "removed by --delete-session"
CLEANED_UP = "fact 5: resumed, and then taken for corrupt and deleted by the next start"
HEADER_AND_PROMPT_GONE = "fact 6: a second client removed the file between the prompt and the answer"
NEVER_SENT = "given to --list-sessions or --delete-session, which send nothing"
PIPED = "what is piped in stands in the prompt itself, before what was typed"
NO_CALLS = "to 0.8 no tool calls are recorded at all"
LAST_CALL_UNRECORDED = "0.37 does not record the call that ends a subagent"
LOADED_AGAIN = "/chat resume brings a call of another session, with its words and without its record"

_Row = TypeVar("_Row")
Table = Mapping[str, Mapping[str, _Row]]
"""By reason, and then by tree or pattern."""


class Counted(NamedTuple):
    """The sums of the usage of a tree."""

    calls: int
    total: int


class Prompts(NamedTuple):
    """The prompts missing in a tree, and those found instead."""

    missing: tuple[str, ...]
    instead: tuple[str, ...] = ()


class Calls(NamedTuple):
    """The number of missing tool calls by name, and of those found too often."""

    missing: Mapping[str, int]
    extra: Mapping[str, int] = {}


USAGE: Table[Counted] = {
    NO_FILES: {"0.[123].*/*": Counted(0, 0)},
    MERGED: {
        "0.4.1/i-compress": Counted(4, 42908),
        "0.4.1/mcp": Counted(2, 18327),
        "0.4.1/tools": Counted(3, 28649),
        "0.4.1/unicode": Counted(2, 18293),
        "0.8.2/i-basic": Counted(3, 28579),
        "0.8.2/i-compress": Counted(4, 44600),
        "0.8.2/todos": Counted(1, 11457),
        "0.8.2/tools": Counted(3, 29930),
        "0.8.2/unicode": Counted(2, 19139),
        "0.10.0/mcp": Counted(2, 17932),
        "0.10.0/tools": Counted(4, 37648),
        "0.11.3/big": Counted(2, 61830),
        "0.11.3/mcp": Counted(2, 17984),
        "0.11.3/noyolo": Counted(2, 14787),
        "0.11.3/todos": Counted(2, 21075),
        "0.11.3/tools": Counted(4, 37913),
        "0.11.3/weird": Counted(2, 18025),
        "0.16.0/mcp": Counted(2, 19249),
        "0.16.0/noyolo": Counted(2, 15945),
        "0.16.0/todos": Counted(2, 19592),
        "0.16.0/tools": Counted(4, 40442),
        "0.16.0/unicode": Counted(2, 19214),
        "0.20.2/mcp": Counted(2, 18763),
        "0.20.2/todos": Counted(2, 19170),
        "0.20.2/tools": Counted(4, 39541),
        "0.22.4/mcp": Counted(2, 19360),
        "0.22.4/todos": Counted(2, 19706),
        "0.22.4/tools": Counted(4, 40613),
        "0.22.4/unicode": Counted(2, 19328),
        "0.24.5/big": Counted(2, 71415),
        "0.24.5/i-subagent": Counted(3, 30003),
        "0.24.5/mcp": Counted(2, 19622),
        "0.24.5/noyolo": Counted(2, 15867),
        "0.24.5/todos": Counted(2, 19968),
        "0.24.5/tools": Counted(4, 41137),
        "0.24.5/unicode": Counted(2, 19590),
        "0.24.5/weird": Counted(2, 19745),
        "0.28.2/mcp": Counted(2, 21614),
        "0.28.2/todos": Counted(2, 21944),
        "0.28.2/tools": Counted(4, 45052),
        "0.28.2/unicode": Counted(2, 21582),
        "0.31.0/mcp": Counted(2, 18372),
        "0.31.0/tools": Counted(4, 38690),
    },
    AGENT_MERGED: {
        "0.10.0/subagent": Counted(2, 18308),
        "0.11.3/subagent": Counted(2, 18360),
        "0.18.4/subagent": Counted(2, 19066),
        "0.20.2/subagent": Counted(2, 18646),
        "0.22.4/subagent": Counted(2, 19198),
        "0.24.5/subagent": Counted(2, 19460),
        "0.28.2/subagent": Counted(2, 21436),
        "0.29.0/subagent": Counted(2, 17295),
    },
    INVALID_STREAM: {
        "0.61.0/h-blocked": Counted(3, 36851),
        "0.61.0/h-malformed": Counted(7, 87214),
    },
    BROKEN_OFF: {"0.61.0/h-fallback2": Counted(5, 52103)},
    TAKEN_FOR_SUMMARY: {"0.61.0/h-oddprompts": Counted(19, 233951)},
    LEFT_OUT: {"0.61.0/h-paths": Counted(18, 219304)},
    DISK_FULL: {
        "0.11.3/diskfull": Counted(0, 0),
        "0.24.5/diskfull": Counted(0, 0),
        "0.38.2/diskfull": Counted(1, 11039),
        "0.40.1/diskfull": Counted(2, 24093),
        "0.47.0/diskfull": Counted(2, 24666),
        "0.60.0/diskfull": Counted(2, 25323),
        "0.61.0/diskfull": Counted(2, 25323),
    },
    NO_USAGE_SENT: {
        "0.11.3/oddstream": Counted(3, 26411),
        "0.16.0/oddstream": Counted(3, 28308),
        "0.24.5/oddstream": Counted(3, 28872),
        "0.38.2/oddstream": Counted(3, 33095),
        "0.40.1/oddstream": Counted(3, 35009),
        "0.47.0/oddstream": Counted(3, 35846),
        "0.60.0/oddstream": Counted(3, 36879),
        "0.61.0/oddstream": Counted(3, 36879),
    },
    KILLED_WRITE: {
        "0.24.5/killed-write": Counted(0, 0),
        "0.38.2/killed-write": Counted(0, 0),
    },
    REALLY_REWOUND: {
        "0.32.1/i-rewind": Counted(2, 20416),
        "0.38.2/i-rewind": Counted(2, 23024),
    },
    AGENT_UNRECORDED: {
        "0.34.0/subagent": Counted(2, 19749),
        "0.36.0/subagent": Counted(2, 21267),
    },
    LOOP: {
        "0.40.1/loop": Counted(1, 11672),
        "0.47.0/loop": Counted(1, 11954),
        "0.60.0/loop": Counted(1, 12282),
        "0.61.0/loop": Counted(1, 12282),
    },
    CLEANED_UP: {
        "0.51.0/resume-loss": Counted(2, 23984),
        "0.60.0/resume-loss": Counted(2, 24510),
    },
    DELETED: {
        "0.60.0/delete": Counted(2, 24503),
        "0.61.0/delete": Counted(2, 24503),
    },
}

_PIPED = "INFO start\nERROR disk full\nERROR retry\n" * 3 + "\n\nSummarise this log"
_REWOUND = Prompts(("Question one.", "Question two.", "Question three.", "Question four.", "Question six."))

PROMPTS: Table[Prompts] = {
    NO_FILES: {"0.3.4/qa": Prompts(("What does app/board.py do? Answer in one sentence.",))},
    NEVER_SENT: {
        "*/multi": Prompts(("ignored",)),
        "0.24.5/resume-loss": Prompts(("ignored",)),
        "0.38.2/resume-loss": Prompts(("ignored",)),
        "0.40.1/resume-loss": Prompts(("ignored",)),
    },
    PIPED: {
        "*/stdin": Prompts(("Summarise this log",), (_PIPED,)),
        "0.61.0/h-stdinonly": Prompts(
            ("Tell me about the board. In one line.",), ("Tell me about the board.\nIn one line.\n",)
        ),
    },
    LEFT_OUT: {"0.61.0/h-paths": Prompts(("Where am I, bin?",))},
    REFUSED: {"0.61.0/h-hookmodel": Prompts(("Please refuse this.",))},
    AN_OPTION: {"0.61.0/h-oddprompts": Prompts(("- **Workspace Directories:** list them",))},
    NEVER_LOADED: {
        "0.61.0/acp-load": Prompts(
            ("Look at this:", "Loaded question 0.", "Loaded question 1."),
            ("Look at this: @/tmp/corpus/home/bob/dev/webapp/README.md@file:///x/notes.txt",),
        )
    },
    KILLED_WRITE: {
        "0.24.5/killed-write": Prompts(("First?", "Second?")),
        "0.38.2/killed-write": Prompts(("First?", "Second?")),
        "0.40.1/killed-write": Prompts(("Second?",)),
        "0.51.0/killed-write": Prompts(("Second?",)),
        "0.61.0/killed-write": Prompts(("Second?",)),
    },
    REALLY_REWOUND: {"0.32.1/i-rewind": _REWOUND, "0.38.2/i-rewind": _REWOUND},
    HEADER_AND_PROMPT_GONE: {"0.60.0/concurrent": Prompts(("Run job A",))},
    f"{DELETED}; {NEVER_SENT}": {"*/delete": Prompts(("Two?", "ignored"))},
    f"{CLEANED_UP}; {NEVER_SENT}": {
        "0.51.0/resume-loss": Prompts(("What is this project?", "Second?", "ignored")),
        "0.60.0/resume-loss": Prompts(("What is this project?", "Second?", "ignored")),
    },
}

_OF_AGENT = Calls({"list_directory": 1, "read_file": 1, "complete_task": 1})
_OF_AGENTS = Calls({"list_directory": 1, "read_file": 2, "complete_task": 2})

TOOLS: Table[Calls] = {
    AGENT_INSIDE: {
        "0.1?.*/subagent": _OF_AGENT,
        "0.2?.*/subagent": _OF_AGENT,
        "0.32.1/subagent": _OF_AGENT,
        "0.24.5/i-subagent": _OF_AGENTS,
        "0.32.1/i-subagent": _OF_AGENTS,
    },
    AGENT_UNRECORDED: {"0.34.0/subagent": _OF_AGENT, "0.36.0/subagent": _OF_AGENT},
    LAST_CALL_UNRECORDED: {"0.37.2/subagent": Calls({"complete_task": 1})},
    DISK_FULL: {
        "0.11.3/diskfull": Calls({"read_file": 2, "write_file": 2}),
        "0.24.5/diskfull": Calls({"read_file": 2, "write_file": 2}),
        "0.38.2/diskfull": Calls({"read_file": 2, "write_file": 2}),
        "0.40.1/diskfull": Calls({"read_file": 2, "write_file": 1}),
        "0.47.0/diskfull": Calls({"read_file": 2, "write_file": 2}),
        "0.6?.0/diskfull": Calls({"read_file": 2, "write_file": 2}),
    },
    KILLED_WRITE: {
        "0.24.5/killed-write": Calls({"read_file": 1}),
        "0.38.2/killed-write": Calls({"read_file": 1}),
    },
    REALLY_REWOUND: {
        "0.32.1/i-rewind": Calls({"read_file": 1, "write_file": 1}),
        "0.38.2/i-rewind": Calls({"read_file": 1, "write_file": 1}),
    },
    LEFT_OUT: {"0.61.0/h-paths": Calls({"read_file": 1})},
    SAME_ID: {"0.61.0/h-sametwice": Calls({"read_file": 1})},
    LOADED_AGAIN: {
        "0.61.0/i-chat2": Calls({}, {"read_file": 1}),
        "0.61.0/i-chatsame": Calls({}, {"read_file": 1}),
        "0.47.0/i-chat": Calls({}, {"read_file": 1}),
        "0.60.0/i-chat": Calls({}, {"read_file": 1}),
        "0.61.0/i-chat": Calls({}, {"read_file": 1}),
    },
}

Failed = tuple[tuple[str, str], ...]
"""The calls that did not succeed, as (name, status)."""

_UNSAFE = (("run_shell_command", "error"),)

FAILED: Mapping[str, Failed] = {
    "tools": (("read_file", "error"),),
    "mcp": (("broken_tool", "error"),),
    "noyolo": (("run_shell_command", "error"), ("write_file", "error")),
    "plan": (("write_file", "error"),),
    "todos": (("no_such_tool", "error"), ("web_fetch", "error")),
    "weird": (("no_such_tool", "error"),),
    "i-abort": (("run_shell_command", "cancelled"),),
    "i-basic": (("run_shell_command", "cancelled"),),
    "i-subagent": (("agent", "cancelled"),),
    "acp-tools": (("read_file", "error"),),
    "h-hooks": (("run_shell_command", "error"),),
    "h-paths": (("read_file", "error"),) * 6,
    "h-subnest": (("agent", "error"),) * 2,
    "i-custom2": (("write_file", "cancelled"),),
    "i-decline2": (("run_shell_command", "cancelled"), ("write_file", "cancelled")),
    "i-subpar": (("agent", "cancelled"),) * 2,
}
"""By scenario: the calls that failed, and those that the user declined or cancelled."""

STATUSES: Table[Failed] = {
    "the shell of 0.11 and 0.16 refuses what it cannot parse": {
        "0.11.3/big": _UNSAFE,
        "0.11.3/concurrent": _UNSAFE * 2,
        "0.16.0/concurrent": _UNSAFE * 2,
        "0.11.3/weird": (*FAILED["weird"], *_UNSAFE * 2),
    },
    "0.20 records the error of an MCP server as a success": {"0.20.2/mcp": ()},
    "save_memory is gone from 0.40 on": {
        f"0.{minor}.?/todos": (*FAILED["todos"], ("save_memory", "error")) for minor in ("4?", "5?", "6?")
    },
    "0.38 does not offer update_topic to this model": {"0.38.2/topic": (("update_topic", "error"),) * 2},
}

AGENTS: Table[int] = {
    AGENT_INSIDE: {"0.1?.*/*": 0, "0.2?.*/*": 0, "0.31.0/*": 0, "0.32.1/*": 0},
    AGENT_UNRECORDED: {"0.34.0/*": 0, "0.36.0/*": 0},
}
"""The number of sessions of subagents, where it differs from one for each run."""


def row(table: Table[_Row], tree: str) -> _Row | None:
    """Return the row of a tree, after a check that there is at most one."""
    rows = [exception for rows in table.values() for pattern, exception in rows.items() if fnmatchcase(tree, pattern)]
    assert len(rows) < 2, f"{tree} has two rows"
    return rows[0] if rows else None


def reason(table: Table[_Row], tree: str) -> str | None:
    """Return the reason for the row of a tree."""
    reasons = (why for why, rows in table.items() if any(fnmatchcase(tree, pattern) for pattern in rows))
    return next(reasons, None)
