"""A session with each kind of message, part, tool, status, display and fate, and a subagent."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from tests.builders import PRICES
from tests.views.build import ROOT, START, added, call, message, notice, prompt

from pollux.exports.source import ExportOptions, ExportSource
from pollux.model import (
    Activity,
    AgentDisplay,
    Attachment,
    Cell,
    Code,
    CodeResult,
    DiffDisplay,
    Fate,
    FileDisplay,
    FunctionCall,
    FunctionResponse,
    GrepMatch,
    Json,
    Kind,
    MatchDisplay,
    Message,
    ModelCall,
    Origin,
    Problem,
    Project,
    ScreenDisplay,
    Session,
    TextDisplay,
    Thought,
    Todo,
    TodoDisplay,
    Tokens,
    ToolCall,
    Unknown,
    UnknownDisplay,
)
from pollux.sessions.grouping import OpenSession

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEklEQVR4nGM4kWGLFTEMLQkAkPV/gX44U0oAAAAASUVORK5CYII="
"""A PNG of 8 by 8 pixels."""

ANSWER = """\
# Counting

The board has a *count* now: `Board.count()`, see [the docs](https://example.org/docs), ~~nothing~~ else.
Also [board.py](app/board.py), [a script](javascript:alert(1)) and ![a picture](http://example.org/y.png).

1. one
   - nested
2. two

> Quoted words.

```python
def count(self) -> int:
    return len(self.tasks)  # all
```

| File | Lines |
| ---- | ----: |
| board.py | 3 |
| `日本.py` | 12 |

Underlined
----------

<b>HTML</b> is text, `<i>` too, and &lt; is an entity. [x]: http://example.org

```sh
never closed
"""

DIFF = """\
--- board.py
+++ board.py
@@ -16,4 +16,5 @@
     def finish(self, index):
-        self.tasks[index] = None
+        self.tasks[index]["done"] = True
+
@@ -98,2 +99,2 @@
-    x = "日本語"
+    x = "English"
"""

LOG = "\n".join(f"line {number}" for number in range(1, 101))
COLOURS = (
    "\x1b[1;32mok\x1b[0m \x1b[38;5;208morange\x1b[39m \x1b[38;2;1;2;250mblue\x1b[0m "
    "\x1b[7mturned\x1b[27m \x1b[2Jcleared"
)


def picture(media_type: str = "image/png", data: str | None = PIXEL, **more: Any) -> Attachment:  # noqa: ANN401
    size = len(base64.b64decode(data)) if data else None
    return Attachment(**{"media_type": media_type, "size": size, "data": data, **more})


def shell(command: str, **more: Any) -> ToolCall:  # noqa: ANN401
    return call("run_shell_command", {"command": command}, **more)


def files() -> tuple[ToolCall, ...]:
    """Return calls that read, search and change files."""
    matches = (
        GrepMatch("app/board.py", 7, "    def __init__(self):"),
        GrepMatch("a.py", None, "x"),
        GrepMatch("b.py", 2, "y", is_context=True),
    )
    return (
        call("read_file", {"file_path": f"{ROOT}/app/board.py", "start_line": 1, "end_line": 40}, output="text"),
        call("read_file", {"file_path": f"{ROOT}/static/logo.png"}, attachments=(picture(),)),
        call("read_file", {"file_path": "gone.py"}, status="error", error="File not found: gone.py"),
        call("read_many_files", {"include": ["*.md", "docs/*"]}, output="README"),
        call("glob", {"pattern": "**/*.py"}, display=TextDisplay("Found 5 matching file(s)"), output="a.py\nb.py"),
        call("grep_search", {"pattern": "def ", "include_pattern": "*.py"}, display=MatchDisplay("Found 3", matches)),
        call("list_directory", {"dir_path": ROOT}, display=FileDisplay("Found 2 item(s).", ("[DIR] app", "README.md"))),
        call(
            "replace", {"file_path": f"{ROOT}/board.py", "instruction": "Fix."}, display=DiffDisplay(DIFF, "board.py")
        ),
        call("replace", {"file_path": "old.py", "old_string": "a\n", "new_string": "a\nb\n"}, output="Successfully"),
        call(
            "write_file",
            {"file_path": "new.py", "content": "x = 1\n"},
            display=DiffDisplay("@@ -0,0 +1 @@\n+x = 1", is_new=True),
        ),
        call("write_file", {"file_path": "old.txt", "content": "a\nb\n"}),
        call("delete_file", {"file_path": "old.txt"}, output="Deleted."),
    )


def commands() -> tuple[ToolCall, ...]:
    """Return calls of the shell, with each possible outcome."""
    screen = ScreenDisplay(
        (
            (Cell("ok", fg="#008000", bold=True), Cell(" green "), Cell("note", bg="#123456", italic=True)),
            (Cell("second line", underline=True, dim=True), Cell("  ")),
            (Cell("turned", inverse=True), Cell("\n"), Cell("odd", fg="red")),
        )
    )
    return (
        shell("make test\n# twice", display=TextDisplay(LOG), exit_code=2),
        shell("ls --color", display=screen),
        shell("cat colours", display=TextDisplay(COLOURS)),
        shell("sleep 40", status="cancelled", error="[Operation Cancelled] User denied."),
        shell("cat big", output="Output too large. For full output see: /t/o.txt\nOutput: x"),
        call("read_background_output", {"pid": 7}, output="still running"),
    )


def others() -> tuple[ToolCall, ...]:
    """Return all other calls."""
    steps = (
        Activity("thought", "Exploring", "running"),
        Activity("tool_call", "ReadFile", "completed", "app/board.py"),
        Activity("tool_call", "Shell", "error"),
        Activity("tool_call", "Glob", "cancelled"),
    )
    todos = tuple(
        Todo(status.replace("_", " "), status)
        for status in ("completed", "in_progress", "pending", "cancelled", "blocked", "odd")
    )
    asked: Json = {"questions": [{"question": "Colour?", "options": [{"label": "Red"}]}, {"question": "Size?"}]}
    return (
        call("write_todos", {"todos": []}, display=TodoDisplay(todos)),
        call("save_memory", {"fact": "Short answers."}, output="{}"),
        call("google_web_search", {"query": "python"}, output="Python 3.14 [1]\n\nSources:\n[1] python.org"),
        call("web_fetch", {"url": "https://example.org"}, output="A page.", markdown=True),
        call("ask_user", asked, output='{"answers":{"0":"Red"}}'),
        call("update_topic", {"title": "Counting", "summary": "how many"}),
        call("enter_plan_mode", {"reason": "First think."}),
        call("exit_plan_mode", {"plan_filename": "plan.md"}, display=TextDisplay("# Plan\n\n- one"), markdown=True),
        call("tracker_create_task", {"title": "Count"}, output="created"),
        call("activate_skill", {"name": "review"}),
        call("complete_task", {"result": "**Done** with `it`."}),
        call("get_internal_docs", {"path": "hooks.md"}, output="text"),
        call("mcp_tickets_lookup", {"ticket": "T-7"}, display=TextDisplay("Open.")),
        call("read_mcp_resource", {"uri": "tickets://7"}, output="Open."),
        call("no_such_tool", {"n": 1}, status="pending"),
        call("odd", {"deep": {"a": [1, 2]}, "text": "x" * 250}, status="strange", response={"a": [1]}),
        call("shown", {}, display=UnknownDisplay({"type": "new", "rows": [1]})),
        call(
            "invoke_agent",
            {"agent_name": "cli_help", "prompt": "Why?"},
            id="agent-call",
            agent_id="agent-1",
            display=AgentDisplay("cli_help", "completed", "Because.", None, steps),
        ),
    )


def messages() -> tuple[Message, ...]:
    """Return the timeline."""
    gone, tomorrow = Fate.REWOUND, 60 * 24
    return (
        added(Origin.SESSION_CONTEXT, "<session_context>\nx\n</session_context>"),
        notice("Update available", minute=0),
        prompt("Please count.\n\n  Indented.\n# Not a heading\n<script>alert(1)</script>", picture(), minute=1),
        message(
            ANSWER,
            model="gemini-3-pro",
            tokens=Tokens(12_345, 1_000, 50, 6, 7, 12_408),
            thoughts=(Thought("I read the *code* first.", "Plan"), Thought("No subject.")),
            minute=2,
        ),
        message(FunctionCall("c", "read_file", {}), tool_calls=files(), minute=3),
        message(
            FunctionResponse("c", "read_file", {"output": "text"}),
            kind=Kind.USER,
            origin=Origin.TOOL_RESPONSE,
            minute=3,
        ),
        message("Now the shell.", model="gemini-3-flash", tool_calls=commands(), minute=4),
        message(tool_calls=others(), minute=5),
        added(
            Origin.SHELL_MODE,
            "I ran the following shell command:\n```sh\nls\n```\n\nThis produced the following result:\n```\na\n```",
        ),
        added(Origin.HOOK_CONTEXT, "<hook_context>Be brief.</hook_context>"),
        added(Origin.IDE_CONTEXT, "Here is the user's editor context."),
        added(Origin.CONTINUE, "Please continue."),
        prompt("Wrong turn.", fate=gone, minute=6),
        message("A wrong answer.", fate=gone, minute=6),
        notice("Request cancelled.", fate=gone, minute=6),
        prompt("Compressed.", fate=Fate.COMPRESSED, minute=7),
        added(Origin.STATE_SNAPSHOT, "<state_snapshot>\n" + LOG + "\n</state_snapshot>", minute=7),
        prompt("Rolled back.", fate=Fate.ROLLED_BACK, minute=8),
        prompt("Replaced.", fate=Fate.REPLACED, minute=8),
        prompt("日本語メモを要約してください 🙏 — ثم שלום " + "long " * 30, minute=tomorrow),
        message(
            "要約：タスクボードの設計メモです。",
            Code("PYTHON", "print(1)"),
            CodeResult("OUTCOME_OK", "1"),
            CodeResult("OUTCOME_FAILED", "no"),
            Unknown({"x": 1}),
            picture("image/svg+xml", "PHN2Zy8+"),
            picture("application/pdf", "JVBERi0="),
            picture("video/mp4", None, uri="https://example.org/film.mp4"),
            picture("audio/ogg", None, uri="gs://bucket/sound"),
            Attachment("image/png", 4_500_000, data="not base64!"),
            minute=tomorrow,
        ),
        notice("Careful.", Kind.WARNING, minute=tomorrow),
        notice("[API Error: 400]\nsecond line", Kind.ERROR, minute=tomorrow),
        notice("", Kind.INFO, minute=tomorrow),
        message("A new kind.", kind=Kind.UNKNOWN, origin=Origin.NOTICE, minute=tomorrow),
        added(Origin.LOADED, "Asked elsewhere.", minute=tomorrow),
        added(Origin.SYNTHETIC, "Put in.", minute=tomorrow),
        prompt("", at=None),
        prompt(LOG, minute=tomorrow + 1),
    )


def agent_messages() -> tuple[Message, ...]:
    """Return the messages of the subagent."""
    return (
        added(Origin.AGENT_PROMPT, "Find out why.\nThen stop.", minute=5),
        message("Looking.", model="gemini-3-flash", tool_calls=(call("read_file", {"file_path": "why.md"}),), minute=5),
        message("Because.", minute=5),
    )


def session() -> Session:
    """Return the facts of the session."""
    tokens = Tokens(49_000, 12_000, 1_200, 300, 0, 50_500)
    return Session(
        "5ff4ad2e-8f6e-4c7a-9d51-000000000000",
        "main",
        Project(path=ROOT),
        title="Add a count\nmethod \x1b[2J <b>now</b>",
        started=START,
        ended=START + timedelta(hours=25, minutes=12),
        counts={"user": 6, "gemini": 6, "error": 1},
        fates={"active": 5, "rewound": 3, "compressed": 1, "rolled_back": 1},
        tool_calls=36,
        models=("gemini-3-pro", "gemini-3-flash"),
        calls=(
            ModelCall("s", "m", START, "gemini-2.5-pro", Fate.ACTIVE, tokens),
            ModelCall("s", "n", START, "gemini-99-ultra", Fate.REWOUND, tokens),
        ),
        children=("agent-1",),
        problems=(Problem("x", "y"),),
    )


def agent() -> Session:
    """Return the facts of the subagent."""
    return Session(
        "agent-1",
        "subagent",
        Project(path=ROOT),
        title="Because.",
        parent=session().id,
        parent_call="agent-call",
        started=START,
        counts={"gemini": 2},
        tool_calls=1,
    )


@dataclass(frozen=True, slots=True)
class Made(ExportSource):
    """An export source whose messages come from no file."""

    timeline: Sequence[Message] = ()
    agents: Sequence[ExportSource] = ()

    def messages(self) -> Iterator[Message]:
        return map(self.redactor.message, self.timeline) if self.redactor else iter(self.timeline)

    def shown_messages(self) -> Iterator[Message]:
        return self.messages()

    def children(self) -> Iterator[ExportSource]:
        return iter(self.agents)

    def sources(self) -> list[dict[str, Json]]:
        return [{"path": "chats/session.jsonl", "role": "main", "sha256": "0" * 64}]


def made(
    timeline: Sequence[Message],
    about: Session | None = None,
    agents: Sequence[ExportSource] = (),
    **more: Any,  # noqa: ANN401
) -> Made:
    """Return an export source of messages."""
    about = about or session()
    by_id: Mapping[str, Session] = {about.id: about, **{agent.session.id: agent.session for agent in agents}}
    return Made(
        about, OpenSession(about.id, about.kind, []), by_id, _never, PRICES, timeline=timeline, agents=agents, **more
    )


def subject(options: ExportOptions | None = None, **more: Any) -> Made:  # noqa: ANN401
    """Return an export source of the session with everything."""
    options = options or ExportOptions()
    return made(
        messages(),
        agents=(made(agent_messages(), agent(), export_options=options, **more),),
        export_options=options,
        **more,
    )


def _never(session: Session) -> OpenSession:
    raise AssertionError(session)
