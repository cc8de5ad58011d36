"""The order of hits."""

from __future__ import annotations

import pytest

from pollux.search import rank
from pollux.search.parts import PartKind
from pollux.search.rank import TimeRange
from pollux.search.values import TextSpan


def test_every_kind_has_a_weight() -> None:
    assert set(rank.WEIGHTS) == set(PartKind)


def test_an_old_prompt_precedes_a_new_answer() -> None:
    assert rank.score(PartKind.PROMPT, 0.1) > rank.score(PartKind.ANSWER, 1)
    assert rank.score(PartKind.ANSWER, 1) > rank.score(PartKind.ANSWER, 0.5) > rank.score(PartKind.OUTPUT, 1)


@pytest.mark.parametrize(("used", "place"), [(0, 0.0), (50, 0.5), (100, 1.0), (500, 1.0), (-5, 0.0), (None, 0.0)])
def test_place_in_time(used: int | None, place: float) -> None:
    assert TimeRange(0, 100).place(used) == place


def test_one_session_is_the_newest() -> None:
    assert TimeRange(7, 7).place(7) == 1.0


def test_other_hits_raise_a_session_a_little() -> None:
    assert rank.session_score([]) == 0
    assert rank.session_score([2.0]) == 2.0
    assert rank.session_score([1.0, 2.0, 1.0]) == pytest.approx(2.2)
    assert rank.session_score([0.6] * 1000) == pytest.approx(1.2)
    assert rank.session_score([0.6] * 1000) < rank.session_score([4.0])


def test_a_text_raises_or_lowers_a_hit() -> None:
    near = [[TextSpan(0, 5)], [TextSpan(10, 15)]]
    far = [[TextSpan(0, 5)], [TextSpan(1000, 1005)]]

    def factor(groups: list[list[TextSpan]], text: str = "", title: str = "", *, is_active: bool = True) -> float:
        return rank.text_factor(text, groups, ["Alpha", "beta"], title, is_active=is_active)

    assert factor(near) > factor(far) == 1.0
    assert factor(far, "Alpha beta") > factor(far, "alpha beta")
    assert factor(far, title="the ALPHA of beta") > factor(far, title="the alpha")
    assert factor(far, is_active=False) == rank.DROPPED
    assert rank.text_factor("text", [], [], "title", is_active=True) == 1.0


@pytest.mark.parametrize(
    ("groups", "size"),
    [
        ([[TextSpan(0, 3)]], 3),
        ([[TextSpan(0, 3)], [TextSpan(10, 14)]], 14),
        ([[TextSpan(0, 3), TextSpan(100, 103)], [TextSpan(96, 99)]], 7),
        ([[TextSpan(50, 53)], [TextSpan(0, 3)], [TextSpan(90, 93)]], 53),
        ([[], [TextSpan(0, 3)]], 0),
    ],
)
def test_smallest_window(groups: list[list[TextSpan]], size: int) -> None:
    assert rank.smallest_window(groups) == size
