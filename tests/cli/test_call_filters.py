"""What was typed to count by is read once for all commands that count: dates in the zone that was asked for."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import click
import pytest
from click.testing import CliRunner

from pollux.cli.call_filters import Asked, call_filters
from pollux.reports.filters import Filter


@click.command()
@call_filters(counts="birds", model="birds of such a model")
@click.option("--more", is_flag=True)
def command(asked: Asked, *, more: bool) -> None:
    click.echo(f"{asked.project} {asked.since} {asked.until} {asked.last} {asked.model} {asked.timezone} {more}")


def test_a_command_gets_all_as_one() -> None:
    args = ["-p", "a", "--since", "b", "--until", "c", "--last", "d", "--model", "e", "-z", "f", "--more"]
    assert CliRunner().invoke(command, args).output == "a b c d e f True\n"
    assert CliRunner().invoke(command, []).output == "None None None None None None False\n"


def test_help_says_what_is_counted_in_the_usual_order() -> None:
    said = CliRunner().invoke(command, ["--help"]).output
    assert "Only birds after this" in said
    assert "Only birds of such a model." in said
    places = [said.index(f"--{name}") for name in ("project", "since", "until", "last", "model", "timezone", "more")]
    assert places == sorted(places)


def test_a_date_is_a_day_of_the_zone() -> None:
    asked = Asked("web", "2026-11-01", "2026-11-02", None, "pro", None)
    assert asked.filter(ZoneInfo("Asia/Tokyo")) == Filter(
        "web", datetime(2026, 10, 31, 15, tzinfo=UTC), datetime(2026, 11, 1, 15, tzinfo=UTC), "pro"
    )
    assert asked.filter(UTC).since == datetime(2026, 11, 1, tzinfo=UTC)


def test_two_beginnings_are_one_too_many() -> None:
    with pytest.raises(click.UsageError, match="--since and --last both"):
        Asked(None, "7d", None, "7d", None, None).filter(None)
