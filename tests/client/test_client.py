"""The real client resumes restored sessions, and does not delete them at its next start.

Slow, and only run by `make test-client`.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.client.gemini import ANSWER, RELEASES, ReleasedClient, another_user, client, why_not

from pollux.sessions.locate import Home

pytestmark = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")

DELETES_RESUMED = ("0.61.0", "0.51.0", "0.47.0")
"""Releases that delete a resumed session as soon as another one is started."""
LOGS = RELEASES[:4]
NEWEST = RELEASES[0]
OLD, YESTERDAY = 45, 1
FIRST, SECOND, THIRD = "What is in this folder?", "And why?", "Go on."


@pytest.fixture(params=RELEASES)
def gemini(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ReleasedClient]:
    yield from client(tmp_path, request.param)


def put_companions(gemini: ReleasedClient, id_: str, main: Path) -> list[Path]:
    """Write the files that the client stores for a session, and deletes with it."""
    agent = str(uuid.uuid4())
    head = {"sessionId": agent, "projectHash": "0" * 64, "startTime": "2026-01-01T00:00:00.000Z", "kind": "subagent"}
    files = {
        main.parent / id_ / f"{agent}.jsonl": json.dumps(head) + "\n",
        main.parents[1] / "tool-outputs" / f"session-{id_}" / "run_1.txt": "long output",
        main.parents[1] / id_ / "plans" / "plan.md": "# Plan",
    }
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    assert gemini.release
    return [*files]


def test_expired_session_is_restored_and_not_deleted_again(gemini: ReleasedClient) -> None:
    id_, main = gemini.recorded(FIRST, days_ago=OLD)
    companions = put_companions(gemini, id_, main)
    kept = {path: path.read_bytes() for path in (main, *companions)}
    gemini.sync()
    assert gemini.clean_up() == []
    main = gemini.restore(id_).main
    assert {path: path.read_bytes() for path in companions} == {path: kept[path] for path in companions}
    for _ in range(2):
        assert id_ in gemini("--list-sessions")
        assert gemini.chats() == [main]
    gemini.say("Something else.")
    assert main in gemini.chats()
    assert all(path.exists() for path in companions)
    words = gemini.say(SECOND, "--resume", id_)
    assert ANSWER in words
    assert words[-1] == SECOND
    assert any(FIRST in one for one in words)


@pytest.mark.parametrize("gemini", DELETES_RESUMED, indirect=True)
def test_session_deleted_after_a_resume_is_restored(gemini: ReleasedClient) -> None:
    id_, main = gemini.recorded(FIRST, days_ago=YESTERDAY)
    gemini.say(SECOND, "--resume", id_)
    gemini.sync()
    assert len([one for one in gemini.chats() if id_[:8] in one.name]) == 2  # the session and the stub of the resume
    gemini.say("Something else.")
    assert main not in gemini.chats()
    gemini.restore(id_)
    heard = gemini.say(THIRD, "--resume", id_)
    assert all(any(prompt in text for text in heard) for prompt in (FIRST, SECOND))


def test_restored_session_survives_repeated_resumes(gemini: ReleasedClient) -> None:
    id_, _ = gemini.recorded(FIRST, days_ago=OLD)
    gemini.sync()
    assert gemini.clean_up() == []
    main = gemini.restore(id_).main
    prompts = [FIRST]
    for words in (SECOND, THIRD):
        heard = gemini.say(words, "--resume", id_)
        assert all(any(prompt in text for text in heard) for prompt in prompts)
        prompts.append(words)
        gemini.say("Something else.")
        gemini("--list-sessions")
        assert main in gemini.chats()
    gemini.sync()
    assert gemini.session(id_).counts["user"] == 3


def test_copy_with_a_new_id_exists_beside_the_original(gemini: ReleasedClient) -> None:
    id_, main = gemini.recorded(FIRST, days_ago=YESTERDAY)
    plan = gemini.restore(id_, new_id=str(uuid.uuid4()))
    listed = gemini("--list-sessions")
    assert id_ in listed
    assert plan.id in listed
    words = gemini.say(SECOND, "--resume", plan.id)
    assert any(FIRST in one for one in words)
    assert ANSWER in words
    gemini("--list-sessions")
    assert main in gemini.chats()


def test_client_that_was_never_started_resumes_a_restored_session(gemini: ReleasedClient, tmp_path: Path) -> None:
    id_, _ = gemini.recorded(FIRST, days_ago=OLD)
    bob = another_user(tmp_path)
    home = Home(bob / ".gemini", bob / ".gemini" / "tmp", "--home")
    plan = gemini.restore(id_, to=home)
    assert not (home.root / "projects.json").exists()
    assert id_ in gemini("--list-sessions", user=bob)
    assert any(FIRST in text for text in gemini.say(SECOND, "--resume", id_, user=bob))
    assert plan.main.exists()
    registry = json.loads((home.root / "projects.json").read_bytes())
    assert registry == {"projects": {str(gemini.project): "webapp"}}


@pytest.mark.parametrize("gemini", LOGS, indirect=True)
def test_restored_log_without_a_header_can_be_resumed(gemini: ReleasedClient) -> None:
    id_, main = gemini.recorded(FIRST, days_ago=YESTERDAY)
    main.write_bytes(main.read_bytes().split(b"\n", 1)[1])
    gemini.sync()
    assert gemini.clean_up() == []
    plan = gemini.restore(id_[:8])
    assert plan.id in gemini("--list-sessions")
    assert any(FIRST in text for text in gemini.say(SECOND, "--resume", plan.id))


@pytest.mark.parametrize("gemini", ["0.38.2"], indirect=True)
@pytest.mark.parametrize("release", LOGS)
def test_restored_document_of_an_old_release_is_resumed_by_newer_ones(gemini: ReleasedClient, release: str) -> None:
    id_, main = gemini.recorded(FIRST, days_ago=OLD)
    assert main.suffix == ".json"
    gemini.sync()
    assert gemini.clean_up(release) == []
    main = gemini.restore(id_).main
    for _ in range(2):
        assert id_ in gemini("--list-sessions", release=release)
        assert gemini.chats() == [main]
    words = gemini.say(SECOND, "--resume", id_, release=release)
    assert any(FIRST in one for one in words)
    assert ANSWER in words


@pytest.mark.parametrize("gemini", [NEWEST], indirect=True)
def test_hashed_folder_of_an_old_release_is_migrated(gemini: ReleasedClient, tmp_path: Path) -> None:
    id_, main = gemini.recorded(FIRST, days_ago=OLD)
    digest = gemini.session(id_).project.hash
    assert digest is not None
    main.parents[1].rename(gemini.home.tmp / digest)
    (gemini.home.tmp / digest / ".project_root").unlink()
    gemini.sync()
    bob = another_user(tmp_path)
    plan = gemini.restore(id_, to=Home(bob / ".gemini", bob / ".gemini" / "tmp", "--home"))
    assert plan.main.exists()
    assert any(FIRST in text for text in gemini.say(SECOND, "--resume", id_, user=bob))


@pytest.mark.parametrize("gemini", [NEWEST], indirect=True)
def test_session_can_be_resumed_again_before_another_is_started(gemini: ReleasedClient) -> None:
    """The stub of a resume deletes nothing while the client is only started with that session."""
    id_, main = gemini.recorded(FIRST, days_ago=YESTERDAY)
    gemini.say(SECOND, "--resume", id_)
    stub = next(one for one in gemini.chats() if one != main)
    stub.rename(stub.with_name(f"session-2026-01-01T00-00-{id_[:8]}.jsonl"))
    words = gemini.say(THIRD, "--resume", id_)
    assert any(SECOND in one for one in words)
    assert main in gemini.chats()
