"""Transcripts in files and folders: parts, index pages, and writing only what changed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests import builders
from tests.cli.running import Runner
from tests.exports import family, golden
from tests.exports.everything import PIXEL

from pollux.cli.demo import HOME as DEMO
from pollux.library import export_folder

INDEX = {"markdown": "README.md", "html": "index.html"}
SUFFIX = {"markdown": ".md", "html": ".html"}
PROMPT = {"markdown": r"^## (\d+)\.", "html": r"<h2[^>]*>Prompt (\d+)</h2>"}
LINK = {"markdown": r"\]\(([^)\s]+)\)", "html": r'<a [^>]*href="([^"#][^"]*)"'}

forms = pytest.mark.parametrize("form", INDEX)


def links(file: Path, form: str) -> set[Path]:
    """Return the links of a page within its folder."""
    found = re.findall(LINK[form], file.read_text("utf-8"))
    return {(file.parent / one).resolve() for one in found if "://" not in one and not one.startswith("data:")}


@forms
def test_parts_have_n_prompts_and_link_to_each_other(run: Runner, tmp_path: Path, form: str) -> None:
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
def test_split_needs_a_file(run: Runner, form: str) -> None:
    ended = run("export", "0363a0b0", "-f", form, "--split", "1")
    assert (ended.status, ended.out) == (2, "")
    assert "`-o`" in ended.err


def test_attachments_are_written_next_to_the_file(run: Runner, tmp_path: Path) -> None:
    picture = [{"text": "Look."}, {"inlineData": {"mimeType": "image/png", "data": PIXEL}}]
    file = builders.put(tmp_path / "log.jsonl", builders.log(builders.header(), builders.user("u", picture)))
    run("export", str(file), "-f", "markdown", "-o", str(tmp_path / "talk.md"))
    assert (tmp_path / "talk_files" / "picture-1.png").read_bytes().startswith(b"\x89PNG")
    assert "(talk_files/picture-1.png)" in (tmp_path / "talk.md").read_text("utf-8")
    assert run("export", str(file), "-f", "markdown", "-o", "/dev/null").status == 0
    ended = run("export", str(file), "-f", "markdown", "--losses")
    assert "lost in markdown: attachments, 1 ×" in ended.err


def test_obsolete_attachments_are_removed(run: Runner, tmp_path: Path) -> None:
    for split, expected in (("1", ["part-2.md", "part-3.md"]), ("2", ["part-2.md"]), ("9", [])):
        run("export", "0363a0b0", "-f", "markdown", "--split", split, "-o", f"{tmp_path}/")
        assert sorted(file.name for file in tmp_path.rglob("part-*")) == expected


def test_foreign_files_are_never_removed(run: Runner, tmp_path: Path) -> None:
    folder, mine = tmp_path / "out", builders.put(tmp_path / "mine.md", b"mine")
    run("export", "0363a0b0", "-f", "markdown", "--split", "1", "-o", f"{folder}/")
    memory = folder / export_folder.INDEX
    (part,) = (one.relative_to(folder).as_posix() for one in folder.rglob("part-3.md"))
    memory.write_text(memory.read_text("utf-8").replace(part, "../mine.md"), "utf-8")
    run("export", "0363a0b0", "-f", "markdown", "--split", "2", "-o", f"{folder}/")
    assert mine.read_bytes() == b"mine"


@forms
def test_foreign_index_page_is_not_replaced(run: Runner, tmp_path: Path, form: str) -> None:
    (tmp_path / INDEX[form]).write_text("mine")
    for _ in range(2):
        ended = run("export", "@1", "-f", form, "-o", str(tmp_path))
        assert f"{INDEX[form]} was not replaced, because Pollux did not write it" in ended.err
    assert (tmp_path / INDEX[form]).read_text() == "mine"


@forms
def test_index_page_links_to_all_sessions(run: Runner, tmp_path: Path, form: str) -> None:
    """The second export rewrites Pollux's own page, with the same content."""
    for _ in range(2):
        run("export", "--all", "-f", form, "-o", str(tmp_path))
        golden.same(INDEX[form], (tmp_path / INDEX[form]).read_bytes())
    files = {*tmp_path.glob(f"2*{SUFFIX[form]}")}
    assert links(tmp_path / INDEX[form], form) == files
    assert len(files) == 20
    assert all(tmp_path / INDEX[form] in links(file, form) for file in files)


@forms
def test_index_page_counts_the_same_as_usage(run: Runner, tmp_path: Path, form: str) -> None:
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
def test_options_apply(run: Runner, form: str, options: tuple[str, ...]) -> None:
    assert run("export", "d3fa28cb", "-f", form, *options).out != run("export", "d3fa28cb", "-f", form).out


@forms
def test_same_export_on_every_machine(run: Runner, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    here = run("export", "d3fa28cb", "-f", form).out
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert run("export", "d3fa28cb", "-f", form).out == here


def usage_of(run: Runner, prefix: str, home: Path) -> tuple[str, str, str]:
    """Return the usage of a session as `show`, Markdown and HTML print it."""
    shown = run("show", prefix, home=home).out
    markdown = run("export", prefix, "-f", "markdown", home=home).out
    html = run("export", prefix, "-f", "html", home=home).out
    lines = [line.partition(" for ")[2] for line in shown.splitlines()[:8] if "tokens in" in line]
    markdown_row = markdown.partition("**Usage:** ")[2].partition("\n")[0]
    return "; ".join(lines), markdown_row, html.partition("<dt>Usage</dt><dd>")[2].partition("</dd>")[0]


def test_header_counts_subagents_as_ls_does(run: Runner) -> None:
    [row] = [row for row in run("ls", "--json").json["sessions"] if row["id"].startswith("e92f6bc2")]
    assert (row["calls"], row["tokens"]["input"], row["tokens"]["output"]) == (13, 140_326, 1_025)
    total = "140k tokens in (98.5k cached), 1.0k out, 203 thoughts with subagents"
    own = "125k tokens in (89.9k cached), 819 out, 147 thoughts without"
    exported = f"13 model calls, {total}; 9 model calls, {own}"
    assert usage_of(run, "e92f6bc2", DEMO) == (f"{total}; {own}", exported, exported)
    assert f"\n$0.104 for {total}\n$0.0999 for {own}\n" in run("show", "e92f6bc2").out


def test_header_of_a_family_names_the_own_share(run: Runner, tmp_path: Path) -> None:
    home = family.put(tmp_path)
    calls = "5 model calls, 1.1k tokens in (5 cached), 10 out, 15 thoughts, 7 for tools with subagents"
    own = "4 model calls, 1.0k tokens in (4 cached), 8 out, 12 thoughts, 7 for tools without"
    shown, *exported = usage_of(run, builders.SESSION, home)
    assert exported == [f"{calls}; {own}"] * 2
    assert shown == f"{calls}; {own}".replace("5 model calls, ", "").replace("4 model calls, ", "")
    agent = "50 tokens in (1 cached), 2 out, 3 thoughts"
    assert usage_of(run, family.AGENT, home) == (agent, f"1 model call, {agent}", f"1 model call, {agent}")
