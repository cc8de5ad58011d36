from __future__ import annotations

import pytest

from pollux.model import DiffDisplay
from pollux.views.diffs import LineChange, diff_from_display


def test_lines_have_the_numbers_of_their_hunk() -> None:
    diff = diff_from_display(DiffDisplay("@@ -7,2 +9,2 @@\n a\n-b\n+c"), None)
    assert [(line.change, line.old, line.new) for line in diff.lines[1:]] == [
        (LineChange.CONTEXT, 7, 9),
        (LineChange.DELETE, 8, None),
        (LineChange.ADD, None, 10),
    ]


@pytest.mark.parametrize("digits", ["99999999999999999999", "9" * 5000])
def test_lines_of_a_hunk_with_an_absurd_start_have_no_number(digits: str) -> None:
    diff = diff_from_display(DiffDisplay(f"@@ -{digits} +1 @@\n a\n-b\n+c"), None)
    assert [(line.old, line.new) for line in diff.lines] == [(None, None), (None, 1), (None, None), (None, 2)]
    assert (diff.added, diff.removed) == (1, 1)
