"""HTML transcripts are complete, well formed, reproducible and inert."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pygments.token import Token
from tests.builders import PRICES
from tests.exports import everything, golden
from tests.exports.everything import made
from tests.exports.golden import KINDS, SESSIONS, demo_subject
from tests.exports.hostile import hostile
from tests.exports.reader import Page
from tests.views.build import added, call, message, prompt

from pollux import __version__
from pollux.exports import EXPORTERS, ExportedSession, html
from pollux.exports.html import index
from pollux.exports.source import ExportOptions, ExportSource
from pollux.model import (
    Activity,
    AgentDisplay,
    Attachment,
    Cell,
    DiffDisplay,
    Display,
    Fate,
    FileDisplay,
    GrepMatch,
    Json,
    MatchDisplay,
    Message,
    Origin,
    Project,
    ScreenDisplay,
    Session,
    TextDisplay,
    Todo,
    TodoDisplay,
    UnknownDisplay,
)
from pollux.render.html import colours, markdown, transcript
from pollux.render.html.colours import coloured, palette
from pollux.render.html.markup import PIECE, Html, element, joined, long_text, opening, text
from pollux.render.html.style_sheets import style_sheet
from pollux.text.contrast import contrast
from pollux.text.escape import escape_controls, make_visible
from pollux.views.excerpts import MAX_FOLDED_CHARS
from pollux.views.languages import LONGEST
from pollux.views.transcript import Branches, Detail

INVISIBLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
FULL = ExportOptions(Detail.FULL, Branches.ALL)
HARMLESS = re.compile(r"#|https?:|mailto:|data:image/(png|jpeg|gif|webp);base64,|data:application/octet-stream;base64,")


def written(subject: ExportSource) -> str:
    return b"".join(html.render(subject)).decode()


def page(subject: ExportSource) -> Page:
    return Page(written(subject))


# Whole pages


@pytest.mark.parametrize("prefix", SESSIONS)
def test_demo_pages_equal_their_snapshots(prefix: str) -> None:
    golden.same(f"{prefix}-normal.html", written(demo_subject(prefix)).encode())


@pytest.mark.parametrize("kind", KINDS)
def test_page_of_everything_equals_its_snapshot(kind: str) -> None:
    golden.same(f"everything-{kind}.html", written(everything.subject(KINDS[kind])).encode())


@pytest.mark.parametrize("detail", Detail)
def test_page_is_well_formed_and_its_anchors_exist(detail: Detail) -> None:
    parsed = page(everything.subject(ExportOptions(detail, Branches.ALL)))
    ids = [tag.attributes["id"] for tag in parsed.tags if "id" in tag.attributes]
    assert len(ids) == len({*ids})
    for tag in parsed.tags:
        if (place := tag.attributes.get("href") or "").startswith("#"):
            assert place[1:] in ids


def test_page_contains_each_word() -> None:
    shown = page(everything.subject(FULL)).text
    for each in (*everything.messages(), *everything.agent_messages()):
        for word in re.findall(r"\w+", each.text):
            assert word in shown


def test_anchors_are_the_same_in_each_detail() -> None:
    """The last prompt has the same anchor in each."""
    last = f"m{len(everything.messages())}"
    for detail in Detail:
        assert page(everything.subject(ExportOptions(detail))).named("article", id=last)


def test_navigation_lists_the_prompts() -> None:
    parsed = page(everything.subject(FULL))
    (navigation,) = parsed.named("nav")
    start = parsed.tags.index(navigation)
    listed = [tag.attributes["href"] for tag in parsed.tags[start:] if tag.name == "a"][1:]
    prompts = [tag for tag in parsed.named("article") if tag.attributes.get("class") == "msg prompt"]
    assert listed == [f"#{prompt.attributes['id']}" for prompt in prompts]
    assert len(listed) == 9


def test_header_has_facts_and_sources() -> None:
    shown = page(everything.subject()).text
    for words in ("/home/alice/webapp", "gemini-3-pro, gemini-3-flash", "2 model calls", "0" * 64, __version__):
        assert words in shown
    assert "$0.0628+ (1 call without a price)" in shown


def test_agent_is_folded_into_its_call() -> None:
    agent = r'Because\..*?</details><details class="agent">.*?<article id="a\d+m1".*?Find out why\.'
    assert re.search(agent, written(everything.subject()), re.DOTALL)


def test_agents_without_a_call_come_last() -> None:
    child = made(everything.agent_messages(), Session("lost", "subagent", Project()))
    shown = page(made((prompt("Go."),), agents=(child,))).text
    assert shown.index("Find out why.") > shown.index("Go.")


@pytest.mark.parametrize("name", ["html", "markdown"])
def test_subagents_with_circular_parents_are_shown_once(name: str) -> None:
    first = made(everything.agent_messages(), Session("one", "subagent", Project()))
    second = made(everything.agent_messages(), Session("two", "subagent", Project()), agents=(first,))
    object.__setattr__(first, "agents", (second,))
    data = b"".join(EXPORTERS[name].render(made((prompt("Go."),), agents=(first,))))
    assert data.count(b"Find out why.") == 2


# Hostile texts


@pytest.mark.parametrize("branches", Branches)
@pytest.mark.parametrize("detail", Detail)
def test_hostile_text_adds_no_elements_or_attributes(detail: Detail, branches: Branches) -> None:
    data = written(hostile(ExportOptions(detail, branches, thoughts=True)))
    parsed = Page(data)
    calm = page(everything.subject(ExportOptions(detail, branches, thoughts=True)))
    assert {tag.name for tag in parsed.tags} <= {tag.name for tag in page(everything.subject(FULL)).tags} | {"h5", "h6"}
    assert len(parsed.named("script")) == len(parsed.named("style")) == len(calm.named("style")) == 1
    for tag in parsed.tags:
        assert not {name for name in tag.attributes if name.startswith("on")} | {"style"} & tag.attributes.keys()
        for name in ("href", "src"):
            place = tag.attributes.get(name)
            assert place is None or HARMLESS.match(place)
    assert not INVISIBLE.search(data)


def test_policy_allows_only_the_style_and_the_script_of_the_page() -> None:
    for data in (written(everything.subject()), dict(index.pages([], PRICES))["index.html"].decode()):
        parsed = Page(data)
        (policy,) = (tag.attributes["content"] for tag in parsed.tags if "http-equiv" in tag.attributes)
        hashes = {kind: hashlib.sha256(raw.encode()).digest() for kind, raw in parsed.raw.items()}
        digests = {kind: base64.b64encode(made_of).decode() for kind, made_of in hashes.items()}
        assert policy == (
            f"default-src 'none'; style-src 'sha256-{digests['style']}'; script-src 'sha256-{digests['script']}'; "
            "img-src data:; base-uri 'none'; form-action 'none'"
        )
        assert "url(" not in parsed.raw["style"]
        assert "@import" not in parsed.raw["style"]
        assert not re.search(r"fetch\(|XMLHttpRequest|import\(|innerHTML|eval\(|https?://", parsed.raw["script"])


@given(st.text())
def test_any_text_is_shown_unchanged(words: str) -> None:
    assert Page(element("p", words, title=words)).text == escape_controls(words)
    assert Page(element("p", long_text(words))).text == escape_controls(words)
    assert Page(coloured(words)).text == escape_controls(re.sub(r"\x1b\[[0-9;:]*m", "", words.replace("\r\n", "\n")))


@given(st.text(alphabet=st.sampled_from("<>/!ab&;`~[]()\\#=-|*_:\n \tx"), max_size=80))
def test_any_markdown_is_well_formed_and_adds_no_text(words: str) -> None:
    parsed = Page(markdown.answer(words))
    assert {*re.sub(r"Copy|▣ picture|\W", "", parsed.text)} <= {*words}
    assert not {"script", "img", "iframe"} & {tag.name for tag in parsed.tags}
    allowed = {"class", "href", "rel", "tabindex", "type", "start"}
    assert {name for tag in parsed.tags for name in tag.attributes} <= allowed


@given(st.text(max_size=200), st.sampled_from(["python", "sh", "json", "html", "diff", "no such", "<b>", "php", "c++"]))
def test_coloured_code_has_the_same_text(words: str, language: str) -> None:
    assert Page(colours.coloured_code(make_visible(words), language)).text == make_visible(words)


# Parts of a page


def test_element_escapes_plain_text() -> None:
    assert element("b", "<i>", Html("<i></i>"), class_='a"b', data_n=3, hidden=True, id=None) == (
        '<b class="a&quot;b" data-n="3" hidden>&lt;i&gt;<i></i></b>'
    )
    assert element("br") == opening("br") == "<br>"
    assert text(Html("<b>")) == "<b>"
    assert joined(["&", Html("&amp;")]) == "&amp;&amp;"


def test_long_text_is_split_at_lines_if_possible() -> None:
    assert long_text("x" * PIECE) == "x" * PIECE
    lines = Page(long_text("line of text\n" * PIECE))
    assert len(lines.words) > 5
    assert all(word.endswith("\n") for word in lines.words)
    assert [len(word) for word in Page(long_text("x" * (2 * PIECE + 1))).words] == [PIECE, PIECE, 1]


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        ("\x1b[31mred\x1b[0m", '<span class="f1">red</span>'),
        ("\x1b[1;91;44mx\x1b[22;39;49my", '<span class="f9 b4 bold">x</span>y'),
        ("\x1b[38;5;200;48;5;17mx", '<span class="f200 b17">x</span>'),
        ("\x1b[38;2;255;0;0mx\x1b[48:2:0:0:0my", '<span class="f9">x</span><span class="f9 b0">y</span>'),
        ("\x1b[102mx\x1b[mx", '<span class="b10">x</span>x'),
        ("\x1b[7mx\x1b[27mx", '<span class="fi bi">x</span>x'),
        ("\x1b[7;31mx", '<span class="b1">x</span>'),
        ("\x1b[7;41mx", '<span class="fi bi">x</span>'),
        ("\x1b[30;43mx", '<span class="b3">x</span>'),
        ("\x1b[2;3;4mx\x1b[23;24mx", '<span class="dim italic underline">x</span><span class="dim">x</span>'),
        ("\x1b[38;5mx\x1b[38mx\x1b[38;9;1mx", 'xx<span class="bold">x</span>'),
        ("\x1b[38;5;999mx\x1b[5;75mx", '<span class="f255">x</span><span class="f255">x</span>'),
        ("\x1b[2K\x1b[31", "\u241b[2K\u241b[31"),
    ],
)
def test_terminal_colours_become_classes(given_: str, expected: str) -> None:
    assert coloured(given_) == expected


def test_palette_has_all_colours() -> None:
    assert len(re.findall(r"\.[fb]\d+\{", palette())) == 2 * 256
    assert palette().startswith(".f0{color:#8a8781}.b0{background:#000}")
    assert ".f214{color:#ffaf00}" in palette()
    assert ".b17{background:#00005f}" in palette()
    assert ".f255{color:#eeeeee}" in palette()


def test_terminal_colours_have_enough_contrast_in_both_themes() -> None:
    """Blue as `\\e[38;5;21m` once was #0000ff on black, a contrast of 2.4 to 1."""
    style = Page(written(everything.subject())).raw["style"]
    written_style = style_sheet("session.css")
    pairs = re.findall(r"--term:light-dark\((#\w{6}),(#\w{6})\)", written_style)
    terminals = [_rgb(value) for pair in pairs for value in pair]
    assert len(terminals) == 2
    assert colours.TERMINAL in terminals
    assert {_rgb(value) for value in re.findall(r"--glint:(#\w{6})", written_style)} == {colours.INK}
    inks = dict(re.findall(r"\.f(\d+)\{color:(#\w+)\}", style))
    papers = dict(re.findall(r"\.b(\d+)\{background:(#\w+)\}", style))
    assert inks.keys() == papers.keys() == set(map(str, range(256)))
    for ink in inks.values():
        assert all(contrast(_rgb(ink), terminal) >= 4.5 for terminal in terminals), ink
    for paper in papers.values():
        assert contrast(_rgb(paper), colours.INK) >= 4.5, paper


def _rgb(colour: str) -> tuple[int, int, int]:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    return int(digits[:2], 16), int(digits[2:4], 16), int(digits[4:], 16)


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        ("[x](https://y)", '<p><a href="https://y" rel="noopener noreferrer nofollow">x</a></p>\n'),
        ("[x](a.py)", '<p><span>x<span class="target"> (a.py)</span></span></p>\n'),
        ("[*x*](javascript:y)", '<p><span><em>x</em><span class="target"> (javascript:y)</span></span></p>\n'),
        ("![x](http://y)", '<p><a href="http://y" rel="noopener noreferrer nofollow">▣ x</a></p>\n'),
        ("![](y)", '<p><span>▣ picture<span class="target"> (y)</span></span></p>\n'),
        ("# x\n\n###### y", "<h3>x</h3>\n<h6>y</h6>\n"),
        ("<b>x</b> &#x202e;", "<p>&lt;b&gt;x&lt;/b&gt; \\u{202e}</p>\n"),
        ("---", "<hr>\n"),
        ("[x]: y", "<p>[x]: y</p>\n"),
    ],
)
def test_markdown_is_rendered(given_: str, expected: str) -> None:
    assert markdown.answer(given_) == expected


def test_long_deep_or_empty_markdown_is_shown_as_text() -> None:
    for words in ("*x* " * markdown.LONG, "> " * markdown.DEEP + "*x*", "", "\n"):
        assert Page(markdown.answer(words)).text == words
        assert markdown.answer(words).startswith('<div class="words">')


def test_long_code_and_unknown_languages_are_not_coloured() -> None:
    assert "<span" in colours.coloured_code("return 1", "python")
    assert "sk" not in colours.coloured_code("return 1\n" * LONGEST, "python")
    assert colours.coloured_code("return 1", "klingon") == "return 1"


def test_code_changed_by_a_lexer_is_not_coloured(monkeypatch: pytest.MonkeyPatch) -> None:
    class Lossy:
        def get_tokens(self, _code: str) -> list[tuple[object, str]]:
            return [(Token.Keyword, "retur")]

    monkeypatch.setattr(colours, "lexer_for", lambda _language, _code: Lossy())
    assert colours.coloured_code("return 1", "python") == "return 1"


def test_only_raster_pictures_are_shown() -> None:
    parsed = page(everything.subject(FULL))
    assert {str(tag.attributes["src"])[:22] for tag in parsed.named("img")} == {"data:image/png;base64,"}
    assert [tag.attributes["download"] for tag in parsed.tags if "download" in tag.attributes] == [
        "picture-2.svg",
        "file-3.pdf",
    ]
    broken = page(made((prompt("", Attachment("image/png", 9, data="%%%")),)))
    assert not broken.named("img")
    assert "▣ image/png, 9 B" in broken.text


def test_long_blocks_are_folded_and_diffs_and_failures_are_open() -> None:
    """A diff is open unless it is long, an output is closed unless it failed, a long prompt is closed."""
    log = "\n".join(map(str, range(100)))
    long_diff = "@@ -1 +1 @@\n" + "\n".join(f"+{n}" for n in range(100))
    calls = (
        call("replace", {"file_path": "a"}, display=DiffDisplay(everything.DIFF)),
        call("replace", {"file_path": "b"}, display=DiffDisplay(long_diff)),
        call("run_shell_command", {"command": "c"}, display=TextDisplay("ok")),
        call("run_shell_command", {"command": "d"}, display=TextDisplay("no"), exit_code=1),
        call("run_shell_command", {"command": "e"}, display=TextDisplay(log), exit_code=1),
    )
    parsed = page(made((prompt(log), message(tool_calls=calls)), export_options=ExportOptions(Detail.FULL)))
    folds = [tag for tag in parsed.named("details") if tag.attributes["class"] != "sources"]
    assert [("open" in fold.attributes, fold.attributes["class"]) for fold in folds] == [
        (False, "long"),
        (True, "tool"),
        (False, "tool"),
        (False, "tool"),
        (True, "tool failed"),
        (False, "tool failed"),
    ]


@pytest.mark.parametrize(
    "display",
    [
        MatchDisplay("", tuple(GrepMatch("a", n, "x") for n in range(50))),
        FileDisplay("", tuple(map(str, range(50)))),
        ScreenDisplay(tuple((Cell("x"),) for _ in range(50))),
        AgentDisplay("a", activity=tuple(Activity("tool_call", "x") for _ in range(50)), result="x"),
        TodoDisplay(tuple(Todo("x", "pending") for _ in range(50))),
        UnknownDisplay([*range(50)]),
    ],
)
def test_long_results_are_folded_even_if_the_call_failed(display: Display) -> None:
    few = msgspec.structs.replace(display, **{name: getattr(display, name)[:3] for name in _many(display)})
    for shown, is_open in ((display, False), (few, True)):
        parsed = page(made((message(tool_calls=(call("x", display=shown, exit_code=1),)),), export_options=FULL))
        assert [("open" in tag.attributes) for tag in parsed.named("details", class_="tool failed")] == [is_open]


def _many(display: Display) -> list[str]:
    return [name for name in ("matches", "files", "lines", "activity", "todos", "value") if hasattr(display, name)]


def test_long_diff_is_split_into_parts() -> None:
    long_diff = "@@ -1 +1 @@\n" + "\n".join(f"+{n}" for n in range(500))
    parsed = page(
        made((message(tool_calls=(call("replace", {}, display=DiffDisplay(long_diff)),)),), export_options=FULL)
    )
    assert len(parsed.named("span", class_="piece")) == 3
    assert len(parsed.named("span", class_="add")) == 500


def test_page_is_yielded_while_messages_are_read() -> None:
    read: list[int] = []

    def talk() -> Iterator[Message]:
        for number in range(100):
            read.append(number)
            yield prompt(f"number {number}")

    subject = made((), export_options=ExportOptions())
    object.__setattr__(subject, "timeline", talk())
    pieces = EXPORTERS["html"].render(subject)
    while b"number 3" not in next(pieces):
        pass
    assert len(read) < 7


# Folds, times and labels


LOG = "\n".join(f"line {number}" for number in range(40))


def fold(data: str, classes: str) -> tuple[str, str]:
    """Return the summary and the content of the only fold with these classes."""
    ((is_open, summary, inside),) = re.findall(
        rf'<details class="{classes}"( open)?><summary>(.*?)</summary>(.*?)</details>', data, re.DOTALL
    )
    assert not is_open
    return Page(summary).text, Page(inside).text


def test_hidden_lines_of_an_output_are_in_a_fold() -> None:
    shell = call("run_shell_command", {"command": "make"}, display=TextDisplay(LOG), exit_code=1)
    summary, inside = fold(written(made((message(tool_calls=(shell,)),))), "more")
    assert summary == "… 30 more lines, 237 characters"
    assert inside.split("\n") == [f"line {number}" for number in range(6, 36)]


@pytest.mark.parametrize(
    ("display", "summary"),
    [
        (FileDisplay("", tuple(map(str, range(50)))), "… 44 more names"),
        (MatchDisplay("", tuple(GrepMatch("a", n, "x") for n in range(50))), "… 44 more lines"),
        (ScreenDisplay(tuple((Cell(f"row {n}"),) for n in range(50))), "… 40 more lines"),
        (AgentDisplay("a", activity=tuple(Activity("tool_call", f"{n}") for n in range(50))), "… 44 more steps"),
        (DiffDisplay("@@ -1 +1 @@\n" + "\n".join(f"+{n}" for n in range(100))), "… 81 more lines"),
    ],
)
def test_hidden_items_are_in_a_fold(display: Display, summary: str) -> None:
    data = written(made((message(tool_calls=(call("x", display=display, exit_code=1),)),)))
    assert fold(data, "more")[0] == summary


def test_middle_of_a_long_prompt_is_in_a_fold() -> None:
    data = written(made((prompt("\n".join(f"word {number}" for number in range(200))),)))
    assert "word 100" in fold(data, "more")[1]


def test_session_context_is_in_a_fold() -> None:
    data = written(made((added(Origin.SESSION_CONTEXT, "<session_context>\nThis is\nthe context"), prompt("Go."))))
    summary, inside = fold(data, "added")
    assert summary == "Session context (3 lines, 37 characters)"
    assert "the context" in inside


def test_hidden_text_over_the_limit_is_replaced_by_a_note() -> None:
    log = "\n".join(map(str, range(MAX_FOLDED_CHARS)))
    shell = call("run_shell_command", {"command": "make"}, display=TextDisplay(log))
    parsed = page(made((message(tool_calls=(shell,)),)))
    assert re.search(r"more lines, [0-9,]+ characters, only in an export with --detail full", parsed.text)
    assert not parsed.named("details", class_="more")


REWOUND = (
    prompt("First."),
    prompt("Wrong way.", fate=Fate.REWOUND),
    message("Indeed.", fate=Fate.REWOUND),
    prompt("Better way."),
)


def test_dropped_messages_are_in_a_fold() -> None:
    data = written(made(REWOUND))
    summary, inside = fold(data, "branch rewound")
    assert summary.strip() == "2 messages rewound 19:02, $0.0628"
    assert "Wrong way." in inside
    assert "Indeed." in inside
    assert "Better way." not in inside
    assert [tag.attributes["id"] for tag in Page(data).named("article")] == ["m1", "m2", "m3", "m4"]


def test_redacted_page_has_dropped_messages_only_with_all_branches() -> None:
    """A reader who checks a page before sending it may not open each fold."""
    for branches, has_dropped in ((Branches.ACTIVE, False), (Branches.ALL, True)):
        parsed = page(made(REWOUND, export_options=ExportOptions(branches=branches), redactor=Unchanged()))
        assert ("Wrong way." in parsed.text) is has_dropped
        assert ("2 messages rewound" in parsed.text) is not has_dropped


class Unchanged:
    """A redactor that replaces nothing."""

    def json(self, value: Json) -> Json:
        return value

    def message(self, message: Message) -> Message:
        return message

    def session(self, session: Session) -> Session:
        return session


def test_dropped_messages_are_open_with_all_branches() -> None:
    data = written(made(REWOUND, export_options=ExportOptions(branches=Branches.ALL)))
    assert re.search(r'<details class="branch rewound" open><summary><svg.*?</svg> Rewound: ', data)
    assert "2 messages rewound" not in data


def test_branch_over_the_memory_limit_is_written_without_a_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcript, "HELD", 2)
    summary, inside = fold(written(made(REWOUND)), "branch rewound")
    assert summary.strip().startswith("messages rewound 19:02")
    assert "Wrong way." in inside
    assert "Indeed." in inside


def test_day_that_begins_in_a_closed_branch_is_named_after_it() -> None:
    timeline = (prompt("A"), prompt("B", fate=Fate.REWOUND, minute=24 * 60), prompt("C", minute=24 * 60))
    data = written(made(timeline))
    assert data.rindex('class="day"') > data.index("</details>", data.index("branch rewound"))


def test_branch_split_between_files_is_complete() -> None:
    files: dict[str, bytes] = {}

    def beside(name: str, data: bytes) -> str:
        files[name] = data
        return name

    timeline = (prompt("First."), *(prompt(f"Wrong {n}.", fate=Fate.REWOUND) for n in (1, 2)), prompt("Better way."))
    first = written(made(timeline, export_options=ExportOptions(split=2), write_side_file=beside, name="a.html"))
    ((_, second),) = files.items()
    summary, inside = fold(first, "branch rewound")
    assert summary.strip().startswith("rewound, continued in the next part 19:02")
    assert "Wrong 1." in inside
    assert "Wrong 2." in fold(second.decode(), "branch rewound")[1]


def test_dropped_messages_hidden_by_the_detail_are_counted() -> None:
    timeline = (prompt("Go."), message("Indeed.", fate=Fate.COMPRESSED))
    data = written(made(timeline, export_options=ExportOptions(Detail.PROMPTS)))
    assert "1 message compressed" in Page(data).text
    assert '<details class="branch' not in data


def test_times_are_machine_readable_and_in_utc() -> None:
    parsed = page(everything.subject(FULL))
    times = parsed.named("time")
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", time.attributes["datetime"] or "") for time in times)
    assert {time.attributes.get("data-form") for time in times} == {None, "full", "day", "second"}
    assert "Times are UTC." in parsed.text


def test_controls_and_marks_have_labels() -> None:
    data = written(everything.subject(FULL))
    buttons = re.findall(r"<button[^>]*>(.*?)</button>", data)
    assert all(re.search(r"[A-Z][a-z]+", Page(inside).text) for inside in buttons)
    marks = [tag for tag in Page(data).tags if tag.attributes.get("class") == "mark"]
    assert marks
    assert all(mark.attributes["role"] == "img" and mark.attributes["aria-label"] for mark in marks)


# The index


def test_index_without_sessions_is_a_page() -> None:
    ((name, data),) = index.pages([], PRICES)
    assert name == EXPORTERS["html"].index_page
    assert "0 sessions" in Page(data.decode()).text


def test_index_shows_tokens_without_prices() -> None:
    about = everything.session()
    (_, data), *_ = index.pages([ExportedSession(about, "a.html")], PRICES)
    assert "Cost by day (UTC)" in Page(data.decode()).text
    unpriced = Session("x", "main", Project(), calls=about.calls[1:])
    (_, data), *_ = index.pages([ExportedSession(unpriced, "a b.html")], PRICES)
    parsed = Page(data.decode())
    assert "Tokens by day (UTC), at most 50.5k" in parsed.text
    assert "1 call without a price" in parsed.text
    assert parsed.named("a", href="a%20b.html")


def test_index_has_pages_that_work_without_a_script() -> None:
    projects = [Project(path="/alpha"), Project(path="/beta")]
    sessions = [Session(f"s{number}", "main", projects[number // 150]) for number in range(250)]
    (_, data), *_ = index.pages([ExportedSession(session, f"{session.id}.html") for session in sessions], PRICES)
    parsed = Page(data.decode())
    assert [tag.attributes["id"] for tag in parsed.named("div", class_="page")] == ["page-1", "page-2", "page-3"]
    assert len(parsed.named("tr")) == 250 + len(parsed.named("table"))
    targets = {tag.attributes["href"] for tag in parsed.named("a") if (tag.attributes["href"] or "").startswith("#")}
    assert targets == {"#main", "#page-1", "#page-2", "#page-3", "#project-1", "#project-2"}
    assert all(target[1:] in data.decode() for target in targets if target)
    for words in ("Page 2 of 3", "Next →", "← Previous", "alpha, continued", "beta, continued"):
        assert words in parsed.text


def test_short_index_has_one_page_and_no_page_links() -> None:
    (_, data), *_ = index.pages([ExportedSession(everything.session(), "a.html")], PRICES)
    assert "Page 1" not in Page(data.decode()).text
