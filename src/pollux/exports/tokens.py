"""Counts and money in other people's words: one rule for all formats, said in each of them.

The client's `tool` tokens belong to the prompt, `cached` is a part of it, and `thoughts` are not in its `output`. What
has no counts has none, and what has no price costs nothing known.
"""

from __future__ import annotations

from pollux import prices
from pollux.exports.source import Subject
from pollux.model import Json, ModelCall, Tokens
from pollux.prices import Prices

RULE = "gemini-usage-v1"
"""Named in every export, since others put `tool` on the other side or leave the thoughts out."""


def prompt(tokens: Tokens) -> int:
    """Count all that went in, with what the cache had."""
    return tokens.input + tokens.tool


def completion(tokens: Tokens) -> int:
    """Count all that came out, thoughts too."""
    return tokens.output + tokens.thoughts


def cost(call: ModelCall, table: Prices) -> tuple[int, str] | None:
    """Return the estimated cost of a call in nano-dollars and the ID of its price, or None without a price."""
    price = prices.find(table, call.model, call.at)
    return (prices.cost(price, call.tokens), price.id) if price else None


def price_table(subject: Subject) -> dict[str, Json]:
    """Return the name and the date of the prices that an estimate is made with; the name may be that of a file."""
    return {"estimated_with": subject.clean(subject.prices.table), "date": subject.prices.date}
