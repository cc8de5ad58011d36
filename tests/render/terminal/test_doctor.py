"""The doctor's findings in words."""

from __future__ import annotations

from pathlib import Path

from rich.cells import cell_len
from tests import builders

from pollux.formats import prompts
from pollux.model import Problem
from pollux.render.terminal.doctor import findings, fitted, plain
from pollux.reports.doctor import Diagnosis, Unknowns, sessions_only_in_log
from pollux.sessions.locate import locate
from pollux.sessions.reader import History


def health(folder: Path, n_lost: int = 0, *problems: Problem) -> Diagnosis:
    logged = [
        {"sessionId": f"s{n}", "messageId": 0, "type": "user", "message": "a\nb", "timestamp": builders.at(n)}
        for n in range(n_lost)
    ]
    unknowns = Unknowns()
    unknowns.tools["teleport\x1b"] += 2
    return Diagnosis(
        History(locate([builders.home(folder)])),
        unknowns,
        sessions_only_in_log(prompts.read(builders.line(logged)).prompts, []),
        problems,
    )


def test_alike_problems_are_grouped(tmp_path: Path) -> None:
    torn = [Problem("torn-line", "not\nJSON", f"/f{n}", n) for n in (0, 7)]
    found = [*findings(health(tmp_path, 12, *torn, Problem("odd", "very odd")), lambda path: path.replace("/f", "~/f"))]
    assert ("unknown", "tools: teleport␛ × 2") in found
    assert ("problems", "3") in found
    assert found[-5:] == [
        ("", "  not JSON [torn-line]"),
        ("", "    ~/f0"),
        ("", "    ~/f7:7"),
        ("", "  very odd [odd]"),
        ("", "    "),
    ]
    assert ("", "  … and 2 more; --json lists them all") in found
    assert ("", "  s0  1 prompt: a b") in found
    assert any("no such folder" in text for _, text in found)


def test_lines_of_a_file_with_many_problems_are_limited(tmp_path: Path) -> None:
    torn = [Problem("torn-line", "not JSON", "/f", n) for n in (3, 3, *range(4, 16))]
    few = [Problem("torn-line", "not JSON", "/g", n) for n in (1, 8)]
    found = [*findings(health(tmp_path, 0, *torn, *few))]
    assert found[-3:] == [
        ("", "  not JSON [torn-line]"),
        ("", "    /f:3, 4, 5, 6, 7, 8, 9, 10, 11, 12 and 3 more; --json lists them all"),
        ("", "    /g:1, 8"),
    ]


def test_absence_of_problems_is_reported(tmp_path: Path) -> None:
    assert ("problems", "none: every file was read") in [*findings(health(tmp_path))]


def test_lines_keep_their_margin() -> None:
    assert fitted("home", "one two three", 20) == "home        one two\n            three"
    assert fitted("", "    /a/very/long/path", 14) == "    /a/very/lo\n    ng/path"
    assert all(cell_len(line) <= 30 for line in fitted("found", "鶴" * 40, 30).splitlines())
    assert fitted("", "", 80) == ""
    assert (plain("home", "x"), plain("", "  x")) == ("home        x", "  x")
