"""`pollux stats` on a screen, in a pipe, as JSON and CSV, with and without an archive."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from rich.cells import cell_len
from tests import builders
from tests.cli.running import Runner, pretty, same

from pollux.cli import output
from pollux.reports.stats import SECTIONS, TOTAL, USUAL

SEED = Path(__file__).parents[1] / "data" / "seeds" / "session-2025-12-03T06-35-477739d0.json"
HOWS = pytest.mark.parametrize("how", [(), ("--no-archive",)], ids=["archive", "memory"])


@HOWS
def test_screen(run: Runner, how: tuple[str, ...]) -> None:
    ended = run("stats", *how, columns=80)
    assert max(map(cell_len, ended.out.splitlines())) <= 80
    same("stats.txt", ended.out)


@HOWS
def test_json(run: Runner, how: tuple[str, ...]) -> None:
    found = run("stats", "--json", *how).json
    same("stats.json", pretty(found))
    sections = [SECTIONS[by].plural for by in USUAL]
    assert list(found) == ["schema", "timezone", "first", "last", "totals", "hours", *sections, "problems"]
    assert found["schema"] == "pollux.stats/1"


@pytest.mark.parametrize("by", SECTIONS)
def test_one_section(run: Runner, by: str) -> None:
    found = run("stats", "--json", "--by", by).json
    plural = SECTIONS[by].plural
    assert list(found) == ["schema", "timezone", plural, "problems"]
    rows = found[plural]
    columns = ["key", "name", *SECTIONS[by].columns]
    assert [list(row) for row in rows] == [columns] * len(rows)
    names, *lines = [line.split("\t") for line in run("stats", "--by", by).out.splitlines()]
    assert names == columns
    assert lines == [["" if row[name] is None else str(row[name]) for name in columns] for row in rows]
    read = [*csv.DictReader(io.StringIO(run("stats", "--by", by, "--csv").out))]
    assert [list(row.values()) for row in read] == lines
    assert all(isinstance(row[name], int) for row in rows for name in columns[2:])


@pytest.mark.parametrize("columns", [30, 60, 120])
@pytest.mark.parametrize("by", [None, "tool", "session", "week", "filetype"])
def test_screen_fits(run: Runner, by: str | None, columns: int) -> None:
    ended = run("stats", *(("--by", by) if by else ()), columns=columns)
    assert max(map(cell_len, ended.out.splitlines())) <= columns
    if by:
        assert len(ended.out.splitlines()) == len(run("stats", "--by", by).out.splitlines())


def test_ascii_terminal_is_supported(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "encoding", lambda: "ascii")
    out = run("stats", columns=80).out
    assert "Tue  " in out
    assert out.isascii()


@HOWS
def test_example_of_a_seed(run: Runner, tmp_path: Path, how: tuple[str, ...]) -> None:
    wire = json.loads(SEED.read_bytes())
    builders.put(tmp_path / ".gemini" / "tmp" / wire["projectHash"] / "chats" / SEED.name, SEED.read_bytes())
    found = run("stats", "--json", *how, home=tmp_path).json
    totals = found["totals"]
    assert [totals[name] for name in ("sessions", "prompts", "answers", "tool_calls", "success")] == [1] * 5
    assert totals["tokens"] == wire["messages"][1]["tokens"]["total"]
    assert [one["key"] for one in found["models"]] == ["gemini-2.5-pro"]
    assert [one["key"] for one in found["tools"]] == ["codebase_investigator"]
    assert [(one["key"], one["name"]) for one in found["projects"]] == [(wire["projectHash"], "[8876362f]")]
    assert [one["key"] for one in found["days"]] == ["2025-12-03"]
    assert found["hours"] == [{"weekday": 3, "hour": 6, "prompts": 1}]
    assert totals["active_seconds"] == 14  # from 06:35:37.302 to 06:35:51.334


def test_pipe_gets_totals(run: Runner) -> None:
    lines = dict(line.split("\t") for line in run("stats", "--no-header").out.splitlines())
    assert list(lines) == list(TOTAL)
    assert (lines["sessions"], lines["prompts"]) == ("20", "55")


@HOWS
def test_filters(run: Runner, how: tuple[str, ...]) -> None:
    tide = run("stats", "--json", "-p", "tide", *how).json
    assert ([one["name"] for one in tide["projects"]], tide["totals"]["sessions"]) == (["tide-tables"], 4)
    april = run("stats", "--json", "--since", "2026-04-01", "--until", "2026-05-01", *how).json
    assert [one["key"] for one in april["days"]] == ["2026-04-14", "2026-04-21"]
    pro = run("stats", "--json", "--model", "2.5-pro", *how).json
    assert pro["totals"]["sessions"] == 5
    assert run("stats", "--json", "--last", "3d", *how).json["totals"]["prompts"] == 2


def test_time_zone_decides_about_days_and_hours(run: Runner) -> None:
    tokyo = run("stats", "--json", "-z", "Asia/Tokyo", "--since", "2026-11-06", "--until", "2026-11-08").json
    assert tokyo["timezone"] == "Asia/Tokyo"
    assert [one["key"] for one in tokyo["days"]] == ["2026-11-07"]
    assert tokyo["hours"] == [{"weekday": 6, "hour": 7, "prompts": 3}]


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("--csv",), 2, "--csv prints one table: choose it with --by"),
        (("--csv", "--json", "--by", "tool"), 2, "leave out --json"),
        (("--since", "1d", "--last", "1d"), 2, "use only one"),
        (("--since", "nonsense"), 2, "Invalid value for --since: 'nonsense'"),
        (("--timezone", "Nowhere"), 2, "Invalid value for --timezone: 'Nowhere'"),
        (("--by", "nonsense"), 2, "There is no 'nonsense' for --by. Use tool"),
        (("--sort", "tokens"), 2, "--sort applies to one table: choose it with --by"),
        (("--by", "tool", "--sort", "cost"), 2, "No column 'cost' in the table by tool; it has name, tool_calls,"),
        (("--model", "none-such"), 1, "Nothing matches"),
        (("--project", "none-such"), 1, "No project matches 'none-such'"),
    ],
)
def test_mistakes(run: Runner, arguments: tuple[str, ...], status: int, words: str) -> None:
    ended = run("stats", *arguments)
    assert ended.status == status
    assert words in ended.err


@pytest.mark.parametrize("columns", [None, 80])
def test_empty_home_is_reported(run: Runner, tmp_path: Path, columns: int | None) -> None:
    (tmp_path / ".gemini" / "tmp").mkdir(parents=True)
    ended = run("stats", home=tmp_path, columns=columns)
    assert ended.status == 1
    assert "Nothing matches" in ended.err
    found = run("stats", "--json").json
    assert (found["totals"]["sessions"], found["tools"], found["first"]) == (0, [], None)


def test_single_session_has_no_empty_sections(run: Runner, tmp_path: Path) -> None:
    chats = builders.chats(tmp_path)
    builders.put(chats / f"{builders.NAME}.jsonl", builders.log(builders.header(), builders.gemini()))
    out = run("stats", columns=80, home=tmp_path).out
    assert "on 1 day, 15 Nov 2026\n" in out
    assert "prompts by hour" not in out
    assert "tool calls" not in out
    other = builders.gemini() | {"timestamp": "2026-11-14T12:00:00.000Z"}
    name = f"session-2026-11-14T12-00-{builders.OTHER[:8]}.jsonl"
    builders.put(chats / name, builders.log(builders.header(builders.OTHER), other))
    days = run("stats", "--by", "day", columns=80).out.splitlines()
    assert [line.split()[0] for line in days] == ["day", "2026-11-14", "2026-11-15"]
    assert "█" not in days[1]


def test_messages_without_a_time_are_counted(run: Runner, tmp_path: Path) -> None:
    timeless = builders.log(builders.header(startTime="never"), builders.user() | {"timestamp": "never"})
    builders.put(builders.chats(tmp_path) / "session-6ece72aa.jsonl", timeless)
    out = run("stats", columns=80, home=tmp_path).out
    assert "prompts     1  and 0 answers" in out
    assert "active" not in out.partition("projects")[0]


def test_hostile_titles_and_tools_are_escaped(run: Runner, tmp_path: Path) -> None:
    title = "=cmd()\x1b[2J\t|"
    calls = [builders.call("c", "na\x1b[2Jme")]
    data = builders.log(builders.header(summary=title), builders.user(), builders.gemini(toolCalls=calls))
    builders.put(builders.chats(tmp_path) / f"{builders.NAME}.jsonl", data)
    assert "\x1b[2J" not in run("stats", columns=80, home=tmp_path).out
    for by in ("session", "tool"):
        assert "\x1b" not in run("stats", "--by", by).out
        assert "\x1b" not in run("stats", "--by", by, "--csv").out
    assert "'=cmd()" in run("stats", "--by", "session", "--csv").out


def test_ambiguous_project_name_is_reported(run: Runner, tmp_path: Path) -> None:
    for number, name in enumerate(("skywatch", "sky-watcher")):
        chats = tmp_path / ".gemini" / "tmp" / name / "chats"
        builders.put(chats.parent / ".project_root", f"/src/{name}".encode())
        head = builders.header(f"{number}ece72aa", projectHash="")
        builders.put(chats / f"session-2026-11-15T19-30-{number}ece72aa.jsonl", builders.log(head, builders.user()))
    ended = run("stats", "--project", "swt", home=tmp_path)
    assert ended.status == 2
    assert "It may stand for sky-watcher, skywatch: give more of the name" in ended.err


def test_table_is_sorted_and_limited(run: Runner) -> None:
    rows = run("stats", "--by", "session", "--sort", "tokens", "--top", "4", "--json").json["sessions"]
    everything = run("stats", "--by", "session", "--json").json["sessions"]
    assert [row["tokens"] for row in rows] == sorted((row["tokens"] for row in everything), reverse=True)[:4]
    failed = run("stats", "--by", "tool", "--sort", "failed", "--json").json["tools"]
    assert [row["error"] for row in failed] == sorted((row["error"] for row in failed), reverse=True)
    names = [row["name"] for row in run("stats", "--by", "tool", "--sort", "name", "-n", "5", "--json").json["tools"]]
    assert (len(names), names) == (5, sorted(names, key=str.casefold))
