"""HTML transcripts: whole, well formed, the same every time, and nothing in them acts."""

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
from tests.views.build import call, message, prompt

from pollux import __version__
from pollux.exports import EXPORTERS, Written, html
from pollux.exports.html import index
from pollux.exports.source import Subject, Wanted
from pollux.model import (
    Activity,
    AgentDisplay,
    Attachment,
    Cell,
    DiffDisplay,
    Display,
    FileDisplay,
    Match,
    MatchDisplay,
    Message,
    Project,
    ScreenDisplay,
    Session,
    TextDisplay,
    Todo,
    TodoDisplay,
    UnknownDisplay,
)
from pollux.render.html import code, markdown
from pollux.render.html.ansi import coloured, palette
from pollux.render.html.markup import PIECE, Html, element, joined, long_text, opening, text
from pollux.text.escape import clean, safe
from pollux.views.languages import LONGEST
from pollux.views.transcript import Branches, Detail

INVISIBLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
FULL = Wanted(Detail.FULL, Branches.ALL)
HARMLESS = re.compile(r"#|https?:|mailto:|data:image/(png|jpeg|gif|webp);base64,|data:application/octet-stream;base64,")


def written(subject: Subject) -> str:
    return b"".join(html.render(subject)).decode()


def page(subject: Subject) -> Page:
    return Page(written(subject))


# Whole pages


@pytest.mark.parametrize("prefix", SESSIONS)
def test_demo(prefix: str) -> None:
    golden.same(f"{prefix}-normal.html", written(demo_subject(prefix)).encode())


@pytest.mark.parametrize("kind", KINDS)
def test_everything(kind: str) -> None:
    golden.same(f"everything-{kind}.html", written(everything.subject(KINDS[kind])).encode())


@pytest.mark.parametrize("detail", Detail)
def test_page_is_well_formed_and_all_its_links_lead_somewhere(detail: Detail) -> None:
    found = page(everything.subject(Wanted(detail, Branches.ALL)))
    ids = [one.attributes["id"] for one in found.tags if "id" in one.attributes]
    assert len(ids) == len({*ids})
    for one in found.tags:
        if (place := one.attributes.get("href") or "").startswith("#"):
            assert place[1:] in ids


def test_everything_that_was_said_is_there() -> None:
    shown = page(everything.subject(FULL)).text
    for one in (*everything.messages(), *everything.agent_messages()):
        for word in re.findall(r"\w+", one.text):
            assert word in shown


def test_messages_keep_their_numbers_whatever_is_shown() -> None:
    """The last prompt is the same place in all of them."""
    last = f"m{len(everything.messages())}"
    for detail in Detail:
        assert page(everything.subject(Wanted(detail))).named("article", id=last)


def test_navigation_lists_the_prompts() -> None:
    found = page(everything.subject(FULL))
    (navigation,) = found.named("nav")
    start = found.tags.index(navigation)
    listed = [one.attributes["href"] for one in found.tags[start:] if one.name == "a"][1:]
    prompts = [one for one in found.named("article") if one.attributes.get("class") == "prompt"]
    assert listed == [f"#{one.attributes['id']}" for one in prompts]
    assert len(listed) == 9


def test_header_tells_what_and_where_from() -> None:
    shown = page(everything.subject()).text
    for words in ("/home/alice/webapp", "gemini-3-pro, gemini-3-flash", "2 model calls", "0" * 64, __version__):
        assert words in shown
    assert "$0.0628+ (1 call without a price)" in shown


def test_agent_is_folded_into_its_call() -> None:
    agent = r'Because\..*?</details><details class="agent">.*?<article id="a\d+m1".*?Find out why\.'
    assert re.search(agent, written(everything.subject()), re.DOTALL)


def test_agents_without_a_call_stand_at_the_end() -> None:
    child = made(everything.agent_messages(), Session("lost", "subagent", Project()))
    shown = page(made((prompt("Go."),), agents=(child,))).text
    assert shown.index("Find out why.") > shown.index("Go.")


@pytest.mark.parametrize("name", ["html", "markdown"])
def test_agents_that_started_each_other_come_to_an_end(name: str) -> None:
    one = made(everything.agent_messages(), Session("one", "subagent", Project()))
    two = made(everything.agent_messages(), Session("two", "subagent", Project()), agents=(one,))
    object.__setattr__(one, "agents", (two,))
    data = b"".join(EXPORTERS[name].render(made((prompt("Go."),), agents=(one,))))
    assert data.count(b"Find out why.") == 2


# What must never happen


@pytest.mark.parametrize("branches", Branches)
@pytest.mark.parametrize("detail", Detail)
def test_nothing_hostile_becomes_more_than_text(detail: Detail, branches: Branches) -> None:
    data = written(hostile(Wanted(detail, branches, thoughts=True)))
    found = Page(data)
    calm = page(everything.subject(Wanted(detail, branches, thoughts=True)))
    assert {one.name for one in found.tags} <= {one.name for one in page(everything.subject(FULL)).tags} | {"h5", "h6"}
    assert len(found.named("script")) == len(found.named("style")) == len(calm.named("style")) == 1
    for one in found.tags:
        assert not {name for name in one.attributes if name.startswith("on")} | {"style"} & one.attributes.keys()
        for name in ("href", "src"):
            place = one.attributes.get(name)
            assert place is None or HARMLESS.match(place)
    assert not INVISIBLE.search(data)


def test_policy_lets_in_nothing_but_the_page_s_own_style_and_script() -> None:
    for data in (written(everything.subject()), dict(index.pages([], PRICES))["index.html"].decode()):
        found = Page(data)
        (policy,) = (one.attributes["content"] for one in found.tags if "http-equiv" in one.attributes)
        hashes = {kind: hashlib.sha256(raw.encode()).digest() for kind, raw in found.raw.items()}
        digests = {kind: base64.b64encode(made_of).decode() for kind, made_of in hashes.items()}
        assert policy == (
            f"default-src 'none'; style-src 'sha256-{digests['style']}'; script-src 'sha256-{digests['script']}'; "
            "img-src data:; base-uri 'none'; form-action 'none'"
        )
        assert "url(" not in found.raw["style"]
        assert "@import" not in found.raw["style"]
        assert not re.search(r"fetch\(|XMLHttpRequest|import\(|innerHTML|eval\(|https?://", found.raw["script"])


@given(st.text())
def test_any_text_is_shown_as_it_is(words: str) -> None:
    assert Page(element("p", words, title=words)).text == safe(words)
    assert Page(element("p", long_text(words))).text == safe(words)
    assert Page(coloured(words)).text == safe(re.sub(r"\x1b\[[0-9;:]*m", "", words.replace("\r\n", "\n")))


@given(st.text(alphabet=st.sampled_from("<>/!ab&;`~[]()\\#=-|*_:\n \tx"), max_size=80))
def test_any_markdown_is_well_formed_and_brings_its_own_words_only(words: str) -> None:
    found = Page(markdown.answer(words))
    assert {*re.sub(r"Copy|▣ picture|\W", "", found.text)} <= {*words}
    assert not {"script", "img", "iframe"} & {one.name for one in found.tags}
    known = {"class", "href", "rel", "tabindex", "type", "start"}
    assert {name for one in found.tags for name in one.attributes} <= known


@given(st.text(max_size=200), st.sampled_from(["python", "sh", "json", "html", "diff", "no such", "<b>", "php", "c++"]))
def test_coloured_code_is_the_same_code(words: str, language: str) -> None:
    assert Page(code.coloured_code(clean(words), language)).text == clean(words)


# Pieces


def test_element_escapes_what_is_not_html() -> None:
    assert element("b", "<i>", Html("<i></i>"), class_='a"b', data_n=3, hidden=True, id=None) == (
        '<b class="a&quot;b" data-n="3" hidden>&lt;i&gt;<i></i></b>'
    )
    assert element("br") == opening("br") == "<br>"
    assert text(Html("<b>")) == "<b>"
    assert joined(["&", Html("&amp;")]) == "&amp;&amp;"


def test_long_text_is_cut_after_lines_or_anywhere() -> None:
    assert long_text("x" * PIECE) == "x" * PIECE
    lines = Page(long_text("line of text\n" * PIECE))
    assert len(lines.words) > 5
    assert all(one.endswith("\n") for one in lines.words)
    assert [len(one) for one in Page(long_text("x" * (2 * PIECE + 1))).words] == [PIECE, PIECE, 1]


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        ("\x1b[31mred\x1b[0m", '<span class="f1">red</span>'),
        ("\x1b[1;91;44mx\x1b[22;39;49my", '<span class="f9 b4 bold">x</span>y'),
        ("\x1b[38;5;200;48;5;17mx", '<span class="f200 b17">x</span>'),
        ("\x1b[38;2;255;0;0mx\x1b[48:2:0:0:0my", '<span class="f9">x</span><span class="f9 b0">y</span>'),
        ("\x1b[102mx\x1b[mx", '<span class="b10">x</span>x'),
        ("\x1b[7mx\x1b[27mx", '<span class="fi bi">x</span>x'),
        ("\x1b[7;31mx", '<span class="fi b1">x</span>'),
        ("\x1b[2;3;4mx\x1b[23;24mx", '<span class="dim italic underline">x</span><span class="dim">x</span>'),
        ("\x1b[38;5mx\x1b[38mx\x1b[38;9;1mx", 'xx<span class="bold">x</span>'),
        ("\x1b[38;5;999mx\x1b[5;75mx", '<span class="f255">x</span><span class="f255">x</span>'),
        ("\x1b[2K\x1b[31", "\u241b[2K\u241b[31"),
    ],
)
def test_colours_of_a_terminal_are_classes(given_: str, expected: str) -> None:
    assert coloured(given_) == expected


def test_palette_has_all_colours() -> None:
    assert len(re.findall(r"\.[fb]\d+\{", palette())) == 2 * 240
    assert ".f196{color:#ff0000}.b196{background:#ff0000}" in palette()
    assert ".f255{color:#eeeeee}" in palette()


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
def test_markdown_is_laid_out(given_: str, expected: str) -> None:
    assert markdown.answer(given_) == expected


def test_what_is_too_long_too_deep_or_nothing_is_shown_as_it_is() -> None:
    for words in ("*x* " * markdown.LONG, "> " * markdown.DEEP + "*x*", "", "\n"):
        assert Page(markdown.answer(words)).text == words
        assert markdown.answer(words).startswith('<div class="words">')


def test_code_that_is_long_or_of_no_known_language_is_not_coloured() -> None:
    assert "<span" in code.coloured_code("return 1", "python")
    assert "sk" not in code.coloured_code("return 1\n" * LONGEST, "python")
    assert code.coloured_code("return 1", "klingon") == "return 1"


def test_code_that_a_lexer_would_change_is_not_coloured(monkeypatch: pytest.MonkeyPatch) -> None:
    class Lossy:
        def get_tokens(self, _code: str) -> list[tuple[object, str]]:
            return [(Token.Keyword, "retur")]

    monkeypatch.setattr(code, "lexer_for", lambda _language, _code: Lossy())
    assert code.coloured_code("return 1", "python") == "return 1"


def test_only_pictures_are_shown() -> None:
    found = page(everything.subject(FULL))
    assert {str(one.attributes["src"])[:22] for one in found.named("img")} == {"data:image/png;base64,"}
    assert [one.attributes["download"] for one in found.tags if "download" in one.attributes] == [
        "picture-2.svg",
        "file-3.pdf",
    ]
    broken = page(made((prompt("", Attachment("image/png", 9, data="%%%")),)))
    assert not broken.named("img")
    assert "▣ image/png, 9 B" in broken.text


def test_what_is_long_is_folded_and_what_speaks_is_open() -> None:
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
    found = page(made((prompt(log), message(tool_calls=calls)), wanted=Wanted(Detail.FULL)))
    folds = [one for one in found.named("details") if one.attributes["class"] != "sources"]
    assert [("open" in one.attributes, one.attributes["class"]) for one in folds] == [
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
        MatchDisplay("", tuple(Match("a", n, "x") for n in range(50))),
        FileDisplay("", tuple(map(str, range(50)))),
        ScreenDisplay(tuple((Cell("x"),) for _ in range(50))),
        AgentDisplay("a", activity=tuple(Activity("tool_call", "x") for _ in range(50)), result="x"),
        TodoDisplay(tuple(Todo("x", "pending") for _ in range(50))),
        UnknownDisplay([*range(50)]),
    ],
)
def test_whatever_is_long_is_folded_even_if_it_failed(display: Display) -> None:
    few = msgspec.structs.replace(display, **{name: getattr(display, name)[:3] for name in _many(display)})
    for shown, is_open in ((display, False), (few, True)):
        found = page(made((message(tool_calls=(call("x", display=shown, exit_code=1),)),), wanted=FULL))
        assert [("open" in one.attributes) for one in found.named("details", class_="tool failed")] == [is_open]


def _many(display: Display) -> list[str]:
    return [name for name in ("matches", "files", "lines", "activity", "todos", "value") if hasattr(display, name)]


def test_long_diff_is_in_pieces() -> None:
    long_diff = "@@ -1 +1 @@\n" + "\n".join(f"+{n}" for n in range(500))
    found = page(made((message(tool_calls=(call("replace", {}, display=DiffDisplay(long_diff)),)),), wanted=FULL))
    assert len(found.named("span", class_="piece")) == 3
    assert len(found.named("span", class_="add")) == 500


def test_pieces_come_while_messages_are_read() -> None:
    read: list[int] = []

    def talk() -> Iterator[Message]:
        for number in range(100):
            read.append(number)
            yield prompt(f"number {number}")

    subject = made((), wanted=Wanted())
    object.__setattr__(subject, "timeline", talk())
    pieces = EXPORTERS["html"].render(subject)
    while b"number 3" not in next(pieces):
        pass
    assert len(read) < 7


# The index


def test_index_of_nothing_is_a_page() -> None:
    ((name, data),) = index.pages([], PRICES)
    assert name == EXPORTERS["html"].index_page
    assert "0 sessions" in Page(data.decode()).text


def test_index_shows_tokens_where_there_is_no_money() -> None:
    about = everything.session()
    (_, data), *_ = index.pages([Written(about, "a.html")], PRICES)
    assert "Cost by day" in Page(data.decode()).text
    unpriced = Session("x", "main", Project(), calls=about.calls[1:])
    (_, data), *_ = index.pages([Written(unpriced, "a b.html")], PRICES)
    found = Page(data.decode())
    assert "Tokens by day, at most 50.5k" in found.text
    assert "1 call without a price" in found.text
    assert found.named("a", href="a%20b.html")
