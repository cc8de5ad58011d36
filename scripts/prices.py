"""Write the price table anew from the installed genai-prices: what Google's Gemini and Gemma models cost.

Only what a session can be billed by is taken: the prices of input, cached and output tokens. A session does not tell
text from audio or images, so all input counts as text, and a model whose output is priced by kind has no price at all.
Whatever this script does not understand stops it: a price is looked at by a person before it is left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path

from genai_prices.data import providers
from genai_prices.types import (
    ClauseAnd,
    ClauseContains,
    ClauseEndsWith,
    ClauseEquals,
    ClauseOr,
    ClauseRegex,
    ClauseStartsWith,
    ConditionalPrice,
    MatchLogic,
    ModelInfo,
    ModelPrice,
    StartDateConstraint,
    TieredPrices,
)

TABLE = Path(__file__).parents[1] / "src" / "pollux" / "prices" / "table.json"
SOURCE = "genai-prices"
FAMILIES = ("gemini-", "gemma-")

_BILLED = {"input": "input_mtok", "cached": "cache_read_mtok", "output": "output_mtok"}
_NOT_IN_SESSIONS = re.compile(r"(input|cache)_(audio|image|video)(_read)?_mtok|web_searches_kcount")
_OUTPUT_BY_KIND = re.compile(r"output_(audio|image|video)_mtok")
_FREE = re.compile(r"\(free\)|\bfree of charge\b", re.IGNORECASE)
_CHECKED = re.compile(r"\b(?:checked|verified)(?: on)? (\d{4}-\d\d-\d\d)", re.IGNORECASE)


def main() -> None:
    """Write the table and say what has no price."""
    models = [row(model) for model in google_models()]
    TABLE.write_text(render(models, checked()), encoding="utf-8", newline="\n")
    for model in models:
        if "unpriced" in model:
            print(f"no price for {model['id']}: {model['unpriced']}")
    print(f"{len(models)} models of {SOURCE} {version(SOURCE)} in {TABLE}")


def google_models() -> Iterator[ModelInfo]:
    """Give Google's own models in the order in which names are tried on them."""
    google = next(provider for provider in providers if provider.id == "google")
    return (model for model in google.models if model.id.startswith(FAMILIES))


def checked() -> date:
    """Find the newest day on which, by its own comments, the source looked at Google's price page."""
    comments = (model.price_comments or "" for model in google_models())
    return max(date.fromisoformat(day) for comment in comments for day in _CHECKED.findall(comment))


def render(models: list[dict[str, object]], day: date) -> str:
    """Put the table into JSON with a line for each model, so that a change can be read."""
    head = {
        "source": SOURCE,
        "version": version(SOURCE),
        "date": day.isoformat(),
        "licence": "MIT, see NOTICE",
        "unit": "pico-US-dollars per token = micro-US-dollars per million tokens",
    }
    lines = ",\n".join("    " + json.dumps(model) for model in models)
    return json.dumps(head, indent=2).removesuffix("\n}") + f',\n  "models": [\n{lines}\n  ]\n}}\n'


def row(model: ModelInfo) -> dict[str, object]:
    """Make the row of one model; identical prices that follow each other are one."""
    found: dict[str, object] = {"id": model.id, "match": patterns(model.match)}
    dated = list(dated_prices(model))
    if reason := unpriced(model, [price for _, price in dated]):
        return {**found, "unpriced": reason}
    prices: list[dict[str, object]] = []
    for since, price in dated:
        tiers = list(price_tiers(price))
        if not prices or prices[-1]["tiers"] != tiers:
            prices.append({"since": since and since.isoformat(), "tiers": tiers})
    return {**found, "prices": prices}


def patterns(clause: MatchLogic) -> list[dict[str, str]]:
    """Turn a rule into alternatives, each a set of conditions."""
    match clause:
        case ClauseOr(alternatives):
            return [pattern for alternative in alternatives for pattern in patterns(alternative)]
        case ClauseAnd(parts):
            merged: dict[str, str] = {}
            for part in parts:
                [pattern] = patterns(part)
                if merged.keys() & pattern.keys():
                    raise ValueError(f"two conditions of one sort: {clause}")
                merged |= pattern
            return [merged]
        case ClauseEquals(text):
            return [{"equals": text.lower()}]
        case ClauseStartsWith(text):
            return [{"starts_with": text.lower()}]
        case ClauseEndsWith(text):
            return [{"ends_with": text.lower()}]
        case ClauseContains(text):
            return [{"contains": text.lower()}]
        case ClauseRegex(text):
            return [{"regex": text}]
        case _:
            raise ValueError(f"a rule of a new sort: {clause}")


def dated_prices(model: ModelInfo) -> Iterator[tuple[date | None, ModelPrice]]:
    """Give each price with its first day; the first price holds for all time before the second."""
    if isinstance(model.prices, ModelPrice):
        yield None, model.prices
        return
    last = date.min
    for index, conditional in enumerate(model.prices):
        day = first_day(model, conditional)
        if index and day <= last:
            raise ValueError(f"{model.id}: prices are not in order of time")
        yield (day if index else None), conditional.prices
        last = day


def first_day(model: ModelInfo, conditional: ConditionalPrice) -> date:
    """Read since when a price is in force."""
    match conditional.constraint:
        case None:
            return date.min
        case StartDateConstraint(date() as day):
            return day
        case other:
            raise ValueError(f"{model.id}: a price with {other}")


def unpriced(model: ModelInfo, prices: list[ModelPrice]) -> str | None:
    """Say why a session's counts are not enough to know a model's price."""
    keys = {key for price in prices for key, value in vars(price).items() if value is not None}
    unknown = [key for key in keys - {*_BILLED.values()} if not _NOT_IN_SESSIONS.fullmatch(key)]
    if kinds := sorted(found[1] for key in unknown if (found := _OUTPUT_BY_KIND.fullmatch(key))):
        return f"{' and '.join(kinds)} output has a price of its own, and sessions do not tell it apart"
    if unknown:
        raise ValueError(f"{model.id}: what are {', '.join(sorted(unknown))}?")
    if not keys:
        return None if _FREE.search(f"{model.name} {model.price_comments}") else "the source has none"
    if not all(price.input_mtok is not None and price.output_mtok is not None for price in prices):
        return "input or output has no price"
    return None


def price_tiers(price: ModelPrice) -> Iterator[dict[str, int | None]]:
    """Give the tiers of one price; a model without any price is free."""
    found = {name: getattr(price, key) for name, key in _BILLED.items()}
    limits = {tier.start for value in found.values() if isinstance(value, TieredPrices) for tier in value.tiers}
    for above in sorted({0, *limits}):
        amounts = {name: amount_above(value, above) for name, value in found.items()}
        free = {name: 0 for name in _BILLED if not vars(price)}
        yield {"above": above, **amounts, **free}


def amount_above(value: Decimal | TieredPrices | None, above: int) -> int | None:
    """Give pico-US-dollars per token for a prompt just above a limit."""
    if value is None:
        return None
    if isinstance(value, TieredPrices):
        value = [value.base, *(tier.price for tier in value.tiers if tier.start <= above)][-1]
    pico = value.scaleb(6)
    if pico != int(pico):
        raise ValueError(f"{value} has more than six decimals")
    return int(pico)


if __name__ == "__main__":
    main()
