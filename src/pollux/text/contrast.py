"""How well a colour can be read on another, as WCAG 2 defines it."""

from __future__ import annotations

from typing import TypeAlias

RGB: TypeAlias = tuple[int, int, int]
BLACK: RGB = (0, 0, 0)
WHITE: RGB = (255, 255, 255)


def contrast(colour: RGB, other: RGB) -> float:
    """Return the contrast ratio of two colours, from 1 to 21."""
    darker, lighter = sorted((luminance(colour), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: RGB) -> float:
    """Return the relative luminance of a colour, from 0 for black to 1 for white."""
    red, green, blue = (
        value / 255 / 12.92 if value <= 10 else ((value / 255 + 0.055) / 1.055) ** 2.4  # noqa: PLR2004
        for value in colour
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def blend(colour: RGB, goal: RGB, percent: int) -> RGB:
    """Return a mixture of two colours, so many per cent of which are the second."""
    red, green, blue = (
        (value * (100 - percent) + end * percent) // 100 for value, end in zip(colour, goal, strict=True)
    )
    return red, green, blue
