"""Split a query into clauses: conditions on the text of a part, on its kind, and on the facts of its message.

A query is true for a part of a message if one of its clauses is. Subtrees that only concern text stay together, because
the index evaluates them; only where words and fields are combined by OR does a query have several clauses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product

import msgspec

from pollux.errors import PolluxError
from pollux.search.highlight import Needle
from pollux.search.parts import PART_NAMES, PartKind
from pollux.search.terms import AllOf, AnyOf, FieldTest, Node, Not, Phrase, Query, Regex, Word
from pollux.search.tokenizer import match_phrase, match_word

_MOST_CLAUSES = 32
_PART = "in"
"""The field that names kinds of parts."""
_EVENTS = frozenset({"file", "cmd", "tool"})
EVERY_KIND = frozenset(PartKind)


class ComplicatedQueryError(PolluxError):
    """A query combines more conditions than can be evaluated."""

    status = 2

    def __init__(self) -> None:
        """Build the message."""
        super().__init__(
            "The query combines too many conditions. Search for fewer of them at a time, or write field:a,b for "
            "several values of a field."
        )


class Clause(msgspec.Struct, frozen=True):
    """Conditions that a part of a message satisfies all at once."""

    texts: tuple[Node, ...] = ()
    """Conditions on the text of the part."""
    facts: tuple[FieldTest | Not, ...] = ()
    """Conditions on its message or session."""
    kinds: frozenset[PartKind] = EVERY_KIND

    @property
    def positive(self) -> tuple[Node, ...]:
        """The conditions that require a text."""
        return tuple(node for node in self.texts if not isinstance(node, Not))

    @property
    def negative(self) -> tuple[Node, ...]:
        """The conditions that a text must not satisfy."""
        return tuple(node for node in self.texts if isinstance(node, Not))

    @property
    def events(self) -> tuple[FieldTest, ...]:
        """The tests of what was done, which need not be in the message with the words: files, commands and tools."""
        return tuple(test for test in self.facts if isinstance(test, FieldTest) and test.name in _EVENTS)

    @property
    def without_events(self) -> Clause:
        """The clause without the tests of what was done."""
        events = self.events
        facts = tuple(test for test in self.facts if test not in events)
        return msgspec.structs.replace(self, facts=facts) if events else self

    @property
    def may_be_spread(self) -> bool:
        """Whether several messages of a session may satisfy it together."""
        n_conditions = len(conditions(self))
        return n_conditions > 1 or (n_conditions == 1 and bool(self.events))

    @property
    def has_alternatives(self) -> bool:
        """Whether a text may satisfy one of several conditions."""
        return any(isinstance(node, AnyOf) for node in self.positive)

    @property
    def has_regex(self) -> bool:
        """Whether a text has to match a regular expression."""
        return any(isinstance(leaf, Regex) for node in self.texts for leaf in leaves(node))


def clauses(query: Query) -> tuple[Clause, ...]:
    """Return the clauses of a query. Raises `ComplicatedQueryError`."""
    alternatives = _clauses(query.node, is_negated=False)
    return tuple(dict.fromkeys(clause for clause in alternatives if clause.kinds))


def leaves(node: Node) -> Iterator[Word | Phrase | Regex | FieldTest]:
    """Yield the words, phrases, expressions and fields below a node."""
    if isinstance(node, Not):
        yield from leaves(node.node)
    elif isinstance(node, AllOf | AnyOf):
        for child in node.nodes:
            yield from leaves(child)
    else:
        yield node


def needles(nodes: Iterable[Node]) -> list[Needle]:
    """Return what to highlight: the words and phrases that a text has to contain or may contain."""
    unique: dict[Needle, None] = {}
    for node in nodes:
        if isinstance(node, Word | Phrase):
            unique[needle(node)] = None
        elif isinstance(node, AllOf | AnyOf):
            unique.update(dict.fromkeys(needles(node.nodes)))
    return list(unique)


def needle(leaf: Word | Phrase) -> Needle:
    """Return what to search a text for."""
    if isinstance(leaf, Phrase):
        return Needle(leaf.text, is_phrase=True)
    return Needle(leaf.text, is_prefix=leaf.is_prefix)


def conditions(clause: Clause) -> list[Node]:
    """Return the positive conditions on texts one by one: those that may be met by several messages of a session."""
    nodes: list[Node] = []
    for node in clause.positive:
        nodes += node.nodes if isinstance(node, AllOf) else [node]
    return [node for node in nodes if not isinstance(node, Not)]


def match_expression(nodes: Sequence[Node]) -> str | None:
    """Return the FTS5 expression for a part that may satisfy all conditions; None if the index cannot tell.

    The expression finds every part that satisfies the conditions, and perhaps more: the text decides in the end. So a
    condition that the index cannot evaluate is left out, and a negated one is used only if the index is exact about it.
    """
    required: list[str] = []
    excluded: list[str] = []
    for node in _flat(nodes):
        if isinstance(node, Not):
            if exact := _exact(node.node):
                excluded.append(exact)
        elif expression := _expression(node):
            required.append(expression)
    if not required:
        return None
    positive = " AND ".join(required)
    if not excluded:
        return positive
    return f"({positive}) NOT ({' OR '.join(excluded)})"


def is_exact(nodes: Sequence[Node]) -> bool:
    """Return whether the index alone can tell which parts satisfy the conditions, apart from rare false hits."""
    for node in _flat(nodes):
        if isinstance(node, Not):
            if _exact(node.node) is None:
                return False
        elif any(isinstance(leaf, Regex) for leaf in leaves(node)) or not _expression(node):
            return False
    return True


def _flat(nodes: Iterable[Node]) -> Iterator[Node]:
    for node in nodes:
        if isinstance(node, AllOf):
            yield from _flat(node.nodes)
        else:
            yield node


def _expression(node: Node) -> str | None:
    if isinstance(node, Word):
        return _bracketed(match_word(node.text, is_prefix=node.is_prefix))
    if isinstance(node, Phrase):
        return _bracketed(match_phrase(node.text))
    if isinstance(node, AnyOf):
        alternatives = [_expression(child) for child in node.nodes]
        searchable = [alternative for alternative in alternatives if alternative]
        return f"({' OR '.join(searchable)})" if searchable and len(searchable) == len(alternatives) else None
    if isinstance(node, AllOf):
        return _bracketed(match_expression(node.nodes))
    return None


def is_one_token(word: Word) -> bool:
    """Return whether a word is a single token, so that the index is exact about it."""
    if word.is_prefix or not (word.text.isascii() and word.text.isalnum()):
        return False
    return match_word(word.text) == f'"{word.text.lower()}"'


def _exact(node: Node) -> str | None:
    """Return the expression of a negated condition if the index never takes another text for it."""
    if isinstance(node, Word):
        return match_word(node.text) if is_one_token(node) else None
    if isinstance(node, AnyOf):
        alternatives = [_exact(child) for child in node.nodes]
        exact = [alternative for alternative in alternatives if alternative]
        return " OR ".join(exact) if len(exact) == len(alternatives) else None
    return None


def _bracketed(expression: str | None) -> str | None:
    return f"({expression})" if expression else None


def _clauses(node: Node, *, is_negated: bool) -> list[Clause]:
    if not any(isinstance(leaf, FieldTest) for leaf in leaves(node)):
        return [Clause(texts=_text_conditions(node, is_negated=is_negated))]
    if isinstance(node, Not):
        return _clauses(node.node, is_negated=not is_negated)
    if isinstance(node, AllOf | AnyOf):
        children = [_clauses(child, is_negated=is_negated) for child in node.nodes]
        if isinstance(node, AllOf) != is_negated:
            return _combined(children)
        return _limited([clause for alternatives in children for clause in alternatives])
    assert isinstance(node, FieldTest)
    if node.name == _PART:
        named = frozenset(PartKind(PART_NAMES.index(name)) for name in node.values)
        return [Clause(kinds=EVERY_KIND - named if is_negated else named)]
    return [Clause(facts=(Not(node, node.at) if is_negated else node,))]


def _text_conditions(node: Node, *, is_negated: bool) -> tuple[Node, ...]:
    if is_negated:
        return (node.node,) if isinstance(node, Not) else (Not(node, 0),)
    return tuple(node.nodes) if isinstance(node, AllOf) else (node,)


def _combined(children: Sequence[list[Clause]]) -> list[Clause]:
    """Return a clause for each way to choose one clause of every child."""
    combined = [Clause()]
    for alternatives in children:
        merged = []
        for before, clause in product(combined, alternatives):
            kinds = before.kinds & clause.kinds
            merged.append(Clause(before.texts + clause.texts, before.facts + clause.facts, kinds))
        combined = _limited(merged)
    return combined


def _limited(alternatives: list[Clause]) -> list[Clause]:
    if len(alternatives) > _MOST_CLAUSES:
        raise ComplicatedQueryError
    return alternatives
