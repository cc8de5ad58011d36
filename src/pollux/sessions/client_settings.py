"""Read the client's settings about deleting sessions, and merge them into one policy.

Values are parsed and checked as by the client release that `retention.CLIENT` names.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import PurePath

import msgspec

from pollux.formats import lenient
from pollux.model import Json


class ClientSettings(msgspec.Struct, frozen=True):
    """One settings file."""

    path: str
    value: Mapping[str, Json] = msgspec.field(default_factory=dict)
    problem: str | None = None
    """Why the client does not start with this file."""
    unread: str | None = None
    """Why Pollux could not read an existing file."""


class RetentionPolicy(msgspec.Struct, frozen=True):
    """The client's effective settings about deleting sessions."""

    max_age: timedelta | None = None
    max_count: float | None = None
    off: str | None = None
    """Why the client deletes nothing; None if it does delete."""
    is_fault: bool = False
    """Whether a mistake in the settings turned deletion off."""
    given: Mapping[str, Json] = msgspec.field(default_factory=dict)
    """The four values, including defaults."""
    sources: tuple[str, ...] = ()
    """The settings files with retention settings."""
    notes: tuple[str, ...] = ()


_PERIOD = re.compile(r"([0-9]+)([hdwm])")
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1), "m": timedelta(days=30)}
_COMMENT = re.compile(r'("(?:[^"\\]|\\.|\\\Z)*(?:"|\Z))|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
"""A string or a comment; an unterminated one extends to the end of the text, so that no position is tried twice."""
_NAME = re.compile(r"\$(\w+)", re.ASCII)
_VARIABLE = re.compile(r"\$(?:(\w+)|\{([^}]+?)(?::-([^}]*))?\})", re.ASCII)
_DEEPEST = 100
"""Levels of nesting; settings need five."""
_MIN_RETENTION = "1d"
_DEFAULTS: Mapping[str, Json] = {"enabled": True, "maxAge": "30d", "minRetention": _MIN_RETENTION}
_KEYS = ("enabled", "maxAge", "maxCount", "minRetention")
JS_FALSE: tuple[Json, ...] = (None, False, 0, "")
"""Values that JavaScript treats as false."""


def parse_settings(path: str, data: bytes, environ: Mapping[str, str]) -> ClientSettings:
    """Parse a settings file as the client does: remove comments and expand variables."""
    text = _COMMENT.sub(lambda match: match[1] or "", data.decode("utf-8", "replace"))
    try:
        value = lenient.decode(text.encode("utf-8", "replace"))
    except ValueError as error:
        return ClientSettings(path, problem=f"not JSON ({error})")
    if not isinstance(value, dict):
        return ClientSettings(path, problem="not a JSON object")
    if _is_too_deep(value):
        return ClientSettings(path, unread="its values are nested too deeply")
    return ClientSettings(path, _with_variables(value, environ))


def retention_policy(layers: Sequence[ClientSettings]) -> RetentionPolicy:
    """Merge settings files, the strongest last, and return the policy that the client derives from them."""
    for layer in layers:
        if layer.problem:
            return RetentionPolicy(
                off=f"{layer.path} is {layer.problem}: the client does not start with it", is_fault=True
            )
    merged: dict[str, Json] = {"general": {"sessionRetention": _DEFAULTS}}
    for layer in layers:
        merged = _merged(merged, layer.value)
    values = _retention(merged)
    sources = tuple(layer.path for layer in layers if _retention(layer.value))
    shown = {key: values.get(key) for key in _KEYS}
    unread = tuple(
        f"{layer.path} cannot be read ({layer.unread}), so its settings are ignored here"
        for layer in layers
        if layer.unread
    )
    if _is_off(values.get("enabled")):
        return RetentionPolicy(off="turned off in the settings", given=shown, sources=sources, notes=unread)
    fault, notes = _fault(values)
    notes = (*unread, *notes)
    if fault:
        off = f"{fault}: the client then deletes nothing"
        return RetentionPolicy(off=off, is_fault=True, given=shown, sources=sources, notes=unread)
    max_age = values.get("maxAge")
    return RetentionPolicy(
        max_age=None if max_age in JS_FALSE else _period(max_age),
        max_count=_number(values["maxCount"]) if "maxCount" in values else None,
        given=shown,
        sources=sources,
        notes=notes,
    )


def is_trusted(project: str, layers: Sequence[ClientSettings], rules: Mapping[str, Json]) -> bool:
    """Return whether the client applies a project's own settings: the longest rule that covers the project decides."""
    merged: dict[str, Json] = {}
    for layer in layers:
        merged = _merged(merged, layer.value)
    security = merged.get("security")
    trust = security.get("folderTrust") if isinstance(security, Mapping) else None
    enabled = trust.get("enabled") if isinstance(trust, Mapping) else None
    if enabled is not None and enabled in JS_FALSE:
        return True
    path = PurePath(project)
    covering = [rule for rule, level in rules.items() if _covered(PurePath(rule), level) in (path, *path.parents)]
    return bool(covering) and rules[max(covering, key=len)] in ("TRUST_FOLDER", "TRUST_PARENT")


def span_words(span: timedelta) -> str:
    """Return a period as text, such as `30 days` or `12 hours`."""
    hours = round(span / timedelta(hours=1))
    number, unit = (hours // 24, "day") if hours % 24 == 0 else (hours, "hour")
    return f"{number} {unit}{'' if number == 1 else 's'}"


def _covered(rule: PurePath, level: Json) -> PurePath:
    return rule.parent if level == "TRUST_PARENT" else rule


def _retention(settings: Mapping[str, Json]) -> Mapping[str, Json]:
    general = settings.get("general")
    retention = general.get("sessionRetention") if isinstance(general, Mapping) else None
    return retention if isinstance(retention, Mapping) else {}


def _is_off(enabled: Json) -> bool:
    return enabled in JS_FALSE or (isinstance(enabled, str) and enabled.lower() == "false")


def _merged(below: Mapping[str, Json], above: Mapping[str, Json]) -> dict[str, Json]:
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        merged[key] = _merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return merged


def _fault(given: Mapping[str, Json]) -> tuple[str | None, tuple[str, ...]]:
    """Check the values as the client does: return the fault, if any, and notes about values that it corrects."""
    max_age, least = given.get("maxAge"), given.get("minRetention")
    notes: tuple[str, ...] = ()
    if max_age not in JS_FALSE:
        span = _period(max_age)
        if span is None:
            return f"maxAge {_quoted(max_age)} is not <number>h, d, w or m", ()
        least = _MIN_RETENTION if least in JS_FALSE else least
        floor = _period(least)
        if floor is None:
            notes = (f"minRetention {_quoted(least)} is not <number>h, d, w or m: the client uses {_MIN_RETENTION}",)
            floor = _UNITS["d"]
        if span < floor:
            return f"maxAge {_quoted(max_age)} is less than minRetention ({least})", ()
    elif "maxCount" not in given:
        return "neither maxAge nor maxCount is set", ()
    if "maxCount" in given and _number(given["maxCount"]) < 1:
        return f"maxCount {_quoted(given['maxCount'])} is less than 1", ()
    return None, notes


def _quoted(value: Json) -> str:
    return lenient.encode(value).decode()


def _period(value: Json) -> timedelta | None:
    match = _PERIOD.fullmatch(value) if isinstance(value, str) else None
    number = float(match[1]) if match else 0
    if not match or not number:
        return None
    try:
        return number * _UNITS[match[2]]
    except OverflowError:
        return timedelta.max


def _number(value: Json) -> float:
    """Convert a value to a number as JavaScript does; one that is too large becomes infinite."""
    if value is None or value == "":
        return 0
    try:
        return float(value) if isinstance(value, str | int | float) else math.nan
    except ValueError:
        return math.nan
    except OverflowError:
        return math.inf if isinstance(value, int) and value > 0 else -math.inf


def _is_too_deep(value: Json) -> bool:
    level = [value]
    for _ in range(_DEEPEST):
        level = [inner for outer in level if isinstance(outer, Mapping) for inner in outer.values()]
    return bool(level)


def _with_variables(value: Mapping[str, Json], environ: Mapping[str, str]) -> dict[str, Json]:
    return {key: _expanded(inner, environ) for key, inner in value.items()}


def _expanded(value: Json, environ: Mapping[str, str]) -> Json:
    if isinstance(value, str):
        closed, brace, tail = value.rpartition("}")  # search for `${` only before a `}`
        expanded = _VARIABLE.sub(lambda match: _value(match, environ), closed + brace)
        return expanded + _NAME.sub(lambda match: environ.get(match[1], match[0]), tail)
    return _with_variables(value, environ) if isinstance(value, Mapping) else value


def _value(match: re.Match[str], environ: Mapping[str, str]) -> str:
    name, in_braces, default = match.groups()
    return environ.get(name or in_braces, match[0] if default is None else default)
