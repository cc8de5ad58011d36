"""Texts in which nothing is found are remembered, whoever asks: the same ones come again and again."""

from __future__ import annotations

from functools import lru_cache

_MOST = 2 << 20
"""So many characters are kept."""
_EACH = 50
"""What a text takes besides its characters."""


class Kept(set[str]):
    """Texts that are remembered; when they are too many, all are forgotten."""

    n_chars = 0

    def keep(self, text: str) -> None:
        """Remember a text."""
        self.add(text)
        self.n_chars += len(text) + _EACH
        if self.n_chars > _MOST:
            self.clear()
            self.n_chars = 0


PLAIN = Kept()
"""What no rule finds anything in."""


@lru_cache(2)
def clean(names: frozenset[str]) -> Kept:
    """Give what neither a rule nor one of these names is found in."""
    del names
    return Kept()


def forget() -> None:
    """Forget all, as if nobody had asked yet."""
    PLAIN.clear()
    PLAIN.n_chars = 0
    clean.cache_clear()
