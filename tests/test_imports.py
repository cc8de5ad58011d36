"""Imports go one way: a module knows those of lower layers and of its own.

What hands over or shows, and the front ends, do not know each other.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "pollux"

FRONT_ENDS = {"cli", "tui", "web", "mcp"}
LEAVES = {"exports", "lake", "terminal"}
"""What hands over or shows; words that several of them need are in `views`."""
APART = (FRONT_ENDS, LEAVES)
"""Rooms that do not know each other."""

# From bottom to top, each module or folder of src/pollux in one layer.
LAYERS = (
    {"integers", "model", "sound", "times", "private_files"},
    {"errors", "home", "locate", "regular_files", "formats", "origins", "tools", "shell", "prices", "filters"}
    | {"projects", "project_claims", "project_paths", "project_search"},
    {"jsontext", "csvtext", "services", "processes"},
    {"entries", "copies", "timeline", "replay", "reading"},
    {"grouping", "agents", "summary", "sessions", "call_scan", "counting", "retention", "retention_policy"},
    {"archive", "views", "proofs", "redaction"},
    LEAVES,
    FRONT_ENDS,
    {"__init__", "__main__"},
)
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}


def sources() -> Iterator[Path]:
    return PACKAGE.rglob("*.py")


def room(path: Path) -> str:
    """Name the module or folder directly below the package that a file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(source: str, package: str) -> Iterator[tuple[int, str]]:
    """Give line and full name of everything imported, wherever in the file it stands."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) + 1 - node.level] if node.level else []
            module = ".".join([*above, *filter(None, [node.module])])
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


def room_of(name: str) -> str | None:
    """Tell which room an imported name leads to, if it is one of ours."""
    match name.split("."):
        case ["pollux", first, *_] if first.startswith("__") and first not in RANK:
            return None  # __version__ and the like
        case ["pollux", first, *_] if first in RANK or (PACKAGE / first).is_dir() or (PACKAGE / f"{first}.py").exists():
            return first
        case ["pollux", *_]:
            return "__init__"
        case _:
            return None


def wrong_arrows(source: str, here: str, package: str = "pollux") -> Iterator[tuple[int, str]]:
    for line, name in imported(source, package):
        there = room_of(name)
        if there is None or there == here or there not in RANK:
            continue
        if RANK[there] > RANK[here] or any({here, there} <= rooms for rooms in APART):
            yield line, f"{here} must not import {name}"


def test_every_module_has_its_layer() -> None:
    unknown = {room(path) for path in sources()} - set(RANK)
    assert not unknown, f"add {sorted(unknown)} to the layer where they belong: LAYERS in tests/test_imports.py"


def test_no_module_is_in_two_layers() -> None:
    assert len(RANK) == len([*chain.from_iterable(LAYERS)])


def test_imports_go_one_way() -> None:
    wrong = [
        f"{path.relative_to(PACKAGE)}:{line}: {what}"
        for path in sources()
        if room(path) in RANK
        for line, what in wrong_arrows(
            path.read_text("utf-8"), room(path), ".".join(["pollux", *path.relative_to(PACKAGE).parts[:-1]])
        )
    ]
    assert not wrong, "\n".join(["wrong arrows:", *wrong])


@pytest.mark.parametrize(
    ("here", "source"),
    [
        ("model", "from pollux.errors import PolluxError"),
        ("model", "from pollux import Session"),
        ("formats", "import pollux.archive.raw"),
        ("formats", "def read():\n    from pollux import views"),
        ("formats", "from ..archive import raw"),
        ("views", "from pollux.exports import html"),
        ("exports", "from pollux.terminal.text import line"),
        ("terminal", "import pollux.exports"),
        ("web", "from pollux.cli.options import home"),
    ],
)
def test_a_wrong_arrow_is_seen(here: str, source: str) -> None:
    assert [*wrong_arrows(source, here, f"pollux.{here}")]


@pytest.mark.parametrize(
    ("here", "source"),
    [
        ("model", "import msgspec"),
        ("exports", "from pollux import __version__"),
        ("formats", "from pollux.model import Session\nfrom .lenient import text\nfrom ..tools import TOOLS"),
        ("replay", "from pollux.formats.operations import Operation"),
        ("cli", "from pollux.views import usage"),
        ("__init__", "from pollux.sessions import sessions"),
    ],
)
def test_a_right_arrow_is_let_through(here: str, source: str) -> None:
    assert not [*wrong_arrows(source, here, f"pollux.{here}")]
