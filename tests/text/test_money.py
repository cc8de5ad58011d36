from __future__ import annotations

from decimal import Decimal

import pytest

from pollux.text.money import Currency


@pytest.mark.parametrize(
    ("nanousd", "shown"),
    [
        *((0, "$0.00"), (1, "$0.00000000100"), (513_000, "$0.000513"), (27_853_750, "$0.0279")),
        *((547_500_000, "$0.548"), (1_234_567_890, "$1.23"), (1_190_292_765_330, "$1,190.29"), (None, "no price")),
    ],
)
def test_money_has_enough_digits(nanousd: int | None, shown: str) -> None:
    assert Currency().show(nanousd) == shown


def test_money_has_its_currency() -> None:
    assert Currency("EUR", Decimal("0.92")).show(10**9) == "€0.920"
    assert Currency("CHF", Decimal("1.5")).show(10**9) == "CHF 1.50"
