"""Usage by period and model at once, and by what the tokens were: the numbers behind charts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import tzinfo

import msgspec

from pollux.model import Tokens, Usage
from pollux.prices import Price, Prices, Tier, tier_of
from pollux.reports import periods
from pollux.reports.usage import TimedSum, UsageRow, billed_and_active
from pollux.reports.usage_days import DaySum, tier_limits


class PeriodUsage(msgspec.Struct, frozen=True):
    """The usage of one hour, day, week or month."""

    key: str | None
    """Such as `2026-11-14`; None for calls without a time."""
    billed: Usage
    active: Usage
    models: tuple[UsageRow, ...]
    """By model, in the order of all models."""


def by_period_and_model(
    by: str, sums: Iterable[TimedSum], order: Sequence[str | None], zone: tzinfo | None = None
) -> tuple[PeriodUsage, ...]:
    """Return the periods that have calls, the earliest first; `order` lists all models."""
    rank = {model: number for number, model in enumerate(order)}
    made = []
    for key, members in periods.fold(by, ((part.quarter_us, part) for part in sums), zone).items():
        groups: dict[str | None, list[TimedSum]] = defaultdict(list)
        for part in members:
            groups[part.model].append(part)
        models = [UsageRow(model, model or "no model", *billed_and_active(parts)) for model, parts in groups.items()]
        models.sort(key=lambda row: rank.get(row.key, len(rank)))
        made.append(PeriodUsage(key, *billed_and_active(members), tuple(models)))
    return tuple(made)


def models_by_cost(sums: Iterable[TimedSum]) -> tuple[str | None, ...]:
    """Return all models, the one that has cost most at the front, then those with most tokens."""
    cost: dict[str | None, tuple[int, int]] = {}
    for part in sums:
        nanousd, n_tokens = cost.get(part.model, (0, 0))
        cost[part.model] = nanousd + part.cost_nanousd, n_tokens + part.total
    return tuple(sorted(cost, key=lambda model: (-cost[model][0], -cost[model][1], model or "")))


class TokenKind(msgspec.Struct, frozen=True):
    """The tokens of one kind, and what they cost."""

    name: str
    """`fresh`, `cached`, `output` or `thoughts`."""
    tokens: int
    picousd: int


class CostBreakdown(msgspec.Struct, frozen=True):
    """What the calls that have a price were paid for."""

    kinds: tuple[TokenKind, ...] = ()
    saved_picousd: int = 0
    """What cached tokens would have cost in addition as fresh input."""

    @property
    def tokens(self) -> int:
        """All tokens of these calls."""
        return sum(kind.tokens for kind in self.kinds)

    @property
    def picousd(self) -> int:
        """Their cost."""
        return sum(kind.picousd for kind in self.kinds)


def cost_breakdown(days: Iterable[DaySum], prices: Prices) -> CostBreakdown:
    """Return what calls cost by kind of token; each call in the tier of its own prompt."""
    by_id = {price.id: price for price in (*prices.rows, *prices.overrides)}
    limits = tier_limits(prices)
    sums: dict[tuple[str, int], list[int]] = {}
    for part in days:
        if part.is_priced and part.price_id in by_id:  # or priced by a table that was replaced meanwhile
            counts = sums.setdefault((part.price_id, part.tier), [0] * 4)
            for place, count in enumerate((part.fresh, part.cached, part.output, part.thoughts)):
                counts[place] += count
    tokens, cost, saved = [0] * 4, [0] * 4, 0
    for (price_id, number), counts in sums.items():
        tier = _tier_above(by_id[price_id], limits[number - 1] if number else 0)
        cached = tier.input if tier.cached is None else tier.cached
        rates = (tier.input, cached, tier.output, tier.output)
        saved += counts[1] * (tier.input - cached)
        for place, (n_tokens, rate) in enumerate(zip(counts, rates, strict=True)):
            tokens[place] += n_tokens
            cost[place] += n_tokens * rate
    return CostBreakdown(tuple(map(TokenKind, ("fresh", "cached", "output", "thoughts"), tokens, cost)), saved)


def _tier_above(price: Price, limit: int) -> Tier:
    return tier_of(price, Tokens(input=limit + 1))
