"""The first look, in words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from pollux.model import Fate, ModelCall, Project, Session, Tokens
from pollux.render.terminal.console import Console
from pollux.render.terminal.overview import first_look
from pollux.reports.overview import overview

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


def said(*ages: int | None, encoding: str = "utf-8", kind: str = "main") -> str:
    sessions = [
        Session(
            id=str(number),
            kind="main" if number == 0 else kind,
            project=Project(),
            started=NOW - timedelta(days=age) if age is not None else None,
            updated=NOW - timedelta(days=age) if age is not None else None,
            calls=(ModelCall("s", "m", NOW - timedelta(days=age), None, Fate.ACTIVE, Tokens(total=7)),)
            if age is not None
            else (),
        )
        for number, age in enumerate(ages)
    ]
    return "\n".join(text.plain for text in first_look(overview(sessions, 0, now=NOW), "~/.gemini", encoding=encoding))


def test_one_is_one() -> None:
    assert said(1).startswith(
        "1 session in 1 project, 0 prompts\n~/.gemini\n7 tokens in 1 model call since 14 November 2026"
    )
    assert "1 subagent\n" in said(1, 1, kind="subagent")


def test_chart_is_drawn_where_there_is_something() -> None:
    assert "2 Nov             █  15 Nov   7 tokens in 14 days" in said(1)
    assert "2 Nov             @  15 Nov" in said(1, encoding="ascii")
    assert "in 14 days" not in said(20)
    assert said(None).endswith("0 tokens in 0 model calls")


@pytest.mark.parametrize(
    ("ages", "words"),
    [
        (
            (40,),
            "1 session older than 30 days: the client deletes it at its next start, unless its settings say",
        ),
        ((40, 41, 25), "2 sessions older than 30 days"),
        ((40, 25), "otherwise; 1 more within a week."),
        ((25,), "1 session within a week."),
    ],
)
def test_deletion_is_announced(ages: tuple[int, ...], words: str) -> None:
    assert words in said(*ages)


def test_closed_pipe_is_left_to_the_caller() -> None:
    with pytest.raises(BrokenPipeError):
        Console().on_broken_pipe()
