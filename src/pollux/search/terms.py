"""The parts of a parsed query, as a tree of values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import msgspec

from pollux.search.ranges import Bounds


class Word(msgspec.Struct, frozen=True, tag=True):
    """A word that a text contains, or with which a word of the text begins."""

    text: str
    """Without the `*` of a prefix."""
    is_prefix: bool = False
    at: int = 0
    """Its position in the query; the first character is 0."""


class Phrase(msgspec.Struct, frozen=True, tag=True):
    """Words that follow each other."""

    text: str
    at: int = 0


class Regex(msgspec.Struct, frozen=True, tag=True):
    """A regular expression that matches a text; `compile_regex` compiles it."""

    pattern: str
    flags: str = ""
    """Any of `i`, `m` and `s`."""
    at: int = 0


class FieldTest(msgspec.Struct, frozen=True, tag=True):
    """A test of a field, which one of several values has to pass."""

    name: str
    values: tuple[str, ...]
    """As typed, without quotation marks; choices in lower case."""
    at: int = 0
    bounds: tuple[Bounds, ...] = ()
    """The values of a number (in the field's unit) or of a time (in microseconds since 1970)."""


class Not(msgspec.Struct, frozen=True, tag=True):
    """What must not match."""

    node: Node
    at: int = 0


class AnyOf(msgspec.Struct, frozen=True, tag=True):
    """Nodes of which at least one matches."""

    nodes: tuple[Node, ...]


class AllOf(msgspec.Struct, frozen=True, tag=True):
    """Nodes that all match."""

    nodes: tuple[Node, ...] = ()


TextTerm: TypeAlias = Word | Phrase | Regex

Node: TypeAlias = Word | Phrase | Regex | FieldTest | Not | AnyOf | AllOf


class Query(msgspec.Struct, frozen=True):
    """A parsed query."""

    text: str
    """As typed."""
    node: AllOf = AllOf()
    left_out: tuple[str, ...] = ()
    """What was typed but cannot be searched for, such as a `*` or `OR` without neighbours; for a note."""

    @property
    def is_empty(self) -> bool:
        """Whether it has no condition, so that it matches every session."""
        return not self.node.nodes


def leaves(node: Node, *, is_wanted: bool = True) -> Iterator[tuple[Word | Phrase | Regex | FieldTest, bool]]:
    """Yield the words, phrases, patterns and tests of a tree, each with whether it has to match."""
    match node:
        case Not(inner):
            yield from leaves(inner, is_wanted=not is_wanted)
        case AnyOf(nodes) | AllOf(nodes):
            for child in nodes:
                yield from leaves(child, is_wanted=is_wanted)
        case _:
            yield node, is_wanted


def wanted_texts(query: Query) -> tuple[TextTerm, ...]:
    """Return the words, phrases and patterns to highlight, each once."""
    terms: dict[TextTerm, None] = {}
    for leaf, is_wanted in leaves(query.node):
        if is_wanted and not isinstance(leaf, FieldTest):
            terms.setdefault(msgspec.structs.replace(leaf, at=0))
    return tuple(terms)


def _is_anchored(node: Node) -> bool:
    """Return whether a tree without `-` narrows the search: a word, or a field other than `in:`."""
    match node:
        case Not():
            return False
        case AnyOf(nodes):
            return all(_is_anchored(child) for child in nodes)
        case AllOf(nodes):
            return any(_is_anchored(child) for child in nodes)
        case FieldTest(name):
            return name != "in"
        case _:
            return True


def is_only_negative(node: Node) -> bool:
    """Return whether a tree has words or patterns, but only some that must not match."""
    return _has_text(node) and not _is_anchored(node)


def _has_text(node: Node) -> bool:
    return any(not isinstance(leaf, FieldTest) for leaf, _ in leaves(node))
