"""Say in words how a query was understood: `2 words, a phrase, in prompt, tool shell`."""

from __future__ import annotations

from pollux.search.terms import FieldTest, Phrase, Query, Regex, leaves
from pollux.text.numbers import plural

_VALUE = 60
"""Characters of a value that are repeated."""


def reading(query: Query) -> str:
    """Return what a query looks for; empty if it has no conditions."""
    n_words, n_phrases, n_patterns, n_excluded = 0, 0, 0, 0
    fields = []
    for leaf, is_wanted in leaves(query.node):
        if isinstance(leaf, FieldTest):
            values = " or ".join(value[:_VALUE] for value in leaf.values)
            fields.append(f"{leaf.name} {values}" if is_wanted else f"not {leaf.name} {values}")
        elif not is_wanted:
            n_excluded += 1
        elif isinstance(leaf, Phrase):
            n_phrases += 1
        elif isinstance(leaf, Regex):
            n_patterns += 1
        else:
            n_words += 1
    counts = ((n_words, "word"), (n_phrases, "phrase"), (n_patterns, "pattern"))
    parts = [plural(number, noun) for number, noun in counts if number]
    if n_excluded:
        parts.append(f"without {plural(n_excluded, 'other')}")
    return ", ".join([*parts, *fields])
