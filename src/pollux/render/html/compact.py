"""Compact style sheets and scripts: what a browser does not need is removed when they are served or put into a page."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

_TOKENS = re.compile(
    r"""
    (?P<comment>/\*.*?(?:\*/|\Z))
    | (?P<kept>"(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*' | (?<![\w-])url\(\s*(?!["'\s])(?:[^)\\]|\\.)*\) | \\.)
    | (?P<space>\s+)
    | (?P<mark>[{};,>:()])
    | (?P<text>[^\s"'/{};,>:()\\]+ | .)
    """,
    re.DOTALL | re.VERBOSE | re.IGNORECASE,
)
_TIGHT_BEFORE = frozenset("{};,>)")
"""Characters that need no space before them. A colon does: `a :hover` is not `a:hover`."""
_TIGHT_AFTER = frozenset("{};,>(:")
"""Characters that need no space after them. `)` does: `:not(.a) .b`; so do the operators of `calc()`."""


def compact_style(css: str, names: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return a style sheet without comments, indentation, needless spaces and semicolons.

    Custom properties get the names of a table. Strings and addresses stay as they are, and so do the spaces that carry
    a meaning: those between selectors, before a colon, and around the operators of `calc()`.
    """
    pieces: list[str] = []
    is_spaced = False
    for token in _TOKENS.finditer(css):
        kind, text = token.lastgroup, token[0]
        if kind == "space":
            is_spaced = True
            continue
        if kind == "comment":
            if not is_spaced and _is_between_names(css, token):
                pieces.append("/**/")  # it keeps the names on both sides apart, and is not a space
            continue
        last = pieces[-1] if pieces else "{"
        if is_spaced and text not in _TIGHT_BEFORE and last not in _TIGHT_AFTER:
            pieces.append(" ")
        is_spaced = False
        while text == "}" and pieces and pieces[-1] == ";":
            pieces.pop()
        pieces.append(names.get(text, text))
    return "".join(pieces)


def _is_between_names(css: str, token: re.Match[str]) -> bool:
    before, after = css[: token.start()][-1:], css[token.end() :][:1]
    return _is_name(before) and _is_name(after)


def _is_name(character: str) -> bool:
    return character.isalnum() or character in {"-", "_"} if character else False


def compact_script(code: str) -> str:
    """Return a script without indentation, blank lines and lines that are comments; line breaks keep their meaning.

    A text over several lines would lose its indentation, so none of our scripts has one; a test checks that.
    """
    lines = map(str.strip, code.splitlines())
    return "".join(f"{line}\n" for line in lines if line and not line.startswith("//"))
