"""Sessions for writers: the example of the seed's document, an index, and text that cannot break out of its place."""

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
    """Write a session, and leave out what stands before its dialogue."""
    text = written(builders.put(folder / f"{builders.NAME}.json", builders.document(*messages)))
    return text.partition(f"Pollux {__version__}\n")[2]


def same_but_version(name: str, text: str) -> None:
    same(name, text.replace(f"Pollux {__version__}", "Pollux VERSION").replace(f'"{__version__}"', '"VERSION"'))


# 003: the reading strategy of its document


def test_example_of_the_seed() -> None:
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


def test_index_of_the_seed() -> None:
    (line,) = b"".join(render_index(builders.subject(SEED))).splitlines()
    found = json.loads(line)
    wire = json.loads(SEED.read_bytes())
    assert found["session_id"] == wire["sessionId"]
    assert found["project_hash"] == wire["projectHash"]
    assert (found["started"], found["modified"]) == (wire["startTime"], wire["lastUpdated"])
    assert found["summary"] == wire["summary"]
    assert found["first_user_message"] == found["last_user_message"] == "Help me configure TypeScript for my project"
    assert (found["platform"], found["file"]) == ("gemini-cli", str(SEED))


@pytest.mark.parametrize("content", ["First", {"text": "First"}, [{"text": "Fi"}, {"text": "rst"}]])
def test_first_and_last_prompt_of_every_format(tmp_path: Path, content: object) -> None:
    data = builders.document(notice(), user("a", content), gemini(), user("b", "Last"), notice("e", "x", kind="error"))
    path = builders.put(tmp_path / f"{builders.NAME}.json", data)
    found = json.loads(b"".join(render_index(builders.subject(path))))
    assert (found["first_user_message"], found["last_user_message"]) == ("First", "Last")
    assert (found["prompts"], found["answers"], found["summary"]) == (2, 1, None)


def test_errors_are_noted_and_notices_are_not(tmp_path: Path) -> None:
    failed = call("c", status="error", result=None, resultDisplay="no such file")
    found = dialogue(
        tmp_path,
        user(),
        gemini(toolCalls=[failed]),
        notice("i", "Update available", kind="info"),
        notice("w", "Careful", kind="warning"),
        notice("e", "[API Error: quota]", kind="error", second=63),
    )
    assert "- `read_file` `a.txt` · **failed: no such file**\n" in found
    assert "*[19:31 error: `[API Error: quota]`]*\n" in found
    assert "Update" not in found
    assert "Careful" not in found


# The form


def test_dialogue(run: Runner) -> None:
    ended = run("export", "602c50c2", "-f", "devlog")
    assert ended.status == 0
    same_but_version("devlog.md", ended.out)


def test_index(run: Runner, tmp_path: Path) -> None:
    assert run("export", "--all", "-p", "tide", "-f", "devlog", "-o", f"{tmp_path}/").status == 0
    same_but_version("devlog-index.md", (tmp_path / "index.md").read_text("utf-8"))
    found = json.loads((tmp_path / "index.json").read_bytes())
    assert (found["schema"], found["pollux"]) == ("pollux.devlog/1", __version__)
    assert [one["started"] for one in found["sessions"]] == sorted(one["started"] for one in found["sessions"])
    for one in found["sessions"]:
        assert (tmp_path / one["dialogue"]).is_file()
        assert f"]({one['dialogue']})" in (tmp_path / "index.md").read_text("utf-8")


def test_index_of_several_projects_goes_to_standard_output(run: Runner) -> None:
    ended = run("export", "--all", "--since", "2026-03-01", "--until", "2026-06-01", "-f", "devlog-index")
    rows = [json.loads(line) for line in ended.out.splitlines()]
    assert {one["project"] for one in rows} == {"tide-tables", "Ledger"}
    assert all(one["first_user_message"] for one in rows)


def test_project_is_found_by_a_fuzzy_name(run: Runner) -> None:
    for name in ("tide tables", "TIDE", "tdtbl"):
        ended = run("export", "--all", "-p", name, "-f", "devlog-index")
        assert {json.loads(line)["project"] for line in ended.out.splitlines()} == {"tide-tables"}


def test_day_is_named_when_it_changes(tmp_path: Path) -> None:
    late = user("b", "good morning") | {"timestamp": "2026-11-16T08:00:00.000Z"}
    found = dialogue(tmp_path, user("a", "good night"), late)
    assert re.findall("^## .*", found, re.MULTILINE) == [
        "## Sun 15 Nov 2026, 19:30 Human",
        "## Mon 16 Nov 2026, 08:00 Human",
    ]


def test_times_of_a_long_turn(tmp_path: Path) -> None:
    calls = [call(f"c{number}", timestamp=builders.at(number)) for number in (2, 61, 62, 121)]
    found = dialogue(tmp_path, user(), gemini(toolCalls=calls), gemini("g2", "Done.", second=122))
    assert re.findall("^(?:## |- ).*", found, re.MULTILINE) == [
        "## Sun 15 Nov 2026, 19:30 Human",
        "## 19:30 Gemini",
        "- `read_file` `a.txt`",
        "- 19:31 `read_file` `a.txt`",
        "- `read_file` `a.txt`",
        "- 19:32 `read_file` `a.txt`",
    ]
    assert found.endswith("\n\nDone.\n")


def test_all_branches_are_exported_on_request(tmp_path: Path) -> None:
    data = builders.log(
        builders.header(), user("a", "one"), gemini("b"), user("c", "two"), builders.rewind("c"), user("d", "three")
    )
    path = builders.put(tmp_path / f"{builders.NAME}.jsonl", data)
    assert "*[1 message rewound]*" in written(path)
    assert "Human (rewound)\n\n> two\n" in written(path, branches=Branches.ALL)


def test_compression_is_noted_and_nothing_is_lost_to_it() -> None:
    text = written(COMPRESSED)
    assert "replaced by a summary]*" in text
    asked = [one.text for one in builders.subject(COMPRESSED).messages() if one.origin == "human"]
    assert len(asked) > 1
    for prompt in asked:
        assert f"> {prompt.splitlines()[0]}" in text
    assert "(compressed)" not in text


def test_pictures_are_named(tmp_path: Path) -> None:
    picture = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}
    assert "Human\n\n> look\n\n*[image/png, 8 B]*\n" in dialogue(tmp_path, user("u", [{"text": "look"}, picture]))
    assert "Human\n\n*[image/png, 8 B]*\n" in dialogue(tmp_path, user("u", [picture]))


def test_long_prompts_say_how_much_is_hidden(tmp_path: Path) -> None:
    found = dialogue(tmp_path, user("u", "\n".join(f"line {number}" for number in range(200))))
    shown = [line.rstrip() for line in found.splitlines()]
    place = shown.index("> line 59")
    assert shown[place + 1 : place + 5] == [">", "> *[… 120 more lines, 1,041 characters …]*", ">", "> line 180"]


def test_losses_are_counted() -> None:
    subject = builders.subject(SEED)
    assert b"".join(render(subject))
    assert +subject.losses == {"thoughts": 1, "tokens of a model call": 1, "results of tool calls": 1}


HOSTILE = "```\n# Not ours\n<script>alert(1)</script>\n---\n## 19:30 Human\n![x](http://evil)\x1b[2J"


def test_no_text_breaks_out_of_its_place(tmp_path: Path) -> None:
    odd = call("c", "na`me", args={"command": HOSTILE, "path": "| `a` |"}, status="error", result=None)
    found = dialogue(tmp_path, user("u", HOSTILE), gemini("g", HOSTILE, toolCalls=[odd]), user("v", "still here"))
    tokens = MarkdownIt("commonmark").parse(found)
    headings = [after.content for one, after in pairwise(tokens) if one.tag == "h2" and one.nesting == 1]
    assert headings == ["Sun 15 Nov 2026, 19:30 Human", "19:30 Gemini", "19:30 Human"]
    inner = [child for token in tokens for child in token.children or ()]
    assert not {"html_block"} & {token.type for token in tokens}
    assert not {"html_inline", "image"} & {child.type for child in inner}
    assert "\x1b" not in found


def test_no_title_breaks_the_table(tmp_path: Path) -> None:
    title = "a | b ](evil) <b> `c"
    data = builders.document(user("u", "first | [x](y)"), user("v", HOSTILE), summary=title)
    subject = builders.subject(builders.put(tmp_path / f"{builders.NAME}.json", data))
    (_, text), _ = pages([ExportedSession(subject.session, "a.md")], builders.PRICES)
    table = MarkdownIt("commonmark").enable("table").parse(text.decode())
    assert [token.type for token in table].count("td_open") == 7
    links = [child.attrs["href"] for token in table for child in token.children or () if child.type == "link_open"]
    assert links == ["a.md"]


def test_session_without_times(tmp_path: Path) -> None:
    never = {"timestamp": "never"}
    data = builders.document(user() | never, gemini() | never, startTime="never", lastUpdated="never")
    text = written(builders.put(tmp_path / "talk.json", data))
    assert "- When:" not in text
    assert text.endswith("\n## Human\n\n> hello\n\n## Gemini\n\nhi\n")


def test_empty_session_is_a_title(tmp_path: Path) -> None:
    path = builders.put(tmp_path / f"{builders.NAME}.json", builders.document())
    assert written(path).startswith("# (no prompt)\n")
