from __future__ import annotations

from pathlib import Path

import pytest

from pollux import errors
from pollux.errors import (
    AmbiguousProjectError,
    AmbiguousSessionError,
    InvalidFilterError,
    PolluxError,
    ProjectNotFoundError,
    SessionNotFoundError,
    UnreadableFileError,
)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            SessionNotFoundError("abc", 3),
            "No session matches 'abc' (3 searched). Run `pollux ls --all` to list sessions.",
        ),
        (
            SessionNotFoundError("abc", 1),
            "No session matches 'abc' (1 searched). Run `pollux ls --all` to list sessions.",
        ),
        (
            SessionNotFoundError("abc", 0),
            "No session matches 'abc' (there are no sessions). Run `pollux ls --all` to list sessions.",
        ),
        (
            AmbiguousSessionError("a", ["ab", "ac"]),
            "'a' matches 2 sessions (ab, ac). Give more characters of the session ID.",
        ),
        (
            AmbiguousSessionError("a", [*"abcdef"]),
            "'a' matches 6 sessions (a, b, c, d, e …). Give more characters of the session ID.",
        ),
        (ProjectNotFoundError("x"), "No project matches 'x'. Run `pollux projects` to list projects with sessions."),
        (
            AmbiguousProjectError("x", ["xa", "xb"]),
            "No project is named 'x'. It may stand for xa, xb: give more of the name.",
        ),
        (
            AmbiguousProjectError("x", [*"abcdef"]),
            "No project is named 'x'. It may stand for a, b, c, d, e …: give more of the name.",
        ),
        (InvalidFilterError("--since", "soon", "7d"), "Invalid value for --since: 'soon'. Use 7d."),
        (UnreadableFileError(Path("a"), "No such file"), "Cannot read a: No such file."),
        (UnreadableFileError("a", None), "Cannot read a: unknown reason."),
    ],
)
def test_errors_have_the_expected_messages(error: PolluxError, expected: str) -> None:
    assert str(error) == expected


def test_all_errors_have_one_base_class() -> None:
    for name, error in vars(errors).items():
        if isinstance(error, type) and issubclass(error, Exception):
            assert issubclass(error, PolluxError), name
