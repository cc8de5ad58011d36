"""Find sessions by their titles.

A title that the client wrote as a summary is in no message, but people search for what they saw in a list. Titles that
are the beginning of a prompt are found with the prompt.
"""

from __future__ import annotations

import sqlite3

from pollux.search.confirm import spans_of
from pollux.search.fact_tests import has_message_tests
from pollux.search.plan import EVERY_KIND, Clause, needles
from pollux.search.scan import longest_piece

_SUMMARIES = "SELECT session_id, title FROM sessions WHERE title_from = 'summary'"
_NOT_ASCII = "title GLOB '*[^ -~]*'"
"""Such a title may contain a word in another spelling."""


def sessions_with_title(database: sqlite3.Connection, clause: Clause) -> set[str]:
    """Return the sessions whose titles satisfy the conditions of a clause on texts.

    Only words and phrases are searched in titles; what a clause says about parts and messages, no title can satisfy.
    """
    if not clause.positive or clause.has_regex or clause.kinds != EVERY_KIND or has_message_tests(clause):
        return set()
    pieces = [longest_piece(needle.text) for needle in needles(clause.positive)]
    piece = None if clause.has_alternatives else max((piece for piece in pieces if piece), key=len, default=None)
    if piece is None:
        rows = database.execute(_SUMMARIES)
    else:
        rows = database.execute(f"{_SUMMARIES} AND (title LIKE ? OR {_NOT_ASCII})", (f"%{piece}%",))
    return {session_id for session_id, title in rows if spans_of(clause.texts, title) is not None}
