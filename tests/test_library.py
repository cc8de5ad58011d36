"""The library: what its first page promises works on the demo."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

import pollux

DEMO = Path(pollux.__file__).parent / "demo" / "home"


def test_every_name_is_there() -> None:
    assert sorted(pollux.__all__) == pollux.__all__
    for name in pollux.__all__:
        assert getattr(pollux, name) is not None


def test_unknown_name_is_told() -> None:
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


def test_homes_may_be_given() -> None:
    found = pollux.history(pollux.homes(DEMO))
    assert len(found.main) == 20
    assert pollux.select(found, "latest") == found.main[0]
    session, group = pollux.from_file(found.main[0].files[0].path)
    assert session.id == group.id == found.main[0].id
