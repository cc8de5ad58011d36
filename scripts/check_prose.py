"""Check names and docstrings of `src` for what we do not write: class names used twice, riddles, weak first words.

Run by `make lint`. Prints each finding with its place and ends with status 1 if there are any.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"

BANNED_MODULES = frozenset(
    """
    base common glue handler harmless helper helpers kept known look manager meant misc processor put_together said
    telling told util utils words
    """.split()  # noqa: SIM905  easier to read than a list
)
WEAK_WORDS = frozenset(
    """
    ask begin come give go have know let look put say see take tell what whatever when where which who whoever
    """.split()  # noqa: SIM905
)
"""First words of a function's docstring that do not say what the caller gets."""


def main() -> int:
    """Print all findings and return the exit status."""
    findings = list(check(SOURCE))
    for finding in findings:
        print(finding)
    return 1 if findings else 0


def check(source: Path) -> Iterator[str]:
    """Yield one line for each finding."""
    classes: dict[str, list[str]] = defaultdict(list)
    for path in sorted(source.rglob("*.py")):
        place = path.relative_to(source.parent)
        if path.stem in BANNED_MODULES:
            yield f"{place}: a module is named after what it does or contains, not {path.stem!r}"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                classes[node.name].append(f"{place}:{node.lineno}")
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not _is_property(node):
                word = re.match(r"[A-Za-z]*", ast.get_docstring(node) or "")
                if word and word[0].lower() in WEAK_WORDS:
                    yield f"{place}:{node.lineno}: the docstring of {node.name} begins with {word[0]!r}; try Return"
    for name, places in sorted(classes.items()):
        if len(places) > 1:
            yield f"{places[1]}: class {name} exists already, at {places[0]}"


def _is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any("property" in ast.unparse(decorator) for decorator in node.decorator_list)


if __name__ == "__main__":
    sys.exit(main())
