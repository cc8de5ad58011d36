"""Decide on the original text whether a part satisfies the conditions of a query, and where."""

from __future__ import annotations

from collections.abc import Sequence

from pollux.errors import PolluxError
from pollux.search.highlight import find_spans
from pollux.search.plan import needle
from pollux.search.query import compile_regex
from pollux.search.terms import AllOf, AnyOf, FieldTest, Node, Not, Phrase, Regex, Word
from pollux.search.values import TextSpan

_TEXT_SECONDS = 0.2
"""Time that a regular expression may take for one text."""
_MOST_SPANS = 50


class SlowRegexError(PolluxError):
    """A regular expression takes too long for a text."""

    status = 2

    def __init__(self, pattern: str) -> None:
        """Build the message from the expression."""
        super().__init__(
            f"The expression re:/{pattern}/ takes too long for some texts. Use one without nested repetitions, such "
            "as a+ instead of (a+)+."
        )


def spans_of(nodes: Sequence[Node], text: str) -> list[list[TextSpan]] | None:
    """Return the highlights of each condition; None if the text does not satisfy all of them.

    Negated conditions have no highlights. Raises `SlowRegexError`.
    """
    groups = []
    for node in nodes:
        spans = _spans(node, text)
        if spans is None:
            return None
        if spans:
            groups.append(spans)
    return groups


def _spans(node: Node, text: str) -> list[TextSpan] | None:
    if isinstance(node, Word | Phrase):
        return find_spans(text, needle(node), _MOST_SPANS) or None
    if isinstance(node, Regex):
        return _regex_spans(node, text) or None
    if isinstance(node, Not):
        return [] if _spans(node.node, text) is None else None
    if isinstance(node, AllOf):
        groups = spans_of(node.nodes, text)
        return None if groups is None else [span for group in groups for span in group]
    if isinstance(node, AnyOf):
        alternatives = [_spans(child, text) for child in node.nodes]
        matching = [spans for spans in alternatives if spans is not None]
        return [span for spans in matching for span in spans] if matching else None
    assert isinstance(node, FieldTest)
    raise TypeError(f"{node.name}: is no condition on a text")


def _regex_spans(node: Regex, text: str) -> list[TextSpan]:
    spans: list[TextSpan] = []
    try:
        for match in compile_regex(node).finditer(text, timeout=_TEXT_SECONDS, concurrent=True):
            start, end = match.span()
            if end > start:
                spans.append(TextSpan(start, end))
                if len(spans) == _MOST_SPANS:
                    break
    except TimeoutError:
        raise SlowRegexError(node.pattern) from None
    return spans
