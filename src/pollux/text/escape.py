"""Escape text that is unsafe to display or impossible to encode.

The text of sessions comes from models, programs and web pages. It must not move the cursor, change the title of a
terminal, hide other text or reverse the direction of what follows. JSON may contain lone surrogates, and file names
need not be UTF-8; neither can be written to a file or a table.
"""

from __future__ import annotations

import re
from functools import lru_cache

TAB = 4

# Colours are harmless, but noise if they are not interpreted.
_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")

# Invisible, or able to reorder their surroundings. The joiners are letters of some scripts and make families of emoji:
# they stay between two characters that are neither ASCII nor of the neighbouring alphabets.
_TRICKS = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters, but not line feed and tab
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"  # invisible in the middle of scripts
    "\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"  # spaces of no width, separators, embeddings, isolates
    "\u3164\ufeff\uffa0\ufff9-\ufffb"  # fillers, byte order mark, interlinear notes
    "\ud800-\udfff"  # half of a character
    "\U000e0000-\U000e0fff"  # tags and selectors that can hide a whole text
    "]+"
    "|(?<![\u0590-\U000dffff])[\u200c\u200d]|[\u200c\u200d](?![\u0590-\U000dffff])"
)

_PICTURES = 0x2400
"""First of Unicode's pictures of the control characters."""


def make_visible(text: str) -> str:
    """Return a text without colours, with visible control characters and expanded tabs; line feeds stay."""
    return _expanded(escape_controls(_COLOUR.sub("", text.replace("\r\n", "\n"))))


def escape_controls(text: str) -> str:
    """Return a text with visible symbols for control and invisible characters."""
    return _TRICKS.sub(_shown, text)


def _shown(tricks: re.Match[str]) -> str:
    return "".join(map(_picture, tricks[0]))


@lru_cache(maxsize=1024)
def _picture(trick: str) -> str:
    code = ord(trick)
    if code < 0x20:  # noqa: PLR2004
        return chr(_PICTURES + code)
    if code == 0x7F:  # noqa: PLR2004
        return "\u2421"
    if 0xD800 <= code <= 0xDFFF:  # noqa: PLR2004
        return "\ufffd"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{{{code:x}}}"  # noqa: PLR2004


def _expanded(text: str) -> str:
    return text.expandtabs(TAB) if "\t" in text else text


def printable(text: str) -> str:
    """Return a name on one line, with an escape for each character that is not printable."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def replace_surrogates(text: str) -> str:
    """Return a text with `?` for each lone surrogate, for tables, screens and names of folders."""
    return text.encode("utf-8", "replace").decode()


def escape_surrogates(text: str) -> str:
    """Return a text with an escape for each lone surrogate, so that different texts stay different."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
