"""The layers of the package: a room imports itself and rooms of a lower rank, and no two modules import each other.

Some libraries and parts of the standard library belong to a few rooms only, so that a reader knows from the folder
what a module may touch.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "pollux"

RANKS: tuple[tuple[str, ...], ...] = (
    ("model", "errors", "text", "disk"),
    ("formats", "prices"),
    ("sessions.projects", "sessions.replay"),
    ("sessions", "redaction"),
    ("archive",),
    ("reports", "proofs"),
    ("search",),
    ("views",),
    ("render.html", "render.terminal", "render"),
    ("exports", "lake"),
    ("library",),
    ("cli", "web", "tui", "mcp"),
    ("__init__", "__main__", "demo"),
)
"""From bottom to top; the most specific name of a room counts."""
RANK = {room: rank for rank, rooms in enumerate(RANKS) for room in rooms}
FRONT_ENDS = frozenset({"cli", "web", "tui", "mcp"})
APART = (FRONT_ENDS, frozenset({"render.html", "render.terminal"}), frozenset({"exports", "lake"}))
"""Rooms of the same rank that must not import each other."""
FOR_FRONT_ENDS = frozenset({"library", "views", "render", "render.html", "render.terminal", "text", "errors", "model"})
"""The only rooms that a front end imports."""
STARTS: Mapping[str, str] = {"cli.web": "web", "cli.open": "web"}
"""Commands that start another front end, and so import it."""
ONLY_IN: Mapping[str, frozenset[str]] = {
    "sqlite3": frozenset({"archive", "reports", "search", "lake"}),
    "rich": frozenset({"render.terminal"}),
    "click": frozenset({"cli", "__main__"}),
    "starlette": frozenset({"web"}),
    "uvicorn": frozenset({"web"}),
}
"""External modules, and the rooms that may import them."""
_DATA = Path(__file__).parent / "data"
PENDING_WIRE_KEYS, PENDING_ENVIRONMENT = _DATA / "pending_wire_keys.txt", _DATA / "pending_environment.txt"
"""Places that break a rule and are still to be changed; the lists only shrink."""
KNOWS_WIRE_KEYS = frozenset({"formats", "exports"})
"""Rooms that read or write the client's own JSON; exports write its session files, and formats of other programs."""
_CONFIG = ("library.config", "library.environment")
_TERMINAL = ("cli", "__main__")
ONLY_FROM: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("os.environ", "os.environb", "os.getenv", "os.getcwd", "os.getlogin"), _CONFIG),
    **dict.fromkeys(("pathlib.Path.cwd", "pathlib.Path.home"), _CONFIG),
    **dict.fromkeys(("datetime.datetime.now", "datetime.datetime.today", "datetime.datetime.utcnow"), _CONFIG),
    **dict.fromkeys(("datetime.date.today", "time.time", "time.time_ns", "time.localtime", "time.gmtime"), _CONFIG),
    **dict.fromkeys(("platform.node", "socket.gethostname", "getpass.getuser", "getpass.getpass"), _CONFIG),
    **dict.fromkeys(("sys.stdin", "sys.stdout", "sys.stderr"), _TERMINAL),
}
"""What depends on the machine, the user or the moment, and the modules or rooms that may ask for it."""
_CAMEL_CASE = re.compile(r"[a-z]+(?:[A-Z][a-z0-9]*)+")


@dataclass(frozen=True)
class Import:
    """One import statement, wherever in a file it is."""

    name: str
    line: int
    is_for_types: bool
    """Whether only a type checker executes it."""


def imports(source: str, package: str) -> Iterator[Import]:
    """Yield every name that a file imports, in full."""
    tree = ast.parse(source)
    for_types = {
        id(child)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
        for statement in node.body
        for child in ast.walk(statement)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno, id(node) in for_types)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) + 1 - node.level] if node.level else []
            module = ".".join([*above, *filter(None, [node.module])])
            for alias in node.names:
                yield Import(f"{module}.{alias.name}", node.lineno, id(node) in for_types)


def module_name(path: Path) -> str:
    """Return the dotted name of a file, without `pollux`; `archive` for `archive/__init__.py`."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def imported_module(name: str) -> str | None:
    """Return which of our modules an imported name leads to."""
    if name != "pollux" and not name.startswith("pollux."):
        return None
    parts = name.split(".")[1:]
    while parts and ".".join(parts) not in MODULES:
        parts.pop()
    return ".".join(parts) or None  # None: a name such as `pollux.__version__`


def room_of(module: str) -> str:
    """Return the most specific room that a module belongs to."""
    parts = module.split(".")
    while parts and ".".join(parts) not in RANK:
        parts.pop()
    return ".".join(parts)


def broken_rules(module: str, source: str) -> Iterator[str]:
    """Yield a sentence for each import of a module that its room may not have."""
    here = room_of(module)
    for found in imports(source, f"pollux.{module}".rpartition(".")[0]):
        library = found.name.partition(".")[0]
        if here not in ONLY_IN.get(library, {here}) and not found.is_for_types:
            yield f"{module} imports {library}, which belongs to {', '.join(sorted(ONLY_IN[library]))}"
        target = imported_module(found.name)
        if target is None or (there := room_of(target)) == here:
            continue
        if STARTS.get(module) == there:
            continue
        if RANK[there] > RANK[here] or any({here, there} <= rooms for rooms in APART):
            yield f"{module} imports {target} of the higher or separate room {there}"
        elif here in FRONT_ENDS and there not in FOR_FRONT_ENDS:
            yield f"{module} imports {target}: front ends ask the library"


def literals(tree: ast.AST) -> Iterator[str]:
    """Yield the strings and bytes of a file that are no docstrings."""
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in docstrings:
            if isinstance(node.value, str):
                yield node.value
            elif isinstance(node.value, bytes):
                yield node.value.decode("latin-1")


def wire_keys(sources: Iterable[str]) -> frozenset[str]:
    """Return the camelCase names in files of `formats`: no name of ours looks like that, so they are the client's."""
    return frozenset(text for source in sources for text in literals(ast.parse(source)) if _CAMEL_CASE.fullmatch(text))


def misplaced_keys(module: str, source: str, keys: Iterable[str]) -> Iterator[str]:
    """Yield a sentence for each of the client's keys, and each type with such keys, that a module should not know."""
    if room_of(module) in KNOWS_WIRE_KEYS:
        return
    tree = ast.parse(source)
    texts = set(literals(tree))
    for key in keys:
        if key in texts or any(f'"{key}"' in text for text in texts):
            yield f"{module} names {key}"
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and any(ast.unparse(one) == "rename='camel'" for one in node.keywords):
            yield f"{module} decodes {node.name}"


def full_names(source: str) -> Iterator[str]:
    """Yield what a file refers to, in full: `pathlib.Path.home` for `Path.home()`."""
    tree = ast.parse(source)
    modules: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {alias.asname or alias.name.partition(".")[0]: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            modules |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            first, _, rest = ast.unparse(node).partition(".")
            yield f"{modules.get(first, first)}.{rest}"


def ambient_reads(module: str, source: str) -> Iterator[str]:
    """Yield a sentence for everything that a module reads from its surroundings instead of being told."""
    for name in sorted(set(full_names(source)) & ONLY_FROM.keys()):
        if module not in ONLY_FROM[name] and room_of(module) not in ONLY_FROM[name]:
            yield f"{module} reads {name}"


def check_pending(broken: Iterable[str], list_of: Path) -> None:
    """Check that exactly the broken rules of a list are left."""
    found, pending = set(broken), set(list_of.read_text("utf-8").splitlines())
    assert not found - pending, "\n".join(sorted(found - pending))
    assert not pending - found, "\n".join(["delete these lines:", *sorted(pending - found)])


def cycles(edges: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Return the groups of modules that import each other, directly or through others (Tarjan)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    groups: list[list[str]] = []

    def visit(module: str) -> None:
        number[module] = low[module] = len(number)
        stack.append(module)
        for target in edges.get(module, ()):
            if target not in number:
                visit(target)
                low[module] = min(low[module], low[target])
            elif target in stack:
                low[module] = min(low[module], number[target])
        if low[module] == number[module]:
            group = [stack.pop()]
            while group[-1] != module:
                group.append(stack.pop())
            if len(group) > 1:
                groups.append(sorted(group))

    for module in edges:
        if module not in number:
            visit(module)
    return groups


def test_every_module_has_a_room() -> None:
    homeless = [module for module in MODULES if not room_of(module)]
    assert not homeless, f"add them to a room of RANKS in tests/test_layers.py: {homeless}"


def test_every_import_follows_the_layers() -> None:
    broken = [rule for module, path in MODULES.items() for rule in broken_rules(module, path.read_text("utf-8"))]
    assert not broken, "\n".join(broken)


def test_only_formats_and_exports_know_the_keys_of_the_client() -> None:
    sources = {module: path.read_text("utf-8") for module, path in MODULES.items()}
    keys = wire_keys(source for module, source in sources.items() if room_of(module) == "formats")
    assert {"sessionId", "toolCalls", "functionCall"} <= keys
    broken = (rule for module, source in sources.items() for rule in misplaced_keys(module, source, keys))
    check_pending(broken, PENDING_WIRE_KEYS)


def test_only_the_configuration_reads_its_surroundings() -> None:
    sources = {module: path.read_text("utf-8") for module, path in MODULES.items()}
    broken = (rule for module, source in sources.items() for rule in ambient_reads(module, source))
    check_pending(broken, PENDING_ENVIRONMENT)


def test_no_modules_import_each_other() -> None:
    edges: dict[str, set[str]] = {}
    for module, path in MODULES.items():
        package = f"pollux.{module}" if path.name == "__init__.py" else f"pollux.{module}".rpartition(".")[0]
        names = (found for found in imports(path.read_text("utf-8"), package) if not found.is_for_types)
        edges[module] = {target for found in names if (target := imported_module(found.name)) and target != module}
    del edges["__init__"]  # its names are imported when they are asked for
    assert not cycles(edges)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("model", "from pollux.formats import log"),
        ("formats.log", "import pollux.archive.raw"),
        ("formats.log", "def read():\n    from pollux import views"),
        ("formats.log", "from ..archive import raw"),
        ("sessions.replay.replay", "from pollux.sessions.locate import locate"),
        ("views.transcript", "from pollux.exports import html"),
        ("render.html.blocks", "from pollux.render.terminal.layout import line"),
        ("exports.html", "import pollux.lake.parquet"),
        ("cli.ls", "from pollux.archive.schema import TABLES"),
        ("web.app", "from pollux.cli.options import home"),
        ("views.transcript", "import sqlite3"),
        ("library.config", "import click"),
        ("cli.ls", "from rich.table import Table"),
        ("cli.ls", "from pollux.web.server import serve"),
        ("library.library", "from starlette.requests import Request"),
        ("cli.web", "import uvicorn"),
    ],
)
def test_a_forbidden_import_is_reported(module: str, source: str) -> None:
    assert [*broken_rules(module, source)]


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("model", "import msgspec"),
        ("exports.html", "from pollux import __version__"),
        ("formats.log", "from pollux.model import Session\nfrom .lenient import text"),
        ("sessions.locate", "from pollux.sessions.projects.paths import project_hash"),
        ("cli.ls", "from pollux.views import contracts\nimport click"),
        ("archive.raw", "import sqlite3"),
        ("web.server", "import uvicorn\nfrom starlette.routing import Route"),
        ("cli.web", "from pollux.web.server import serve"),
    ],
)
def test_an_allowed_import_is_accepted(module: str, source: str) -> None:
    assert not [*broken_rules(module, source)]


@pytest.mark.parametrize(
    "source",
    [
        'value.get("sessionId")',
        "match value:\n    case {'sessionId': str()}:\n        pass",
        """ID = re.compile(rb'"sessionId"')""",
        "class Wire(Struct, rename='camel'):\n    id: str",
    ],
)
def test_a_key_of_the_client_in_another_room_is_reported(source: str) -> None:
    assert [*misplaced_keys("sessions.grouping", source, {"sessionId"})]
    assert not [*misplaced_keys("formats.log", source, {"sessionId"})]
    assert not [*misplaced_keys("exports.gemini", source, {"sessionId"})]


def test_words_that_are_no_keys_of_the_client_are_accepted() -> None:
    assert wire_keys(['KEY = b"sessionId"', 'OTHER = "session"', 'def read():\n    "toolCalls"']) == {"sessionId"}
    assert not [*misplaced_keys("views.tools", '"""Reads "sessionId"."""\nname = "session_id"', {"sessionId"})]


@pytest.mark.parametrize(
    "source",
    [
        "import os\nos.environ.get('TZ')",
        "from os import environ as variables",
        "from pathlib import Path\nPath.home()",
        "import pathlib\npathlib.Path.cwd()",
        "from datetime import datetime as moment\nmoment.now(UTC)",
        "import time\ndef wait(clock=time.time):\n    pass",
        "def name():\n    import platform\n    return platform.node()",
        "from getpass import getuser",
        "import sys\nsys.stdout.write('')",
    ],
)
def test_what_is_read_from_the_surroundings_is_reported(source: str) -> None:
    assert [*ambient_reads("sessions.locate", source)]


def test_what_may_be_read_from_the_surroundings_is_accepted() -> None:
    assert not [*ambient_reads("library.config", "import os\nfrom pathlib import Path\nos.environ, Path.home()")]
    assert not [*ambient_reads("cli.output", "import sys\nsys.stdout.isatty()")]
    assert not [*ambient_reads("views.periods", "import time\nnow, home = clock.now(), config.home\ntime.monotonic()")]


def test_a_cycle_is_found_through_other_modules() -> None:
    assert cycles({"a": ["b"], "b": ["c"], "c": ["b"]}) == [["b", "c"]]
    assert not cycles({"a": ["b", "c"], "b": ["c"], "c": []})
