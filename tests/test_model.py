"""Facts that follow from a value alone."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from pollux.model import Fate, FileRef, ModelCall, Project, Role, Session, Tokens

STARTED, UPDATED, ENDED = (datetime(2026, 11, day, tzinfo=UTC) for day in (1, 2, 3))


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ((STARTED, ENDED, UPDATED), ENDED),
        ((STARTED, None, UPDATED), UPDATED),
        ((STARTED, None, None), STARTED),
        ((None, None, None), None),
    ],
)
def test_session_was_last_used_at_its_newest_message_else_when_it_was_updated_else_begun(
    times: tuple[datetime | None, datetime | None, datetime | None], expected: datetime | None
) -> None:
    started, ended, updated = times
    session = Session(id="a", kind="main", project=Project(), started=started, ended=ended, updated=updated)
    assert session.last_used == expected


@pytest.mark.parametrize(("kind", "is_stub", "is_listed"), [("main", 0, 1), ("main", 1, 0), ("subagent", 0, 0)])
def test_list_shows_neither_subagents_nor_stubs(kind: str, is_stub: int, is_listed: int) -> None:
    assert Session(id="a", kind=kind, project=Project(), is_stub=bool(is_stub)).is_listed == is_listed


@pytest.mark.parametrize(
    ("project", "key", "name"),
    [
        (Project("h" * 64, "web", "/src/web"), "/src/web", "web"),
        (Project("h" * 64, "web"), "h" * 64, "web"),
        (Project("h" * 64), "h" * 64, "[hhhhhhhh]"),
        (Project(slug="web"), "web", "web"),
        (Project(), "", "[unknown]"),
    ],
)
def test_key_of_a_project_is_its_path_else_its_hash_else_its_slug(project: Project, key: str, name: str) -> None:
    assert (project.key, project.name) == (key, name)


@pytest.mark.parametrize("id_", ["g1", "\ud800"])
@pytest.mark.parametrize(
    "at",
    [
        None,
        datetime.min.replace(tzinfo=UTC),
        datetime(2026, 11, 1, 10, 0, 0, 123456, tzinfo=UTC),
        datetime(2026, 11, 1, 10, tzinfo=timezone(timedelta(hours=2))),
        datetime.max.replace(tzinfo=UTC),
    ],
)
def test_worker_sends_a_session_with_all_its_calls(id_: str, at: datetime | None) -> None:
    call = ModelCall("a", id_, at, "gemini-2.5-pro", Fate.REWOUND, Tokens(1, 2, -3, 4, 5, (1 << 31) - 1), "a.json", 7)
    session = Session(
        id="a",
        kind="main",
        project=Project(),
        calls=(call, ModelCall("a", "b", None, None, Fate.ACTIVE, Tokens())),
        files=(FileRef(Path("a.json"), Role.MAIN, "document"),),
        extra={"tag": "\udfff", "large": 1 << 90},
    )
    received = pickle.loads(pickle.dumps(session))  # noqa: S301  our own
    assert received == session
    assert type(received.calls[0].fate) is Fate


def test_worker_sends_counts_beyond_64_bits() -> None:
    call = ModelCall("a", "g1", None, None, Fate.ACTIVE, Tokens(1 << 80))
    session = Session(id="a", kind="main", project=Project(), calls=(call,))
    assert pickle.loads(pickle.dumps(session)) == session  # noqa: S301  our own
