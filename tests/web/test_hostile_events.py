"""Security test 12 of the viewer, for streams: no text of a session can end an event or forge another one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.builders import NAME, SESSION, chats, gemini, header, log, put, tokens, user
from tests.exports.reader import Page
from tests.web.client import Site, demo_site
from tests.web.homes import HOSTILE

from pollux.web.live import event
from pollux.web.pages.session import row_version

FORGERIES = (
    "x\n\nevent: bye\ndata: {}\n\n",
    "x\r\n\r\nevent: bye\r\ndata: {}\r\n\r\n",
    "x\r\revent: bye\rdata: {}\r\r",
    "x\u2028\u2028event: bye\u2029data: {}\x85\x0b\x0c\x1c\x1d\x1e",
    "\ndata: {}\nid: 99\nretry: 1\n: comment\n\n",
    "\\n\\nevent: bye\\ndata: {}\\n\\n",
    "\ufeffevent: bye\x00\ndata: {}\n\n",
    HOSTILE,
)


class SentEvent(NamedTuple):
    """An event as a browser reads it."""

    name: str
    data: str
    id: str


def sent_events(text: str) -> list[SentEvent]:
    """Return the events of a stream, read as the HTML standard says: CR, LF and CR LF end a line."""
    events, fields = [], dict[str, list[str]]()
    for line in re.split(r"\r\n|\n|\r", text):
        if not line:
            if fields.get("data"):
                name, id_ = (fields.get(field, [""])[-1] for field in ("event", "id"))
                events.append(SentEvent(name, "\n".join(fields["data"]), id_))
            fields = {}
        elif not line.startswith(":"):
            field, _, value = line.partition(":")
            fields.setdefault(field, []).append(value.removeprefix(" "))
    return events


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """Open a viewer of one session whose every text would forge an event."""
    evil = "".join(FORGERIES)
    records = [user("u1", evil), gemini("g1", evil, model=evil, tokens=tokens()), {"$set": {"summary": evil}}]
    put(chats(tmp_path / "home") / f"{NAME}.jsonl", log(header(), *records))
    with demo_site(tmp_path / "archive.db", home=tmp_path / "home") as site:
        yield site


def test_reader_of_streams_sees_a_forged_event() -> None:
    """Check the check: an event that is written without care is two."""
    careless = f"event: grown\nid: 1\ndata: {FORGERIES[0]}\n\n"
    assert [sent.name for sent in sent_events(careless)] == ["grown", "bye"]


@pytest.mark.parametrize("number", range(len(FORGERIES)))
def test_text_cannot_end_its_event(number: int) -> None:
    text = FORGERIES[number]
    value = {"html": text, "ids": [text], text: text}
    (sent,) = sent_events(event("grown", value, 7).decode())
    assert (sent.name, sent.id) == ("grown", "7")
    received, expected = (words.encode("utf-8", "surrogatepass") for words in (json.loads(sent.data)["html"], text))
    assert received == expected


def test_hostile_session_sends_only_the_events_of_the_server(site: Site) -> None:
    """A tab that has one of the two messages gets the other one, and then the server stops."""
    started, _, _ = row_version(site.viewer.library.session(SESSION)).partition("-")
    site.viewer.streams.end()
    answer = site.get(f"s/{SESSION}/events?total=1&version={started}-0")
    assert answer.headers["content-type"].startswith("text/event-stream")
    hello, grown, bye = sent_events(answer.text)
    assert [hello.name, grown.name, bye.name] == ["hello", "grown", "bye"]
    assert [hello.id, grown.id, bye.id] == ["1", "2", "3"]
    assert json.loads(bye.data) == {}
    news = json.loads(grown.data)
    assert news["total"] == 2
    page = Page(f"<section>{news['html']}{news['facts']}<ol>{news['prompts']}</ol></section>")
    assert "event: bye" in page.text
    for tag in page.tags:
        assert tag.name not in {"script", "style", "iframe", "base", "form", "object", "animate"}
        assert not [name for name in tag.attributes if name.startswith("on") or name == "style"]


def test_stream_of_all_sessions_sends_only_the_events_of_the_server(site: Site) -> None:
    site.viewer.streams.end()
    assert [sent.name for sent in sent_events(site.get("events").text)] == ["hello", "bye"]
