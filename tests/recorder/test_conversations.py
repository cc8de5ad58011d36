"""Whatever was said, and whatever became of it: Pollux tells the truth about random conversations.

The model of the client writes the files and the truth. What Pollux reads from the files, from the archive after any
sequence of syncs, and from a restored home must be that truth: the prompts, the fate of every message, the tokens of
every model call, and every tool call with the prompt that it belongs to.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests import builders
from tests.recorder.model import (
    ACTIVE,
    CHECKPOINTS,
    DOCUMENT,
    FUSING,
    LOG,
    NEWEST,
    Action,
    Answer,
    Ask,
    Call,
    Clear,
    Client,
    Compress,
    Import,
    Load,
    Mask,
    Notice,
    Release,
    Resume,
    Rewind,
    Said,
    Save,
    Shell,
    Start,
    Truth,
)
from tests.recorder.strategies import Conversation, conversations
from tests.refreshing import refresh

from pollux.archive import open_session, readings, restore
from pollux.archive.store import open_archive
from pollux.model import Origin, Session
from pollux.sessions import reader
from pollux.sessions.grouping import OpenSession
from pollux.sessions.homes import Home
from pollux.sessions.locate import locate

IS_LONG = bool(os.environ.get("POLLUX_LONG"))
N_FROM_FILES = 4000 if IS_LONG else 250
N_FROM_ARCHIVE = 1500 if IS_LONG else 80
N_RESTORED = 800 if IS_LONG else 50
NOW = datetime(2026, 12, 31, 8, tzinfo=UTC)


def examples(count: int) -> settings:
    return settings(max_examples=count, suppress_health_check=list(HealthCheck))


@dataclass
class Told:
    """What is told about the messages of one session, by the model or by Pollux."""

    prompts: list[str] = field(default_factory=list)
    fates: dict[str, str] = field(default_factory=dict)
    ids: set[str] = field(default_factory=set)
    billed: dict[str, int] = field(default_factory=dict)
    """Tokens by message."""
    active: dict[str, int] = field(default_factory=dict)
    calls: list[tuple[str, str, str, str, str | None]] = field(default_factory=list)
    """Message, call, name, status and prompt of each tool call."""

    n_calls: int = 0
    """As a list shows it: the calls that the session made itself, not those that it imported or loaded."""


READ, DECLINED, STOPPED = Call(), Call(outcome="declined"), Call(outcome="cancelled")
ANEW = Call(id="call_0")
END = Answer("End.")
NOTICED = Answer("", (READ,), notice="Heads up.")
CUT, FAILED = Answer(end="cut"), Answer(end="failed")
HARD: dict[str, tuple[Release, list[Action]]] = {
    "a tool declined in the answer to the first prompt": (NEWEST, [Ask("P", (Answer("A", (DECLINED,)),))]),
    "the same prompt fused twice": (
        NEWEST,
        [Ask("P", (Answer("A", (DECLINED,)),)), Ask("P", (Answer("B", (DECLINED,)),))],
    ),
    "a declined call in a message of its own": (
        NEWEST,
        [Ask("P", (Answer("", (READ,)), Answer("", (DECLINED,), notice="Heads up.")))],
    ),
    "a cancelled request whose calls have a message of their own": (NEWEST, [Ask("P", (NOTICED, CUT))]),
    "a lost answer whose calls are compressed": (FUSING, [Ask("P", (NOTICED, END)), Resume(0), Compress(0)]),
    "a lost answer whose calls are rewound": (FUSING, [Ask("P", (NOTICED, CUT)), Mask(), Rewind(1)]),
    "call IDs that begin anew, rewound": (
        NEWEST,
        [Ask("P", (Answer("", (ANEW,)), Answer("A", (ANEW,)), END)), Rewind(1)],
    ),
    "call IDs that begin anew, recorded again": (
        FUSING,
        [Ask("P", (Answer("A", (ANEW,)), CUT)), Rewind(1), Ask("Q", (Answer("", (ANEW,)), CUT)), Mask()],
    ),
    "call IDs that begin anew after a cancelled call": (
        NEWEST,
        [
            Ask("P", (Answer("", (replace(STOPPED, id="call_0"),)),)),
            Ask("Q", (Answer("A", (ANEW,)), CUT)),
            Mask(),
        ],
    ),
    "call IDs that begin anew, compressed after a resume": (
        CHECKPOINTS,
        [
            Ask("P", (Answer("", (ANEW,)), Answer("A"))),
            Ask("Q", (Answer("", (ANEW,)), Answer("B"))),
            Resume(0),
            Compress(1),
        ],
    ),
    "an answer with a call that says what the next one says": (
        CHECKPOINTS,
        [Ask("P", (Answer("Fine.", (READ,)), Answer("Fine."))), Mask()],
    ),
    "a response that nobody answered, fused with the next prompt": (
        NEWEST,
        [Ask("P", (Answer("", (STOPPED,)),)), Ask("Q", (END,)), Resume(0), Mask()],
    ),
    "a saved conversation in place of a cancelled prompt": (
        CHECKPOINTS,
        [Ask("P", (CUT,)), Save("here"), Ask("Q", (CUT,)), Load("here")],
    ),
    "a saved conversation in place of a compressed one": (
        CHECKPOINTS,
        [Ask("P", (END,)), Save("here"), Ask("Q", (Answer("A"),)), Compress(1), Ask("R", (Answer("B"),)), Load("here")],
    ),
    "a dropped answer with the words of one that is loaded": (
        NEWEST,
        [
            Ask("P", (END,)),
            Rewind(0),
            Ask("Q", (END,)),
            Save("here"),
            Notice("x"),
            Ask("R", (Answer("A"),)),
            Load("here"),
        ],
    ),
    "the first chunk of an answer, resumed by a later release": (LOG, [Ask("P", (NOTICED, END)), Resume(0, release=2)]),
    "the first chunk of an answer, rewound": (
        DOCUMENT,
        [Ask("P", (NOTICED, END)), Resume(0, release=4), Rewind(1)],
    ),
    "a shell command fused with the preamble of another session": (
        FUSING,
        [Ask("O", (END,)), Clear(), Shell("ls"), Ask("P", (Answer("A"),)), Save("here"), Start(), Load("here")],
    ),
    "an import with equal answers": (
        NEWEST,
        [Ask("P", (END,)), Ask("Q", (END,)), Resume(0), Import(0)],
    ),
    "an import with a tool response twice and equal prompts": (
        FUSING,
        [Ask("P", (Answer("A", (DECLINED,)),)), Import(0), Ask("P", (END,)), Import(1)],
    ),
}
"""Small conversations that are hard to tell; most of them were once told wrong."""


@pytest.mark.parametrize("name", HARD)
def test_hard_conversation_is_read_correctly(name: str, tmp_path: Path) -> None:
    release, actions = HARD[name]
    client = Client(release)
    for action in actions:
        assert client.do(action)
    home = builders.home(tmp_path)
    _put(home, client.files)
    _check(client, _from_files(home), [client.files])


@examples(N_FROM_FILES)
@given(conversations())
def test_files_tell_the_truth(conversation: Conversation) -> None:
    client = conversation.played()
    with tempfile.TemporaryDirectory() as folder:
        home = builders.home(Path(folder))
        _put(home, client.files)
        _check(client, _from_files(home), [client.files])


@examples(N_FROM_ARCHIVE)
@given(conversations(), st.data())
def test_archive_tells_the_truth_after_any_syncs(conversation: Conversation, data: st.DataObject) -> None:
    client = conversation.played()
    stops = data.draw(st.dictionaries(st.integers(1, len(client.writes)), st.floats(0, 1), max_size=6), label="stops")
    worth = data.draw(st.sampled_from([0, readings.SNAPSHOT_SIZE]), label="bytes worth a snapshot")
    with (
        tempfile.TemporaryDirectory() as folder,
        open_archive(Path(folder) / "archive.db") as archive,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(readings, "SNAPSHOT_SIZE", worth)
        home = builders.home(Path(folder))
        states = []
        for files in _states(client, stops):
            _put(home, files)
            refresh(archive, [home])
            states.append(files)
        found = _from_archive(archive.database, home)
        _check(client, found, states)
        _check_facts(archive.database, found)


@examples(N_RESTORED)
@given(conversations(max_size=8))
def test_restored_home_tells_the_truth(conversation: Conversation) -> None:
    client = conversation.played()
    with tempfile.TemporaryDirectory() as folder, open_archive(Path(folder) / "archive.db") as archive:
        home, other = builders.home(Path(folder) / "one"), builders.home(Path(folder) / "two")
        _put(home, client.files)
        refresh(archive, [home])
        shutil.rmtree(home.tmp / "webapp" / "chats")
        builders.chats(Path(folder) / "two")
        for session in open_session.history(archive.database, refresh(archive, [home]).located).main:
            if _has_state(client, session.id):
                plan = restore.plan(archive.database, session, [home], now=NOW, to=other)
                restore.write_plan(plan)
        _check(client, _from_files(other), [client.files], is_restored=True)


def _put(home: Home, files: dict[str, bytes]) -> None:
    project = builders.chats(home.root.parent).parent
    for path, data in files.items():
        builders.put(project / path, data)


def _states(client: Client, stops: dict[int, float]) -> Iterator[dict[str, bytes]]:
    """Yield the files as they are in the middle of some writes, and at the end.

    A document is looked at between actions only: a rewind takes away for good what was not in it when it was archived.
    """
    files: dict[str, bytes] = {}
    is_due = False
    for n, write in enumerate(client.writes, 1):
        before = files.get(write.path, b"")
        if n in stops and not write.is_whole:
            yield files | {write.path: before + write.data[: round(stops[n] * len(write.data))]}
        files[write.path] = write.data if write.is_whole else before + write.data
        is_due = is_due or (n in stops and write.is_whole)
        if is_due and n in client.ends:
            yield dict(files)
            is_due = False
    yield files


def _from_files(home: Home) -> list[tuple[Session, OpenSession]]:
    return [(session, reader.opened(session)) for session in reader.history([home]).sessions]


def _from_archive(database: sqlite3.Connection, home: Home) -> list[tuple[Session, OpenSession]]:
    found = open_session.history(database, locate([home]))
    return [(session, open_session.open_session(database, session)) for session in found.sessions]


def _has_state(client: Client, id_: str) -> bool:
    """Return whether the client could resume a session: what is empty, or has lost its file, is not restored."""
    truth = client.truths[id_]
    return client.can_be_read(id_) and any(
        said.role == "answer" and said.fate == ACTIVE for said in truth.said.values()
    )


def _check(
    client: Client,
    found: Iterable[tuple[Session, OpenSession]],
    states: list[dict[str, bytes]],
    *,
    is_restored: bool = False,
) -> None:
    """Compare what Pollux found with the truth, as far as it was ever in the files that Pollux saw."""
    seen = b"\n".join(data for files in states for data in files.values())
    wanted = [one for one in client.truths.values() if not is_restored or _has_state(client, one.parent or one.id)]
    ids = {truth.id for truth in wanted}
    truths = {truth.id: _expected(truth, seen, is_copy=truth.source in ids) for truth in wanted}
    truths = {id_: told for id_, told in truths.items() if told.ids}
    found = [(session, group) for session, group in found if session.id in truths]
    told = {session.id: _told(client.truths[session.id], session, group) for session, group in found}
    assert told.keys() == truths.keys()
    for id_, truth in truths.items():
        ours = told[id_]
        assert ours.ids == truth.ids, id_
        assert ours.prompts == truth.prompts, id_
        assert ours.fates == truth.fates, id_
        assert ours.calls == truth.calls, id_
        assert ours.active == truth.active, id_
    billed = Counter(call.message_id for session, _ in found for call in session.calls)
    assert max(billed.values(), default=0) <= 1
    tokens = {call.message_id: call.tokens.total for session, _ in found for call in session.calls}
    assert tokens == {id_: count for truth in truths.values() for id_, count in truth.billed.items()}
    for session, _ in found:
        truth = truths[session.id]
        assert (session.counts.get("user", 0), session.tool_calls) == (len(truth.prompts), truth.n_calls), session.id


_OF_THE_CLIENT = (Origin.SYNTHETIC, Origin.SESSION_CONTEXT, Origin.STATE_SNAPSHOT)
"""Texts that the client repeats word for word: nobody said them, and nobody counts them."""


def _is_imported_response(said: Said) -> bool:
    """Return whether a message is a response to a tool call that an import copied.

    The client may record such a response twice, and both again under new IDs when it masks their output. Nothing then
    tells whether the second is another copy of the first, so Pollux may show one of them only.
    """
    return said.role == "response" and said.is_imported


def _is_told(said: Said) -> bool:
    return said.role not in ("other", "notice") and not said.is_lost and not _is_imported_response(said)


def _expected(truth: Truth, seen: bytes, *, is_copy: bool) -> Told:
    """Return what Pollux should tell about a session; `is_copy` says that it was imported from one that is there."""
    told = Told()
    for said in truth.said.values():
        if said.id.encode() not in seen:
            continue  # a document was cut before anyone looked at it
        if said.role != "other" and not _is_imported_response(said):
            told.ids.add(said.id)
        if said.role == "prompt" and not truth.parent and not said.is_imported:
            told.prompts.append(said.text)
        if _is_told(said):
            told.fates[said.id] = said.fate
        if said.tokens and not (said.is_imported and is_copy):  # billed where it was asked for
            told.billed[said.id] = said.tokens["total"]
            if said.fate == ACTIVE:
                told.active[said.id] = said.tokens["total"]
        for id_, (name, status) in said.calls.items() if not said.is_imported else ():
            told.n_calls += 1
            told.calls.append((said.id, id_, name, status, None if truth.parent else said.prompt))
    return told


def _told(truth: Truth, session: Session, group: OpenSession) -> Told:
    """Return what Pollux tells about a session; what belongs to no one's words is left out."""
    told = Told()
    prompt: str | None = None
    for message in group.messages():
        said = truth.said.get(message.id)
        is_new = said is None and message.origin not in _OF_THE_CLIENT
        if is_new or (said is not None and said.role != "other" and not _is_imported_response(said)):
            told.ids.add(message.id)
        if message.origin == Origin.HUMAN:
            prompt = message.id
            told.prompts.append(message.text)
        if said is not None and _is_told(said):
            told.fates[message.id] = str(message.fate)
        is_own = said is None or not (said.role == "loaded" or said.is_imported)
        for call in message.tool_calls if is_own else ():
            told.calls.append((message.id, call.id or "", call.name, call.status, prompt))
    for one in session.calls:
        told.billed[one.message_id] = one.tokens.total
        if one.fate == "active":
            told.active[one.message_id] = one.tokens.total
    return told


def _check_facts(database: sqlite3.Connection, found: Iterable[tuple[Session, OpenSession]]) -> None:
    """Compare the tables with what is shown."""
    for session, group in found:
        messages = list(group.messages())
        rows = database.execute(
            "SELECT message_id, origin, fate FROM messages WHERE session_id = ? ORDER BY seq", (session.id,)
        ).fetchall()
        assert rows == [(one.id, str(one.origin), str(one.fate)) for one in messages]
        rows = database.execute(
            "SELECT message_id, call_id, status, fate FROM tool_calls WHERE session_id = ?", (session.id,)
        ).fetchall()
        shown = [
            (one.id, call.id, call.status, str(one.fate))
            for entry, one in zip(group.entries, messages, strict=True)
            for call in one.tool_calls
            if entry.tool_calls  # not loaded
        ]
        assert Counter(rows) == Counter(shown)
