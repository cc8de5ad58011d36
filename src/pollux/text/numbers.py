"""Numbers, spans of time and money as people say them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

_SYMBOLS = {"USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥", "CNY": "¥", "INR": "₹"}
_NANO = Decimal(10) ** -9


def count(number: int) -> str:
    """Say a number in about three digits: 999, 12.3k, 4.5M."""
    return _scaled(number, ("", "k", "M", "B"))


def size(number: int) -> str:
    """Say a number of bytes in about three digits: 999 B, 12.3 kB, 4.5 MB."""
    return _scaled(number, (" B", " kB", " MB", " GB", " TB"))


def _scaled(number: int, units: tuple[str, ...]) -> str:
    value, scale = float(number), 0
    while abs(value) >= 999.5 and scale < len(units) - 1:  # noqa: PLR2004
        value, scale = value / 1000, scale + 1
    if not scale:
        return f"{number}{units[0]}"
    return f"{value:.1f}{units[scale]}" if abs(value) < 99.95 else f"{value:,.0f}{units[scale]}"  # noqa: PLR2004


_SPANS = (
    (timedelta(days=365), "year"),
    (timedelta(days=30), "month"),
    (timedelta(days=7), "week"),
    (timedelta(days=1), "day"),
    (timedelta(hours=1), "hour"),
    (timedelta(minutes=1), "minute"),
)


def ago(then: datetime, now: datetime) -> str:
    """Say how long ago something was, or how soon it will be."""
    distance = abs(now - then)
    for span, name in _SPANS:
        if distance >= span:
            number = distance // span
            words = f"{number} {name}{'' if number == 1 else 's'}"
            return f"{words} ago" if then < now else f"in {words}"
    return "just now" if then <= now else "in a moment"


def age(then: datetime, now: datetime) -> str:
    """Say how old something is in a column's few characters: 5min, 3h, 2d, 6w, 14mo."""
    distance = max(now - then, timedelta())
    for span, unit in _UNITS:
        if distance >= 2 * span:
            return f"{distance // span}{unit}"
    return f"{distance // timedelta(minutes=1)}min"


_UNITS = (
    (timedelta(days=30), "mo"),
    (timedelta(days=7), "w"),
    (timedelta(days=1), "d"),
    (timedelta(hours=1), "h"),
)


def lasted(span: timedelta) -> str:
    """Say how long something took, in its two largest units."""
    minutes = int(span.total_seconds()) // 60
    if minutes < 1:
        return f"{max(0, int(span.total_seconds()))} s"
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


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
