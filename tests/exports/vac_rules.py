"""The rules of a schema; each takes a decoded value and yields its problems."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

Rule: TypeAlias = Callable[[Any, str], Iterator[str]]
"""Yields the problems of a value, each with its path."""

_LARGEST = 2**64 - 1
"""The range of integers that CBOR has without a tag."""
_SHOWN = 40
"""Number of characters shown of a text that does not fit."""


def is_integer(value: object, least: int) -> bool:
    """Return whether a value is an integer of CBOR, which true and false are not."""
    return type(value) is int and least <= value <= _LARGEST


def anything(value: Any, path: str) -> Iterator[str]:  # noqa: ANN401, ARG001  signature of a rule
    """Accept any value."""
    return iter(())


def plain(options: str, fits: Callable[[Any], bool]) -> Rule:
    """Return the rule of a value without members."""

    def rule(value: Any, path: str) -> Iterator[str]:  # noqa: ANN401
        if not fits(value):
            yield _wrong(path, options, value)

    return rule


text = plain("a text", lambda value: isinstance(value, str))
byte_string = plain("a byte string", lambda value: isinstance(value, bytes))
boolean = plain("true or false", lambda value: isinstance(value, bool))
unsigned = plain("an integer from 0 on", lambda value: is_integer(value, 0))
integer = plain("an integer", lambda value: is_integer(value, -_LARGEST - 1))
number = plain("a number", lambda value: isinstance(value, float) or is_integer(value, -_LARGEST - 1))


def words(*known: str) -> Rule:
    """Return the rule of a text that is one of a few."""
    return plain(" or ".join(known), lambda value: isinstance(value, str) and value in known)


def matching(options: str, pattern: str) -> Rule:
    """Return the rule of a text that matches a pattern."""
    form = re.compile(pattern)
    return plain(options, lambda value: isinstance(value, str) and form.fullmatch(value) is not None)


def either(options: str, *rules: Rule) -> Rule:
    """Return the rule of a value that fits one of several rules."""
    return plain(options, lambda value: any(next(rule(value, ""), None) is None for rule in rules))


def array(each: Rule, least: int = 0) -> Rule:
    """Return the rule of an array."""

    def rule(value: Any, path: str) -> Iterator[str]:  # noqa: ANN401
        if not isinstance(value, list | tuple):
            yield _wrong(path, "an array", value)
            return
        if len(value) < least:
            yield f"{path}: at least {least} should be here"
        for place, item in enumerate(value):
            yield from each(item, f"{path}[{place}]")

    return rule


def row(*rules: Rule) -> Rule:
    """Return the rule of an array in which each position has its own rule."""

    def rule(value: Any, path: str) -> Iterator[str]:  # noqa: ANN401
        if not isinstance(value, list | tuple) or len(value) != len(rules):
            yield _wrong(path, f"an array of {len(rules)}", value)
            return
        for place, (item, rule_of_item) in enumerate(zip(value, rules, strict=True)):
            yield from rule_of_item(item, f"{path}[{place}]")

    return rule


def members(
    required: Mapping[Any, Rule],
    optional: Mapping[Any, Rule] | None = None,
    *,
    keys: tuple[type, ...] = (str,),
    is_open: bool = True,
) -> Rule:
    """Return the rule of a map; only an open one may have other members, with keys that match `more`."""
    all_rules = {**required, **(optional or {})}

    def rule(value: Any, path: str) -> Iterator[str]:  # noqa: ANN401
        if not isinstance(value, Mapping):
            yield _wrong(path, "a map", value)
            return
        yield from (f"{_below(path, key)}: is missing" for key in required if key not in value)
        for key, member in value.items():
            if type(key) not in keys:
                yield f"{path}: {_kind(key)} is no name of a member".removeprefix(": ")
            elif key in all_rules:
                yield from all_rules[key](member, _below(path, key))
            elif not is_open:
                yield f"{_below(path, key)}: there is no such member"

    return rule


def encoded(inner: Rule) -> Rule:
    """Return the rule of bytes that contain CBOR."""

    def rule(value: Any, path: str) -> Iterator[str]:  # noqa: ANN401
        from pollux.proofs.cose import InvalidEnvelopeError, decode_cbor  # noqa: PLC0415  heavy, and only for envelopes

        if not isinstance(value, bytes):
            yield _wrong(path, "a byte string", value)
            return
        try:
            decoded = decode_cbor(value)
        except InvalidEnvelopeError:
            yield f"{path}: these bytes are no CBOR"
            return
        yield from inner(decoded, path)

    return rule


def tagged(tag: int, inner: Rule) -> Rule:
    """Return the rule of a value with a CBOR tag."""

    def rule(value: Any, path: str) -> Iterator[str]:  # noqa: ANN401
        if getattr(value, "tag", None) != tag:
            yield _wrong(path, f"CBOR tag {tag}", value)
        else:
            yield from inner(value.value, path)

    return rule


def _wrong(path: str, options: str, value: object) -> str:
    return f"{path}: should be {options}, not {_kind(value)}".removeprefix(": ")


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case str():
            return f"'{value[:_SHOWN]}'"
        case int() | float():
            return str(value) if abs(value) <= _LARGEST else "a larger number"
        case bytes():
            return "a byte string"
        case Mapping():
            return "a map"
        case list() | tuple():
            return f"an array of {len(value)}"
        case _:
            return f"CBOR tag {tag}" if (tag := getattr(value, "tag", None)) is not None else "something else"


def _below(path: str, key: object) -> str:
    return f"{path}.{key}" if path else str(key)
