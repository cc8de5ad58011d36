"""Turn the parts that match a query into hits: read their texts, confirm them, and cut snippets out of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from pollux.model import Fate
from pollux.search import rank
from pollux.search.confirm import spans_of
from pollux.search.highlight import Needle, find_spans, snippet
from pollux.search.parts import PART_NAMES, PartKind
from pollux.search.plan import EVERY_KIND, needles
from pollux.search.terms import Node
from pollux.search.texts import MessageHead, PartMatch, TextReader
from pollux.search.values import Hit, Snippet, TextSpan

_GROWTH = 4
"""How many times as many texts are read at once after the first ones did not match: the index is rarely wrong."""
_MOST_SNIPPETS = 3
_MOST_PLACES = 200
_WIDTH = 200
"""Characters of a snippet."""
_APART = 2 * _WIDTH
"""Characters between the places of two snippets, so that they do not show the same words."""


class Candidate(NamedTuple):
    """A part that the index or the facts propose."""

    seq: int
    kind: PartKind | None
    """None for the part of the message that says most about the fields."""
    conditions: tuple[Node, ...]
    """What its text has to satisfy."""
    clause: int = 0
    """The number of the clause for which it is proposed."""
    kinds: Collection[PartKind] = EVERY_KIND
    """What `kind` may be if it is None."""
    values: tuple[str, ...] = ()
    """Values of fields to highlight where they occur."""

    @property
    def weight(self) -> float:
        """The weight of its kind."""
        return rank.WEIGHTS[PartKind.ARGS if self.kind is None else self.kind]


class Confirmed(NamedTuple):
    """The best parts of a session that match, and the number of all of them."""

    matches: list[PartMatch]
    n_matches: int
    """If not all texts were read, with those that the index proposes."""


def best_first(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return candidates in the order in which their texts are read."""
    return sorted(candidates, key=lambda candidate: (-candidate.weight, candidate.seq))


def confirm(
    reader: TextReader,
    session_id: str,
    candidates: Sequence[Candidate],
    most: int,
    is_over: Callable[[], bool] = lambda: False,
    *,
    are_apart: bool = False,
) -> Confirmed:
    """Read the texts of the best candidates of a session until enough of them satisfy their conditions.

    If the time is over before that, what was found so far is returned. With `are_apart`, a part that satisfies several
    conditions is returned for each of them.
    """
    ordered = best_first(candidates)
    matches: dict[tuple[MessageHead, PartKind, tuple[Node, ...]], PartMatch] = {}
    start, size = 0, most
    while start < len(ordered) and len(matches) < most and not (start and is_over()):
        for match in _confirmed(reader, session_id, ordered[start : start + size]):
            matches.setdefault((match.head, match.kind, match.conditions if are_apart else ()), match)
        start, size = start + size, size * _GROWTH
    others = {(candidate.seq, candidate.kind) for candidate in ordered[start:]}
    n_parts = len({(head, kind) for head, kind, _ in matches})
    return Confirmed([*matches.values()][:most], n_parts + len(others))


def _confirmed(reader: TextReader, session_id: str, candidates: Sequence[Candidate]) -> list[PartMatch]:
    matches = []
    rows = reader.rows(session_id, {candidate.seq for candidate in candidates})
    quick = reader.quick(session_id, rows)
    for candidate in candidates:
        if candidate.seq not in rows:
            continue  # the session has changed since it was indexed
        head = rows[candidate.seq].head
        parts = quick.get(candidate.seq)
        match = _match(candidate, head, parts) if parts else None
        if match is None and (not parts or candidate.kind not in parts or candidate.kind is PartKind.THOUGHTS):
            match = _match(candidate, head, reader.full(session_id, [candidate.seq]).get(candidate.seq, {}))
        if match:
            matches.append(match)
    return matches


def _match(candidate: Candidate, head: MessageHead, parts: Mapping[PartKind, str]) -> PartMatch | None:
    kinds = [candidate.kind] if candidate.kind is not None else _telling_kinds(candidate, parts)
    for kind in kinds:
        if kind in parts:
            groups = spans_of(candidate.conditions, parts[kind])
            if groups is not None:
                groups += _value_spans(candidate, parts[kind])
                return PartMatch(head, kind, parts[kind], groups, candidate.conditions)
    return None


def _telling_kinds(candidate: Candidate, parts: Mapping[PartKind, str]) -> list[PartKind]:
    """Return the kinds of a message's parts, those first that contain a value of a field."""
    kinds = [kind for kind in (PartKind.PROMPT, PartKind.ANSWER, *PartKind) if kind in candidate.kinds]
    with_value = [kind for kind in kinds if kind in parts and _value_spans(candidate, parts[kind])]
    return [*with_value, *kinds]


def _value_spans(candidate: Candidate, text: str) -> list[list[TextSpan]]:
    groups = [find_spans(text, Needle(value, is_phrase=True)) for value in candidate.values]
    return [spans for spans in groups if spans]


class RankedHit(NamedTuple):
    """A hit, and by how much its text raises or lowers its score."""

    hit: Hit
    factor: float


def hits_of(session_id: str, title: str, place: float, matches: Sequence[PartMatch]) -> list[RankedHit]:
    """Return the hits of a session, best first; its place in time is 0 if it is the oldest, and 1 if the newest."""
    hits = [_hit(session_id, title, place, match) for match in matches]
    return sorted(hits, key=lambda ranked: -ranked.hit.score)


def _hit(session_id: str, title: str, place: float, match: PartMatch) -> RankedHit:
    head = match.head
    words = [needle.text for needle in needles(match.conditions)]
    factor = rank.text_factor(match.text, match.groups, words, title, is_active=head.fate == Fate.ACTIVE)
    hit = Hit(
        session_id=session_id,
        message_id=head.id,
        number=head.seq,
        part=PART_NAMES[match.kind],
        at=head.at,
        role=head.role,
        fate=head.fate,
        snippets=snippets(match.text, match.groups),
        score=round(rank.score(match.kind, place) * factor, 4),
    )
    return RankedHit(hit, factor)


def snippets(text: str, groups: Sequence[Sequence[TextSpan]]) -> tuple[Snippet, ...]:
    """Return up to three snippets that do not overlap: the best one first, then the others in their order."""
    numbered = [(span, number) for number, group in enumerate(groups) for span in group]
    places = sorted(numbered)[:_MOST_PLACES]
    starts: list[int] = []
    while places and len(starts) < _MOST_SNIPPETS:
        starts.append(_best_start(places))
        places = [place for place in places if abs(place[0].start - starts[-1]) > _APART]
    if not starts:
        return (snippet(text, (), _WIDTH),)
    spans = sorted({span for span, _ in numbered})
    excerpts = []
    for start in [starts[0], *sorted(starts[1:])]:
        near = [span for span in spans if start - _WIDTH // 2 <= span.start < start + _WIDTH]
        excerpts.append(snippet(text, near, _WIDTH))
    return tuple(excerpts)


def _best_start(places: Sequence[tuple[TextSpan, int]]) -> int:
    """Return the start of a stretch with highlights of as many conditions as possible, the first of several."""
    best = (0, 0)
    best_start = places[0][0].start
    for position, (span, _) in enumerate(places):
        inside = []
        for other, number in places[position:]:
            if other.end - span.start > _WIDTH:
                break
            inside.append(number)
        quality = (len(set(inside)), len(inside))
        if quality > best:
            best, best_start = quality, span.start
    return best_start
