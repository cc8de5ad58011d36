"""Counts and money in other people's words: one rule for all formats, said in each of them.

The client's `tool` tokens belong to the prompt, `cached` is a part of it, and `thoughts` are not in its `output`. What
has no counts has none, and what has no price costs nothing known.
"""

from __future__ import annotations

from datetime import datetime
from functools import cache

from pollux import prices
from pollux.model import Json, Tokens

RULE = "gemini-usage-v1"
"""Named in every export, since others put `tool` on the other side or leave the thoughts out."""

_prices = cache(prices.load)


def prompt(tokens: Tokens) -> int:
    """Count all that went in, with what the cache had."""
    return tokens.input + tokens.tool


def uncached(tokens: Tokens) -> int:
    """Count what went in without the cache."""
    return max(prompt(tokens) - tokens.cached, 0)


def completion(tokens: Tokens) -> int:
    """Count all that came out, thoughts too."""
    return tokens.output + tokens.thoughts


def cost(model: str | None, at: datetime | None, tokens: Tokens) -> tuple[int, str] | None:
    """Estimate what a call cost, in nano-dollars, and name the price; nothing where there is no price."""
    price = prices.find(_prices(), model, at)
    return (prices.cost(price, tokens), price.id) if price else None


def price_table() -> dict[str, Json]:
    """Say which prices an estimate rests on."""
    return {"estimated_with": _prices().table, "date": _prices().date}
