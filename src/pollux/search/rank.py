"""The order of hits: by the kind of part, by how recently the session was used, and by what its text shows.

A prompt is what its author remembers, so it weighs most; tool output weighs least. BM25 is not used: on a million
messages it found a prompt by two or three of its words less often than this order does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pollux.search.parts import PartKind
from pollux.search.values import TextSpan

WEIGHTS: Mapping[PartKind, float] = {
    PartKind.PROMPT: 4.0,
    PartKind.ANSWER: 2.0,
    PartKind.ARGS: 1.5,
    PartKind.THOUGHTS: 1.2,
    PartKind.NOTICE: 1.0,
    PartKind.OUTPUT: 0.6,
}
DROPPED = 0.7
"""Factor of a message that is no longer part of the conversation."""
_SAME_CASE = 1.05
_CLOSE = 1.15
"""Factor of a text in which a highlight of each word is within `_NEAR` characters."""
_NEAR = 80
_IN_TITLE = 1.1
_SHARE_OF_OTHERS = 0.1


class TimeRange(NamedTuple):
    """When the oldest and the newest session was last used, in microseconds."""

    oldest: int
    newest: int

    def place(self, used: int | None) -> float:
        """Return where a time lies in the range: 0 for the oldest session, 1 for the newest."""
        if used is None or self.newest <= self.oldest:
            return 0.0 if used is None else 1.0
        return min(max((used - self.oldest) / (self.newest - self.oldest), 0.0), 1.0)


def score(kind: PartKind, place: float) -> float:
    """Return the score of a part of a session with a place in time from 0 to 1."""
    return WEIGHTS[kind] * time_factor(place)


def time_factor(place: float) -> float:
    """Return the factor of a place in time: the newest session counts twice as much as the oldest."""
    return 0.5 + 0.5 * place


def session_score(scores: Iterable[float]) -> float:
    """Return the score of a session: that of its best part plus a tenth of the others, at most twice the best."""
    every = list(scores)
    if not every:
        return 0.0
    best = max(every)
    return best + min(best, _SHARE_OF_OTHERS * (sum(every) - best))


def text_factor(
    text: str, groups: Sequence[Sequence[TextSpan]], needles: Sequence[str], title: str, *, is_active: bool
) -> float:
    """Return by how much the text of a hit raises or lowers its score.

    Args:
        text: of the part.
        groups: the highlights of each condition in it.
        needles: the words that were searched for, as typed.
        title: of the session.
        is_active: whether the message is still part of the conversation.

    """
    factor = 1.0 if is_active else DROPPED
    if not needles:
        return factor
    if all(needle in text for needle in needles):
        factor *= _SAME_CASE
    folded = title.casefold()
    if all(needle.casefold() in folded for needle in needles):
        factor *= _IN_TITLE
    if len(groups) > 1 and smallest_window(groups) <= _NEAR:
        factor *= _CLOSE
    return factor


def smallest_window(groups: Sequence[Sequence[TextSpan]]) -> int:
    """Return about how many characters a stretch of text needs to contain a highlight of each group."""
    sizes = []
    first, *others = groups
    for span in first:
        nearest = [min((_distance(span, other) for other in group), default=0) for group in others]
        sizes.append(span.end - span.start + max(nearest, default=0))
    return min(sizes, default=0)


def _distance(span: TextSpan, other: TextSpan) -> int:
    return max(other.end - span.end, span.start - other.start, 0)
