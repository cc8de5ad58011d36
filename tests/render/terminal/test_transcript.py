from __future__ import annotations

import io
import os
import re
import time
from collections.abc import Iterable
from datetime import UTC, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import RenderableType
from tests.builders import PRICES
from tests.cpu_time import cpu_seconds
from tests.views.build import ROOT, START, added, call, message, notice, prompt

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
    GrepMatch,
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
    Unknown,
)
from pollux.prices import usage_of
from pollux.render.terminal.screen import Console
from pollux.render.terminal.transcript import render_header, render_transcript
from pollux.sessions.reader import from_file
from pollux.views.transcript import Branches, Detail, TranscriptOptions, blocks

DATA = Path(__file__).parents[2] / "data" / "terminal"

ANSWER = """\
# Counting

The board has a *count* now: `Board.count()`, see [the docs](https://example.org/docs), ~~nothing~~ else.

1. one
   - nested, and long enough to be wrapped when the terminal has no more than eighty columns
2. two

> Quoted words.

```python
def count(self) -> int:
    return len(self.tasks)
```

| File | Lines |
| ---- | ----: |
| board.py | 3 |
| 日本.py | 12 |

<b>HTML</b> is text, ![a picture](http://x/y.png) is words, and &lt; is an entity.
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


def calls() -> tuple[Any, ...]:
    """Return a tool call of every kind."""
    steps = (
        Activity("thought", "Exploring", "running"),
        Activity("tool_call", "ReadFile", "completed", "app/board.py"),
        Activity("tool_call", "Shell", "error"),
        Activity("tool_call", "Glob", "running"),
    )
    todos = tuple(
        Todo(status.replace("_", " "), status)
        for status in ("completed", "in_progress", "pending", "cancelled", "blocked", "odd")
    )
    matches = (
        GrepMatch("app/board.py", 7, "    def __init__(self):"),
        GrepMatch("a.py", None, "x"),
        GrepMatch("b.py", 2, "y", is_context=True),
    )
    screen = ScreenDisplay(((Cell("ok", fg="#008000"), Cell(" green")), (Cell("second line"),)))
    log = "\n".join(f"line {number}" for number in range(1, 101))
    return (
        call("read_file", {"file_path": f"{ROOT}/app/board.py", "start_line": 1, "end_line": 40}, output="text"),
        call("read_file", {"file_path": f"{ROOT}/static/logo.png"}, attachments=(Attachment("image/png", 1800),)),
        call("read_file", {"file_path": "gone.py"}, status="error", error="File not found: gone.py"),
        call("glob", {"pattern": "**/*.py"}, display=TextDisplay("Found 5 matching file(s)"), output="a.py\nb.py"),
        call(
            "grep_search",
            {"pattern": "def ", "include_pattern": "*.py"},
            display=MatchDisplay("Found 3 matches", matches),
        ),
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
        call("run_shell_command", {"command": "make test\n# twice"}, display=TextDisplay(log), exit_code=2),
        call("run_shell_command", {"command": "ls --color"}, display=screen),
        call(
            "run_shell_command", {"command": "sleep 40"}, status="cancelled", error="[Operation Cancelled] User denied."
        ),
        call(
            "run_shell_command",
            {"command": "cat big"},
            output="Output too large. For full output see: /t/o.txt\nOutput: x",
        ),
        call("write_todos", {"todos": []}, display=TodoDisplay(todos)),
        call("save_memory", {"fact": "Short answers."}, output="{}"),
        call("google_web_search", {"query": "python"}, output="Python 3.14 [1]\n\nSources:\n[1] python.org"),
        call(
            "invoke_agent",
            {"agent_name": "cli_help", "prompt": "Why?"},
            display=AgentDisplay("cli_help", "completed", "Because.", None, steps),
        ),
        call(
            "ask_user",
            {"questions": [{"question": "Colour?", "options": [{"label": "Red"}]}]},
            output='{"answers":{"0":"Red"}}',
        ),
        call("mcp_tickets_lookup", {"ticket": "T-7"}, display=TextDisplay("Open.")),
        call("no_such_tool", {"n": 1}, status="pending"),
        call("odd", {}, status="strange", response={"a": [1]}),
    )


def session() -> tuple[Message, ...]:
    gone = Fate.REWOUND
    return (
        added(Origin.SESSION_CONTEXT, "<session_context>\nx\n</session_context>"),
        prompt(
            "Please count.\n\n  Indented, and a line long enough to be wrapped on a terminal of eighty columns.",
            Attachment("image/png", 4_500_000),
            Attachment("video/mp4", uri="gs://x/y"),
        ),
        message(
            ANSWER,
            model="gemini-3-pro",
            tokens=Tokens(12_345, 1_000, 50, 6, 7, 12_408),
            thoughts=(Thought("I read the code first.", "Plan"),),
            minute=1,
        ),
        message(tool_calls=calls(), minute=2),
        added(
            Origin.SHELL_MODE,
            "I ran the following shell command:\n```sh\nls\n```\n\nThis produced the following result:\n```\na\n```",
        ),
        prompt("Wrong turn.", fate=gone, minute=3),
        message("A wrong answer.", fate=gone, minute=3),
        notice("Request cancelled.", fate=gone),
        prompt("Compressed.", fate=Fate.COMPRESSED),
        prompt("日本語メモを要約してください 🙏 — ثم שלום", minute=60 * 24),
        message(
            "要約：タスクボードの設計メモです。",
            Code("PYTHON", "print(1)"),
            CodeResult("OUTCOME_OK", "1"),
            Unknown({"x": 1}),
            Attachment("image/png", 10),
            minute=60 * 24,
        ),
        notice("Careful.", Kind.WARNING, minute=60 * 24),
        notice("[API Error: 400]", Kind.ERROR, minute=60 * 24),
        notice("", Kind.INFO, minute=60 * 24),
        added(Origin.AGENT_PROMPT, "Find it.", minute=60 * 24),
        prompt("", at=None),
    )


def about() -> Session:
    tokens = Tokens(49_000, 12_000, 1_200, 300, 0, 50_500)
    return Session(
        "5ff4ad2e-8f6e-4c7a-9d51-000000000000",
        "main",
        Project(path=ROOT),
        title="Add a count\nmethod \x1b[2J",
        started=START,
        ended=START + timedelta(minutes=72),
        counts={"user": 3, "gemini": 1, "error": 1},
        fates={"active": 5, "rewound": 3},
        tool_calls=21,
        models=("gemini-3-pro", "gemini-3-flash"),
        calls=(ModelCall("s", "m", START, "gemini-3-pro", Fate.ACTIVE, tokens),) * 2,
        children=("a",),
        problems=(Problem("x", "y"),),
    )


def printed(renderables: Iterable[RenderableType], width: int = 80, **how: Any) -> str:  # noqa: ANN401
    out = io.StringIO()
    console = Console(**{"file": out, "width": width, "color_system": None, "legacy_windows": False, **how})
    for renderable in renderables:
        console.print(renderable)
    return out.getvalue()


def rendered(
    *messages: Message, width: int = 80, encoding: str = "utf-8", options: TranscriptOptions | None = None
) -> str:
    return printed(render_transcript(blocks(messages, options), zone=UTC, encoding=encoding), width)


def head(session: Session, **more: Any) -> RenderableType:  # noqa: ANN401  options of the header
    """Print the header of a session without subagents."""
    usage = usage_of(session.calls, PRICES)
    return render_header(session, {}, usage, usage, **more)


def check(name: str, text: str) -> None:
    """Compare a text with its snapshot, or rewrite the snapshot."""
    path = DATA / name
    text = "".join(f"{line.rstrip()}\n" for line in text.splitlines())
    if os.environ.get("POLLUX_REWRITE"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8", newline="\n")
    assert text == path.read_text("utf-8"), f"{path} differs: look at it, and rewrite it with POLLUX_REWRITE=1"


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("detail", Detail)
def test_snapshots(detail: Detail, width: int) -> None:
    options = TranscriptOptions(detail, root=ROOT)
    check(f"{detail}-{width}.txt", rendered(*session(), width=width, options=options))


def test_snapshot_of_all_branches() -> None:
    check("branches-80.txt", rendered(*session(), options=TranscriptOptions(Detail.DIALOGUE, Branches.ALL)))


def test_snapshot_in_ascii() -> None:
    text = rendered(*session(), encoding="ascii", options=TranscriptOptions(Detail.FULL, Branches.ALL, root=ROOT))
    assert text.isascii()
    check("ascii-80.txt", text)


def test_snapshot_in_colour() -> None:
    renderables = render_transcript(blocks(session(), TranscriptOptions(Detail.FULL, root=ROOT)), zone=UTC)
    check("colour-80.txt", printed(renderables, color_system="256", force_terminal=True))


def test_snapshot_of_the_header() -> None:
    check("header-80.txt", printed([head(about(), zone=UTC)]))


def test_header_omits_unknown_values() -> None:
    bare = Session("abc", "subagent", Project(hash="8d46cd8e00"))
    assert printed([head(bare, zone=UTC, encoding="ascii")]).splitlines() == [
        "(no prompt)",
        "[8d46cd8e]",
        "0 answers",
        "abc - subagent",
        "-" * 80,
    ]
    later = Session("abc", "main", Project(), started=START, ended=START + timedelta(days=2, hours=3))
    assert "Sun 15 Nov 2026, 19:02 to Tue 17 Nov 2026, 22:02 (2 d 3 h)" in printed([head(later, zone=UTC)])
    short = Session("abc", "main", Project(), started=START, ended=START)
    assert "Sun 15 Nov 2026, 19:02\n" in printed([head(short, zone=UTC)])


def test_empty_session_prints_nothing() -> None:
    assert rendered() == ""
    assert rendered(message("")) == ""


HOSTILE = "\x1b[2J\x1b]0;owned\x07\x00\x9b31m\u202eevil\u2066 &#x202e;&#27;&rlm; [bold red]not markup[/] :smile:"
ALLOWED = re.compile(r"[^\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]*")


@pytest.mark.parametrize("options", [TranscriptOptions(), TranscriptOptions(Detail.FULL, Branches.ALL)])
def test_hostile_text_is_escaped(options: TranscriptOptions) -> None:
    evil = HOSTILE
    messages = (
        prompt(evil, Attachment(evil, uri=evil)),
        message(
            evil,
            Code(evil, evil),
            CodeResult(evil, evil),
            Unknown({evil: evil}),
            model=evil,
            tokens=Tokens(),
            thoughts=(Thought(evil, evil),),
        ),
        message(f"# {evil}\n\n- {evil}\n\n```{evil}\n{evil}\n```\n\n[{evil}]({evil}) ![{evil}](x) `{evil}`"),
        *(added(origin, evil) for origin in Origin),
        message(
            tool_calls=(
                call(evil, {evil: evil}, output=evil, error=evil, status=evil, display_name=evil, agent_id=evil),
                call("run_shell_command", {"command": evil}, display=ScreenDisplay(((Cell(evil, evil, evil),),))),
                call("x", display=MatchDisplay(evil, (GrepMatch(evil, 1, evil),))),
                call("x", display=FileDisplay(evil, (evil,))),
                call("x", display=TodoDisplay((Todo(evil, evil),))),
                call("x", display=DiffDisplay(f"@@ -1 +1 @@\n+{evil}", evil, evil)),
                call("x", display=AgentDisplay(evil, evil, evil, evil, (Activity(evil, evil, evil, evil),))),
                call(
                    "ask_user",
                    {"questions": [{"question": evil, "options": [evil]}]},
                    output='{"answers":{"0":"\\u001b"}}',
                ),
                call("x", output=f"<tool_output_masked>\nFull output available at: {evil}\n</tool_output_masked>"),
            )
        ),
    )
    text = rendered(*messages, options=options)
    assert ALLOWED.fullmatch(text)
    assert "[bold red]not markup[/]" in text
    assert ":smile:" in text
    coloured = printed(render_transcript(blocks(messages, options)), force_terminal=True, color_system="truecolor")
    assert ALLOWED.fullmatch(re.sub(r"\x1b\[[0-9;]*m", "", coloured)), "Rich itself writes colours and nothing else"


def test_hostile_header_is_escaped() -> None:
    evil = Session(HOSTILE, HOSTILE, Project(path=HOSTILE), title=HOSTILE, models=(HOSTILE,))
    assert ALLOWED.fullmatch(printed([head(evil, zone=UTC)]))


@given(
    st.text(alphabet=st.sampled_from("ab *_`#->[]()!|\n~\\<&;日👩\u200d\x1b\u202e\ud800"), max_size=60),
    st.integers(1, 40),
)
def test_any_markdown_is_rendered_at_any_width(text: str, width: int) -> None:
    shown = rendered(message(text), prompt(text), width=width, options=TranscriptOptions(Detail.FULL))
    assert ALLOWED.fullmatch(shown)
    shown.encode()


@pytest.mark.parametrize(
    "text",
    [
        "".join("  " * depth + f"- deep{depth}\n" for depth in range(60)) + "\nlast words",
        "> " * 60 + "words",
        "<div>\nwords\n</div>",
        "<!-- words -->",
        "[words]: http://example.org",
        "```\nwords",
        "    words",
        "***",
        "```",
        "> ",
    ],
)
def test_markdown_loses_no_words(text: str) -> None:
    shown = rendered(message(text))
    for word in re.findall(r"\w+", text):
        assert word in shown
    assert shown.strip(" \n✦")


@pytest.mark.parametrize("detail", [Detail.NORMAL, Detail.FULL])
@pytest.mark.parametrize("piece", ["a", "word ", "日", "line\n", "["])
def test_long_texts_are_rendered_quickly(piece: str, detail: Detail) -> None:
    text = piece * (100_000 // len(piece))
    messages = (
        prompt(text),
        message(text, tool_calls=(call("run_shell_command", {"command": text}, output=text),)),
        message(tool_calls=(call("run_shell_command", {"command": "x"}, display=ScreenDisplay(((Cell(text),),))),)),
    )
    with cpu_seconds(60):  # usually some seconds
        rendered(*messages, options=TranscriptOptions(detail))


def test_long_code_block_is_shown_without_colours() -> None:
    text = "```python\n" + "x = 1\n" * 5_000 + "```"
    assert rendered(message(text)).count("x = 1") == 5_000


def test_long_output_is_yielded_in_chunks() -> None:
    made = call("run_shell_command", {"command": "seq"}, display=TextDisplay("line\n" * 5_000))
    renderables = render_transcript(blocks([message(tool_calls=(made,))], TranscriptOptions(Detail.FULL)))
    assert len([*renderables]) == 11


def test_prose_is_limited_to_100_columns_and_output_is_not() -> None:
    words = "word " * 100
    lines = rendered(prompt(words), message(words, tool_calls=(call("x", {}, output=words),)), width=200).splitlines()
    assert max(len(line) for line in lines if not line.startswith("    │")) <= 100
    assert max(len(line) for line in lines) > 180


def test_hidden_lines_of_long_bodies_are_counted() -> None:
    matches = tuple(GrepMatch("a.py", number, "x") for number in range(20))
    made = (
        call("x", {}, display=MatchDisplay("", matches)),
        call("x", {}, display=FileDisplay("", tuple("abcdefghij"))),
        call("x", {}, display=ScreenDisplay(tuple((Cell(str(number)),) for number in range(20)))),
        call("x", {}, display=AgentDisplay("x", activity=tuple(Activity("tool_call", "x") for _ in range(20)))),
        call("x", {}, display=DiffDisplay("@@ -0,0 +1,99 @@\n" + "+x\n" * 99)),
    )
    text = rendered(prompt("x\n" * 100), message(tool_calls=made))
    assert [line.strip("▌│ ") for line in text.splitlines() if "more" in line] == [
        "… 20 more lines, 41 characters",
        "… 14 more lines",
        "… 4 more names",
        "… 10 more lines",
        "… 14 more steps",
        "… 80 more lines",
    ]


def test_prompt_may_consist_of_a_picture() -> None:
    assert rendered(prompt(Attachment("image/png", 10)), width=40) == "▌ ▣ image/png, 10 B                19:02\n"


@pytest.mark.parametrize("release", ["0.11.3", "0.24.5", "0.38.2", "0.61.0"])
def test_real_sessions_are_rendered(corpus: Path, release: str) -> None:
    paths = sorted((corpus / release).glob("*/gemini/tmp/*/chats/**/*.json*"))
    assert paths
    for path in paths:
        session, group = from_file(path)
        for options in (TranscriptOptions(), TranscriptOptions(Detail.FULL, Branches.ALL, root=session.project.path)):
            text = printed([head(session), *render_transcript(blocks(group.messages(), options))])
            assert ALLOWED.fullmatch(text)


def test_question_without_choice_or_answer_is_shown() -> None:
    made = call("ask_user", {"questions": [{"question": "Why?"}]}, output="dismissed")
    assert "? Why?\n" in rendered(message(tool_calls=(made,)))


def test_times_are_local_unless_a_zone_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    if not hasattr(time, "tzset"):
        pytest.skip("no other time zone to be had on Windows")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    assert "04:02" in printed(render_transcript(blocks([prompt("x")])))
    monkeypatch.undo()
    time.tzset()


def test_narrow_screen_has_no_clock() -> None:
    assert rendered(prompt("word"), width=12) == "▌ word\n"
