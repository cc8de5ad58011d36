"""Streams of events: a running session grows in place, and nothing watches while no tab listens."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Message
from tests.builders import NAME, SESSION, chats, gemini, header, line, log, put, rewind, tokens, user
from tests.exports.reader import Page
from tests.web.viewing import LABEL, Viewed, viewing

from pollux.archive.watch import SyncReport
from pollux.library import freshness
from pollux.web.live import Watcher, _next_change, event
from pollux.web.pages.session import row_version

PATIENCE = 60.0


@pytest.fixture
def home(tmp_path: Path) -> Path:
    root = tmp_path / "home"
    put(_file(root), log(header(), user("u1", "first prompt"), gemini("g1", "first answer", tokens=tokens(7))))
    return root


@pytest.fixture
def viewed(tmp_path: Path, home: Path) -> Iterator[Viewed]:
    with viewing(tmp_path, [home]) as made:
        yield made


def _file(root: Path) -> Path:
    return chats(root) / f"{NAME}.jsonl"


def append(root: Path, *records: dict[str, Any]) -> None:
    with _file(root).open("ab") as stream:
        for record in records:
            stream.write(line(record) + b"\n")


def test_a_tab_that_is_closed_leaves_nothing_waiting() -> None:
    async def close_while_waiting() -> set[asyncio.Task[Any]]:
        stopping = asyncio.create_task(asyncio.Event().wait())
        waiting = asyncio.create_task(_next_change(asyncio.Queue(), stopping))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await asyncio.sleep(0)
        rest = asyncio.all_tasks() - {asyncio.current_task(), stopping}
        stopping.cancel()
        return rest

    assert asyncio.run(close_while_waiting()) == set()


class Tab:
    """A browser tab that listens to a stream."""

    def __init__(self, viewed: Viewed, path: str, query: str = "") -> None:
        self._viewed, self._path, self._query = viewed, path, query
        self._text = ""
        self._arrived = asyncio.Event()
        self._left = asyncio.Event()
        self.status = 0

    async def receive(self) -> Message:
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        self.status = message.get("status", self.status)
        self._text += message.get("body", b"").decode()
        self._arrived.set()

    async def run(self) -> None:
        path = f"/{LABEL}/{self._path}"
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "root_path": "",
            "query_string": self._query.encode(),
            "headers": [(b"host", b"127.0.0.1:2990")],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 2990),
        }
        await self._viewed.app(scope, self.receive, self.send)

    async def heard(self, name: str) -> Any:  # noqa: ANN401  JSON
        """Return the data of the next event of a name."""
        pattern = re.compile(rf"event: {name}\nid: \d+\ndata: (.*)\n\n")
        async with asyncio.timeout(PATIENCE):  # for all of it: comments keep arriving on a quiet stream
            while not (match := pattern.search(self._text)):
                self._arrived.clear()
                await self._arrived.wait()
        self._text = self._text[match.end() :]
        return json.loads(match[1])

    def leave(self) -> None:
        self._left.set()


def listening(viewed: Viewed, path: str, query: str, talk: Callable[[Tab], Awaitable[None]]) -> Tab:
    """Run a conversation with a tab, and close the tab."""

    async def run() -> Tab:
        tab = Tab(viewed, path, query)
        task = asyncio.create_task(tab.run())
        try:
            await talk(tab)
        finally:
            tab.leave()
            await asyncio.wait_for(task, PATIENCE)
        return tab

    return asyncio.run(run())


def state(viewed: Viewed) -> str:
    """Return what a tab that shows the session now would ask for."""
    (thread,) = viewed.page(f"s/{SESSION}").named("div", class_="thread")
    return f"total={thread.attributes['data-total']}&version={thread.attributes['data-version']}"


def test_session_grows_in_place(viewed: Viewed, home: Path) -> None:
    async def talk(tab: Tab) -> None:
        await tab.heard("hello")
        append(
            home, user("u2", "second <b>prompt</b>\nwith two lines"), gemini("g2", "second answer", tokens=tokens(9))
        )
        news = await tab.heard("grown")
        assert news["total"] == 4
        assert news["from"] <= 3
        found = Page(f"<section>{news['html']}</section>")
        assert "second <b>prompt</b>" in found.text
        assert "second answer" in found.text
        assert "2 prompts" in Page(news["facts"]).text
        assert "second <b>prompt</b>" in Page(f"<ol>{news['prompts']}</ol>").text

    listening(viewed, f"s/{SESSION}/events", state(viewed), talk)


def test_rewound_messages_are_sent_again_as_a_branch(viewed: Viewed, home: Path) -> None:
    append(home, user("u2", "wrong way"), gemini("g2", "indeed"))
    viewed.library.sync()

    async def talk(tab: Tab) -> None:
        await tab.heard("hello")
        append(home, rewind("u2"), user("u3", "better way"))
        news = await tab.heard("grown")
        assert 'class="branch rewound"' in news["html"]
        assert "better way" in news["html"]

    listening(viewed, f"s/{SESSION}/events", state(viewed), talk)


def test_tab_that_comes_back_gets_what_it_missed(viewed: Viewed, home: Path) -> None:
    before = state(viewed)
    append(home, user("u2", "meanwhile"))
    viewed.library.sync()

    async def talk(tab: Tab) -> None:
        assert "meanwhile" in (await tab.heard("grown"))["html"]

    listening(viewed, f"s/{SESSION}/events", before, talk)


def test_tab_loads_again_if_messages_were_dropped_meanwhile(viewed: Viewed, home: Path) -> None:
    before = state(viewed)
    append(home, rewind("u1"), user("u2", "anew"))
    viewed.library.sync()

    async def talk(tab: Tab) -> None:
        assert (await tab.heard("again"))["total"] == 3

    listening(viewed, f"s/{SESSION}/events", before, talk)


def test_a_tab_hears_that_the_client_has_deleted_the_session(viewed: Viewed, home: Path) -> None:
    async def talk(tab: Tab) -> None:
        await tab.heard("hello")
        _file(home).unlink()
        news = await tab.heard("grown")
        assert news["total"] == 2
        assert "Copy restore command" in Page(news["acts"]).text
        assert "Gemini CLI has deleted its copy." in Page(news["acts"]).text

    listening(viewed, f"s/{SESSION}/events", state(viewed), talk)


def test_lists_hear_which_sessions_have_changed(viewed: Viewed, home: Path) -> None:
    async def talk(tab: Tab) -> None:
        await tab.heard("hello")
        append(home, user("u2", "more"))
        assert (await tab.heard("sessions"))["ids"] == [SESSION]

    listening(viewed, "events", "", talk)


def test_tab_hears_what_another_call_has_archived(viewed: Viewed, home: Path) -> None:
    """A page that is loaded between a change and the next sync archives the change itself."""

    async def talk(tab: Tab) -> None:
        await tab.heard("hello")
        append(home, user("u2", "more"))
        await asyncio.to_thread(viewed.library.sync)
        assert (await tab.heard("sessions"))["ids"] == [SESSION]

    listening(viewed, "events", "", talk)


def test_tab_hears_of_a_deletion_that_another_call_has_noticed(
    viewed: Viewed, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_listening = threading.Event()

    def watch(*, stop: threading.Event, archived: Callable[[], None]) -> Iterator[SyncReport]:
        is_listening.wait(PATIENCE)
        _file(home).unlink()
        viewed.library.sync()
        archived()
        yield viewed.library.sync()  # finds nothing new
        stop.wait(PATIENCE)

    async def talk(tab: Tab) -> None:
        await tab.heard("hello")
        is_listening.set()
        assert "Gemini CLI has deleted its copy." in Page((await tab.heard("grown"))["acts"]).text

    monkeypatch.setattr(viewed.library, "watch", watch)
    listening(viewed, f"s/{SESSION}/events", state(viewed), talk)


def test_nothing_watches_without_a_tab(viewed: Viewed) -> None:
    async def talk(tab: Tab) -> None:
        await tab.heard("hello")
        assert viewed.app.state.watcher.is_running

    listening(viewed, "events", "", talk)
    assert not viewed.app.state.watcher.is_running
    assert viewed.app.state.viewer.streams.number == 0


def test_index_waits_until_tabs_have_rendered_a_change(viewed: Viewed) -> None:
    watcher = Watcher(viewed.app.state.viewer)

    async def listen() -> None:
        with watcher.listening() as slow, watcher.listening() as gone:
            watcher.announce(frozenset({SESSION}))
            assert await slow.get() == await gone.get() == {SESSION}
            assert not watcher.wait_for_tabs(0)
            watcher.note_rendered(slow)
            assert not watcher.wait_for_tabs(0)
            watcher.note_rendered(gone)
            assert watcher.wait_for_tabs(0)
            watcher.announce(frozenset())
        assert watcher.wait_for_tabs(0), "tabs that were closed are still waited for"

    asyncio.run(listen())


def test_index_begins_when_the_tabs_are_done(viewed: Viewed, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    is_indexed = threading.Event()
    index, note = freshness.index, Watcher.note_rendered

    def noted(watcher: Watcher, queue: asyncio.Queue[frozenset[str]]) -> None:
        done.append("rendered")
        note(watcher, queue)

    def indexed(*arguments: Any) -> Any:  # noqa: ANN401  of `index`
        done.append("indexed")
        is_indexed.set()
        return index(*arguments)

    monkeypatch.setattr(Watcher, "note_rendered", noted)
    monkeypatch.setattr(freshness, "index", indexed)

    async def talk(tab: Tab) -> None:
        await tab.heard("hello")
        assert await asyncio.to_thread(is_indexed.wait, PATIENCE)  # the watcher begins with a sync
        done.clear()
        is_indexed.clear()
        append(home, user("u2", "more"))
        await tab.heard("grown")
        assert await asyncio.to_thread(is_indexed.wait, PATIENCE)

    listening(viewed, f"s/{SESSION}/events", state(viewed), talk)
    assert done.index("rendered") < done.index("indexed")


def test_server_that_stops_says_goodbye(viewed: Viewed) -> None:
    async def talk(tab: Tab) -> None:
        await tab.heard("hello")
        viewed.app.state.viewer.streams.end()
        assert await tab.heard("bye") == {}

    listening(viewed, f"s/{SESSION}/events", state(viewed), talk)


def test_unknown_session_has_no_stream(viewed: Viewed) -> None:
    assert viewed.answer("s/zzzzzzzz/events").status_code == 404
    assert viewed.answer(f"s/{SESSION}/events", total="x").status_code == 400


def test_event_is_one_line_of_data() -> None:
    data = event("grown", {"html": "a\nb\r\u2028data: x\n\nevent: evil"}, 7)
    assert data.count(b"\n") == 4
    assert data.startswith(b"event: grown\nid: 7\ndata: {")


def test_version_changes_with_the_session(viewed: Viewed, home: Path) -> None:
    before = row_version(viewed.library.session(SESSION))
    assert row_version(viewed.library.session(SESSION)) == before
    append(home, user("u2", "more"))
    viewed.library.sync()
    assert row_version(viewed.library.session(SESSION)) != before
