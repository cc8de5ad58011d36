"""`usage` says what was used and what it cost: on every case that others get wrong, and in every form."""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

import pytest
from tests import builders
from tests.builders import Wire, at, call, chats, document, gemini, header, log, put, rewind, updates, user
from tests.cli.running import Runner

from pollux.archive import store
from pollux.cli import usage

Build: TypeAlias = Callable[[Path], None]

PRO, FLASH = "gemini-2.5-pro", "gemini-2.5-flash"
NAME, OTHER = f"{builders.NAME}.json", f"session-2026-11-15T19-30-{builders.OTHER[:8]}"
TOKENS = {"input", "cached", "output", "thoughts", "tool", "total"}
SUMS = {"calls", "tokens", "cost_nanousd", "unpriced"}


def counts(input_: int, output: int, *, cached: int = 0, thoughts: int = 0, tool: int = 0) -> Wire:
    total = input_ + output + thoughts + tool
    return {
        "input": input_,
        "output": output,
        "cached": cached,
        "thoughts": thoughts,
        "tool": tool,
        "total": total,
    }


def answer(id_: str, tokens: Wire, model: str = PRO, **more: Any) -> Wire:  # noqa: ANN401  as on the wire
    return gemini(id_, "ok", tokens=tokens, model=model, **more)


# The cases of a comparison of such programs: two old answers, three new ones of which one is rewound, one subagent.
OLD = (
    user("u1"),
    answer("g1", counts(1000, 100, thoughts=50)),
    answer("g2", counts(2000, 200, cached=1500, thoughts=75, tool=25)),
)
NEW_TOKENS = counts(4000, 400, cached=1500, thoughts=100)
SUBAGENT = answer("s1", counts(7000, 700, cached=3000, thoughts=300))
SMALL = counts(1000, 100, cached=600, thoughts=50)


def old(root: Path, folder: str = "webapp") -> None:
    put(chats(root, folder) / NAME, document(*OLD))


def new(root: Path) -> None:
    bare = [gemini(f"n{n}", "ok", second=n, model=FLASH, tokens=None) for n in (1, 2, 3)]
    full = [one | {"tokens": NEW_TOKENS} for one in bare]
    shell = [call("c1", "run_shell_command", args={"command": "ls"}), call("c2", "Shell", args={"command": "ls"})]
    records = (bare[0], full[0], full[0] | {"toolCalls": shell}, full[1], user("u3"), full[2], rewind("u3"))
    data = log(header(builders.OTHER), user("u2"), *records, updates(lastUpdated=at(9)))
    put(chats(root) / f"{OTHER}.jsonl", data)


def subagent_log(root: Path) -> None:
    head = header("5ab00000-0000-4000-8000-000000000000", kind="subagent")
    put(chats(root) / builders.OTHER / f"{head['sessionId']}.jsonl", log(head, user("us"), SUBAGENT))


def subagent_document(root: Path) -> None:
    data = document(user("us"), SUBAGENT, sessionId="5ab00000-0000-4000-8000-000000000000", kind="subagent")
    put(chats(root) / builders.OTHER / "5ab00000-0000-4000-8000-000000000000.json", data)


def tiny(root: Path) -> None:
    old(root)
    new(root)
    subagent_log(root)


def copied(root: Path) -> None:
    old(root)
    old(root, builders.HASH)


def resumed(root: Path) -> None:
    old(root)
    records = (header(), *OLD, user("u9", second=8), answer("g9", counts(2500, 50), second=9))
    put(chats(root) / f"{NAME}l", log(*records))


def logged(*answers: Wire, tail: bytes = b"") -> Build:
    def build(root: Path) -> None:
        put(chats(root) / f"{NAME}l", log(header(), user(), *answers) + tail)

    return build


def stray(root: Path) -> None:
    logged(answer("g1", SMALL, FLASH))(root)
    stats = {"models": {FLASH: {"tokens": counts(9000, 100)}}}
    put(root / ".gemini" / "tmp" / "webapp" / "report.json", json.dumps({"stats": stats}).encode())
    put(root / ".gemini" / "tmp" / "webapp" / "chats" / "notes.json", json.dumps({"stats": stats}).encode())


def reused(root: Path) -> None:
    old(root)
    data = document(user("us"), answer("s1", counts(500, 10)), kind="subagent")
    put(chats(root) / f"session-2026-11-15T19-31-{builders.SESSION[:8]}.json", data)


NO_TOTAL = {key: value for key, value in SMALL.items() if key != "total"}
CASES: dict[str, tuple[Build, int, int]] = {
    "tiny": (tiny, 27_853_750, 6),
    "document alone": (old, 6_343_750, 2),
    "log alone": (new, 6_135_000, 3),
    "subagent's log alone": (subagent_log, 15_375_000, 1),
    "subagent's document alone": (subagent_document, 15_375_000, 1),
    "hash folder and its copy": (copied, 6_343_750, 2),
    "resumed with one more turn": (resumed, 9_968_750, 3),
    "one prompt of 300k": (logged(answer("g1", counts(300_000, 1500, cached=100_000))), 547_500_000, 1),
    "two prompts of 150k": (
        logged(answer("g1", counts(150_000, 1000)), answer("g2", counts(150_000, 1000))),
        395_000_000,
        2,
    ),
    "no total": (logged(answer("g1", NO_TOTAL, FLASH)), 513_000, 1),
    "total without thoughts": (logged(answer("g1", SMALL | {"total": 1100}, FLASH)), 513_000, 1),
    "torn last line": (logged(answer("g1", SMALL, FLASH), tail=b'{"id":"g2","type":"gemini","con'), 513_000, 1),
    "stray JSON with stats": (stray, 513_000, 1),
    "parent's id reused": (reused, 7_068_750, 3),
    "unknown model among others": (
        logged(answer("g1", SMALL, FLASH), answer("g2", SMALL, "gemini-9.9-ultra")),
        513_000,
        2,
    ),
}


@pytest.mark.parametrize("how", [(), ("--no-archive",)], ids=["archive", "memory"])
@pytest.mark.parametrize("name", CASES)
def test_cost_is_the_truth(run: Runner, tmp_path: Path, name: str, how: tuple[str, ...]) -> None:
    build, nanousd, calls = CASES[name]
    build(tmp_path)
    for by in ("day", "session"):
        found = run("usage", "--by", by, "--json", *how, home=tmp_path).json
        assert (found["billed"]["cost_nanousd"], found["billed"]["calls"]) == (nanousd, calls)
        assert sum(row["cost_nanousd"] for row in found["rows"]) == nanousd


def test_tiny_is_the_truth_to_the_token(run: Runner, tmp_path: Path) -> None:
    tiny(tmp_path)
    found = run("usage", "--json", "--by", "session", home=tmp_path).json
    assert found["billed"]["tokens"] == counts(22_000, 2_200, cached=9_000, thoughts=725, tool=25)
    assert (found["kept"]["calls"], found["kept"]["tokens"]["input"]) == (5, 18_000)
    assert {row["key"]: row["calls"] for row in found["rows"]} == {builders.OTHER: 4, builders.SESSION: 2}
    apart = run("usage", "--json", "--by", "session", "--subagents", "apart").json["rows"]
    assert sorted(row["calls"] for row in apart) == [1, 2, 3]


@pytest.mark.parametrize("how", [(), ("--no-archive",)], ids=["archive", "memory"])
def test_tools_of_a_log_are_counted(run: Runner, tmp_path: Path, how: tuple[str, ...]) -> None:
    new(tmp_path)
    (row,) = run("usage", "--by", "tool", "--json", *how, home=tmp_path).json["rows"]
    assert (row["key"], row["tool_calls"]["calls"], row["tool_calls"]["success"]) == ("Bash", 2, 2)
    assert (row["calls"], row["tokens"]) == (1, NEW_TOKENS)


def test_unknown_model_is_named_with_its_tokens(run: Runner, tmp_path: Path) -> None:
    CASES["unknown model among others"][0](tmp_path)
    found = run("usage", "--json", home=tmp_path).json
    assert found["unpriced_models"] == [{"model": "gemini-9.9-ultra", "calls": 1, "tokens": SMALL}]
    assert found["billed"]["unpriced"] == {"calls": 1, "tokens": SMALL}
    only = run("usage", "--json", "--model", "ultra").json
    assert (only["rows"][0]["cost_nanousd"], only["billed"]["cost_nanousd"]) == (None, None)
    said = run("usage").err
    assert "No price for gemini-9.9-ultra: 1 call, 1.1k tokens are in no amount." in said
    shown = run("usage", columns=80).out
    assert "$0.000513+" in shown
    assert "no price" in run("usage", "--by", "model", columns=80).out


def test_client_home_is_honoured(run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_contract(run: Runner, tmp_path: Path) -> None:
    tiny(tmp_path)
    for by in ("hour", "day", "week", "month", "session", "project", "model", "tool"):
        found = run("usage", "--by", by, "--json", "-z", "Europe/Berlin", home=tmp_path).json
        assert list(found) == [
            *("schema", "by", "timezone", "prices", "rows", "billed", "kept", "unpriced_models", "problems"),
        ]
        assert (found["schema"], found["by"], found["timezone"]) == ("pollux.usage/1", by, "Europe/Berlin")
        assert found["prices"].keys() == {"table", "date"}
        for sums in (*found["rows"], found["billed"], found["kept"]):
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
def test_periods_are_those_of_the_place(run: Runner, tmp_path: Path, by: str, zone: str, key: str) -> None:
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
def test_filters_are_for_calls(run: Runner, tmp_path: Path, options: tuple[str, ...], calls: int) -> None:
    new(tmp_path)
    ended = run("usage", "--json", *options, home=tmp_path)
    assert (ended.json["billed"]["calls"], ended.status) == (calls, int(not calls))


def test_project_is_chosen(run: Runner, tmp_path: Path) -> None:
    tiny(tmp_path)
    elsewhere = tmp_path / ".gemini" / "tmp" / ("0" * 64) / "chats" / f"session-2026-11-15T19-30-{'e' * 8}.jsonl"
    put(elsewhere, log(header("e" * 8, projectHash="0" * 64), answer("e1", SMALL)))
    for how in ((), ("--no-archive",)):
        assert run("usage", "--project", "webapp", "--json", *how, home=tmp_path).json["billed"]["calls"] == 6
        rows = run("usage", "--by", "project", "--json", *how).json["rows"]
        assert {row["key"]: row["name"] for row in rows} == {builders.ROOT: "webapp", "0" * 64: "[00000000]"}
        ended = run("usage", "--project", "nowhere", *how)
        assert (ended.status, "No project fits 'nowhere'" in ended.err) == (1, True)


def test_lines_are_exact(run: Runner, tmp_path: Path) -> None:
    tiny(tmp_path)
    ended = run("usage", "--by", "month", home=tmp_path)
    fields = ended.out.rstrip("\n").split("\t")
    assert " ".join(fields[:10]) == "2026-11 2026-11 6 22000 9000 2200 725 25 24950 27853750"
    assert ended.err.startswith("Prices: genai-prices ")
    assert ended.status == 0


def test_csv_is_exact(run: Runner, tmp_path: Path) -> None:
    tiny(tmp_path)
    (row,) = csv.DictReader(io.StringIO(run("usage", "--by", "month", "--csv", home=tmp_path).out))
    assert (row["cost_nanousd"], row["total"], row["kept_calls"], row["unpriced_calls"]) == (
        *("27853750", "24950"),
        *("5", "0"),
    )
    (tool,) = csv.DictReader(io.StringIO(run("usage", "--by", "tool", "--csv").out))
    assert (tool["tool_calls"], tool["success"], tool["unfinished"]) == ("2", "2", "0")


@pytest.mark.parametrize("columns", [30, 60, 80, 120, 200])
@pytest.mark.parametrize("by", ["hour", "day", "week", "month", "session", "project", "model", "tool"])
def test_table_fits(run: Runner, tmp_path: Path, by: str, columns: int) -> None:
    tiny(tmp_path)
    shown = run("usage", "--by", by, columns=columns, home=tmp_path).out
    assert all(len(line) <= columns for line in shown.splitlines())
    assert "$0.0279" in shown
    assert "genai-prices" in shown
    assert ("kept" in shown) or columns < 60


def test_money_is_shown_in_another_currency(run: Runner, tmp_path: Path) -> None:
    tiny(tmp_path)
    shown = run("usage", "--currency", "eur", "--rate", "0.92", columns=80, home=tmp_path).out
    assert "€0.0256" in shown
    assert "0.92 EUR for a dollar" in shown
    assert run("usage", "--currency", "EUR", "--rate", "0.92", "--json").json["billed"]["cost_nanousd"] == 27_853_750


def test_own_prices_go_before_the_tables(run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
        (("--timezone", "Nowhere/Land"), "--timezone 'Nowhere/Land' is not understood"),
        (("--timezone", "../etc/passwd"), "is not understood"),
        (("--currency", "EUR"), "needs a --rate"),
        (("--currency", "EUR", "--rate", "much"), "--rate 'much' is not understood"),
        (("--currency", "EUR", "--rate", "-1"), "--rate '-1' is not understood"),
        (("--live",), "draws on a terminal"),
        (("--by", "year"), "'year' is not one of"),
    ],
)
def test_mistakes_are_told(run: Runner, options: tuple[str, ...], words: str) -> None:
    ended = run("usage", *options)
    assert (ended.status, words in ended.err) == (2, True), ended.err


def test_nothing_is_nothing(run: Runner, tmp_path: Path) -> None:
    ended = run("usage", home=tmp_path)
    assert (ended.status, ended.out) == (1, "")
    assert "No model call fits" in ended.err
    assert run("usage", columns=80).out == ""


def test_total_that_does_not_add_up_is_told(run: Runner, tmp_path: Path) -> None:
    CASES["no total"][0](tmp_path)
    found = run("usage", "--json", home=tmp_path)
    assert (found.json["billed"]["inconsistent"], found.json["billed"]["tokens"]["total"], found.status) == (1, 0, 0)
    assert "1 call has a total that is not the sum" in run("usage", columns=80).out


def test_problems_are_told(run: Runner, tmp_path: Path) -> None:
    CASES["torn last line"][0](tmp_path)
    for how in ((), ("--no-archive",)):
        found = run("usage", "--json", *how, home=tmp_path)
        assert (found.status, [one["code"] for one in found.json["problems"]]) == (1, ["torn-line"])
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


def test_archive_that_cannot_be_written_is_read(run: Runner, tmp_path: Path) -> None:
    old(tmp_path)
    archive = tmp_path / "archive.db"
    run("usage", "--archive", str(archive), home=tmp_path)
    with store.opened(archive):
        new(tmp_path)
        found = run("usage", "--archive", str(archive), "--json").json
    assert found["billed"]["calls"] == 2


def test_archive_on_a_disk_that_takes_no_writes_is_read(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old(tmp_path)
    run("usage", home=tmp_path)
    monkeypatch.setattr(store, "opened", partial(store.opened, write=False))
    ended = run("usage", "--json")
    assert ended.json["billed"]["cost_nanousd"] == 6_343_750
    assert "The archive cannot be written" in ended.err


def test_zone_is_found_without_being_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TZ", ":Asia/Tokyo")
    assert usage.zone_of(None) == (ZoneInfo("Asia/Tokyo"), "Asia/Tokyo")
    monkeypatch.delenv("TZ")
    zone = put(tmp_path / "zoneinfo" / "Europe" / "Paris", b"")
    monkeypatch.setattr(usage, "_LOCALTIME", zone)
    assert usage.zone_of(None) == (ZoneInfo("Europe/Paris"), "Europe/Paris")
    monkeypatch.setenv("TZ", "EST5EDT,M3.2.0,M11.1.0")  # rules, and no name
    assert usage.zone_of(None) == (ZoneInfo("Europe/Paris"), "Europe/Paris")
    monkeypatch.delenv("TZ")
    monkeypatch.setattr(usage, "_LOCALTIME", tmp_path / "localtime")
    assert usage.zone_of(None) == (None, "UTC")
