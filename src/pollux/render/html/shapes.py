"""Shapes of drawings: coordinates with few digits, paths by class, links with labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pollux.render.html.markup import Html, element


def box(x: float, y: float, width: float, height: float) -> str:
    """Return a rectangle as a part of a path."""
    return f"M{units(x)} {units(y)}h{units(width)}v{units(max(height, 0))}h{units(-width)}z"


def units(value: float) -> str:
    """Return a coordinate with one decimal at most."""
    return f"{value:.1f}".removesuffix(".0").replace("-0", "0") if abs(value) < 1 else f"{value:.1f}".removesuffix(".0")


def paths_by_class(paths: Mapping[str, Sequence[str]]) -> list[Html]:
    """Return a path for each class that has parts."""
    return [element("path", class_=name, d="".join(parts)) for name, parts in paths.items() if parts]


def linked(href: str, label: str, *inside: Html) -> Html:
    """Return shapes as a link with a label for screen readers and tips, or without an address as a group."""
    if not href:
        return element("g", *inside, data_tip=label or None)
    return element("a", *inside, href=href, aria_label=label or None)
