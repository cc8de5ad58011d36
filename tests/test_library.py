"""The library: what its first page promises works on the demo."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

import pollux
from pollux.library.config import configure

DEMO = Path(pollux.__file__).parent / "demo" / "home"


def test_every_name_is_there() -> None:
    assert sorted(pollux.__all__) == pollux.__all__
    for name in pollux.__all__:
        assert getattr(pollux, name) is not None


def test_unknown_name_is_reported() -> None:
    with pytest.raises(AttributeError, match="module 'pollux' has no attribute 'nothing'"):
        pollux.nothing  # noqa: B018


def test_example_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLLUX_HOME", str(DEMO))
    assert pollux.__doc__
    examples = doctest.DocTestParser().get_examples(pollux.__doc__)
    names: dict[str, object] = {}
    said: list[str] = []
    monkeypatch.setattr("builtins.print", lambda *words: said.append(" ".join(map(str, words))))
    for example in examples:
        exec(compile(example.source, "<example>", "single"), names)  # noqa: S102  our own first page
    assert len(examples) >= 6
    assert any("Write a report of the night" in line for line in said)


def test_homes_and_an_archive_may_be_named(tmp_path: Path) -> None:
    with pollux.open(homes=[DEMO], archive=tmp_path / "archive.db") as library:
        page = library.sessions(page=pollux.Page(None))
        assert (len(page.rows), page.total) == (20, 20)
        assert library.session("latest") == page.rows[0]
    assert (tmp_path / "archive.db").exists()
    with pollux.open(homes=[str(DEMO)], archive=None) as library:
        assert [row.id for row in library.sessions(page=pollux.Page(None)).rows] == [row.id for row in page.rows]


def test_settings_may_be_made_once(tmp_path: Path) -> None:
    config = configure(named_homes=[DEMO], archive=tmp_path / "archive.db", zone="Europe/Berlin")
    with pollux.open(config=config) as library:
        assert library.config is config
        assert library.usage().timezone == "Europe/Berlin"
