"""Screens use only the colours that can be read on light and on dark terminals; `test_styles.py` computes which."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from tests.cli.terminal import COLOURS, on_terminal

from pollux.cli.demo import HOME as DEMO
from pollux.text.contrast import contrast

SCREENS = [
    (),
    ("ls", "--all"),
    ("show", "e92f6bc2", "--detail", "full", "--branches", "all"),
    ("tree", "e92f6bc2"),
    ("usage",),
    ("usage", "--by", "model"),
    ("stats",),
    ("status", "--all"),
    ("projects",),
    ("audit", "e92f6bc2"),
    ("doctor",),
    ("--help",),
    ("shwo",),
]
READABLE = {"32", "91", "94", "95", "38;5;244"}
"""Green, bright red, bright blue, bright magenta and the grey of secondary text."""
_RECORDED = re.compile(r"38;2;(\d+);(\d+);(\d+)")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(DEMO, tmp_path_factory.mktemp("colours") / "home"))


@pytest.mark.parametrize("command", SCREENS, ids=" ".join)
def test_screen_has_only_readable_colours(home: Path, command: tuple[str, ...]) -> None:
    _, shown = on_terminal(home, *command, columns=160, COLORTERM="truecolor")
    for sequence in {*COLOURS.findall(shown)}:
        codes = sequence[2:-1]
        recorded = _RECORDED.search(codes)
        if recorded and "48;" not in codes:
            red, green, blue = map(int, recorded.groups())
            assert contrast((red, green, blue), (255, 255, 255)) >= 3, codes
            assert contrast((red, green, blue), (30, 30, 30)) >= 3, codes
        elif not recorded:
            colours = re.sub(r"^(?:[0-47](?:;|$))+", "", codes)
            assert colours in READABLE | {""}, codes
