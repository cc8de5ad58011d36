"""Settings come to what the client makes of them; what it does then is recorded in `test_retention`."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

import pytest

from pollux.sessions.client_settings import ClientSettings, is_trusted, parse_settings, retention_policy, span_words


def retention(**values: Any) -> ClientSettings:  # noqa: ANN401  also those that no client takes
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
def test_settings_that_stop_the_clean_up(values: dict[str, Any], off: str) -> None:
    found = retention_policy([retention(**values)])
    assert (found.off, found.is_fault) == (off, "turned off" not in off)
    assert found.sources == ("settings.json",)


def test_settings_that_the_client_puts_up_with() -> None:
    found = retention_policy([retention(maxAge="1w", minRetention="soon", maxCount="many")])
    assert (found.max_age, found.off) == (timedelta(7), None)
    assert found.max_count != found.max_count
    assert found.notes == ('minRetention "soon" is not <number>h, d, w or m: the client uses 1d',)
    assert retention_policy([retention(maxAge="", maxCount=[3])]).max_age is None
    assert retention_policy([retention(maxAge="2h", minRetention="")]).is_fault


def test_the_strongest_settings_have_the_last_word() -> None:
    found = retention_policy([retention(maxAge="60d", maxCount=5), ClientSettings("mine", {}), retention(maxAge="3d")])
    assert (found.max_age, found.max_count) == (timedelta(3), 5)
    assert found.given == {"enabled": True, "maxAge": "3d", "maxCount": 5, "minRetention": "1d"}
    assert retention_policy([]).max_age == timedelta(30)
    assert retention_policy([ClientSettings("odd", {"general": "x"})]).off


def test_settings_may_hold_comments_and_variables() -> None:
    text = b'{ // why\n "a": "$NAME ${NAME} ${NONE:-no} ${NONE:-} $NONE // x", /* \n */ "b": {"c": 1}} /* open'
    assert parse_settings("s", text, {"NAME": "ada"}).value == {"a": "ada ada no  $NONE // x", "b": {"c": 1}}


@pytest.mark.parametrize(("data", "what"), [(b'{"a": 1,}', "not JSON"), (b"[]", "not a JSON object")])
def test_client_does_not_start_with_broken_settings(data: bytes, what: str) -> None:
    found = retention_policy([parse_settings("s.json", data, {})])
    assert found.is_fault
    assert found.off is not None
    assert f"s.json is {what}" in found.off


def test_trust_is_a_matter_of_the_longest_rule() -> None:
    rules = {"/home": "TRUST_FOLDER", "/home/alice/dev": "DO_NOT_TRUST", "/home/alice/dev/webapp/src": "TRUST_PARENT"}
    assert is_trusted("/home/bob", [], rules)
    assert not is_trusted("/home/alice/dev/other", [], rules)
    assert is_trusted("/home/alice/dev/webapp", [], rules)
    assert not is_trusted("/elsewhere", [], rules)
    assert is_trusted("/elsewhere", [ClientSettings("s", {"security": {"folderTrust": {"enabled": False}}})], rules)
    assert not is_trusted("/elsewhere", [ClientSettings("s", {"security": {"folderTrust": None}})], rules)


def test_spans_in_words() -> None:
    assert [span_words(timedelta(one)) for one in (30, 1, 0.5)] == ["30 days", "1 day", "12 hours"]


@pytest.mark.parametrize(
    ("value", "off"),
    [
        ("1" + "0" * 400, None),
        ("-1" + "0" * 400, "is less than 1: the client then deletes nothing"),
    ],
)
def test_a_number_that_is_too_large_is_infinite(value: str, off: str | None) -> None:
    text = f'{{"general": {{"sessionRetention": {{"maxCount": {value}}}}}}}'
    found = retention_policy([parse_settings("settings.json", text.encode(), {})])
    assert (found.off or "").endswith(off or "")
    assert bool(found.off) == bool(off)
    assert found.max_count == (None if off else math.inf)


def test_settings_that_are_nested_deeply_are_not_read() -> None:
    text = '{"a":' * 900 + "1" + "}" * 900
    layer = parse_settings("settings.json", text.encode(), {})
    found = retention_policy([layer, layer])
    note = "settings.json cannot be read (its values are nested too deeply), so its settings are ignored here"
    assert (found.off, found.notes) == (None, (note, note))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('"' + '\\"' * 200_000, "not JSON"),
        ('{"a": "' + "${" * 200_000 + '"}', None),
        ('{"a": "' + "${a:-" * 200_000 + '"}', None),
        ("/*" * 200_000, "not JSON"),
    ],
)
def test_settings_without_ends_are_read_in_one_pass(text: str, problem: str | None) -> None:
    """A search that begins anew at each of them would take hours."""
    found = parse_settings("settings.json", text.encode(), {})
    assert (found.problem or "").startswith(problem or "")
    assert bool(found.problem) == bool(problem)


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("$A", "1"),
        ("${A} $A ${B:-2} ${C} $C", "1 1 2 ${C} $C"),
        ("${A} and ${A", "1 and ${A"),
        ("${A} and $A", "1 and 1"),
    ],
)
def test_variables_have_their_values_put_in(text: str, expanded: str) -> None:
    assert parse_settings("settings.json", f'{{"a": "{text}"}}'.encode(), {"A": "1"}).value == {"a": expanded}
