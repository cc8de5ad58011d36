"""Syntax colours: for which languages there are any, and up to which length, on a terminal as on a page.

Many of Pygments' lexers take time with the square of a text, or worse: 20,000 times `<` keep `apacheconf` busy for half
a minute, and a model writes whatever a web page tells it to. Only the lexers in this table are used. Each was measured
with hostile texts (`tests/views/hostile_code.py`), and gets a long text in windows, so that its time grows with the
length and not with its square: half a second for the longest block at worst. All other code is plain. So is C#, whose
lexer takes several seconds.
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
"""Characters above which a block is plain."""
LONGEST_LINE = 1_000
"""Characters above which a line, and its block with it, is plain."""
WINDOW = 1_500
"""Characters that a lexer sees at once."""
_GAP = re.compile(r"\n(?:[ \t]*\n){3,}")
"""Empty lines, many of which no lexer is ever shown: several look for something behind them again and again."""

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
"""Names of lexers, and what else people call these languages."""

_NAMES = {alias: name for name, aliases in LANGUAGES.items() for alias in (name, *aliases)}


def lexer_for(language: str, code: str) -> Lexer | None:
    """Return the lexer to colour some code with; nothing for code that is to be plain."""
    name = _NAMES.get(language.strip().lower())
    if name is None or len(code) > LONGEST or _longest_line(code) > LONGEST_LINE:
        return None
    return _lexer(name)


def _longest_line(code: str) -> int:
    return max(map(len, code.split("\n")))


@lru_cache(maxsize=len(LANGUAGES))
def _lexer(name: str) -> Lexer:
    # Code within Markdown would be given to whatever lexer it names.
    return _Windows(get_lexer_by_name(name, stripnl=False, ensurenl=False, handlecodeblocks=False))


class _Windows(Lexer):  # type: ignore[misc]
    """Gives a text to another lexer in windows."""

    def __init__(self, inner: Lexer) -> None:
        super().__init__(stripnl=False, ensurenl=False)
        self._inner = inner

    def get_tokens(self, text: str, unfiltered: bool = False) -> Iterator[tuple[Any, str]]:  # noqa: FBT001, FBT002  theirs
        """Yield the tokens of a text."""
        for window in windows(text):
            if window.isspace():
                yield Text, window
            else:
                yield from self._inner.get_tokens(window, unfiltered)


def windows(code: str) -> Iterator[str]:
    """Yield code in windows that end with a line, an empty one if possible; long gaps are windows of their own."""
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
