"""`pollux usage` counts tokens and cost exactly, also where other programs do not, in every output format."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import sys
import time
import zoneinfo
from functools import partial
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from tests import builders
from tests.builders import chats, header, log, put
from tests.cli.running import Runner
from tests.cli.usage_cases import CASES, NEW_TOKENS, OTHER, SMALL, answer, new, old, tiny

from pollux.archive import store
from pollux.library import config
from pollux.reports.usage import REPORTS
from pollux.sessions import reader

TOKENS = {"input", "cached", "output", "thoughts", "tool", "total"}
SUMS = {"calls", "tokens", "cost_nanousd", "unpriced"}


@pytest.mark.parametrize("how", [(), ("--no-archive",)], ids=["archive", "memory"])
@pytest.mark.parametrize("name", CASES)
def test_cost_and_tokens_equal_the_expected_ones(run: Runner, tmp_path: Path, name: str, how: tuple[str, ...]) -> None:
    build, nanousd, calls, tokens = CASES[name]
    build(tmp_path)
    for by in ("day", "session"):
        found = run("usage", "--by", by, "--json", *how, home=tmp_path).json
        assert (found["billed"]["cost_nanousd"], found["billed"]["calls"]) == (nanousd, calls)
        assert found["billed"]["tokens"] == tokens
        assert sum(row["cost_nanousd"] for row in found["rows"]) == nanousd


@pytest.mark.parametrize("by", REPORTS)
def test_output_is_the_same_with_and_without_an_archive(run: Runner, by: str) -> None:
    first, again = (run("usage", "--by", by, "--json").out for _ in range(2))
    assert first == again == run("usage", "--by", by, "--json", "--no-archive").out


@pytest.mark.parametrize("how", [(), ("--no-archive",)], ids=["archive", "memory"])
@pytest.mark.parametrize("name", [f"{builders.NAME} (1)", "session-old", f"{builders.NAME[:-8]}abcdef12"])
def test_copies_of_a_session_are_counted_once(run: Runner, tmp_path: Path, name: str, how: tuple[str, ...]) -> None:
    first = answer("g1", NEW_TOKENS)
    put(chats(tmp_path) / f"{builders.NAME}.jsonl", log(header(), first))
    put(chats(tmp_path) / f"{name}.jsonl", log(header(), first, answer("g2", SMALL, second=5)))
    for by in ("day", "session", "project"):
        (row,) = run("usage", "--by", by, "--json", *how, home=tmp_path).json["rows"]
        assert (row["calls"], row["tokens"]["input"]) == (2, 5000)
    assert len(run("ls", "--json", *how).json["sessions"]) == 1
    assert run("show", builders.SESSION, *how).status == 0


def test_imported_calls_are_counted_once_in_any_chunk(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = answer("g1", NEW_TOKENS)
    put(chats(tmp_path) / f"{builders.NAME}.jsonl", log(header(), first))
    put(chats(tmp_path) / f"{OTHER}.jsonl", log(header(builders.OTHER), first, answer("g2", SMALL, second=5)))
    for enough in (1, 1 << 20):
        monkeypatch.setattr(reader, "_CHUNK", enough)
        found = run("usage", "--json", "--no-archive", home=tmp_path).json
        assert (found["billed"]["calls"], found["billed"]["tokens"]["input"]) == (2, 5000)


def test_tiny_home_is_counted_exactly(run: Runner, tmp_path: Path) -> None:
    tiny(tmp_path)
    found = run("usage", "--json", "--by", "session", home=tmp_path).json
    assert (found["active"]["calls"], found["active"]["tokens"]["input"]) == (5, 18_000)
    assert {row["key"]: row["calls"] for row in found["rows"]} == {builders.OTHER: 4, builders.SESSION: 2}
    apart = run("usage", "--json", "--by", "session", "--subagents", "separate").json["rows"]
    assert sorted(row["calls"] for row in apart) == [1, 2, 3]


@pytest.mark.parametrize("how", [(), ("--no-archive",)], ids=["archive", "memory"])
def test_tools_of_a_log_are_counted(run: Runner, tmp_path: Path, how: tuple[str, ...]) -> None:
    new(tmp_path)
    (row,) = run("usage", "--by", "tool", "--json", *how, home=tmp_path).json["rows"]
    assert (row["key"], row["tool_calls"]["calls"], row["tool_calls"]["success"]) == ("Bash", 2, 2)
    assert (row["calls"], row["tokens"]) == (1, NEW_TOKENS)


@pytest.mark.parametrize("command", ["usage", "stats"])
def test_tools_have_the_same_name_everywhere(run: Runner, tmp_path: Path, command: str) -> None:
    new(tmp_path)
    args = (command, "--by", "tool")
    document = run(*args, "--json", home=tmp_path).json
    (row,) = document["rows" if command == "usage" else "tools"]
    assert (row["key"], row["name"]) == ("Bash", "Shell")
    assert run(*args).out.splitlines()[1].split("\t")[:2] == ["Bash", "Shell"]
    assert run(*args, "--csv").out.splitlines()[1].split(",")[:2] == ["Bash", "Shell"]
    assert run(*args, columns=80).out.splitlines()[1].split()[0] == "Shell"


def test_unknown_model_is_named_with_its_tokens(run: Runner, tmp_path: Path) -> None:
    CASES["unknown model among others"].build(tmp_path)
    found = run("usage", "--json", home=tmp_path).json
    assert found["unpriced_models"] == [{"model": "gemini-9.9-ultra", "calls": 1, "tokens": SMALL}]
    assert found["billed"]["unpriced"] == {"calls": 1, "tokens": SMALL}
    only = run("usage", "--json", "--model", "ultra").json
    assert (only["rows"][0]["cost_nanousd"], only["billed"]["cost_nanousd"]) == (None, None)
    notes = run("usage").err
    assert "No price for gemini-9.9-ultra: 1 call, 1.1k tokens are in no amount." in notes
    shown = run("usage", columns=80).out
    assert "$0.000513+" in shown
    assert "no price" in run("usage", "--by", "model", columns=80).out


def test_home_variable_of_the_client_is_used(run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old(tmp_path)
    monkeypatch.delenv("POLLUX_HOME")
    monkeypatch.setenv("GEMINI_CLI_HOME", str(tmp_path))
    assert run("usage", "--json").json["billed"]["cost_nanousd"] == 6_343_750


def test_deleted_files_are_still_counted(run: Runner, tmp_path: Path) -> None:
    tiny(tmp_path)
    before = run("usage", "--json", home=tmp_path).json
    for path in chats(tmp_path).rglob("*.json*"):
        path.unlink()
    assert run("usage", "--json").json == before


def test_json_has_the_documented_keys(run: Runner, tmp_path: Path) -> None:
    tiny(tmp_path)
    for by in ("hour", "day", "week", "month", "session", "project", "model", "tool"):
        found = run("usage", "--by", by, "--json", "-z", "Europe/Berlin", home=tmp_path).json
        assert list(found) == [
            *("schema", "by", "timezone", "prices", "rows", "billed", "active", "unpriced_models", "problems"),
        ]
        assert (found["schema"], found["by"], found["timezone"]) == ("pollux.usage/1", by, "Europe/Berlin")
        assert found["prices"].keys() == {"table", "date"}
        for sums in (*found["rows"], found["billed"], found["active"]):
            assert sums.keys() >= SUMS
            assert sums["tokens"].keys() == sums["unpriced"]["tokens"].keys() == TOKENS
        assert all("key" in row for row in found["rows"])
        assert found["rows"]


@pytest.mark.parametrize(
    ("by", "zone", "key"),
    [
        ("hour", "Asia/Kathmandu", "2026-11-16T01:00+05:45"),
        ("day", "Asia/Tokyo", "2026-11-16"),
        ("day", "UTC", "2026-11-15"),
        ("week", "UTC", "2026-W46"),
        ("week", "Asia/Tokyo", "2026-W47"),
        ("month", "UTC", "2026-11"),
    ],
)
def test_periods_begin_in_the_chosen_time_zone(run: Runner, tmp_path: Path, by: str, zone: str, key: str) -> None:
    new(tmp_path)
    (row,) = run("usage", "--by", by, "--timezone", zone, "--json", home=tmp_path).json["rows"]
    assert (row["key"], row["calls"]) == (key, 3)


@pytest.mark.parametrize(
    ("options", "calls"),
    [
        (("--since", "2026-11-15T19:30:02Z"), 2),
        (("--until", "2026-11-15T19:30:02Z"), 1),
        (("--since", "2026-11-16", "--timezone", "Asia/Tokyo"), 3),
        (("--since", "2026-11-16", "--timezone", "UTC"), 0),
        (("--project", "webapp"), 3),
        (("--model", "FLASH"), 3),
        (("--model", "pro"), 0),
    ],
)
def test_filters_select_calls(run: Runner, tmp_path: Path, options: tuple[str, ...], calls: int) -> None:
    new(tmp_path)
    ended = run("usage", "--json", *options, home=tmp_path)
    assert (ended.json["billed"]["calls"], ended.status) == (calls, int(not calls))


def test_project_filter_selects_sessions(run: Runner, tmp_path: Path) -> None:
    tiny(tmp_path)
    elsewhere = tmp_path / ".gemini" / "tmp" / ("0" * 64) / "chats" / f"session-2026-11-15T19-30-{'e' * 8}.jsonl"
    put(elsewhere, log(header("e" * 8, projectHash="0" * 64), answer("e1", SMALL)))
    for how in ((), ("--no-archive",)):
        assert run("usage", "--project", "webapp", "--json", *how, home=tmp_path).json["billed"]["calls"] == 6
        rows = run("usage", "--by", "project", "--json", *how).json["rows"]
        assert {row["key"]: row["name"] for row in rows} == {builders.ROOT: "webapp", "0" * 64: "[00000000]"}
        ended = run("usage", "--project", "nowhere", *how)
        assert (ended.status, "No project matches 'nowhere'" in ended.err) == (1, True)


def test_lines_are_exact(run: Runner, tmp_path: Path) -> None:
    tiny(tmp_path)
    ended = run("usage", "--by", "month", home=tmp_path)
    header, fields = (line.split("\t") for line in ended.out.splitlines())
    assert " ".join(fields[:10]) == "2026-11 2026-11 6 22000 9000 2200 725 25 24950 0.02785375"
    assert " ".join(header[:10]) == "key name calls input cached output thoughts tool total cost_usd"
    assert run("usage", "--by", "month", "--no-header").out.splitlines() == ended.out.splitlines()[1:]
    assert ended.err.startswith("Prices: genai-prices ")
    assert ended.status == 0


def test_csv_is_exact(run: Runner, tmp_path: Path) -> None:
    tiny(tmp_path)
    (row,) = csv.DictReader(io.StringIO(run("usage", "--by", "month", "--csv", home=tmp_path).out))
    assert (row["cost_usd"], row["total"], row["active_calls"], row["unpriced_calls"]) == (
        *("0.02785375", "24950"),
        *("5", "0"),
    )
    (tool,) = csv.DictReader(io.StringIO(run("usage", "--by", "tool", "--csv").out))
    assert (tool["tool_calls"], tool["success"], tool["no_result"]) == ("2", "2", "0")


@pytest.mark.parametrize("columns", [30, 60, 80, 120, 200])
@pytest.mark.parametrize("by", ["hour", "day", "week", "month", "session", "project", "model", "tool"])
def test_table_fits(run: Runner, tmp_path: Path, by: str, columns: int) -> None:
    tiny(tmp_path)
    shown = run("usage", "--by", by, columns=columns, home=tmp_path).out
    assert all(len(line) <= columns for line in shown.splitlines())
    assert "$0.0279" in shown
    assert "genai-prices" in shown
    assert "active" in shown


def test_money_is_shown_in_another_currency(run: Runner, tmp_path: Path) -> None:
    tiny(tmp_path)
    shown = run("usage", "--currency", "eur", "--rate", "0.92", columns=80, home=tmp_path).out
    assert "€0.0256" in shown
    assert "0.92 EUR per dollar" in shown
    assert run("usage", "--currency", "EUR", "--rate", "0.92", "--json").json["billed"]["cost_nanousd"] == 27_853_750


def test_own_prices_override_the_table(run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny(tmp_path)
    own = put(tmp_path / "prices.toml", b'[[price]]\nmodel = "gemini-2.5-flash"\ninput = 0\ncached = 0\noutput = 0\n')
    expected = 27_853_750 - 6_135_000
    assert run("usage", "--prices", str(own), "--json", home=tmp_path).json["billed"]["cost_nanousd"] == expected
    assert run("usage", "--json").json["billed"]["cost_nanousd"] == 27_853_750
    monkeypatch.setenv("POLLUX_PRICES", str(own))
    found = run("usage", "--json").json
    assert found["billed"]["cost_nanousd"] == expected
    assert "prices.toml" in found["prices"]["table"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--csv", "--json"), "--csv and --json"),
        (("--since", "7d", "--last", "7d"), "--since and --last"),
        (("--timezone", "Nowhere/Land"), "Invalid value for --timezone: 'Nowhere/Land'"),
        (("--timezone", "../etc/passwd"), "Use Europe/Berlin, America/New_York or UTC."),
        (("--timezone", "Europe/Berln"), "Use Europe/Berlin"),
        (("--timezone", "tokyo"), "Use Asia/Tokyo."),
        (("--currency", "EUR"), "needs --rate"),
        (("--currency", "EUR", "--rate", "much"), "Invalid --rate 'much'"),
        (("--currency", "EUR", "--rate", "-1"), "Invalid --rate '-1'"),
        (("--live",), "--live needs a terminal"),
        (("--by", "year"), "There is no 'year' for --by. Use hour"),
    ],
)
def test_wrong_options_are_explained(run: Runner, options: tuple[str, ...], words: str) -> None:
    ended = run("usage", *options)
    assert (ended.status, words in ended.err) == (2, True), ended.err


def test_empty_home_is_reported(run: Runner, tmp_path: Path) -> None:
    ended = run("usage", home=tmp_path)
    assert (ended.status, ended.out) == (1, "")
    assert "No model call matches" in ended.err
    assert run("usage", columns=80).out == ""


def test_inconsistent_total_is_reported(run: Runner, tmp_path: Path) -> None:
    CASES["total without thoughts"].build(tmp_path)
    found = run("usage", "--json", home=tmp_path)
    assert (found.json["billed"]["inconsistent"], found.json["billed"]["tokens"]["total"], found.status) == (1, 1100, 0)
    assert "1 call has a total that is not the sum" in run("usage", columns=80).out


def test_problems_are_reported(run: Runner, tmp_path: Path) -> None:
    CASES["torn last line"].build(tmp_path)
    for how in ((), ("--no-archive",)):
        found = run("usage", "--json", *how, home=tmp_path)
        assert (found.status, [one["code"] for one in found.json["problems"]]) == (0, ["torn-line"])
        assert "1 file with problems" in run("usage", *how).err


def test_live_draws_until_it_is_interrupted(run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old(tmp_path)
    pauses = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) > 1:
            raise KeyboardInterrupt
        new(tmp_path)

    monkeypatch.setattr(time, "sleep", pause)
    ended = run("usage", "--live", columns=100, home=tmp_path)
    assert (ended.status, pauses) == (0, [1.0, 1.0])
    assert "$0.0125" in ended.out
    assert run("usage", "--live", "--no-archive", columns=100).status == 2


def test_locked_archive_is_read(run: Runner, tmp_path: Path) -> None:
    old(tmp_path)
    archive = tmp_path / "archive.db"
    run("usage", "--archive", str(archive), home=tmp_path)
    with store.open_archive(archive):
        new(tmp_path)
        found = run("usage", "--archive", str(archive), "--json").json
    assert found["billed"]["calls"] == 2


def test_read_only_archive_is_read(run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old(tmp_path)
    run("usage", home=tmp_path)
    monkeypatch.setattr(store, "open_archive", partial(store.open_archive, write=False))
    ended = run("usage", "--json")
    assert ended.json["billed"]["cost_nanousd"] == 6_343_750
    assert "The archive cannot be written" in ended.err


def test_time_zone_comes_from_the_system(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TZ", ":Asia/Tokyo")
    assert config.find_zone(None, os.environ) == (ZoneInfo("Asia/Tokyo"), "Asia/Tokyo")
    monkeypatch.delenv("TZ")
    zone = put(tmp_path / "zoneinfo" / "Europe" / "Paris", b"")
    monkeypatch.setattr(config, "_LOCALTIME", zone)
    assert config.find_zone(None, os.environ) == (ZoneInfo("Europe/Paris"), "Europe/Paris")
    monkeypatch.setenv("TZ", "EST5EDT,M3.2.0,M11.1.0")  # rules, and no name
    assert config.find_zone(None, os.environ) == (ZoneInfo("Europe/Paris"), "Europe/Paris")
    monkeypatch.delenv("TZ")
    monkeypatch.setattr(config, "_LOCALTIME", tmp_path / "localtime")
    assert config.find_zone(None, os.environ) == (None, "UTC")


def test_system_without_time_zones_says_where_to_get_them(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("tzdata", *(one for one in sys.modules if one.startswith("tzdata."))):
        monkeypatch.setitem(sys.modules, name, None)
    zoneinfo.reset_tzpath(to=[])
    ZoneInfo.clear_cache()
    try:
        ended = run("usage", "--timezone", "Europe/Berlin")
        assert (ended.status, run("usage", "--json").json["timezone"]) == (1, "UTC")
    finally:
        zoneinfo.reset_tzpath()
    assert "no time zone database. Run `pip install tzdata`." in ended.err


def read_only(*_: object) -> str:
    raise OSError(errno.EROFS, "Read-only file system")


@pytest.mark.parametrize("command", [("usage",), ("usage", "--by", "session"), ("stats",), ("ls",)])
@pytest.mark.parametrize("is_taken", [True, False])
def test_files_are_read_until_the_archive_has_facts(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], *, is_taken: bool
) -> None:
    """Another process fills the archive for the first time, or it cannot be written."""
    tiny(tmp_path)
    place = tmp_path / "early.db"
    monkeypatch.setenv("POLLUX_ARCHIVE", str(place))
    with store.open_archive(place) as writer:
        if not is_taken:
            assert writer.lock
            writer.lock.release()
            monkeypatch.setattr(store, "_take_lock", read_only)
        ended = run(*command, "--json", home=tmp_path)
    assert ended.status == 0
    assert "reading session files directly." in ended.err
    assert (ended.json.get("billed") or {"calls": 6})["calls"] == 6
    assert ended.json.get("sessions", True)


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (("--rate", "0.92"), "--rate 0.92 needs a currency, as in --currency EUR --rate 0.92"),
        (("--subagents", "separate"), "--subagents separate lists sessions: add --by session"),
    ],
)
def test_option_without_effect_is_refused(run: Runner, args: tuple[str, ...], sentence: str) -> None:
    ended = run("usage", *args)
    assert (ended.status, ended.out) == (2, "")
    assert sentence in ended.err


@pytest.mark.parametrize("how", [(), ("--no-archive",), ("--no-archive", "--by", "session")])
def test_line_that_only_newer_clients_split_is_counted(run: Runner, tmp_path: Path, how: tuple[str, ...]) -> None:
    answer = builders.gemini("g1", "a\u2028b", tokens=builders.tokens())
    data = builders.log(builders.header(), json.dumps(answer, ensure_ascii=False).encode())
    builders.put(builders.chats(tmp_path) / f"{builders.NAME}.jsonl", data)
    found = run("usage", "--json", *how, home=tmp_path)
    assert (found.status, found.json["problems"], found.json["billed"]["calls"]) == (0, [], 1)
    assert [one["code"] for one in run("ls", "--json").json["problems"]] == ["split-by-newer-node"]


def test_rows_are_sorted_and_limited(run: Runner) -> None:
    whole = run("usage", "--json").json
    costs = sorted((row["cost_nanousd"] for row in whole["rows"]), reverse=True)
    top = run("usage", "--top", "3", "--json").json
    assert [row["cost_nanousd"] for row in top["rows"]] == costs[:3]
    assert top["billed"] == whole["billed"]
    by_calls = run("usage", "--by", "model", "--sort", "calls", "--json").json["rows"]
    assert [row["calls"] for row in by_calls] == sorted((row["calls"] for row in by_calls), reverse=True)
    names = [row["name"] for row in run("usage", "--by", "tool", "--sort", "name", "--json").json["rows"]]
    assert names == sorted(names, key=str.casefold)
    shown = run("usage", "-n", "3", columns=120).out
    assert f"{len(whole['rows']) - 3} more rows: in the totals, but not shown." in shown
    assert run("usage", "-n", "3", "--no-archive", "--json").json["rows"] == top["rows"]
