"""Titles and amounts of a session."""

from __future__ import annotations

import pytest

from pollux.model import Project, Session
from pollux.views.session_text import NO_TITLE, shares, title


@pytest.mark.parametrize(
    ("named", "first_prompt", "words"),
    [
        ("a\nb", "first", "a b"),
        ("", "x" * 500, "x" * 119 + "…"),
        ("", "", NO_TITLE),
    ],
)
def test_title_is_one_line(named: str, first_prompt: str, words: str) -> None:
    assert title(Session("abc", "main", Project(), title=named, first_prompt=first_prompt), 120) == words


def test_amount_without_subagents_is_shown_if_it_differs() -> None:
    assert shares("$2.00", "$2.00") == ("$2.00",)
    assert shares("$2.00", "$1.00") == ("$2.00 with subagents", "$1.00 without")
