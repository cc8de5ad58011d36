"""Text without tricks, for whoever shows it: a terminal, a page or a line of words.

What a session holds comes from models, programs and web pages. None of it may move the cursor, change the title, hide
behind other text or run from right to left over what follows.
"""

from __future__ import annotations

import re
from functools import lru_cache

TAB = 4

# Colours alone are harmless, but they are noise once they do not colour.
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
"""Where Unicode has pictures of the control characters."""


def clean(text: str) -> str:
    """Make visible what a terminal would act upon, and leave out colours; lines stay lines."""
    return _expanded(safe(_COLOUR.sub("", text.replace("\r\n", "\n"))))


def safe(text: str) -> str:
    """Make visible what a terminal would act upon, whatever it is."""
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
    """Return a name in one line of characters that can be shown: all others become escapes."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
