from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise, product
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pollux import prices as pollux_prices
from pollux.model import Fate, ModelCall, Tokens, Usage
from pollux.prices import TABLE, Price, Tier, cost, find, load, tier_of, usage_of

ROOT = Path(__file__).parents[2]
PRICES = load()
NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)

# The day before, the day of and the day after every change, the beginning of time and a day far ahead.
CHANGES = sorted({price.since for price in PRICES.rows if price.since})
MOMENTS = [
    datetime(2024, 6, 1, tzinfo=UTC),
    NOW,
    *(
        datetime(day.year, day.month, day.day, tzinfo=UTC) + away
        for day in CHANGES
        for away in (timedelta(microseconds=-1), timedelta(), timedelta(days=1))
    ),
    datetime(2030, 1, 1, tzinfo=UTC),
]

counts = st.integers(min_value=0, max_value=3_000_000)
calls = st.builds(Tokens, counts, counts, counts, counts, counts)
rows = st.sampled_from(PRICES.rows)


@cache
def price_of(model: str, at: datetime | None = NOW) -> Price:
    price = find(PRICES, model, at)
    assert price
    return price


def tier(above: int = 0, input: int = 2, cached: int | None = 1, output: int = 5) -> Tier:  # noqa: A002
    return Tier(above, input, cached, output)


def flat(**amounts: Any) -> Price:  # noqa: ANN401
    return Price("x", "x", None, None, (tier(**amounts),))


# One call


@pytest.mark.parametrize(
    ("model", "tokens", "dollars"),
    [
        ("gemini-2.5-pro", Tokens(), "0"),
        ("gemini-2.5-pro", Tokens(input=1), "0.00000125"),
        ("gemini-2.5-pro", Tokens(input=1_000_000), "2.5"),
        ("gemini-2.5-pro", Tokens(input=100_000, cached=100_000), "0.0125"),
        ("gemini-2.5-pro", Tokens(output=1_000), "0.01"),
        ("gemini-2.5-pro", Tokens(thoughts=1_000), "0.01"),
        ("gemini-2.5-pro", Tokens(tool=1_000), "0.00125"),
        ("gemini-2.5-pro", Tokens(input=300_000, cached=100_000, output=1_500), "0.5475"),
        ("gemini-2.5-flash", Tokens(input=1_000, cached=600, output=100, thoughts=50, tool=10), "0.000516"),
        ("gemini-1.5-pro", Tokens(input=1_000, cached=600), "0.00125"),
        ("gemini-4-argon", Tokens(input=1_000_000, output=1_000_000), "12"),
        ("gemma-4-31b-it", Tokens(input=1_000_000, output=1_000_000), "0"),
    ],
)
def test_a_call_costs(model: str, tokens: Tokens, dollars: str) -> None:
    assert cost(price_of(model), tokens) == Decimal(dollars) * 10**9


@pytest.mark.parametrize(("pico", "nano"), [(0, 0), (499, 0), (500, 1), (1_499, 1), (1_500, 2), (2_500, 3)])
def test_amounts_are_rounded_half_up_and_only_once(pico: int, nano: int) -> None:
    assert cost(flat(input=1, output=1), Tokens(input=pico)) == nano
    assert cost(flat(input=1, output=1), Tokens(input=pico - pico // 2, output=pico // 2)) == nano


def test_more_cached_than_input_never_gives_money_back() -> None:
    assert cost(flat(input=2_000, cached=1_000), Tokens(input=10, cached=30)) == 30
    assert cost(flat(input=2_000, cached=1_000), Tokens(input=10, cached=30, tool=1)) == 32


def test_a_cache_price_of_nothing_is_a_price() -> None:
    assert cost(flat(input=1_000, cached=0), Tokens(input=10, cached=10)) == 0
    assert cost(flat(input=1_000, cached=None), Tokens(input=10, cached=10)) == 10


@pytest.mark.parametrize(
    ("tokens", "above"),
    [
        (Tokens(), 0),
        (Tokens(input=1), 0),
        (Tokens(input=200_000), 0),
        (Tokens(input=200_001), 200_000),
        (Tokens(input=200_000, cached=200_000), 0),
        (Tokens(input=200_001, cached=200_001), 200_000),
        (Tokens(input=200_000, tool=1), 200_000),
        (Tokens(input=200_000, output=60_000, thoughts=60_000), 0),
        (Tokens(input=10, cached=200_001), 200_000),
    ],
)
def test_the_tier_goes_by_the_prompt(tokens: Tokens, above: int) -> None:
    assert tier_of(price_of("gemini-2.5-pro"), tokens).above == above


def test_of_several_tiers_the_highest_that_is_passed() -> None:
    price = Price("x", "x", None, None, (tier(), tier(above=100), tier(above=200)))
    assert [tier_of(price, Tokens(input=size)).above for size in (0, 100, 101, 200, 201)] == [0, 0, 100, 100, 200]


@given(price=rows, tokens=calls)
def test_a_cost_is_the_exact_sum_rounded(price: Price, tokens: Tokens) -> None:
    at = tier_of(price, tokens)
    cached = at.input if at.cached is None else at.cached
    dear = tokens.output + tokens.thoughts
    fresh = max(tokens.input - tokens.cached, 0) + tokens.tool
    exact = Fraction(fresh * at.input + tokens.cached * cached + dear * at.output, 1000)
    amount = cost(price, tokens)
    assert type(amount) is int
    assert Fraction(-1, 2) < amount - exact <= Fraction(1, 2)


# The table


def test_the_table_holds_whole_numbers_only() -> None:
    seen = msgspec.json.decode(TABLE.read_bytes())
    assert not [value for value in leaves(seen) if isinstance(value, float)]
    for price in PRICES.rows:
        assert {type(number) for row in price.tiers for number in msgspec.structs.astuple(row)} <= {int, type(None)}


def leaves(value: Any) -> Iterator[object]:  # noqa: ANN401
    if isinstance(value, dict):
        value = [*value.values()]
    if isinstance(value, list):
        for item in value:
            yield from leaves(item)
    else:
        yield value


def test_rows_of_a_model_follow_each_other_without_gaps() -> None:
    for one, other in pairwise(PRICES.rows):
        if one.model == other.model:
            assert one.until == other.since
            assert one.tiers != other.tiers
        else:
            assert (one.until, other.since) == (None, None)


def test_tiers_begin_at_nothing_and_rise() -> None:
    for price in PRICES.rows:
        limits = [row.above for row in price.tiers]
        assert limits[0] == 0
        assert limits == sorted(set(limits))


def test_ids_are_unique_and_tell_model_and_first_day() -> None:
    ids = [price.id for price in PRICES.rows]
    assert len(ids) == len(set(ids))
    assert "gemini-2.5-pro" in ids
    assert "gemini-4-argon@2026-12-01" in ids


def test_the_table_says_what_it_is() -> None:
    assert PRICES.table.startswith("genai-prices ")
    assert date.fromisoformat(PRICES.date) <= NOW.date()
    assert PRICES.overrides == ()
    assert PRICES.version == load().version


def test_new_rules_make_a_new_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pollux_prices, "_RULES", b"new")
    assert load().version != PRICES.version


def test_notice_of_the_source_is_included() -> None:
    assert "MIT" in TABLE.with_name("NOTICE").read_text("utf-8")


def test_every_model_is_priced_or_says_why_not() -> None:
    for model in PRICES.models:
        assert bool(model.prices) != bool(model.unpriced)
        assert bool(find(PRICES, model.id, NOW)) == bool(model.prices)


# Which price


@pytest.mark.parametrize(
    ("name", "model"),
    [
        # what Gemini CLI records
        ("gemini-2.5-pro", "gemini-2.5-pro"),
        ("gemini-2.5-flash", "gemini-2.5-flash"),
        ("gemini-2.5-flash-lite", "gemini-2.5-flash-lite"),
        ("gemini-3-pro-preview", "gemini-3-pro-preview"),
        ("gemini-3-flash-preview", "gemini-3-flash-preview"),
        ("gemini-3.1-pro-preview", "gemini-3.1-pro-preview"),
        ("gemini-3.1-pro-preview-customtools", "gemini-3.1-pro-preview"),
        ("gemini-3.1-flash-lite", "gemini-3.1-flash-lite"),
        ("gemini-3.1-flash-lite-preview", "gemini-3.1-flash-lite"),
        ("gemini-3.5-flash", "gemini-3.5-flash"),
        ("gemini-3.5-flash-lite", "gemini-3.5-flash-lite"),
        ("gemini-3.8-flash", "gemini-3.8-flash"),
        ("gemma-4-26b-a4b-it", "gemma-4-26b-a4b-it"),
        ("gemma-4-31b-it", "gemma-4-31b-it"),
        # other spellings of the same
        ("models/gemini-2.5-pro", "gemini-2.5-pro"),
        ("projects/p/locations/global/publishers/google/models/gemini-2.5-pro", "gemini-2.5-pro"),
        ("publishers/google/models/gemini-2.5-flash", "gemini-2.5-flash"),
        (" Gemini-2.5-Pro ", "gemini-2.5-pro"),
        ("gemini-2.5-pro-preview-06-05", "gemini-2.5-pro"),
        ("gemini-2.5-pro-exp-03-25", "gemini-2.5-pro"),
        ("gemini-2.5-flash-preview-09-2025", "gemini-2.5-flash"),
        ("gemini-2.5-flash-preview-05-20", "gemini-2.5-flash-preview"),
        ("gemini-2.5-flash-lite-preview-06-17", "gemini-2.5-flash-lite"),
        ("gemini-2.5-flash-latest", "gemini-2.5-flash"),
        ("gemini-2.0-flash-exp", "gemini-2.0-flash"),
        ("gemini-2.0-flash-001", "gemini-2.0-flash"),
        ("gemini-1.5-pro-001-tuning", "gemini-1.5-pro"),
        ("gemini-3.5-flash-20260601", "gemini-3.5-flash"),
        ("gemma-3-27b-it", "gemma-3"),
    ],
)
def test_a_name_finds_its_model(name: str, model: str) -> None:
    assert price_of(name).model == model


@pytest.mark.parametrize(
    "name",
    [
        # choices of the client, not models
        *("auto", "auto-gemini-2.5", "auto-gemini-3", "pro", "flash", "flash-lite"),
        # nobody knows these
        *("", "gemini", "gemini-9.9-ultra-preview", "gemma-4-9b-it", "gemini-exp-1206", "gemini-2.5-flash-001"),
        # other makers, and other sellers of the same models
        *("claude-sonnet-4-6", "google/gemini-2.5-pro", "openrouter/google/gemini-2.0-flash", "my-gemini-1.5-pro"),
        # on a base model that cannot be told
        *("tunedModels/gemini-1.5-pro-mine", "projects/1/locations/us/endpoints/7"),
        # of a family, and yet another model
        *("gemini-1.5-flash-8b", "gemini-3.6-flash-lite", "gemini-3.8-flash-lite-001", "gemini-3.7-flash-image"),
        *("gemini-2.0-flash-exp-image-generation", "gemini-2.5-pro-preview-tts-2", "gemini-2.5-pro-computer-use"),
        # counts of a session are not enough for these
        *("gemini-2.5-flash-image", "gemini-3-pro-image-preview", "gemini-3.8-live", "gemini-embedding-001"),
    ],
)
def test_a_price_is_never_guessed(name: str) -> None:
    assert [find(PRICES, name, at) for at in (None, *MOMENTS)] == [None] * (len(MOMENTS) + 1)


def test_no_model_has_no_price() -> None:
    assert find(PRICES, None, NOW) is None


@pytest.mark.parametrize(
    ("at", "id_"),
    [
        (datetime(2026, 11, 30, 23, 59, 59, 999_999, tzinfo=UTC), "gemini-4-argon"),
        (datetime(2026, 12, 1, tzinfo=UTC), "gemini-4-argon@2026-12-01"),
        (datetime(2026, 12, 1, 1, 59, tzinfo=timezone(timedelta(hours=2))), "gemini-4-argon"),
        (datetime(2026, 11, 30, 22, tzinfo=timezone(timedelta(hours=-2))), "gemini-4-argon@2026-12-01"),
        (datetime(1970, 1, 1, tzinfo=UTC), "gemini-4-argon"),
        (datetime(2999, 1, 1, tzinfo=UTC), "gemini-4-argon@2026-12-01"),
    ],
)
def test_the_day_of_the_call_decides_in_utc(at: datetime, id_: str) -> None:
    assert price_of("gemini-4-argon", at).id == id_


def test_without_a_date_it_is_the_price_of_the_table_s_day() -> None:
    day = datetime.fromisoformat(PRICES.date).replace(tzinfo=UTC)
    for model in ("gemini-2.5-pro", "gemini-4-argon", "gemini-3.6-flash"):
        assert price_of(model, None) == price_of(model, day)


# The source


@cache
def source() -> ModuleType:
    """Load the generator; a test that needs it is skipped when its package is absent or of another version."""
    table = PRICES.table.removeprefix("genai-prices ")
    try:
        installed = version("genai-prices")
    except PackageNotFoundError:
        pytest.skip("genai-prices is not installed: `pip install genai-prices` to compare the table with its source")
    if installed != table:
        pytest.skip(f"genai-prices {installed} is installed, the table is of {table}: run `make prices`")
    spec = importlib.util.spec_from_file_location("prices_script", ROOT / "scripts" / "prices.py")
    assert spec
    assert spec.loader
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def nano_by_source(model: str, tokens: Tokens, at: datetime) -> Decimal:
    """Return the price that genai-prices makes of the API's own counts, in nano-US-dollars, not rounded."""
    genai_prices: Any = importlib.import_module("genai_prices")
    counted = {
        "promptTokenCount": tokens.input,
        "cachedContentTokenCount": tokens.cached,
        "candidatesTokenCount": tokens.output,
        "thoughtsTokenCount": tokens.thoughts,
        "toolUsePromptTokenCount": tokens.tool,
    }
    usage = genai_prices.extract_usage({"modelVersion": model, "usageMetadata": counted}, provider_id="google").usage
    priced = genai_prices.calc_price(usage, model, provider_id="google", genai_request_timestamp=at)
    assert isinstance(priced.total_price, Decimal)
    return priced.total_price * 10**9


def samples(limits: set[int]) -> Iterator[Tokens]:
    """Give prompts around every limit: nothing, a part or all of them cached, with and without tool tokens."""
    around = (size for limit in sorted(limits) for size in (limit - 1, limit, limit + 1))
    for size, tool in product((0, 1, 777, *around), (0, 1)):
        for cached in sorted({0, size // 3, size}):
            yield Tokens(input=size, cached=cached, output=1_234, thoughts=567, tool=tool)


@pytest.mark.parametrize("model", [model.id for model in PRICES.models if model.prices])
def test_costs_equal_those_of_the_source(model: str) -> None:
    source()
    limits = {row.above for price in PRICES.rows if price.model == model for row in price.tiers} - {0}
    moments = MOMENTS if len([price for price in PRICES.rows if price.model == model]) > 1 else [MOMENTS[0], NOW]
    for tokens, at in product(samples(limits), moments):
        exact = nano_by_source(model, tokens, at)
        # genai-prices does not round; its sums have fewer digits than a Decimal holds, so they are exact
        assert cost(price_of(model, at), tokens) == exact.quantize(Decimal(1), ROUND_HALF_UP), (tokens, at)


def test_names_lead_to_the_same_models_as_in_the_source() -> None:
    google = {model.id: model for model in source().google_models()}
    unpriced = {model.id for model in PRICES.models if model.unpriced}
    endings = [
        "",
        "-001",
        "-preview",
        "-preview-05-20",
        "-exp-0827",
        "-latest",
        "-20251211",
        ":thinking",
        "-it",
        "-tts",
    ]
    names = [f"{model}{ending}" for model in google for ending in endings]
    for name in names:
        theirs = next((id_ for id_, model in google.items() if model.is_match(name)), None)
        ours = find(PRICES, name, NOW)
        if ours:
            assert ours.model == theirs
        else:
            assert theirs is None or theirs in unpriced or pollux_prices._kinds(name) - pollux_prices._kinds(theirs)


def test_the_table_is_what_the_generator_makes() -> None:
    script = source()
    made = script.render([script.row(model) for model in script.google_models()], script.checked())
    assert made == TABLE.read_text("utf-8"), "run `make prices`"


def model_call(model: str | None, tokens: Tokens) -> ModelCall:
    return ModelCall("session", "message", NOW, model, Fate.ACTIVE, tokens)


models = st.sampled_from(["gemini-2.5-pro", "gemini-2.5-flash", "gemini-99", None])
model_calls = st.lists(st.builds(model_call, models, calls), max_size=8)


@given(model_calls, model_calls)
def test_usage_adds_up(first: list[ModelCall], second: list[ModelCall]) -> None:
    assert usage_of(first, PRICES) + usage_of(second, PRICES) == usage_of(first + second, PRICES)


def test_cost_is_unknown_only_if_no_call_has_a_price() -> None:
    priced = model_call("gemini-2.5-pro", Tokens(1000, total=1000))
    unpriced = model_call("gemini-99", Tokens(2000, total=1))
    assert usage_of([], PRICES) == Usage()
    assert usage_of([unpriced], PRICES).cost_nanousd is None
    usage = usage_of([priced, unpriced], PRICES)
    assert usage.cost_nanousd == cost(price_of("gemini-2.5-pro"), priced.tokens)
    assert (usage.cost.unpriced_calls, usage.cost.unpriced_tokens, usage.inconsistent) == (1, unpriced.tokens, 1)
