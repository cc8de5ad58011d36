"""Replace single sections of BENCHMARKS.md, so that each part can be measured alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from scripts.bench.trees import ROOT

PAGE = ROOT / "BENCHMARKS.md"
_LAST = "## Numbers"
"""New sections are inserted before this heading."""


def write_section(lines: Iterable[str]) -> None:
    """Write a section into BENCHMARKS.md instead of the one with the same heading, and print it."""
    section = list(lines)
    PAGE.write_text(with_section(PAGE.read_text("utf-8"), section), "utf-8")
    print("\n".join(section))


def with_section(page: str, lines: Iterable[str]) -> str:
    """Return a page with a section, whose first line is its heading, instead of the one with the same heading."""
    heading, *body = lines
    text = "\n".join([heading, *body]).rstrip("\n")
    before, _, after = page.partition(f"\n{heading}\n")
    if after:
        after = after[after.index("\n## ") :]
    else:
        before, last, after = page.partition(f"\n{_LAST}\n")
        after = last + after
    return f"{before}\n{text}\n{after}"


def with_other_sections(page: str, old_page: str) -> str:
    """Return a page with those sections of an older one that it lacks."""
    headings = {line for line in page.splitlines() if line.startswith("## ")}
    for section in _sections(old_page):
        if section[0] not in headings:
            page = with_section(page, section)
    return page


def _sections(page: str) -> Iterator[list[str]]:
    for text in page.split("\n## ")[1:]:
        yield f"## {text}".splitlines()
