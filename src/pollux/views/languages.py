"""Lexers for syntax colours, on a terminal and in HTML.

Many of Pygments' lexers take quadratic time or worse: 20,000 times `<` keep `apacheconf` busy for half a minute, and a
model repeats any text that a web page contains. Therefore only the lexers in `LANGUAGES` are used. Each was measured
with hostile texts (`tests/views/hostile_code.py`) and receives a long text in windows, so that its time grows linearly:
the longest block takes half a second at worst. All other code stays plain, also C#, whose lexer takes several seconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Text

LONGEST = 20_000
"""Characters above which a block has no colours."""
LONGEST_LINE = 1_000
"""Characters of a line above which its block has no colours."""
WINDOW = 1_500
"""Characters that a lexer receives at once."""
_GAP = re.compile(r"\n(?:[ \t]*\n){3,}")
"""Runs of empty lines, which are kept from the lexers: several of them search past each one again."""

LANGUAGES: dict[str, tuple[str, ...]] = {
    "bash": ("sh", "shell", "zsh", "ksh"),
    "c": ("h",),
    "cmake": (),
    "console": ("terminal", "shell-session"),
    "cpp": ("c++", "cc", "cxx", "hpp"),
    "css": (),
    "dart": (),
    "diff": ("patch", "udiff"),
    "docker": ("dockerfile", "containerfile"),
    "elixir": ("ex", "exs"),
    "go": ("golang",),
    "graphql": ("gql",),
    "haskell": ("hs",),
    "html": ("htm", "xhtml"),
    "ini": ("cfg", "conf", "dosini", "properties"),
    "java": (),
    "javascript": ("js", "cjs", "mjs", "jsx", "node"),
    "json": ("json5", "jsonc", "jsonl", "ndjson"),
    "kotlin": ("kt", "kts"),
    "less": (),
    "lua": (),
    "make": ("makefile", "mf"),
    "markdown": ("md",),
    "objective-c": ("objc", "obj-c"),
    "perl": ("pl",),
    "php": (),
    "powershell": ("posh", "ps1", "pwsh"),
    "protobuf": ("proto",),
    "python": ("py", "py3", "python3", "pyi"),
    "ruby": ("rb",),
    "rust": ("rs",),
    "scala": (),
    "scss": (),
    "sql": (),
    "swift": (),
    "terraform": ("hcl", "tf"),
    "toml": (),
    "typescript": ("ts", "tsx", "mts", "cts"),
    "xml": ("svg", "xsd", "xslt"),
    "yaml": ("yml",),
}
"""Names of lexers, and other names of these languages."""

_NAMES = {alias: name for name, aliases in LANGUAGES.items() for alias in (name, *aliases)}


def lexer_for(language: str, code: str) -> Lexer | None:
    """Return a lexer for the code, or None if it is to stay plain."""
    name = _NAMES.get(language.strip().lower())
    if name is None or len(code) > LONGEST or _longest_line(code) > LONGEST_LINE:
        return None
    return _lexer(name)


def _longest_line(code: str) -> int:
    return max(map(len, code.split("\n")))


@lru_cache(maxsize=len(LANGUAGES))
def _lexer(name: str) -> Lexer:
    # Without this option Markdown passes its code blocks to any lexer that they name.
    return _Windows(get_lexer_by_name(name, stripnl=False, ensurenl=False, handlecodeblocks=False))


class _Windows(Lexer):  # type: ignore[misc]
    """Passes a text to another lexer in windows."""

    def __init__(self, inner: Lexer) -> None:
        super().__init__(stripnl=False, ensurenl=False)
        self._inner = inner

    def get_tokens(self, text: str, unfiltered: bool = False) -> Iterator[tuple[Any, str]]:  # noqa: FBT001, FBT002  theirs
        for window in windows(text):
            if window.isspace():
                yield Text, window
            else:
                yield from self._inner.get_tokens(window, unfiltered)


def windows(code: str) -> Iterator[str]:
    """Yield code in windows that end with a line, if possible an empty one; each run of empty lines is a window."""
    start = 0
    for gap in _GAP.finditer(code):
        yield from _windows(code[start : gap.start() + 1])
        yield code[gap.start() + 1 : gap.end()]
        start = gap.end()
    yield from _windows(code[start:])


def _windows(code: str) -> Iterator[str]:
    start = 0
    while len(code) - start > WINDOW:
        stop = start + WINDOW
        end = code.rfind("\n\n", start + WINDOW // 2, stop) + 2
        if end == 1:
            end = code.rfind("\n", start, stop) + 1 or stop
        yield code[start:end]
        start = end
    if code[start:]:
        yield code[start:]
