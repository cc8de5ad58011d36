"""Money as it is shown."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

_SYMBOLS = {"USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥", "CNY": "¥", "INR": "₹"}
_NANO = Decimal(10) ** -9


@dataclass(frozen=True, slots=True)
class Currency:
    """How money is shown; counted it is in dollars."""

    code: str = "USD"
    rate: Decimal = Decimal(1)
    """For one dollar."""

    @property
    def symbol(self) -> str:
        """Its sign, or its code where it has none."""
        return _SYMBOLS.get(self.code, self.code)

    def show(self, nanousd: int | None) -> str:
        """Say an amount with cents, and with three digits where it is less than that."""
        if nanousd is None:
            return "no price"
        amount = nanousd * _NANO * self.rate
        digits = 2 if amount == 0 or abs(amount) >= 1 else max(2, 2 - amount.adjusted())
        gap = "" if self.code in _SYMBOLS else " "
        return f"{self.symbol}{gap}{amount:,.{digits}f}"
