"""The health page: archive, deletions, lost sessions, problems."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.web.homes import hostile_home
from tests.web.viewing import Viewed, links, viewing

from pollux.library.keys import create_key, signing_key
from pollux.library.sealing import seal_archive
from pollux.web.pages import health


@pytest.fixture
def viewed(tmp_path: Path) -> Iterator[Viewed]:
    with viewing(tmp_path) as made:
        yield made


def test_page_says_what_is_archived_verified_and_sealed(viewed: Viewed, tmp_path: Path) -> None:
    text = viewed.page("health").text
    assert "Every session file is archived" in text
    assert "never on this computer: pollux verify" in text
    assert "no: pollux archive seal signs the archive" in text
    viewed.library.verify()
    create_key(tmp_path / "keys", "test")
    seal_archive(viewed.library, signing_key(tmp_path / "keys", "test", lambda *_: b""))
    text = viewed.page("health").text
    assert "no damage" in text
    assert "1 seal; pollux verify --seal checks the signatures" in text
    (tmp_path / "archive.db.verified").write_text(
        '{"at":"2026-11-17T10:00:00Z","is_deep":false,"n_bytes":9,"n_damaged":2}'
    )
    assert "2 damaged places found" in viewed.page("health").text


def test_page_lists_what_the_client_deletes(viewed: Viewed) -> None:
    page = viewed.page("health")
    report = viewed.library.health()
    numbers = {"next": report.n_next, "soon": report.n_soon, "later": report.n_later}
    ids = {tag.attributes.get("id") for tag in page.named("h2")}
    assert {name for name, number in numbers.items() if number} <= ids
    shown = {target.removeprefix("s/") for target in links(page) if target.startswith("s/")}
    assert {entry.session.id for entry in report.expiring} <= shown


def test_sessions_without_a_date_are_due_at_once(viewed: Viewed) -> None:
    text = viewed.get("health")
    assert re.search(r">at once</td><td[^>]*>a stub left by <code>--resume</code>", text)
    assert re.search(r"</time></td><td[^>]*>unused for 30 days", text)


def test_long_lists_are_cut_and_say_so(viewed: Viewed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "MOST_ROWS", 1)
    report = viewed.library.health()
    n_expiring = report.n_next + report.n_soon + report.n_later
    assert n_expiring > 1
    assert "more: pollux status" in viewed.page("health").text


def test_lost_sessions_and_problems_have_their_words(tmp_path: Path) -> None:
    with viewing(tmp_path, [hostile_home(tmp_path / "home")]) as viewed:
        text = viewed.page("health").text
    assert "Lost, except for their prompts" in text
    assert "Saved: every complete record in the line" in text
    assert "<script>window.owned=1</script>" in text
