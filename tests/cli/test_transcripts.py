"""Transcripts in files and folders: parts, pages that lead to all of them, and only what changed is written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests import builders
from tests.cli.running import Runner
from tests.exports import golden
from tests.exports.everything import PIXEL

from pollux.library import export_folder

INDEX = {"markdown": "README.md", "html": "index.html"}
SUFFIX = {"markdown": ".md", "html": ".html"}
PROMPT = {"markdown": r"^## (\d+)\.", "html": r"<h2>Prompt (\d+)</h2>"}
LINK = {"markdown": r"\]\(([^)\s]+)\)", "html": r'<a [^>]*href="([^"#][^"]*)"'}

forms = pytest.mark.parametrize("form", INDEX)


def links(file: Path, form: str) -> set[Path]:
    """Give where a page leads to, within its folder."""
    found = re.findall(LINK[form], file.read_text("utf-8"))
    return {(file.parent / one).resolve() for one in found if "://" not in one and not one.startswith("data:")}


@forms
def test_parts_hold_so_many_prompts_and_lead_to_each_other(run: Runner, tmp_path: Path, form: str) -> None:
    assert run("export", "0363a0b0", "-f", form, "--split", "1", "-o", f"{tmp_path}/").status == 0
    (first,) = tmp_path.glob(f"*0363a0b0*{SUFFIX[form]}")
    others = sorted(tmp_path.glob("*0363a0b0*_files/part-*"))
    assert [one.name for one in others] == [f"part-{number}{SUFFIX[form]}" for number in (2, 3)]
    for number, file in enumerate((first, *others), 1):
        assert re.findall(PROMPT[form], file.read_text("utf-8"), re.MULTILINE) == [str(number)]
    reached, waiting = {first}, [first]
    while waiting:
        there = links(waiting.pop(), form) - reached
        assert all(file.is_file() for file in there)
        reached |= there
        waiting += there
    assert reached == {first, *others, tmp_path / INDEX[form]}


@forms
def test_parts_need_a_place(run: Runner, form: str) -> None:
    ended = run("export", "0363a0b0", "-f", form, "--split", "1")
    assert (ended.status, ended.out) == (2, "")
    assert "`-o`" in ended.err


def test_what_belongs_to_one_file_stands_beside_it(run: Runner, tmp_path: Path) -> None:
    picture = [{"text": "Look."}, {"inlineData": {"mimeType": "image/png", "data": PIXEL}}]
    file = builders.put(tmp_path / "log.jsonl", builders.log(builders.header(), builders.user("u", picture)))
    run("export", str(file), "-f", "markdown", "-o", str(tmp_path / "talk.md"))
    assert (tmp_path / "talk_files" / "picture-1.png").read_bytes().startswith(b"\x89PNG")
    assert "(talk_files/picture-1.png)" in (tmp_path / "talk.md").read_text("utf-8")
    assert run("export", str(file), "-f", "markdown", "-o", "/dev/null").status == 0
    ended = run("export", str(file), "-f", "markdown", "--losses")
    assert "lost in markdown: pictures and files, 1 ×" in ended.err


def test_files_that_no_longer_belong_to_an_export_are_removed(run: Runner, tmp_path: Path) -> None:
    for split, expected in (("1", ["part-2.md", "part-3.md"]), ("2", ["part-2.md"]), ("9", [])):
        run("export", "0363a0b0", "-f", "markdown", "--split", split, "-o", f"{tmp_path}/")
        assert sorted(file.name for file in tmp_path.rglob("part-*")) == expected


def test_nothing_else_is_removed_whatever_the_folder_remembers(run: Runner, tmp_path: Path) -> None:
    folder, mine = tmp_path / "out", builders.put(tmp_path / "mine.md", b"mine")
    run("export", "0363a0b0", "-f", "markdown", "--split", "1", "-o", f"{folder}/")
    memory = folder / export_folder.MEMORY
    (part,) = (one.relative_to(folder).as_posix() for one in folder.rglob("part-3.md"))
    memory.write_text(memory.read_text("utf-8").replace(part, "../mine.md"), "utf-8")
    run("export", "0363a0b0", "-f", "markdown", "--split", "2", "-o", f"{folder}/")
    assert mine.read_bytes() == b"mine"


@forms
def test_page_of_a_folder_is_never_written_over_another(run: Runner, tmp_path: Path, form: str) -> None:
    (tmp_path / INDEX[form]).write_text("mine")
    for _ in range(2):
        ended = run("export", "@1", "-f", form, "-o", str(tmp_path))
        assert f"{INDEX[form]} was not written by Pollux" in ended.err
    assert (tmp_path / INDEX[form]).read_text() == "mine"


@forms
def test_page_that_leads_to_all(run: Runner, tmp_path: Path, form: str) -> None:
    """Twice: our own page is written again, and the same."""
    for _ in range(2):
        run("export", "--all", "-f", form, "-o", str(tmp_path))
        golden.same(INDEX[form], (tmp_path / INDEX[form]).read_bytes())
    files = {*tmp_path.glob(f"2*{SUFFIX[form]}")}
    assert links(tmp_path / INDEX[form], form) == files
    assert len(files) == 20
    assert all(tmp_path / INDEX[form] in links(file, form) for file in files)


@forms
def test_page_that_leads_to_all_counts_what_usage_counts(run: Runner, tmp_path: Path, form: str) -> None:
    run("export", "--all", "-f", form, "-o", str(tmp_path))
    text = (tmp_path / INDEX[form]).read_text("utf-8")
    billed = run("usage", "--json").json["billed"]
    n_calls = re.search(r"([\d,]+)(?:</b>)? model calls", text)
    assert n_calls
    assert int(n_calls[1]) == billed["calls"]
    cost = re.search(r"\$(\d+\.\d+)", text)
    assert cost
    assert float(cost[1]) == pytest.approx(billed["cost_nanousd"] / 1e9, abs=0.001)


@forms
@pytest.mark.parametrize("options", [("--detail", "prompts"), ("--branches", "all"), ("--thoughts",)])
def test_options_are_heeded(run: Runner, form: str, options: tuple[str, ...]) -> None:
    assert run("export", "d3fa28cb", "-f", form, *options).out != run("export", "d3fa28cb", "-f", form).out


@forms
def test_same_export_on_every_machine(run: Runner, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    here = run("export", "d3fa28cb", "-f", form).out
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert run("export", "d3fa28cb", "-f", form).out == here
