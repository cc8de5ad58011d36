"""Text that every file and table takes.

JSON can say half a surrogate pair, and a file's name need not be UTF-8; neither can be written down as it is.
"""

from __future__ import annotations


def sound(text: str) -> str:
    """Write what is no character as an escape: two texts that differ still do."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
