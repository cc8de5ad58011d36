"""Generate the price table of Google's Gemini and Gemma models from the installed package genai-prices.

The table has the prices of input, cached and output tokens, which are all that a session records. A session does not
distinguish text from audio or images, so all input has the price of text, and a model whose output is priced by kind
has no price. A rule or price that this script does not know ends it with an error, so that a person decides about it.
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
    """Write the table, and print the models that have no price."""
    models = [row(model) for model in google_models()]
    TABLE.write_text(render(models, checked()), encoding="utf-8", newline="\n")
    for model in models:
        if "unpriced" in model:
            print(f"no price for {model['id']}: {model['unpriced']}")
    print(f"{len(models)} models of {SOURCE} {version(SOURCE)} in {TABLE}")


def google_models() -> Iterator[ModelInfo]:
    """Return Google's own models, in the order in which a model name is compared with them."""
    google = next(provider for provider in providers if provider.id == "google")
    return (model for model in google.models if model.id.startswith(FAMILIES))


def checked() -> date:
    """Return the newest day on which the source was compared with Google's price page, according to its comments."""
    comments = (model.price_comments or "" for model in google_models())
    return max(date.fromisoformat(day) for comment in comments for day in _CHECKED.findall(comment))


def render(models: list[dict[str, object]], day: date) -> str:
    """Return the table as JSON with a line per model, so that a diff is readable."""
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
    """Return the row of a model; consecutive identical prices are merged."""
    result: dict[str, object] = {"id": model.id, "match": patterns(model.match)}
    dated = list(dated_prices(model))
    if reason := unpriced(model, [price for _, price in dated]):
        return {**result, "unpriced": reason}
    prices: list[dict[str, object]] = []
    for since, price in dated:
        tiers = list(price_tiers(price))
        if not prices or prices[-1]["tiers"] != tiers:
            prices.append({"since": since and since.isoformat(), "tiers": tiers})
    return {**result, "prices": prices}


def patterns(clause: MatchLogic) -> list[dict[str, str]]:
    """Return the alternatives of a rule, each a set of conditions."""
    match clause:
        case ClauseOr(alternatives):
            return [pattern for alternative in alternatives for pattern in patterns(alternative)]
        case ClauseAnd(parts):
            merged: dict[str, str] = {}
            for part in parts:
                [pattern] = patterns(part)
                if merged.keys() & pattern.keys():
                    raise ValueError(f"two conditions of the same kind: {clause}")
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
            raise ValueError(f"unknown kind of rule: {clause}")


def dated_prices(model: ModelInfo) -> Iterator[tuple[date | None, ModelPrice]]:
    """Yield each price with its first day; the first price applies to all time before the second."""
    if isinstance(model.prices, ModelPrice):
        yield None, model.prices
        return
    last = date.min
    for index, conditional in enumerate(model.prices):
        day = first_day(model, conditional)
        if index and day <= last:
            raise ValueError(f"{model.id}: prices are not in chronological order")
        yield (day if index else None), conditional.prices
        last = day


def first_day(model: ModelInfo, conditional: ConditionalPrice) -> date:
    """Return the day from which a price applies."""
    match conditional.constraint:
        case None:
            return date.min
        case StartDateConstraint(date() as day):
            return day
        case other:
            raise ValueError(f"{model.id}: unknown constraint of a price: {other}")


def unpriced(model: ModelInfo, prices: list[ModelPrice]) -> str | None:
    """Return why a model has no price that token counts of a session could be multiplied by; None if it has one."""
    keys = {key for price in prices for key, value in vars(price).items() if value is not None}
    unknown = [key for key in keys - {*_BILLED.values()} if not _NOT_IN_SESSIONS.fullmatch(key)]
    if kinds := sorted(match[1] for key in unknown if (match := _OUTPUT_BY_KIND.fullmatch(key))):
        return f"{' and '.join(kinds)} output has its own price, and sessions do not record it separately"
    if unknown:
        raise ValueError(f"{model.id}: unknown prices {', '.join(sorted(unknown))}")
    if not keys:
        return None if _FREE.search(f"{model.name} {model.price_comments}") else "the source has none"
    if not all(price.input_mtok is not None and price.output_mtok is not None for price in prices):
        return "input or output has no price"
    return None


def price_tiers(price: ModelPrice) -> Iterator[dict[str, int | None]]:
    """Yield the tiers of a price; a model without prices is free."""
    values = {name: getattr(price, key) for name, key in _BILLED.items()}
    limits = {tier.start for value in values.values() if isinstance(value, TieredPrices) for tier in value.tiers}
    for above in sorted({0, *limits}):
        amounts = {name: amount_above(value, above) for name, value in values.items()}
        free = {name: 0 for name in _BILLED if not vars(price)}
        yield {"above": above, **amounts, **free}


def amount_above(value: Decimal | TieredPrices | None, above: int) -> int | None:
    """Return the price of a token in pico-US-dollars for a prompt just above a limit."""
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
