"""Settings are interpreted as the client does; `test_retention` compares with its recorded clean-ups."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

import pytest

from pollux.sessions.client_settings import ClientSettings, is_trusted, parse_settings, retention_policy, span_words


def retention(**values: Any) -> ClientSettings:  # noqa: ANN401  invalid values too
    return ClientSettings("settings.json", {"general": {"sessionRetention": values}})


@pytest.mark.parametrize(
    ("values", "off"),
    [
        ({"enabled": False}, "turned off in the settings"),
        ({"enabled": "False"}, "turned off in the settings"),
        ({"maxAge": "30 days"}, 'maxAge "30 days" is not <number>h, d, w or m: the client then deletes nothing'),
        ({"maxAge": "0d"}, 'maxAge "0d" is not <number>h, d, w or m: the client then deletes nothing'),
        ({"maxAge": 30}, "maxAge 30 is not <number>h, d, w or m: the client then deletes nothing"),
        ({"maxAge": "2h"}, 'maxAge "2h" is less than minRetention (1d): the client then deletes nothing'),
        ({"maxAge": None}, "neither maxAge nor maxCount is set: the client then deletes nothing"),
        ({"maxCount": 0}, "maxCount 0 is less than 1: the client then deletes nothing"),
        ({"maxCount": ""}, 'maxCount "" is less than 1: the client then deletes nothing'),
        ({"maxCount": None}, "maxCount null is less than 1: the client then deletes nothing"),
    ],
)
def test_invalid_settings_turn_the_clean_up_off(values: dict[str, Any], off: str) -> None:
    policy = retention_policy([retention(**values)])
    assert (policy.off, policy.is_fault) == (off, "turned off" not in off)
    assert policy.sources == ("settings.json",)


def test_odd_values_that_the_client_accepts_are_replaced_by_defaults() -> None:
    policy = retention_policy([retention(maxAge="1w", minRetention="soon", maxCount="many")])
    assert (policy.max_age, policy.off) == (timedelta(7), None)
    assert policy.max_count != policy.max_count
    assert policy.notes == ('minRetention "soon" is not <number>h, d, w or m: the client uses 1d',)
    assert retention_policy([retention(maxAge="", maxCount=[3])]).max_age is None
    assert retention_policy([retention(maxAge="2h", minRetention="")]).is_fault


def test_later_layer_of_settings_overrides_earlier_ones() -> None:
    policy = retention_policy([retention(maxAge="60d", maxCount=5), ClientSettings("mine", {}), retention(maxAge="3d")])
    assert (policy.max_age, policy.max_count) == (timedelta(3), 5)
    assert policy.given == {"enabled": True, "maxAge": "3d", "maxCount": 5, "minRetention": "1d"}
    assert retention_policy([]).max_age == timedelta(30)
    assert retention_policy([ClientSettings("odd", {"general": "x"})]).off


def test_settings_may_contain_comments_and_variables() -> None:
    text = b'{ // why\n "a": "$NAME ${NAME} ${NONE:-no} ${NONE:-} $NONE // x", /* \n */ "b": {"c": 1}} /* open'
    assert parse_settings("s", text, {"NAME": "ada"}).value == {"a": "ada ada no  $NONE // x", "b": {"c": 1}}


@pytest.mark.parametrize(("data", "what"), [(b'{"a": 1,}', "not JSON"), (b"[]", "not a JSON object")])
def test_broken_settings_are_a_fault_that_turns_the_clean_up_off(data: bytes, what: str) -> None:
    policy = retention_policy([parse_settings("s.json", data, {})])
    assert policy.is_fault
    assert policy.off is not None
    assert f"s.json is {what}" in policy.off


def test_longest_matching_rule_decides_trust() -> None:
    rules = {"/home": "TRUST_FOLDER", "/home/alice/dev": "DO_NOT_TRUST", "/home/alice/dev/webapp/src": "TRUST_PARENT"}
    assert is_trusted("/home/bob", [], rules)
    assert not is_trusted("/home/alice/dev/other", [], rules)
    assert is_trusted("/home/alice/dev/webapp", [], rules)
    assert not is_trusted("/elsewhere", [], rules)
    assert is_trusted("/elsewhere", [ClientSettings("s", {"security": {"folderTrust": {"enabled": False}}})], rules)
    assert not is_trusted("/elsewhere", [ClientSettings("s", {"security": {"folderTrust": None}})], rules)


def test_span_words() -> None:
    assert [span_words(timedelta(days)) for days in (30, 1, 0.5)] == ["30 days", "1 day", "12 hours"]


@pytest.mark.parametrize(
    ("value", "off"),
    [
        ("1" + "0" * 400, None),
        ("-1" + "0" * 400, "is less than 1: the client then deletes nothing"),
    ],
)
def test_number_too_large_for_a_float_is_infinite(value: str, off: str | None) -> None:
    text = f'{{"general": {{"sessionRetention": {{"maxCount": {value}}}}}}}'
    policy = retention_policy([parse_settings("settings.json", text.encode(), {})])
    assert (policy.off or "").endswith(off or "")
    assert bool(policy.off) == bool(off)
    assert policy.max_count == (None if off else math.inf)


def test_deeply_nested_settings_are_ignored_with_a_note() -> None:
    text = '{"a":' * 900 + "1" + "}" * 900
    layer = parse_settings("settings.json", text.encode(), {})
    policy = retention_policy([layer, layer])
    note = "settings.json cannot be read (its values are nested too deeply), so its settings are ignored here"
    assert (policy.off, policy.notes) == (None, (note, note))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('"' + '\\"' * 200_000, "not JSON"),
        ('{"a": "' + "${" * 200_000 + '"}', None),
        ('{"a": "' + "${a:-" * 200_000 + '"}', None),
        ("/*" * 200_000, "not JSON"),
    ],
)
def test_unterminated_settings_are_parsed_in_linear_time(text: str, problem: str | None) -> None:
    """A parser that searches again from each opening mark would take hours."""
    policy = parse_settings("settings.json", text.encode(), {})
    assert (policy.problem or "").startswith(problem or "")
    assert bool(policy.problem) == bool(problem)


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("$A", "1"),
        ("${A} $A ${B:-2} ${C} $C", "1 1 2 ${C} $C"),
        ("${A} and ${A", "1 and ${A"),
        ("${A} and $A", "1 and 1"),
    ],
)
def test_variables_are_replaced_by_their_values(text: str, expanded: str) -> None:
    assert parse_settings("settings.json", f'{{"a": "{text}"}}'.encode(), {"A": "1"}).value == {"a": expanded}
