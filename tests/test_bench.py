"""`make bench` marks wrong numbers and missed bars, and replaces single sections of its page."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace as replace_struct
from scripts.bench import peers, tables, trees
from scripts.bench.bars import Results, bars
from scripts.bench.billed import Billed, is_right
from scripts.bench.correctness import Answers
from scripts.bench.measure import Measured, Peak, Run, Work
from scripts.bench.search_home import write_home
from scripts.bench.search_numbers import Built, SearchNumbers, Times
from scripts.bench.search_page import section
from scripts.bench.search_texts import Texts
from scripts.bench.sections import with_other_sections, with_section

TRUE = Billed(13_025, 9_000, 2_200, 725, 2_925, 25, 0.02785375)
MB = 1 << 20


def done(*walls: float, megabytes: int = 50) -> Measured:
    peak = Peak(megabytes * MB, 2 * megabytes * MB, 2)
    return Measured(Work("key", "name", [], {}), [Run(wall, wall) for wall in walls], peak)


@pytest.mark.parametrize(
    ("reported", "true", "expected"),
    [
        (5, 5, True),
        (5, 6, False),
        (None, 5, True),  # not reported
        (0.027854, 0.02785375, True),  # rounded
        (0.000495, 0.000513, False),
        (1190.2927653299998, 1190.29276533, True),
        (1190.2928, 1190.29276533, False),
        (0.0, 0.015375, False),
    ],
)
def test_numbers_are_right_or_wrong(reported: float | None, true: float, expected: bool) -> None:  # noqa: FBT001
    assert is_right(reported, true) == expected


def test_wrong_numbers_are_bold() -> None:
    answers = Answers("home", TRUE, {"good": TRUE, "bad": replace(TRUE, cached=1, tool=None), "ill": None})
    lines = list(tables.number_table(answers))
    assert lines[2] == "| truth | 13,025 | 9,000 | 2,200 | 725 | 2,925 | 25 | 0.02785375 |"
    assert lines[3] == lines[2].replace("truth", "good")
    assert lines[4] == "| bad | 13,025 | **1** | 2,200 | 725 | 2,925 | – | 0.02785375 |"
    assert lines[5].count("**failed**") == 7
    assert list(tables.case_table([answers], ["cached", "tool"]))[2] == (
        "| home | 9,000 / 25 | 9,000 / 25 | **1** / – | **failed** / **failed** |"
    )


def results(**changed: Measured) -> Results:
    many = {"first": done(1.0), "cat": done(0.4), "first ccusage": done(2.0), "second": done(0.2)}
    many |= {"keep": done(3.0), "sync": done(3.0)}
    one = {key: done(2.0) for key in ("big usage", "big ls", "big show", "big export")}
    known = {**many, "second tokscale": done(0.4), **{key.replace("_", " "): value for key, value in changed.items()}}
    return Results(known, one, 600 * MB, 100 * MB, 0.1)


def test_bars_are_met_to_the_edge() -> None:
    assert [one.is_met for one in bars(results())] == [True] * 9 + [None, True]


@pytest.mark.parametrize(
    ("changed", "missed"),
    [
        ({"first": done(1.3)}, [0, 1]),
        ({"cat": done(0.3)}, [1]),
        ({"first": done(1.0, megabytes=81)}, [2]),
        ({"second": done(0.31)}, [3, 4]),
        ({"keep": done(3.1)}, [6]),
        ({"sync": done(3.1)}, [7]),
    ],
)
def test_bars_are_missed(changed: Mapping[str, Measured], missed: list[int]) -> None:
    assert [n for n, one in enumerate(bars(results(**changed))) if one.is_met is False] == missed
    worse = replace(results(), archive_bytes=101 * MB, turn_seconds=0.11)
    assert [n for n, one in enumerate(bars(worse)) if one.is_met is False] == [5, 8]


TEXTS = Texts(
    code=["def read(path):\n    return path.read_text()\n" * 20],
    prose=["A session has messages.\nA message has parts.\n" * 20],
    minified=["a=1;b=2;" * 100],
    languages={"chinese": ["连接超时错误\n" * 50], "japanese": [], "korean": [], "other": []},
    paths=["src/app.py", "src/pages/home.ts"],
)


def test_small_home_of_search_contains_the_first_files_of_a_large_one(tmp_path: Path) -> None:
    small, large = (write_home(tmp_path / str(n), n, texts=TEXTS) for n in (300, 900))
    truth = json.loads((large / "truth.json").read_bytes())
    assert (truth["messages"], {*truth["text_bytes"]}) == (
        900,
        {"prompt", "answer", "thoughts", "args", "output", "notice"},
    )
    files = {path.name: path.read_bytes() for path in trees.Tree(small).files}
    others = {path.name: path.read_bytes() for path in trees.Tree(large).files}
    assert len(files) > 1
    assert sum(others.get(name) == data for name, data in files.items()) >= len(files) - 1  # the last one may be cut


def test_home_of_search_contains_the_requested_number_of_messages(tmp_path: Path) -> None:
    folder = write_home(tmp_path / "home", 500, texts=TEXTS)
    n_messages = sum(len(messages_of(path)) for path in trees.Tree(folder).files)
    assert n_messages == 500


def messages_of(path: Path) -> list[Any]:
    data = path.read_text("utf-8")
    if path.suffix == ".json":
        messages: list[Any] = json.loads(data)["messages"]
        return messages
    return data.splitlines()[1:]


def test_bar_of_search_needs_both_times() -> None:
    numbers = SearchNumbers(1_000_000, 10, 100, 200, times={"hits": Times([0.03]), "snippets": Times([0.06])})
    verdicts = {}
    for name, search in {
        "met": numbers,
        "slow": replace_struct(numbers, times={**numbers.times, "snippets": Times([0.061])}),
        "half": replace_struct(numbers, times={"hits": Times([0.01])}),
    }.items():
        (verdicts[name],) = [bar.is_met for bar in bars(replace(results(), search=search)) if "search" in bar.work]
    assert verdicts == {"met": True, "slow": False, "half": None}


def test_section_of_search_marks_missed_bars_and_lists_missing_peers() -> None:
    built = {"index": Built(10, 20, 151 << 20, 55), "sync": Built(5, 10, 1, 1)}
    numbers = SearchNumbers(1_000_000, 10, 100, 200, built, {"hits": Times([0.01] * 19 + [0.5])}, {"tantivy": "gone"})
    lines = list(section(numbers))
    assert "| memory of the build | ≤ 150 MB | 151 MB | **missed** |" in lines
    assert "| index / text | ≤ 0.55 | 0.55 | met |" in lines
    assert "| CPU of the build / CPU of `sync` without it | ≤ 2 | 2 | met |" in lines
    assert "| 200 mixed queries, hits, p95 | ≤ 30 ms | 10 ms | met |" in lines
    assert "tantivy is missing: gone." in lines
    assert "A slow machine." in section(replace_struct(numbers, remark="A slow machine."))


def test_section_of_search_replaces_the_one_before() -> None:
    page = "# Benchmarks\n\n## One session\n\ntext\n\n## Numbers\n\nmore\n"
    old = with_section(page, section(SearchNumbers(1_000_000, 10, 100, 200, missing={"tantivy": "gone"})))
    new = with_section(old, section(SearchNumbers(1_000_000, 11, 100, 200)))
    assert "tantivy is missing" in old
    assert [line for line in new.splitlines() if line.startswith("#")] == [
        "# Benchmarks",
        "## One session",
        "## Search: 1,000,000 messages",
        "## Numbers",
    ]
    assert "tantivy is missing" not in new
    assert "\n\n\n" not in new
    both = with_section(new, section(SearchNumbers(50_000, 1, 10, 20)))
    assert [line for line in both.splitlines() if line.startswith("## S")] == [
        "## Search: 1,000,000 messages",
        "## Search: 50,000 messages",
    ]
    assert with_section(both, section(SearchNumbers(1_000_000, 11, 100, 200))) == both
    assert with_other_sections(page, both) == both


def test_bar_without_its_peer_has_no_verdict() -> None:
    complete = results()
    without_peer = {key: value for key, value in complete.many.items() if "ccusage" not in key}
    first, *_ = bars(replace(complete, many=without_peer))
    assert (first.is_met, first.measured) == (None, "the peer was not measured")


def test_times_are_the_best_and_the_median_of_all_rounds() -> None:
    result = done(3.0, 1.0, 2.0)
    assert (
        list(tables.time_table([result], done(0.5)))[2]
        == "| name | 1.00 | 2.00 | 2.00 | 2.0 | 4.0 | 50 MB | 100 MB in 2 |"
    )


REPORTS: dict[str, tuple[peers.Peer, Any, Billed]] = {
    "pollux": (
        peers.POLLUX,
        {
            "billed": {
                "tokens": {"input": 22_000, "cached": 9_000, "output": 2_200, "thoughts": 725, "tool": 25},
                "cost_nanousd": 27_853_750,
            }
        },
        TRUE,
    ),
    "ccusage": (
        peers.CCUSAGE,
        {
            "totals": {
                "cacheReadTokens": 9_000,
                "inputTokens": 13_025,
                "outputTokens": 2_200,
                "totalCost": 0.02785375,
                "totalTokens": 24_950,
            }
        },
        replace(TRUE, thoughts=None, answered=None, tool=None),
    ),
    "tokscale": (
        peers.TOKSCALE,
        {
            "entries": [{"reasoning": 425}, {"reasoning": 300}],
            "totalInput": 13_025,
            "totalOutput": 2_200,
            "totalCacheRead": 9_000,
            "totalCost": 0.02785375,
        },
        replace(TRUE, tool=None),
    ),
    "agentsview": (
        peers.AGENTSVIEW,
        {
            "totals": {
                "inputTokens": 13_025,
                "outputTokens": 2_925,
                "cacheReadTokens": 9_000,
                "totalCost": {"microdollars": 27_854},
            }
        },
        replace(TRUE, output=None, thoughts=None, tool=None, dollars=0.027854),
    ),
}


@pytest.mark.parametrize("name", REPORTS)
def test_reports_of_programs_are_read(name: str) -> None:
    peer, report, expected = REPORTS[name]
    assert peer.read(report) == expected


def test_grown_session_is_restored_even_after_an_interrupted_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trees, "BUILD", tmp_path)
    tree = trees.one_session(1)
    (log,) = tree.files
    before = log.read_bytes()
    growing = trees.Growing(tree)
    growing.grow()
    growing.grow()
    assert log.read_bytes().startswith(before)
    assert log.stat().st_size > len(before)
    again = trees.Growing(tree)  # the first one was never restored
    assert (again.size, log.read_bytes()) == (len(before), before)


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_program_has_a_home_of_its_own_beside_the_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees, "BUILD", tmp_path)
    tree = trees.one_session(1)
    home = tree.home_of("peer")
    (home / ".cache").mkdir()
    assert [path.name for path in (home / ".gemini" / "tmp").iterdir()] == ["big"]
    assert not any(tree.root.rglob(".cache"))
    assert tree.home_of("peer") == home
