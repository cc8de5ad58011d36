"""The words around the highlights of a hit, cut to the room that a terminal has for them.

A highlight is bold and coloured on a terminal, and plain text everywhere else. The words of a snippet come from models
and programs, so each piece is escaped by itself: nothing in the text can move a highlight.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.text import Text

from pollux.render.terminal.layout import PageFormat
from pollux.search.values import Snippet, TextSpan

HIGHLIGHT = "bold bright_red"
_MOST_WINDOWS = 3
"""Places of a snippet that are shown if its highlights are too far apart."""
_WORD = 20
"""Characters that a window gives up to begin or end between two words."""
_UNUSED = 8
"""Cells at the ends of lines that stay empty, because lines end between words."""


def excerpts(snippets: Sequence[Snippet], n_cells: int, page: PageFormat) -> Text:
    """Return all snippets of a hit as one text of about so many cells, with each highlighted word at least once."""
    n_cells = max(n_cells - _UNUSED, 16)
    text = Text()
    ends_with_gap = False
    for number, snippet in enumerate(snippets):
        share = n_cells // (len(snippets) - number)
        for start, end in _windows(snippet, share):
            if text:
                text.append(" ")
            if (start or snippet.has_before) and not ends_with_gap:
                text.append("… " if text else "…")
            excerpt = _excerpt(snippet, start, end, page)
            text.append_text(excerpt)
            ends_with_gap = snippet.has_after or end < len(snippet.text)
            if ends_with_gap:
                text.append("…")
            n_cells -= cell_len(excerpt.plain)
    return text


def _excerpt(snippet: Snippet, start: int, end: int, page: PageFormat) -> Text:
    excerpt = Text()

    def append(first: int, last: int, style: str = "") -> None:
        excerpt.append(page.text(snippet.text[first:last]).replace("\n", " "), style)

    position = start
    for span in snippet.spans:
        first, last = max(span.start, position), min(span.end, end)
        if first < last:
            append(position, first)
            append(first, last, HIGHLIGHT)
            position = last
    append(position, end)
    return excerpt


def _windows(snippet: Snippet, n_cells: int) -> list[tuple[int, int]]:
    """Return which characters of a snippet to show: one stretch, or several if that would leave out a word."""
    if cell_len(snippet.text) <= n_cells:
        return [(0, len(snippet.text))]
    highlights = _distinct_words(snippet)
    window = _window(snippet.text, highlights[0], n_cells)
    if all(highlight.end <= window[1] for highlight in highlights):
        return [window]
    windows: list[tuple[int, int]] = []
    for highlight in highlights:
        start, end = _window(snippet.text, highlight, n_cells // len(highlights))
        if windows and start <= windows[-1][1]:
            start = windows.pop()[0]
        windows.append((start, end))
    return windows


def _distinct_words(snippet: Snippet) -> list[TextSpan]:
    """Return the first highlight of each word, in order; the start of the text if there is none."""
    first: dict[str, TextSpan] = {}
    for span in snippet.spans:
        first.setdefault(snippet.text[span.start : span.end].casefold(), span)
    return [*first.values()][:_MOST_WINDOWS] or [TextSpan(0, 0)]


def _window(text: str, highlight: TextSpan, n_cells: int) -> tuple[int, int]:
    """Return a stretch of so many cells; a third of them is for the words before the highlight."""
    start, room = highlight.start, n_cells // 3
    while start and room > 0:
        start -= 1
        room -= cell_len(text[start])
    end, room = start, n_cells
    while end < len(text) and room > 0:
        room -= cell_len(text[end])
        end += 1
    while start and room > 0:  # the end of the text is near: use the room for what is before
        start -= 1
        room -= cell_len(text[start])
    return _between_words(text, start, end, highlight)


def _between_words(text: str, start: int, end: int, highlight: TextSpan) -> tuple[int, int]:
    """Return a window that cuts no word in half where a space is near, and never cuts the highlight."""
    if start:
        space = text.find(" ", start - 1, min(start + _WORD, highlight.start))
        start = space + 1 if space >= 0 else start
    if end < len(text):
        space = text.rfind(" ", max(end - _WORD, highlight.end), end + 1)
        end = space if space > start else end
    return start, end
