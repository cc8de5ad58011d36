"""Names that come from an archive are only used where a file can have them."""

from __future__ import annotations

import pytest

from pollux.disk.write import name_fault, path_fault
from pollux.text.escape import printable


@pytest.mark.parametrize("path", ["tmp/p/chats/a.jsonl", "projects.json", "tmp/a b/ü\n.txt", "tmp/C:/x", "tmp/a\\b"])
def test_a_path_below_a_home_is_taken(path: str) -> None:
    assert path_fault(path) is None


@pytest.mark.parametrize("path", ["", "/etc/passwd", "tmp//x", "tmp/../x", "..", "tmp/.", "tmp/x/", "tmp/a\0b"])
def test_a_path_that_leads_elsewhere_is_not(path: str) -> None:
    assert path_fault(path)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\0b", "x" * 256, "ü" * 128])
def test_a_name_that_no_system_takes(name: str) -> None:
    assert name_fault(name, is_windows=False)
    assert name_fault(name, is_windows=True)


@pytest.mark.parametrize(
    "name", ["C:", "C:x", "a\\b", "\\\\host\\share", "a:stream", "CON", "nul.txt", "com1", "a.", "a ", "a\nb", "a?"]
)
def test_a_name_that_windows_does_not_take(name: str) -> None:
    assert name_fault(name, is_windows=True)
    assert name_fault(name, is_windows=False) is None


def test_names_are_shown_in_one_line_of_characters() -> None:
    assert printable("a\nb\x1b[31m\u202e\0ü") == "a\\nb\\x1b[31m\\u202e\\x00ü"
