"""One file that cannot be counted does not stop the others."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

import pytest
from tests import builders

from pollux.model import Tokens
from pollux.reports import usage_quick
from pollux.reports.usage_quick import CountedSession, counts


def price(_model: str | None, _at: datetime | None, tokens: Tokens) -> tuple[int | None, str]:
    if tokens.input == 66:
        raise OverflowError("too large")
    return None, ""


def ids(sessions: Iterable[CountedSession]) -> list[str]:
    return [session.id for session in sessions]


@pytest.mark.parametrize("is_quick", [True, False])
def test_error_in_one_file_is_a_problem_of_that_file(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_quick: bool,  # noqa: FBT001
) -> None:
    if not is_quick:
        monkeypatch.setattr(usage_quick, "scanned", lambda *_file, **_options: None)
    files = {}
    for session, number in ((builders.SESSION, 10), (builders.OTHER, 66)):
        data = builders.log(builders.header(session), builders.gemini(tokens=builders.tokens(number)))
        name = f"session-2026-11-15T19-30-{session[:8]}.jsonl"
        files[session] = builders.put(builders.chats(tmp_path) / name, data)
    result = counts([builders.home(tmp_path)], price, ids)
    assert result.sums == [builders.SESSION]
    assert [(problem.code, problem.file) for problem in result.problems] == [
        ("cannot-derive", str(files[builders.OTHER]))
    ]
