from __future__ import annotations

from pathlib import Path

import pytest

from pollux import errors
from pollux.errors import (
    AmbiguousProjectError,
    AmbiguousSessionError,
    BadFilterError,
    NoSuchProjectError,
    NoSuchSessionError,
    PolluxError,
    UnreadableFileError,
)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            NoSuchSessionError("abc", 3),
            "No session fits 'abc', among 3 sessions; `pollux ls --all` lists what there is.",
        ),
        (
            NoSuchSessionError("abc", 1),
            "No session fits 'abc', among 1 session; `pollux ls --all` lists what there is.",
        ),
        (
            NoSuchSessionError("abc", 0),
            "No session fits 'abc', and there are no sessions here at all; `pollux ls --all` lists what there is.",
        ),
        (AmbiguousSessionError("a", ["ab", "ac"]), "'a' fits 2 sessions (ab, ac); give more characters of the id."),
        (
            AmbiguousSessionError("a", [*"abcdef"]),
            "'a' fits 6 sessions (a, b, c, d, e …); give more characters of the id.",
        ),
        (NoSuchProjectError("x"), "No project fits 'x'; `pollux projects` lists those that have sessions."),
        (
            AmbiguousProjectError("x", ["xa", "xb"]),
            "No project is called 'x'; if you mean xa, xb, give more of the name.",
        ),
        (
            AmbiguousProjectError("x", [*"abcdef"]),
            "No project is called 'x'; if you mean a, b, c, d, e …, give more of the name.",
        ),
        (BadFilterError("--since", "soon", "7d"), "--since 'soon' is not understood; try 7d."),
        (UnreadableFileError(Path("a"), "No such file"), "a cannot be read: No such file."),
        (UnreadableFileError("a", None), "a cannot be read: unknown reason."),
    ],
)
def test_messages(error: PolluxError, expected: str) -> None:
    assert str(error) == expected


def test_one_family() -> None:
    for name, one in vars(errors).items():
        if isinstance(one, type) and issubclass(one, Exception):
            assert issubclass(one, PolluxError), name
