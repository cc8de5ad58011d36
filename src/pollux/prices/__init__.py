"""The cost of a model call: a dated, tiered price table as data, and one pure function.

`table.json` is generated from genai-prices (MIT, see NOTICE) by `scripts/prices.py`. A user's own file overrides it:

    [[price]]
    model = "gemini-2.5-pro"  # this name, and every other name of the same model in the table
    since = 2026-01-01        # the first day (UTC) of this price; default: no limit
    until = 2027-01-01        # the first day after it; default: no limit
    input = 1.25              # US dollars per million tokens, at most six decimals
    cached = 0.31             # default: the price of input
    output = 10               # also the price of thoughts
    above_200k = { input = 2.5, cached = 0.625, output = 15 }  # for all tokens of a call with a longer prompt

Prices are integer pico-US-dollars per token. That is the same number as micro-US-dollars per million tokens, so six
decimals are exact. Only the cost of a complete call is rounded: half up, to integer nano-US-dollars.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path
from zlib import adler32, crc32

import msgspec

from pollux.disk.read import SIDE_FILE, read_named
from pollux.errors import PolluxError, UnreadableFileError
from pollux.model import Cost, ModelCall, Tokens, Usage

TABLE = Path(__file__).with_name("table.json")


class Tier(msgspec.Struct, frozen=True):
    """Prices of a token in pico-US-dollars, for prompts with more than `above` tokens."""

    above: int
    """0 for the first tier, which applies to all prompts without a higher one."""
    input: int
    cached: int | None
    """None if cached tokens have the price of input."""
    output: int


class Price(msgspec.Struct, frozen=True):
    """The price of a model for a period of time."""

    id: str
    """Model and first day, such as `gemini-4-argon@2026-12-01`; a price of the user ends in `!user`."""
    model: str
    since: date | None
    until: date | None
    """The first day after it."""
    tiers: tuple[Tier, ...]
    """In order of prompt length."""


class _Pattern(msgspec.Struct, frozen=True):
    """Conditions on a name, which must all hold; empty ones always do."""

    equals: str = ""
    starts_with: str = ""
    ends_with: str = ""
    contains: str = ""
    regex: str = ""


class _Row(msgspec.Struct, frozen=True):
    tiers: tuple[Tier, ...]
    since: date | None = None


class _Model(msgspec.Struct, frozen=True):
    id: str
    match: tuple[_Pattern, ...]
    """Alternatives; a name belongs to the first model with a pattern that matches."""
    prices: tuple[_Row, ...] = ()
    unpriced: str | None = None
    """The reason if there is no price."""


class _Table(msgspec.Struct, frozen=True):
    source: str
    version: str
    date: date
    models: tuple[_Model, ...]


class Prices(msgspec.Struct, frozen=True, eq=False):
    """The price table and the prices that override it."""

    table: str
    """Name and version for reports, such as `genai-prices 0.2.1`, with the name of the user's file."""
    date: str
    """The day on which the source of the table last checked its prices."""
    version: str
    """A hash of the rules below, the table and the user's file, which changes whenever a cost could."""
    rows: tuple[Price, ...]
    overrides: tuple[Price, ...]
    models: tuple[_Model, ...]


class InvalidPricesError(PolluxError):
    """The user's price file is invalid."""

    status = 2

    def __init__(self, path: Path, where: str, reason: str) -> None:
        """Build the message."""
        super().__init__(f"{path}: {where}: {reason}.")


class _RowError(Exception):
    """An invalid [[price]]; the caller adds its number."""


# Increase this when `find` or `cost` return other results, so that stored costs are computed again.
_RULES = b"1"

_decode_table = msgspec.json.Decoder(_Table).decode

# Words that name another model of a family; genai-prices would price gemini-3.6-flash-lite as gemini-3.6-flash.
_KINDS = frozenset({"8b", "audio", "computer", "embedding", "image", "lite", "live", "robotics", "tts"})

_ABOVE = re.compile(r"above_([1-9][0-9]{0,8})k")
_KEYS = frozenset({"model", "since", "until", "currency", "input", "cached", "output"})
_TIER_KEYS = frozenset({"input", "cached", "output"})
_MICRO = Decimal("0.000001")
_MAX_PRICE = 1_000_000  # US dollars per million tokens; a higher price is surely in another unit


def load(overrides: Path | None = None) -> Prices:
    """Return the built-in table, with the prices of a user's file if one is given."""
    data = TABLE.read_bytes()
    table = _decode_table(data)
    name = f"{table.source} {table.version}"
    user_prices: tuple[Price, ...] = ()
    if overrides is not None:
        text = _read(overrides)
        user_prices = _overrides(overrides, text)
        name = f"{name} + {overrides.name}"
        data += b"\0" + text
    return Prices(
        table=name,
        date=table.date.isoformat(),
        version=f"{crc32(_RULES + data):08x}{adler32(_RULES + data):08x}",
        rows=tuple(price for model in table.models for price in _prices(model)),
        overrides=user_prices,
        models=table.models,
    )


def find(prices: Prices, model: str | None, at: datetime | None) -> Price | None:
    """Return the price of a model on the day (UTC) of a call, or None if it has no known price.

    A call without a time gets the price on the date of the table, which may already contain later prices.
    """
    if model is None:
        return None
    day = at.astimezone(UTC).date() if at else date.fromisoformat(prices.date)
    return _on_day(prices, model, day)


@lru_cache(maxsize=4096)
def _on_day(prices: Prices, model: str, day: date) -> Price | None:
    return next((price for price in _candidates(prices, model) if _is_in_force(price, day)), None)


def uncached(tokens: Tokens) -> int:
    """Return the number of tokens that have the input price."""
    return max(tokens.input - tokens.cached, 0) + tokens.tool


def tier_of(price: Price, tokens: Tokens) -> Tier:
    """Return the tier for the length of a prompt: all input, cached or not, and the tokens of tool use.

    Google's page says "prompts > 200k tokens", so a prompt of exactly the limit is still in the low tier. Like
    genai-prices, this compares `promptTokenCount + toolUsePromptTokenCount`.
    """
    return _tier_for(price, uncached(tokens) + tokens.cached)


def cost(price: Price, tokens: Tokens) -> int:
    """Return the cost of one call in nano-US-dollars; the sum of several calls would be in the wrong tier."""
    fresh = uncached(tokens)
    tier = _tier_for(price, fresh + tokens.cached)
    cached = tier.input if tier.cached is None else tier.cached
    pico = fresh * tier.input + tokens.cached * cached + (tokens.output + tokens.thoughts) * tier.output
    return (pico + 500) // 1000


def usage_of(calls: Iterable[ModelCall], prices: Prices) -> Usage:
    """Return the sum of model calls; calls without a price are counted separately."""
    usage = Usage()
    for call in calls:
        price = find(prices, call.model, call.at)
        amount = Cost(cost(price, call.tokens)) if price else Cost(unpriced_calls=1, unpriced_tokens=call.tokens)
        usage += Usage(1, call.tokens, amount, inconsistent=int(not call.tokens.is_consistent))
    return usage


def _tier_for(price: Price, prompt: int) -> Tier:
    for tier in reversed(price.tiers):
        if prompt > tier.above:
            return tier
    return price.tiers[0]


def _is_in_force(price: Price, day: date) -> bool:
    return (price.since is None or price.since <= day) and (price.until is None or day < price.until)


@lru_cache(maxsize=1024)
def _candidates(prices: Prices, model: str) -> tuple[Price, ...]:
    """Return the prices of a model: the user's for this name, the user's for the model, the table's; newest first."""
    name = _bare(model)
    table_name = _table_name(prices, name)
    candidates = [price for price in prices.overrides if price.model == name]
    if table_name != name:
        candidates += [price for price in prices.overrides if price.model == table_name]
    return *candidates, *(price for price in reversed(prices.rows) if price.model == table_name)


def _bare(model: str) -> str:
    """Return a model's name without the prefixes of the APIs: `models/`, or a path on Vertex AI."""
    return model.strip().lower().rpartition("publishers/google/models/")[2].removeprefix("models/")


def _table_name(prices: Prices, name: str) -> str | None:
    if not name.startswith(("gemini-", "gemma-")):
        return None
    kinds = _kinds(name)
    matches = (model.id for model in prices.models if kinds <= _kinds(model.id) and _matches(model, name))
    return next(matches, None)


def _kinds(name: str) -> frozenset[str]:
    return _KINDS.intersection(re.split(r"[^a-z0-9]+", name))


def _matches(model: _Model, name: str) -> bool:
    return any(
        pattern.equals in {"", name}
        and name.startswith(pattern.starts_with)
        and name.endswith(pattern.ends_with)
        and pattern.contains in name
        and re.search(pattern.regex, name)
        for pattern in model.match
    )


def _prices(model: _Model) -> Iterator[Price]:
    ends = (later.since for later in model.prices[1:])
    for row, end in zip_longest(model.prices, ends):
        yield Price(_id(model.id, row.since), model.id, row.since, end, row.tiers)


def _id(model: str, since: date | None) -> str:
    return f"{model}@{since}" if since else model


def _read(path: Path) -> bytes:
    try:
        return read_named(path, limit=SIDE_FILE)
    except OSError as error:
        raise UnreadableFileError(path, error.strerror) from error


def _overrides(path: Path, text: bytes) -> tuple[Price, ...]:
    """Parse a user's prices, the newest first."""
    import tomllib  # noqa: PLC0415  rarely needed

    try:
        content: dict[str, object] = tomllib.loads(text.decode("utf-8-sig"), parse_float=Decimal)
    except ValueError as error:
        raise InvalidPricesError(path, "not valid TOML", str(error)) from error
    except RecursionError as error:
        raise InvalidPricesError(path, "not valid TOML", "its values are nested too deeply") from error
    except InvalidOperation as error:
        raise InvalidPricesError(path, "a number", "its exponent is far beyond any price") from error
    rows = content.pop("price", [])
    if content or not isinstance(rows, list):
        key = next(iter(content), "price")
        raise InvalidPricesError(path, f"'{key}'", "the file may only contain [[price]] tables")
    prices: dict[str, Price] = {}
    for number, row in enumerate(rows, 1):
        try:
            price = _override(row)
        except _RowError as error:
            raise InvalidPricesError(path, f"[[price]] number {number}", str(error)) from None
        if price.id in prices:
            reason = "an earlier one has the same model and first day"
            raise InvalidPricesError(path, f"[[price]] number {number}", reason)
        prices[price.id] = price
    return tuple(sorted(prices.values(), key=lambda price: price.since or date.min, reverse=True))


def _override(row: object) -> Price:
    if not isinstance(row, dict):
        raise _RowError("it must be a table with model, input and output")
    limits = {}
    for key in row:
        if match := _ABOVE.fullmatch(key):
            limits[int(match[1]) * 1000] = key
    _check_keys(row, _KEYS.union(limits.values()), f"{', '.join(sorted(_KEYS))} or above_200k")
    model = row.get("model")
    if not isinstance(model, str) or not _bare(model):
        raise _RowError("model must be the name of a model, such as 'gemini-2.5-pro'")
    if row.get("currency", "USD") != "USD":
        raise _RowError("currency can only be 'USD'")
    since, until = _day(row, "since"), _day(row, "until")
    if since and until and since >= until:
        raise _RowError("since must be before until")
    tiers = (_tier(0, row), *(_upper_tier(limit, limits[limit], row[limits[limit]]) for limit in sorted(limits)))
    return Price(f"{_id(_bare(model), since)}!user", _bare(model), since, until, tiers)


def _upper_tier(above: int, key: str, row: object) -> Tier:
    if not isinstance(row, dict):
        raise _RowError(f"{key} must be a table such as {{ input = 2.5, cached = 0.25, output = 15 }}")
    _check_keys(row, _TIER_KEYS, ", ".join(sorted(_TIER_KEYS)))
    return _tier(above, row, f"{key}.")


def _tier(above: int, row: Mapping[str, object], prefix: str = "") -> Tier:
    cached = _amount(row, "cached", prefix) if "cached" in row else None
    return Tier(above, _amount(row, "input", prefix), cached, _amount(row, "output", prefix))


def _check_keys(row: Mapping[str, object], allowed: frozenset[str], description: str) -> None:
    if unknown := sorted(row.keys() - allowed):
        raise _RowError(f"unknown key '{unknown[0]}'; use {description}")


def _day(row: Mapping[str, object], key: str) -> date | None:
    value = row.get(key)
    if isinstance(value, datetime) or not isinstance(value, date | None):
        raise _RowError(f"{key} must be a date without quotation marks, such as 2026-01-01")
    return value


def _amount(row: Mapping[str, object], key: str, prefix: str) -> int:
    """Convert US dollars per million tokens to pico-US-dollars per token."""
    value = row.get(key)
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise _RowError(f"{prefix}{key} must be a number, in US dollars per million tokens")
    amount = Decimal(value)
    if not amount.is_finite() or not 0 <= amount <= _MAX_PRICE:
        raise _RowError(f"{prefix}{key} must be between 0 and {_MAX_PRICE} US dollars per million tokens")
    exact = amount.quantize(_MICRO)
    if exact != amount:
        raise _RowError(f"{prefix}{key} can have six decimals at most")
    return int(exact.scaleb(6))
