"""What a model call costs: a dated, tiered price table as data, and one pure function.

`table.json` is generated from genai-prices (MIT, see NOTICE) by `scripts/prices.py`. A user's own file goes before it:

    [[price]]
    model = "gemini-2.5-pro"  # this name, and every name that the table takes for this model
    since = 2026-01-01        # the first day (UTC) of this price; without it: from the beginning
    until = 2027-01-01        # the first day after it; without it: for good
    input = 1.25              # US dollars per million tokens, at most six decimals
    cached = 0.31             # without it cached tokens cost what input costs
    output = 10               # thoughts too
    above_200k = { input = 2.5, cached = 0.625, output = 15 }  # the whole call, when its prompt is longer than that

Prices are whole pico-US-dollars per token. That is the same number as micro-US-dollars per million tokens, so six
decimals are exact. Only the finished amount of a call is rounded: half up, to whole nano-US-dollars.
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

from pollux.disk.regular_files import SIDE_FILE, read_named
from pollux.errors import PolluxError, UnreadableFileError
from pollux.model import Cost, ModelCall, Tokens, Usage

TABLE = Path(__file__).with_name("table.json")


class Tier(msgspec.Struct, frozen=True):
    """What a token costs, in pico-US-dollars, when the prompt is longer than `above`."""

    above: int
    """Tokens; 0 for the first tier, which takes every prompt that no other does."""
    input: int
    cached: int | None
    """Without a price of their own, cached tokens cost what input costs."""
    output: int


class Price(msgspec.Struct, frozen=True):
    """One row: a model's price for a stretch of time."""

    id: str
    """Model and first day, `gemini-4-argon@2026-12-01`; a user's own ends in `!user`."""
    model: str
    since: date | None
    until: date | None
    """The first day on which it is no longer in force."""
    tiers: tuple[Tier, ...]
    """The shortest prompts first."""


class _Pattern(msgspec.Struct, frozen=True):
    """Conditions on a name; all must hold, and an empty one always does."""

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
    """Any of them is enough; the first model that fits is the one."""
    prices: tuple[_Row, ...] = ()
    unpriced: str | None = None
    """Why there is no price, where there is none."""


class _Table(msgspec.Struct, frozen=True):
    source: str
    version: str
    date: date
    models: tuple[_Model, ...]


class Prices(msgspec.Struct, frozen=True, eq=False):
    """All that is known about prices: the table and what a user put before it."""

    table: str
    """Name and version for reports: `genai-prices 0.2.1`, and the name of the user's file behind it."""
    date: str
    """The day on which the table's source last checked its prices."""
    version: str
    """Changes whenever an amount could: a hash of the rules below, the table and the user's file."""
    rows: tuple[Price, ...]
    overrides: tuple[Price, ...]
    models: tuple[_Model, ...]


class BadPricesError(PolluxError):
    """A price file of the user's that cannot be used as it is."""

    status = 2

    def __init__(self, path: Path, where: str, reason: str) -> None:
        """Name file and place."""
        super().__init__(f"{path}: {where}: {reason}.")


class _RowError(Exception):
    """What is wrong with one [[price]], before it is known where it stands."""


# Another number when `find` or `cost` change their minds, so that stored amounts are worked out anew.
_RULES = b"1"

_decode_table = msgspec.json.Decoder(_Table).decode

# Words that make another model of a family: genai-prices takes gemini-3.6-flash-lite for gemini-3.6-flash.
_KINDS = frozenset({"8b", "audio", "computer", "embedding", "image", "lite", "live", "robotics", "tts"})

_ABOVE = re.compile(r"above_([1-9][0-9]{0,8})k")
_KEYS = frozenset({"model", "since", "until", "currency", "input", "cached", "output"})
_TIER_KEYS = frozenset({"input", "cached", "output"})
_MICRO = Decimal("0.000001")
_DEAREST = 1_000_000  # US dollars per million tokens: beyond that, somebody forgot what the unit is


def load(overrides: Path | None = None) -> Prices:
    """Read the table, and a user's own prices if there are any."""
    data = TABLE.read_bytes()
    table = _decode_table(data)
    name = f"{table.source} {table.version}"
    own: tuple[Price, ...] = ()
    if overrides is not None:
        text = _read(overrides)
        own = _overrides(overrides, text)
        name = f"{name} + {overrides.name}"
        data += b"\0" + text
    return Prices(
        table=name,
        date=table.date.isoformat(),
        version=f"{crc32(_RULES + data):08x}{adler32(_RULES + data):08x}",
        rows=tuple(price for model in table.models for price in _prices(model)),
        overrides=own,
        models=table.models,
    )


def find(prices: Prices, model: str | None, at: datetime | None) -> Price | None:
    """Find the price in force on the day (UTC) of a call; what is not known has none.

    A call without a date gets the price of the day of the table, which may list later ones already.
    """
    if model is None:
        return None
    day = at.astimezone(UTC).date() if at else date.fromisoformat(prices.date)
    return _on_day(prices, model, day)


@lru_cache(maxsize=4096)
def _on_day(prices: Prices, model: str, day: date) -> Price | None:
    return next((price for price in _candidates(prices, model) if _is_in_force(price, day)), None)


def uncached(tokens: Tokens) -> int:
    """Return how many tokens are paid at the input price."""
    return max(tokens.input - tokens.cached, 0) + tokens.tool


def tier_of(price: Price, tokens: Tokens) -> Tier:
    """Choose the tier by the length of the prompt: all input, cached or not, and what tools added to it.

    Google's page says "prompts > 200k tokens", so a prompt of exactly the limit is still on the low tier. genai-prices
    compares `promptTokenCount + toolUsePromptTokenCount`, as here.
    """
    return _tier_for(price, uncached(tokens) + tokens.cached)


def cost(price: Price, tokens: Tokens) -> int:
    """Give the nano-US-dollars of one call; the counts of several calls must not be added before."""
    fresh = uncached(tokens)
    tier = _tier_for(price, fresh + tokens.cached)
    cached = tier.input if tier.cached is None else tier.cached
    pico = fresh * tier.input + tokens.cached * cached + (tokens.output + tokens.thoughts) * tier.output
    return (pico + 500) // 1000


def usage_of(calls: Iterable[ModelCall], prices: Prices) -> Usage:
    """Return the sum of model calls; calls without a price are counted, but are in no amount."""
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
    """List the rows for a name: the user's for just this name, the user's for the model, the table's; newest first."""
    name = _bare(model)
    known = _known(prices, name)
    own = (price for wanted in dict.fromkeys((name, known)) for price in prices.overrides if price.model == wanted)
    return *own, *(price for price in reversed(prices.rows) if price.model == known)


def _bare(model: str) -> str:
    """Take off what the APIs put before a name: `models/`, or a whole path on Vertex AI."""
    return model.strip().lower().rpartition("publishers/google/models/")[2].removeprefix("models/")


def _known(prices: Prices, name: str) -> str | None:
    """Name the model of the table that a name stands for."""
    if not name.startswith(("gemini-", "gemma-")):
        return None
    kinds = _kinds(name)
    fitting = (model.id for model in prices.models if kinds <= _kinds(model.id) and _fits(model, name))
    return next(fitting, None)


def _kinds(name: str) -> frozenset[str]:
    return _KINDS.intersection(re.split(r"[^a-z0-9]+", name))


def _fits(model: _Model, name: str) -> bool:
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
    """Read a user's prices, the newest first."""
    import tomllib  # noqa: PLC0415  few have prices of their own

    try:
        content: dict[str, object] = tomllib.loads(text.decode("utf-8-sig"), parse_float=Decimal)
    except ValueError as error:
        raise BadPricesError(path, "not valid TOML", str(error)) from error
    except RecursionError as error:
        raise BadPricesError(path, "not valid TOML", "its values are nested too deeply") from error
    except InvalidOperation as error:
        raise BadPricesError(path, "a number", "its exponent is far beyond any price") from error
    rows = content.pop("price", [])
    if content or not isinstance(rows, list):
        wrong = next(iter(content), "price")
        raise BadPricesError(path, f"'{wrong}'", "only tables that begin with [[price]] are understood here")
    prices: dict[str, Price] = {}
    for number, row in enumerate(rows, 1):
        try:
            price = _override(row)
        except _RowError as error:
            raise BadPricesError(path, f"[[price]] number {number}", str(error)) from None
        if price.id in prices:
            reason = "an earlier one has the same model and the same first day"
            raise BadPricesError(path, f"[[price]] number {number}", reason)
        prices[price.id] = price
    return tuple(sorted(prices.values(), key=lambda price: price.since or date.min, reverse=True))


def _override(row: object) -> Price:
    if not isinstance(row, dict):
        raise _RowError("a table is wanted, with model, input and output")
    limits = {int(found[1]) * 1000: key for key in row if (found := _ABOVE.fullmatch(key))}
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


def _check_keys(row: Mapping[str, object], known: frozenset[str], words: str) -> None:
    if unknown := sorted(row.keys() - known):
        raise _RowError(f"'{unknown[0]}' is not known here, only {words}")


def _day(row: Mapping[str, object], key: str) -> date | None:
    value = row.get(key)
    if isinstance(value, datetime) or not isinstance(value, date | None):
        raise _RowError(f"{key} must be a day without quotation marks, such as 2026-01-01")
    return value


def _amount(row: Mapping[str, object], key: str, prefix: str) -> int:
    """Turn US dollars per million tokens into pico-US-dollars per token."""
    value = row.get(key)
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise _RowError(f"{prefix}{key} must be a number, in US dollars per million tokens")
    amount = Decimal(value)
    if not amount.is_finite() or not 0 <= amount <= _DEAREST:
        raise _RowError(f"{prefix}{key} must be between 0 and {_DEAREST} US dollars per million tokens")
    exact = amount.quantize(_MICRO)
    if exact != amount:
        raise _RowError(f"{prefix}{key} can have six decimals at most")
    return int(exact.scaleb(6))
