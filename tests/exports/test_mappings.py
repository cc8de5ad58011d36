"""The pages on other people's formats say what the code says: their tables are written from it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from pollux.exports.atif import trajectory
from pollux.exports.chat import rows
from pollux.exports.hf import session
from pollux.exports.otlp import traces
from pollux.lake.tables import TABLES, columns

DOCS = Path(__file__).parents[2] / "docs"
MAPPINGS = {
    "atif": trajectory.MAPPING,
    "otlp": traces.MAPPING,
    "huggingface": session.MAPPING,
    "chat": rows.MAPPING,
}


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    told = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}", *(f"| {' | '.join(line)} |" for line in lines)]
    return "\n".join(told)


def same(page: Path, mark: str, expected: str) -> None:
    """Compare the table behind a mark, or write it."""
    text = page.read_text("utf-8")
    made = re.sub(rf"(<!-- {mark} -->\n)(?:\n\|[^\n]*(?:\n\|[^\n]*)*)?", lambda found: f"{found[1]}\n{expected}", text)
    if "POLLUX_REWRITE" in os.environ:
        page.write_text(made, "utf-8", newline="\n")
        text = made
    assert text == made, f"{page.name} is stale: rewrite it with POLLUX_REWRITE=1"
    assert expected in text


@pytest.mark.parametrize("name", MAPPINGS)
def test_page_has_the_mapping_of_the_code(name: str) -> None:
    assert all(len(row) == 3 for row in MAPPINGS[name])
    same(DOCS / f"{name}.md", "mapping", table(("Here", "There", "How"), MAPPINGS[name]))


def test_page_has_the_tables_of_the_lake() -> None:
    lines = [
        (
            f"`{name}`",
            ", ".join(f"`{one.name}`" for one in columns(name) if one.is_key),
            ", ".join(f"`{one.name}`" for one in columns(name) if not one.is_key),
        )
        for name in TABLES
    ]
    same(DOCS / "parquet.md", "tables", table(("Table", "Key", "Columns"), lines))
