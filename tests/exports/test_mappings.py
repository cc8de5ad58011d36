"""The pages on other formats name what the code writes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from pollux.exports.otlp.attributes import CONVENTIONS
from pollux.lake.parquet import TABLES, columns

DOCS = Path(__file__).parents[2] / "docs"
IN_SPAN_NAMES = {"gen_ai.operation.name", "gen_ai.agent.name", "gen_ai.agent.id"}
"""Attributes that the page gives as names of spans."""


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rows = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}", *(f"| {' | '.join(line)} |" for line in lines)]
    return "\n".join(rows)


def same(page: Path, mark: str, expected: str) -> None:
    """Compare the table behind a mark, or write it."""
    text = page.read_text("utf-8")
    made = re.sub(rf"(<!-- {mark} -->\n)(?:\n\|[^\n]*(?:\n\|[^\n]*)*)?", lambda match: f"{match[1]}\n{expected}", text)
    if "POLLUX_REWRITE" in os.environ:
        page.write_text(made, "utf-8", newline="\n")
        text = made
    assert text == made, f"{page.name} is stale: rewrite it with POLLUX_REWRITE=1"
    assert expected in text


@pytest.mark.parametrize("name", sorted({*CONVENTIONS["1.41"].names.values()} - IN_SPAN_NAMES))
def test_page_has_every_attribute_of_the_conventions(name: str) -> None:
    """The page abbreviates names that follow a longer one: `gen_ai.tool.name`, `.type`."""
    text = (DOCS / "otlp.md").read_text("utf-8")
    prefix = name.removeprefix("gen_ai.").partition(".")[0]
    suffixes = [name.removeprefix(f"gen_ai.{prefix}"), f".{name.rpartition('.')[2]}"]
    assert any(f"`{spelling}`" in text for spelling in (name, *suffixes))


def test_page_has_the_tables_of_the_lake() -> None:
    lines = [
        (
            f"`{name}`",
            ", ".join(f"`{column.name}`" for column in columns(name) if column.is_key),
            ", ".join(f"`{column.name}`" for column in columns(name) if not column.is_key),
        )
        for name in TABLES
    ]
    same(DOCS / "parquet.md", "tables", table(("Table", "Key", "Columns"), lines))
