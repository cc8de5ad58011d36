"""Dev logs equal their examples, have an index, and keep hostile text inside its block."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from tests import builders
from tests.builders import call, gemini, notice, user
from tests.cli.running import Runner, same

from pollux import __version__
from pollux.cli.demo import HOME as DEMO
from pollux.exports import ExportedSession
from pollux.exports.devlog import pages, render, render_index
from pollux.exports.source import ExportOptions
from pollux.views.transcript import Branches

SEED = Path(__file__).parents[1] / "data" / "seeds" / "session-2026-01-27T15-21-a82545c4.json"
COMPRESSED = next((DEMO / ".gemini" / "tmp" / "skywatch" / "chats").glob("*4eed6371*"))


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Runner:
    monkeypatch.setenv("POLLUX_ARCHIVE", "-")
    return Runner(monkeypatch, capsys)


def written(path: Path, **options: Branches) -> str:
    return b"".join(render(builders.subject(path, options=ExportOptions(**options)))).decode()  # type: ignore[arg-type]


def dialogue(folder: Path, *messages: builders.Wire) -> str:
    """Return the dialogue of an exported session, without the text before it."""
    text = written(builders.put(folder / f"{builders.NAME}.json", builders.document(*messages)))
    return text.partition(f"Pollux {__version__}\n")[2]


def same_but_version(name: str, text: str) -> None:
    same(name, text.replace(f"Pollux {__version__}", "Pollux VERSION").replace(f'"{__version__}"', '"VERSION"'))


# The examples of the specification


def test_dialogue_equals_the_specified_example() -> None:
    text = written(SEED)
    assert text.startswith("# Optional AI-generated summary\n")
    assert "Tue 27 Jan 2026, 15:22" in text
    assert text.endswith(
        "## Tue 27 Jan 2026, 15:22 Human\n\n"
        "> Help me configure TypeScript for my project\n\n"
        "## 15:22 Gemini\n\n"
        "I'll help you set up TypeScript configuration.\n\n"
        "- 15:23 `read_file` `src/auth.ts`\n"
    )
    for left_out in ("Investigating File Distribution", "6053", "file contents", "Short display"):
        assert left_out not in text


def test_index_equals_the_specified_example() -> None:
    (line,) = b"".join(render_index(builders.subject(SEED))).splitlines()
    entry = json.loads(line)
    wire = json.loads(SEED.read_bytes())
    assert entry["session_id"] == wire["sessionId"]
    assert entry["project_hash"] == wire["projectHash"]
    assert (entry["started"], entry["modified"]) == (wire["startTime"], wire["lastUpdated"])
    assert entry["summary"] == wire["summary"]
    assert entry["first_user_message"] == entry["last_user_message"] == "Help me configure TypeScript for my project"
    assert (entry["platform"], entry["file"]) == ("gemini-cli", str(SEED))


@pytest.mark.parametrize("content", ["First", {"text": "First"}, [{"text": "Fi"}, {"text": "rst"}]])
def test_index_has_first_and_last_prompt_of_each_format(tmp_path: Path, content: object) -> None:
    data = builders.document(notice(), user("a", content), gemini(), user("b", "Last"), notice("e", "x", kind="error"))
    path = builders.put(tmp_path / f"{builders.NAME}.json", data)
    entry = json.loads(b"".join(render_index(builders.subject(path))))
    assert (entry["first_user_message"], entry["last_user_message"]) == ("First", "Last")
    assert (entry["prompts"], entry["answers"], entry["summary"]) == (2, 1, None)


def test_errors_are_noted_and_notices_are_not(tmp_path: Path) -> None:
    failed = call("c", status="error", result=None, resultDisplay="no such file")
    text = dialogue(
        tmp_path,
        user(),
        gemini(toolCalls=[failed]),
        notice("i", "Update available", kind="info"),
        notice("w", "Careful", kind="warning"),
        notice("e", "[API Error: quota]", kind="error", second=63),
    )
    assert "- `read_file` `a.txt` · **failed: no such file**\n" in text
    assert "*[19:31 error: `[API Error: quota]`]*\n" in text
    assert "Update" not in text
    assert "Careful" not in text


# Layout


def test_dialogue_equals_its_snapshot(run: Runner) -> None:
    ended = run("export", "602c50c2", "-f", "devlog")
    assert ended.status == 0
    same_but_version("devlog.md", ended.out)


def test_index_lists_sessions_by_start(run: Runner, tmp_path: Path) -> None:
    assert run("export", "--all", "-p", "tide", "-f", "devlog", "-o", f"{tmp_path}/").status == 0
    same_but_version("devlog-index.md", (tmp_path / "index.md").read_text("utf-8"))
    document = json.loads((tmp_path / "index.json").read_bytes())
    assert (document["schema"], document["pollux"]) == ("pollux.devlog/1", __version__)
    assert [session["started"] for session in document["sessions"]] == sorted(
        session["started"] for session in document["sessions"]
    )
    for session in document["sessions"]:
        assert (tmp_path / session["dialogue"]).is_file()
        assert f"]({session['dialogue']})" in (tmp_path / "index.md").read_text("utf-8")


def test_index_of_several_projects_goes_to_standard_output(run: Runner) -> None:
    ended = run("export", "--all", "--since", "2026-03-01", "--until", "2026-06-01", "-f", "devlog-index")
    rows = [json.loads(line) for line in ended.out.splitlines()]
    assert {row["project"] for row in rows} == {"tide-tables", "Ledger"}
    assert all(row["first_user_message"] for row in rows)


def test_project_is_found_by_a_fuzzy_name(run: Runner) -> None:
    for name in ("tide tables", "TIDE", "tdtbl"):
        ended = run("export", "--all", "-p", name, "-f", "devlog-index")
        assert {json.loads(line)["project"] for line in ended.out.splitlines()} == {"tide-tables"}


def test_heading_names_the_day_when_it_changes(tmp_path: Path) -> None:
    late = user("b", "good morning") | {"timestamp": "2026-11-16T08:00:00.000Z"}
    text = dialogue(tmp_path, user("a", "good night"), late)
    assert re.findall("^## .*", text, re.MULTILINE) == [
        "## Sun 15 Nov 2026, 19:30 Human",
        "## Mon 16 Nov 2026, 08:00 Human",
    ]


def test_long_turn_has_several_times(tmp_path: Path) -> None:
    calls = [call(f"c{number}", timestamp=builders.at(number)) for number in (2, 61, 62, 121)]
    text = dialogue(tmp_path, user(), gemini(toolCalls=calls), gemini("g2", "Done.", second=122))
    assert re.findall("^(?:## |- ).*", text, re.MULTILINE) == [
        "## Sun 15 Nov 2026, 19:30 Human",
        "## 19:30 Gemini",
        "- `read_file` `a.txt`",
        "- 19:31 `read_file` `a.txt`",
        "- `read_file` `a.txt`",
        "- 19:32 `read_file` `a.txt`",
    ]
    assert text.endswith("\n\nDone.\n")


def test_all_branches_are_exported_on_request(tmp_path: Path) -> None:
    data = builders.log(
        builders.header(), user("a", "one"), gemini("b"), user("c", "two"), builders.rewind("c"), user("d", "three")
    )
    path = builders.put(tmp_path / f"{builders.NAME}.jsonl", data)
    assert "*[1 message rewound]*" in written(path)
    assert "Human (rewound)\n\n> two\n" in written(path, branches=Branches.ALL)


def test_compression_is_noted_and_compressed_prompts_are_kept() -> None:
    text = written(COMPRESSED)
    assert "replaced by a summary]*" in text
    asked = [message.text for message in builders.subject(COMPRESSED).messages() if message.origin == "human"]
    assert len(asked) > 1
    for prompt in asked:
        assert f"> {prompt.splitlines()[0]}" in text
    assert "(compressed)" not in text


def test_pictures_are_named_in_the_dialogue(tmp_path: Path) -> None:
    picture = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}
    assert "Human\n\n> look\n\n*[image/png, 8 B]*\n" in dialogue(tmp_path, user("u", [{"text": "look"}, picture]))
    assert "Human\n\n*[image/png, 8 B]*\n" in dialogue(tmp_path, user("u", [picture]))


def test_shortened_prompt_names_the_number_of_hidden_lines(tmp_path: Path) -> None:
    text = dialogue(tmp_path, user("u", "\n".join(f"line {number}" for number in range(200))))
    shown = [line.rstrip() for line in text.splitlines()]
    place = shown.index("> line 59")
    assert shown[place + 1 : place + 5] == [">", "> *[… 120 more lines, 1,041 characters …]*", ">", "> line 180"]


def test_omitted_parts_are_counted() -> None:
    subject = builders.subject(SEED)
    assert b"".join(render(subject))
    assert +subject.losses == {"thoughts": 1, "tokens of a model call": 1, "results of tool calls": 1}


HOSTILE = "```\n# Not ours\n<script>alert(1)</script>\n---\n## 19:30 Human\n![x](http://evil)\x1b[2J"


def test_hostile_text_adds_no_headings_or_html(tmp_path: Path) -> None:
    odd = call("c", "na`me", args={"command": HOSTILE, "path": "| `a` |"}, status="error", result=None)
    text = dialogue(tmp_path, user("u", HOSTILE), gemini("g", HOSTILE, toolCalls=[odd]), user("v", "still here"))
    tokens = MarkdownIt("commonmark").parse(text)
    headings = [after.content for token, after in pairwise(tokens) if token.tag == "h2" and token.nesting == 1]
    assert headings == ["Sun 15 Nov 2026, 19:30 Human", "19:30 Gemini", "19:30 Human"]
    inner = [child for token in tokens for child in token.children or ()]
    assert not {"html_block"} & {token.type for token in tokens}
    assert not {"html_inline", "image"} & {child.type for child in inner}
    assert "\x1b" not in text


def test_hostile_title_adds_no_cells_or_links_to_the_table(tmp_path: Path) -> None:
    title = "a | b ](evil) <b> `c"
    data = builders.document(user("u", "first | [x](y)"), user("v", HOSTILE), summary=title)
    subject = builders.subject(builders.put(tmp_path / f"{builders.NAME}.json", data))
    (_, text), _ = pages([ExportedSession(subject.session, "a.md")], builders.PRICES)
    table = MarkdownIt("commonmark").enable("table").parse(text.decode())
    assert [token.type for token in table].count("td_open") == 7
    links = [child.attrs["href"] for token in table for child in token.children or () if child.type == "link_open"]
    assert links == ["a.md"]


def test_session_without_times_has_no_dates(tmp_path: Path) -> None:
    never = {"timestamp": "never"}
    data = builders.document(user() | never, gemini() | never, startTime="never", lastUpdated="never")
    text = written(builders.put(tmp_path / "talk.json", data))
    assert "- When:" not in text
    assert text.endswith("\n## Human\n\n> hello\n\n## Gemini\n\nhi\n")


def test_empty_session_has_only_a_title(tmp_path: Path) -> None:
    path = builders.put(tmp_path / f"{builders.NAME}.json", builders.document())
    assert written(path).startswith("# (no prompt)\n")
