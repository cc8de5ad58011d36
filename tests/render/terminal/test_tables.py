"""Tables of any columns: what is dropped, cut and aligned, and lines for other programs."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.text import Text

import pollux
from pollux.render.terminal.screen import Console
from pollux.render.terminal.tables import (
    TableColumn,
    TextTable,
    align_points,
    csv_lines,
    distinct_names,
    dollars,
    tab_lines,
    tabbed,
)

SOURCES = sorted(Path(pollux.__file__).parent.rglob("*.py"))


def drawn(table: TextTable, width: int, encoding: str = "utf-8") -> list[str]:
    console = Console(width=width, color_system=None, force_terminal=False)
    options = console.options.copy()
    options.encoding = encoding
    return ["".join(segment.text for segment in line) for line in console.render_lines(table, options, pad=False)]


def table(**columns: tuple[int, int | None, list[str]]) -> TextTable:
    return TextTable(
        [TableColumn(name, cells, rank=rank, least=least) for name, (rank, least, cells) in columns.items()]
    )


@pytest.mark.parametrize("width", range(1, 60))
def test_no_width_is_exceeded(width: int) -> None:
    made = table(a=(0, 5, ["title " * 9]), b=(2, None, ["12345"]), c=(1, 8, ["鶴" * 12]))
    lines = drawn(made, width)
    assert max(map(cell_len, lines)) <= width


def test_highest_rank_is_dropped_first_and_cut_columns_share_the_room() -> None:
    made = table(a=(0, 5, ["title " * 9]), b=(2, None, ["12345"]), c=(1, None, ["123"]))
    assert [drawn(made, width)[0].split() for width in (80, 15, 9)] == [["a", "b", "c"], ["a", "c"], ["a"]]
    assert drawn(made, 20)[1] == "title t…  12345  123"


def test_columns_after_a_cut_cell_stay_aligned() -> None:
    made = table(a=(0, 4, ["ab cdefgh", "abcdefghi", "鶴鶴鶴鶴鶴"]), b=(0, None, ["1", "2", "3"]))
    assert drawn(made, 7)[1:] == ["ab…   1", "abc…  2", "鶴…   3"]


def test_markup_is_printed_as_text() -> None:
    cells: list[Text | str] = ["[/b]", "[red]x[/red]", ":smile:", Text("[a1b2c3d4]", "cyan")]
    assert drawn(TextTable([TableColumn("[name]", cells)]), 40) == [
        *("[name]", "[/b]", "[red]x[/red]", ":smile:", "[a1b2c3d4]")
    ]


def test_only_one_module_makes_a_console_and_none_reads_markup() -> None:
    """Rich's own console and tables take strings for markup, so everything is printed through ours."""
    for path in SOURCES:
        source = path.read_text("utf-8")
        assert "from_markup" not in source, path
        for node in ast.walk(ast.parse(source)):
            if not isinstance(node, ast.ImportFrom) or (node.module or "").split(".")[0] != "rich":
                continue
            names = {alias.name for alias in node.names}
            assert not names & {"print", "markup", "escape", "render"}, path
            assert "Table" not in names or path.name == "markdown.py", path
            makes_console = node.module == "rich.console" and "Console" in names and re.search(r"\bConsole\(", source)
            assert not makes_console, path


def test_bars_are_drawn_in_any_encoding() -> None:
    column = TableColumn("n", ["a", "b"])
    made = TextTable([column], weights=[1, 2])
    assert [line.count("█") for line in drawn(made, 60)[1:]] == [12, 24]
    assert [line.count("#") for line in drawn(made, 60, "ascii")[1:]] == [12, 24]
    assert "█" not in "".join(drawn(TextTable([column], weights=[0, 0]), 60))
    assert "█" not in "".join(drawn(made, 6))


def test_decimal_points_are_aligned() -> None:
    assert align_points(["$1,234.50", "$0.00721", "no price", "$3.20+"]) == [
        *("$1,234.50   ", "$0.00721", "no price", "$3.20+  ")
    ]
    assert align_points([]) == []


def test_projects_of_the_same_name_get_the_folder_that_tells_them_apart() -> None:
    paths = ["/home/u/work/api", "/home/u/play/api", "/srv/web", "C:\\src\\web"]
    names = distinct_names([(path, path.replace("\\", "/").rpartition("/")[2]) for path in paths])
    assert list(names.values()) == ["work/api", "play/api", "srv/web", "src/web"]
    deep = ["/a/x/src/api", "/a/y/src/api"]
    assert list(distinct_names((path, "api") for path in deep).values()) == ["x/…/api", "y/…/api"]
    assert list(distinct_names([("/api", "api"), ("/x/api", "api")]).values()) == ["/api", "x/api"]
    assert list(distinct_names([("api", "api"), ("/x/api", "api")]).values()) == ["api", "x/api"]


def test_lines_for_programs() -> None:
    assert list(tab_lines(("a", "b"), [("x\ty", None)], header=True)) == ["a\tb\n", "x y\t\n"]
    assert list(csv_lines(("a", "b"), [("=x", 1)], header=False)) == ["'=x,1\n"]
    assert tabbed("a\tb", 1) == "a b\t1\n"
    assert [dollars(amount) for amount in (0, 1, 10**9, 1_500_000_000, 1_298_875, None)] == [
        *("0.00", "0.000000001", "1.00", "1.50", "0.001298875", ""),
    ]
