"""The lines of the overview."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from pollux.archive.memory import in_memory
from pollux.model import Fate, FileRef, ModelCall, Project, Role, Session, Tokens
from pollux.render.terminal.screen import Console
from pollux.render.terminal.status import overview_lines
from pollux.reports.overview import overview

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


def said(*ages: int | None, encoding: str = "utf-8", kind: str = "main", due: int = 0, soon: int = 0) -> str:
    sessions = [
        Session(
            id=str(number),
            kind="main" if number == 0 else kind,
            project=Project(),
            files=(FileRef(Path("f"), Role.MAIN, "log"),),
            started=NOW - timedelta(days=age) if age is not None else None,
            updated=NOW - timedelta(days=age) if age is not None else None,
            calls=(ModelCall(str(number), "m", NOW - timedelta(days=age), None, Fate.ACTIVE, Tokens(total=7), "f", 1),)
            if age is not None
            else (),
        )
        for number, age in enumerate(ages)
    ]
    with closing(in_memory(sessions, [])) as database:
        view = msgspec.structs.replace(overview(database, None, now=NOW), due=due, soon=soon)
    return "\n".join(text.plain for text in overview_lines(view, "~/.gemini", encoding=encoding))


def test_single_session_is_in_the_singular() -> None:
    assert said(1).startswith(
        "1 session in 1 project, 0 prompts, all archived\n~/.gemini\n"
        "no price for 7 tokens in 1 model call since 14 November 2026"
    )
    assert "1 subagent, " in said(1, 1, kind="subagent")


def test_chart_is_drawn_if_there_was_usage() -> None:
    assert "2 Nov             █  15 Nov   7 tokens in 14 days" in said(1)
    assert "2 Nov             @  15 Nov" in said(1, encoding="ascii")
    assert "in 14 days" not in said(20)
    assert said(None).endswith("$0.00 for 0 tokens in 0 model calls")


@pytest.mark.parametrize(
    ("due", "soon", "words"),
    [
        (1, 0, "The client will delete 1 session at its next start: `pollux status` lists them."),
        (2, 1, "The client will delete 2 sessions at its next start, 1 more within a week: "),
        (0, 1, "The client will delete 1 session within a week: "),
    ],
)
def test_deletion_is_announced(due: int, soon: int, words: str) -> None:
    assert words in said(40, due=due, soon=soon)
    assert "delete" not in said(40)


def test_closed_pipe_raises_an_error() -> None:
    with pytest.raises(BrokenPipeError):
        Console().on_broken_pipe()
