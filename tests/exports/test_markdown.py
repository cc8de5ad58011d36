"""Markdown transcripts are readable and complete, and keep each text inside its block."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token
from tests.exports import everything, golden
from tests.exports.everything import made
from tests.exports.golden import KINDS, SESSIONS, demo_subject
from tests.exports.hostile import EVIL, hostile, messages
from tests.views.build import message, prompt

from pollux.exports import EXPORTERS, markdown
from pollux.exports.markdown.escape import DEEP, LONG, code, fence, inert, plain, quoted
from pollux.exports.source import ExportOptions, ExportSource
from pollux.model import Attachment, Message, Origin
from pollux.text.escape import make_visible
from pollux.views.transcript import Branches, Detail

READER = MarkdownIt("commonmark", {"html": True, "maxNesting": 200}).enable(["table", "strikethrough"])
"""A CommonMark parser that accepts HTML."""
OURS = re.compile(r"</?details>|</?summary>|<details>\n<summary>[^<>\n]*</summary>\n?")


def written(subject: ExportSource) -> str:
    return b"".join(markdown.render(subject)).decode()


def tokens(text: str) -> Iterator[Token]:
    for token in READER.parse(text):
        yield token
        yield from token.children or ()


def tags(text: str) -> list[str]:
    """Return the HTML in a document that Pollux did not write."""
    html = (token.content for token in tokens(text) if token.type in {"html_block", "html_inline"})
    return [tag for tag in html if not OURS.fullmatch(tag.strip())]


def headings(text: str) -> list[tuple[int, str]]:
    """Return the headings outside quotations and lists, with their level."""
    parsed = READER.parse(text)
    return [
        (int(token.tag[1:]), parsed[number + 1].content)
        for number, token in enumerate(parsed)
        if token.type == "heading_open" and token.level == 0
    ]


# Whole documents


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("prefix", SESSIONS)
def test_demo_transcripts_equal_their_snapshots(prefix: str, kind: str) -> None:
    golden.same(f"{prefix}-{kind}.md", written(demo_subject(prefix, KINDS[kind])).encode())


@pytest.mark.parametrize("kind", KINDS)
def test_transcript_of_everything_equals_its_snapshot(kind: str) -> None:
    golden.same(f"everything-{kind}.md", written(everything.subject(KINDS[kind])).encode())


@pytest.mark.parametrize("detail", Detail)
def test_prompts_are_the_headings_of_level_two(detail: Detail) -> None:
    titles = headings(written(everything.subject(ExportOptions(detail))))
    prompts = [words for rank, words in titles if rank == 2]
    assert [rank for rank, _ in titles].count(1) == 1
    assert [re.match(r"\d+", words)[0] for words in prompts] == [str(n + 1) for n in range(len(prompts))]  # type: ignore[index]
    n_human = sum(message.origin is Origin.HUMAN and message.fate == "active" for message in everything.messages())
    n_loaded = sum(message.origin is Origin.LOADED for message in everything.messages())
    assert len(prompts) == n_human + (n_loaded if detail is not Detail.PROMPTS else 0)


def test_transcript_contains_each_message() -> None:
    text = written(everything.subject(ExportOptions(Detail.FULL, Branches.ALL)))
    shown = "\n".join(token.content for token in tokens(text))
    for each in (*everything.messages(), *everything.agent_messages()):
        for word in re.findall(r"\w+", each.text):
            assert word in shown


def test_subagent_is_quoted_after_the_call_that_started_it() -> None:
    text = written(everything.subject())
    before, _, after = text.partition("> **Subagent** `agent-1`")
    assert before.rstrip().endswith("Because.\n```")
    inside = after.partition("\n\n")[0]
    assert "> Looking." in inside
    assert "\n\n*shell mode" in after


# Hostile text


@pytest.mark.parametrize("branches", Branches)
@pytest.mark.parametrize("detail", Detail)
def test_hostile_text_stays_in_its_block(detail: Detail, branches: Branches) -> None:
    text = written(hostile(ExportOptions(detail, branches, thoughts=True)))
    assert tags(text) == []
    assert {rank for rank, _ in headings(text)} <= {1, 2, 3, 4, 5, 6}
    assert [rank for rank, _ in headings(text)].count(1) == 1
    assert re.fullmatch(r"[^\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]*", text)
    for token in tokens(text):
        target = str(token.attrs.get("href", ""))
        assert token.type != "image"
        assert not re.match(r"\s*(javascript|data|vbscript|file):", target, re.IGNORECASE)


@pytest.mark.parametrize("hostile_message", messages(), ids=lambda source: f"{source.kind}-{source.origin}")
def test_hostile_message_does_not_change_the_next_one(hostile_message: Message) -> None:
    """After any message, the last prompt is a heading and its answer a paragraph."""
    text = written(
        made((hostile_message, prompt("The end?"), message("The *end*.")), export_options=ExportOptions(Detail.FULL))
    )
    parsed = READER.parse(text)
    assert headings(text)[-1][1].endswith("The end?")
    assert [token.type for token in parsed[-3:]] == ["paragraph_open", "inline", "paragraph_close"]
    assert parsed[-2].content == "The *end*."


@given(st.text(alphabet=st.sampled_from("<>/!ab&;`~[]()\\#=-|*_:\n \tx"), max_size=60))
def test_any_text_creates_no_tags_pictures_or_definitions(text: str) -> None:
    document = f"{inert(text)}\n\n## Next\n\n[a] [b] [ab]\n"
    parsed = [*tokens(document)]
    assert not {"html_block", "html_inline", "image"} & {token.type for token in parsed}
    assert headings(document)[-1] == (2, "Next")
    assert parsed[-4].content == "[a] [b] [ab]" or any(token.content == "[a] [b] [ab]" for token in parsed[-6:])
    assert not any(token.type == "link_open" for token in READER.parseInline("[a] [b] [ab]")[0].children or ())


@given(st.text(alphabet=st.sampled_from("`~ \n>-x"), max_size=40))
def test_text_in_a_fence_is_unchanged(text: str) -> None:
    (only,) = READER.parse(fence(text))
    assert (only.type, only.content) == ("fence", make_visible(text) + "\n")


@given(st.text(max_size=40))
def test_text_on_a_line_is_shown_unchanged(text: str) -> None:
    words = make_visible(" ".join(text.split()))
    assume(words)
    for written_so in (f"x{plain(text)}x", f"x{code(text)}x"):
        (inline,) = (token for token in READER.parse(written_so) if token.type == "inline")
        shown = "".join(child.content for child in inline.children or ())
        assert shown in (f"x{words}x", f"x{words.strip()}x")
        assert not {"html_inline", "link_open", "image"} & {child.type for child in inline.children or ()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain words", "plain words"),
        ("a < b and `<i>` but <b>", "a < b and `<i>` but &lt;b>"),
        ("`` ` <b> `` <b>", "`` ` <b> `` &lt;b>"),
        ("\\`<b>`", "\\`&lt;b>`"),
        ("# One\n\n###### Six", "### One\n\n###### Six"),
        ("One\n===\n\nTwo\n---", "### One\n\n\n#### Two\n"),
        ("One\nmore\n===", "One\nmore\n\\==="),
        ("> One\n> ---", "> #### One\n>"),
        ("- # in a list", "- ### in a list"),
        ("```\n<b>\n# x", "```\n<b>\n# x\n```"),
        ("~~~~\nx\n~~~", "~~~~\nx\n~~~\n~~~~"),
        ("```", "```\n```"),
        ("    <b>indented", "    <b>indented"),
        ("![x](http://y) \\![x](y)", "\\![x](http://y) \\![x](y)"),
        ("[x](HTTPS://y) [x](a/b.py#L1) [x](#y) [x](mailto:y)", "[x](HTTPS://y) [x](a/b.py#L1) [x](#y) [x](mailto:y)"),
        ("[x](javascript:y) [x](C:/y) [x](&#106;a)", "[x]\\(javascript:y) [x]\\(C:/y) [x]\\(&#106;a)"),
        ("[x]: http://y", "[x]\\: http://y"),
        ("<https://example.org>", "&lt;https://example.org>"),
    ],
)
def test_only_active_markup_is_escaped(text: str, expected: str) -> None:
    assert inert(text) == expected


def test_lines_of_a_prompt_are_kept() -> None:
    assert inert("one\ntwo\n\n```\nthree\nfour\n```", keeps_lines=True) == "one  \ntwo\n\n```\nthree\nfour\n```"
    assert quoted("one\n\ntwo") == "> one\n>\n> two"


def test_text_that_is_too_long_or_too_deep_is_fenced() -> None:
    assert inert("<b>" * LONG).startswith("```text\n<b><b>")
    assert inert("> " * DEEP + "<b>").startswith("```text\n> > ")


# Side files


def test_pictures_are_written_as_side_files() -> None:
    files: dict[str, bytes] = {}

    def put(name: str, data: bytes) -> str:
        files[name] = data
        return f"session_files/{name}"

    subject = everything.subject(write_side_file=put, name="session.md")
    text = written(subject)
    picture = base64.b64decode(everything.PIXEL)
    assert files == {
        "picture-1.png": picture,
        "picture-2.png": picture,
        "picture-3.svg": b"<svg/>",
        "file-4.pdf": b"%PDF-",
    }
    assert "\n![image/png, 74 B](session_files/picture-1.png)\n" in text
    assert "\n▣ [image/svg+xml, 6 B](session_files/picture-3.svg)\n" in text
    assert not subject.losses


def test_pictures_without_side_files_are_named_and_counted() -> None:
    subject = everything.subject()
    assert "\n▣ image/png, 74 B\n" in written(subject)
    assert subject.losses == {"attachments": 4}


def test_broken_picture_is_named() -> None:
    subject = made((prompt("Look.", Attachment("image/png", 9, data="%%%")),), write_side_file=lambda name, _data: name)
    assert "\n▣ image/png, 9 B\n" in written(subject)


def test_transcript_is_yielded_while_messages_are_read() -> None:
    read: list[int] = []

    def talk() -> Iterator[Message]:
        for number in range(100):
            read.append(number)
            yield prompt(f"number {number}")

    subject = made((), export_options=ExportOptions())
    object.__setattr__(subject, "timeline", talk())
    pieces = EXPORTERS["markdown"].render(subject)
    while b"number 3" not in next(pieces):
        pass
    assert len(read) < 7


def test_hostile_title_is_one_line() -> None:
    first = written(hostile()).partition("\n")[0]
    assert first.startswith("# owned &lt;script>")
    assert EVIL not in first
