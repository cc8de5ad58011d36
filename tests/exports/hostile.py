"""A session whose texts all contain markup and control characters."""

from __future__ import annotations

from typing import Any

import msgspec
from tests.exports.everything import PIXEL, Made, made, session
from tests.views.build import added, call, message, notice, prompt

from pollux.exports.source import ExportOptions
from pollux.model import (
    Activity,
    AgentDisplay,
    Attachment,
    Cell,
    Code,
    CodeResult,
    DiffDisplay,
    FileDisplay,
    GrepMatch,
    Kind,
    MatchDisplay,
    Message,
    Origin,
    Project,
    ScreenDisplay,
    TextDisplay,
    Thought,
    Todo,
    TodoDisplay,
    Tokens,
    Unknown,
    UnknownDisplay,
)

SCRIPTS = (
    "<script>window.owned=1</script><img src=x onerror=window.owned=1><svg/onload=window.owned=1>"
    "</pre></details></article></main></title></style></script><script>owned=1</script><!-- -->]]>"
    "\"><iframe src='javascript:owned=1'></iframe><base href='http://evil.example/'>"
    "<style>*{display:none}</style><link rel=stylesheet href=http://evil.example/x.css>"
    "<meta http-equiv=refresh content=0>"
)
TRICKS = (
    "\x1b[2J\x1b]0;owned\x07\x1b]8;;http://evil.example\x07x\x00\x9b31m\u202eevil\u2066\u200b\ufeff\U000e0041\ud83d "
    "&#x202e;&#27;&rlm;"
)
LINKS = (
    "[a](javascript:owned=1) [b](JaVaScRiPt:owned=1) [c](java&#115;cript:owned=1) [d]( javascript:owned=1) "
    "[e](<javascript:owned=1>) [f](data:text/html,<script>owned=1</script>) [g](vbscript:x) [h](file:///etc/passwd) "
    "[i](//evil.example/x) ![j](http://evil.example/x.png) ![k](data:image/svg+xml,x) <javascript:owned=1> "
    '[l](http://evil.example/"onmouseover="owned=1) [m][n] <https://evil.example/>\n\n[n]: javascript:owned=1\n'
)
LINES = "# heading\n\n- list\n\nx\n===\n\n| a |\n| - |\n| `|` |\n\n[^1]: note\n\n> quote\n\n```\nnever closed"
EVIL = f"{SCRIPTS}\n{TRICKS}\n{LINKS}\n{LINES}"
LONG_LINE = "<b>5 MB</b> " * 440_000
"""The length of a line of five megabytes."""


def messages(evil: str = EVIL) -> tuple[Message, ...]:
    """Return a message of each kind with only this text."""
    todo, step = Todo(evil, evil), Activity(evil, evil, evil, evil)
    calls = (
        call(evil, {evil: evil}, output=evil, error=evil, status=evil, display_name=evil, agent_id=evil, markdown=True),
        call("run_shell_command", {"command": evil}, display=ScreenDisplay(((Cell(evil, evil, evil),),))),
        call("run_shell_command", {"command": evil}, display=TextDisplay(f"\x1b[31m{evil}"), exit_code=1),
        call("x", display=MatchDisplay(evil, (GrepMatch(evil, 1, evil),))),
        call("x", display=FileDisplay(evil, (evil,))),
        call("x", display=TodoDisplay((todo,))),
        call("x", display=DiffDisplay(f"@@ -1 +1 @@\n+{evil}", evil, evil)),
        call("x", display=AgentDisplay(evil, evil, evil, evil, (step,))),
        call("x", display=UnknownDisplay({evil: evil})),
        call("ask_user", {"questions": [{"question": evil, "options": [evil]}]}, output='{"answers":{"0":"<script>"}}'),
        call("x", output=f"<tool_output_masked>\nFull output available at: {evil}\n</tool_output_masked>"),
        call("read_file", {"file_path": evil}, attachments=(Attachment(evil, 3, data="AAAA"),)),
    )
    return (
        prompt(evil, Attachment(evil, uri=evil), Attachment("image/svg+xml", 3, data="AAAA")),
        prompt("", Attachment("image/png", 8, data=PIXEL), Attachment('image/png" onerror="owned=1', 8, data=PIXEL)),
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
        message("> " * 60 + evil),
        *(notice(evil, kind) for kind in Kind),
        *(added(origin, evil) for origin in Origin),
        message(tool_calls=calls),
    )


def hostile(options: ExportOptions | None = None, *, line: str = LONG_LINE[:300_000], **more: Any) -> Made:  # noqa: ANN401
    """Return an export source of all hostile texts and a very long line."""
    about = msgspec.structs.replace(
        session(),
        id=EVIL,
        title=f"owned {EVIL}",
        project=Project(path=EVIL),
        models=(EVIL,),
        children=(),
    )
    long = (prompt(line), message(tool_calls=(call("x", display=TextDisplay(line)),)), message(line))
    return made((*messages(), *long), about, export_options=options or ExportOptions(), **more)
