"""Transcripts of real sessions of every release are well formed and complete."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from tests.builders import PRICES
from tests.corpus.trees import SELECTED, Tree, all_trees, every_release, history
from tests.exports import everything
from tests.exports.reader import Page
from tests.exports.test_markdown import headings, tags

from pollux.exports import EXPORTERS
from pollux.exports.source import ExportOptions, ExportSource, export_source
from pollux.model import Kind, Message
from pollux.sessions.reader import opened
from pollux.text.escape import make_visible
from pollux.views.transcript import Branches, Detail

FULL = ExportOptions(Detail.FULL, Branches.ALL)


def subjects(trees: list[Tree]) -> Iterator[ExportSource]:
    for tree in trees:
        read = history(tree)
        by_id = {session.id: session for session in read.sessions}
        yield from (
            export_source(session, opened(session), by_id, opened, PRICES, options=FULL) for session in read.main
        )


def words(message: Message) -> list[str]:
    """Return the words of a message without list numbers and the languages of code."""
    text = re.sub(r"^\s*(`{3,}.*|\d+[.)])", "", make_visible(message.text), flags=re.MULTILINE)
    return re.findall(r"\w+", text) if message.kind is not Kind.UNKNOWN else []


@every_release
def test_pages_are_well_formed_and_complete(trees: list[Tree]) -> None:
    for subject in subjects(trees):
        page = Page(b"".join(EXPORTERS["html"].render(subject)).decode())
        shown = {*re.findall(r"\w+", page.text), *re.findall(r"\w+", " ".join(page.words))}
        for message in subject.messages():
            assert {*words(message)} <= shown


@every_release
def test_documents_have_one_title_and_are_complete(trees: list[Tree]) -> None:
    for subject in subjects(trees):
        text = b"".join(EXPORTERS["markdown"].render(subject)).decode()
        assert tags(text) == []
        assert [rank for rank, _ in headings(text)].count(1) == 1
        shown = {*re.findall(r"\w+", text)}
        for message in subject.messages():
            assert {*words(message)} <= shown


def kinds_of(messages: Iterable[Message]) -> Iterator[tuple[str, str]]:
    for message in messages:
        yield from (("kind", message.kind), ("origin", message.origin), ("fate", message.fate))
        yield from (("part", type(part).__name__) for part in message.parts)
        for call in message.tool_calls:
            yield from (("status", call.status), ("display", type(call.display).__name__))
            yield "tool", "mcp" if call.mcp_server or call.canonical == call.name else call.canonical


@every_release
def test_sample_transcript_covers_the_corpus(trees: list[Tree]) -> None:
    kept = {*kinds_of(everything.messages()), *kinds_of(everything.agent_messages())}
    for subject in subjects(trees):
        assert {*kinds_of(subject.messages())} <= kept


def test_corpus_has_words_to_compare() -> None:
    """Without words, the tests above would pass on empty pages."""
    all_words = [
        word for subject in subjects(all_trees(SELECTED)) for message in subject.messages() for word in words(message)
    ]
    assert len(all_words) > 1000
