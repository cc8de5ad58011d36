"""Pollux reads the messages, fates, tokens and tool calls of random conversations correctly.

The model of the client writes the files and the expected reading. What Pollux reads from the files, from the archive
after any sequence of syncs, and from a restored home must equal it: the prompts, the fate of each message, the tokens
of each model call, and each tool call with its prompt.
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
    Ask,
    Call,
    Clear,
    Compress,
    ImportSession,
    Load,
    Mask,
    MessageTruth,
    ModelAnswer,
    Notice,
    RecorderModel,
    Release,
    Resume,
    Rewind,
    Save,
    SessionTruth,
    Shell,
    Start,
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
class SessionReading:
    """The messages of one session, as the model expects them or as Pollux reads them."""

    prompts: list[str] = field(default_factory=list)
    fates: dict[str, str] = field(default_factory=dict)
    ids: set[str] = field(default_factory=set)
    billed: dict[str, int] = field(default_factory=dict)
    """Tokens by message."""
    active: dict[str, int] = field(default_factory=dict)
    calls: list[tuple[str, str, str, str, str | None]] = field(default_factory=list)
    """Message, call, name, status and prompt of each tool call."""

    n_calls: int = 0
    """The number of calls in a list of sessions, which excludes imported and loaded calls."""


READ, DECLINED, STOPPED = Call(), Call(outcome="declined"), Call(outcome="cancelled")
ANEW = Call(id="call_0")
END = ModelAnswer("End.")
NOTICED = ModelAnswer("", (READ,), notice="Heads up.")
CUT, FAILED = ModelAnswer(end="cut"), ModelAnswer(end="failed")
HARD: dict[str, tuple[Release, list[Action]]] = {
    "a tool declined in the answer to the first prompt": (NEWEST, [Ask("P", (ModelAnswer("A", (DECLINED,)),))]),
    "the same prompt fused twice": (
        NEWEST,
        [Ask("P", (ModelAnswer("A", (DECLINED,)),)), Ask("P", (ModelAnswer("B", (DECLINED,)),))],
    ),
    "a declined call in a message of its own": (
        NEWEST,
        [Ask("P", (ModelAnswer("", (READ,)), ModelAnswer("", (DECLINED,), notice="Heads up.")))],
    ),
    "a cancelled request whose calls have a message of their own": (NEWEST, [Ask("P", (NOTICED, CUT))]),
    "a lost answer whose calls are compressed": (FUSING, [Ask("P", (NOTICED, END)), Resume(0), Compress(0)]),
    "a lost answer whose calls are rewound": (FUSING, [Ask("P", (NOTICED, CUT)), Mask(), Rewind(1)]),
    "call IDs that begin anew, rewound": (
        NEWEST,
        [Ask("P", (ModelAnswer("", (ANEW,)), ModelAnswer("A", (ANEW,)), END)), Rewind(1)],
    ),
    "call IDs that begin anew, recorded again": (
        FUSING,
        [Ask("P", (ModelAnswer("A", (ANEW,)), CUT)), Rewind(1), Ask("Q", (ModelAnswer("", (ANEW,)), CUT)), Mask()],
    ),
    "call IDs that begin anew after a cancelled call": (
        NEWEST,
        [
            Ask("P", (ModelAnswer("", (replace(STOPPED, id="call_0"),)),)),
            Ask("Q", (ModelAnswer("A", (ANEW,)), CUT)),
            Mask(),
        ],
    ),
    "call IDs that begin anew, compressed after a resume": (
        CHECKPOINTS,
        [
            Ask("P", (ModelAnswer("", (ANEW,)), ModelAnswer("A"))),
            Ask("Q", (ModelAnswer("", (ANEW,)), ModelAnswer("B"))),
            Resume(0),
            Compress(1),
        ],
    ),
    "an answer with a call that says what the next one says": (
        CHECKPOINTS,
        [Ask("P", (ModelAnswer("Fine.", (READ,)), ModelAnswer("Fine."))), Mask()],
    ),
    "a response that nobody answered, fused with the next prompt": (
        NEWEST,
        [Ask("P", (ModelAnswer("", (STOPPED,)),)), Ask("Q", (END,)), Resume(0), Mask()],
    ),
    "a saved conversation in place of a cancelled prompt": (
        CHECKPOINTS,
        [Ask("P", (CUT,)), Save("here"), Ask("Q", (CUT,)), Load("here")],
    ),
    "a saved conversation in place of a compressed one": (
        CHECKPOINTS,
        [
            Ask("P", (END,)),
            Save("here"),
            Ask("Q", (ModelAnswer("A"),)),
            Compress(1),
            Ask("R", (ModelAnswer("B"),)),
            Load("here"),
        ],
    ),
    "a dropped answer with the words of one that is loaded": (
        NEWEST,
        [
            Ask("P", (END,)),
            Rewind(0),
            Ask("Q", (END,)),
            Save("here"),
            Notice("x"),
            Ask("R", (ModelAnswer("A"),)),
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
        [Ask("O", (END,)), Clear(), Shell("ls"), Ask("P", (ModelAnswer("A"),)), Save("here"), Start(), Load("here")],
    ),
    "an import with equal answers": (
        NEWEST,
        [Ask("P", (END,)), Ask("Q", (END,)), Resume(0), ImportSession(0)],
    ),
    "an import with a tool response twice and equal prompts": (
        FUSING,
        [Ask("P", (ModelAnswer("A", (DECLINED,)),)), ImportSession(0), Ask("P", (END,)), ImportSession(1)],
    ),
}
"""Small conversations that are hard to read; Pollux once read most of them incorrectly."""


@pytest.mark.parametrize("name", HARD)
def test_hard_conversation_is_read_correctly(name: str, tmp_path: Path) -> None:
    release, actions = HARD[name]
    client = RecorderModel(release)
    for action in actions:
        assert client.do(action)
    home = builders.home(tmp_path)
    _put(home, client.files)
    _check(client, _from_files(home), [client.files])


@examples(N_FROM_FILES)
@given(conversations())
def test_files_are_read_correctly(conversation: Conversation) -> None:
    client = conversation.played()
    with tempfile.TemporaryDirectory() as folder:
        home = builders.home(Path(folder))
        _put(home, client.files)
        _check(client, _from_files(home), [client.files])


@examples(N_FROM_ARCHIVE)
@given(conversations(), st.data())
def test_archive_is_correct_after_any_syncs(conversation: Conversation, data: st.DataObject) -> None:
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
        sessions = _from_archive(archive.database, home)
        _check(client, sessions, states)
        _check_facts(archive.database, sessions)


@examples(N_RESTORED)
@given(conversations(max_size=8))
def test_restored_home_is_read_correctly(conversation: Conversation) -> None:
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


def _states(client: RecorderModel, stops: dict[int, float]) -> Iterator[dict[str, bytes]]:
    """Yield the files in the middle of some writes, and at the end.

    Documents are yielded only between actions, because a rewind removes messages that were never archived.
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
    history = open_session.history(database, locate([home]))
    return [(session, open_session.open_session(database, session)) for session in history.sessions]


def _has_state(client: RecorderModel, id_: str) -> bool:
    """Return whether the client could resume a session; empty sessions and those without a file are not restored."""
    truth = client.truths[id_]
    return client.can_be_read(id_) and any(
        message.role == "answer" and message.fate == ACTIVE for message in truth.messages.values()
    )


def _check(
    client: RecorderModel,
    sessions: Iterable[tuple[Session, OpenSession]],
    states: list[dict[str, bytes]],
    *,
    is_restored: bool = False,
) -> None:
    """Check that sessions equal the expected reading, as far as it was in the files that Pollux read."""
    seen = b"\n".join(data for files in states for data in files.values())
    selected = [one for one in client.truths.values() if not is_restored or _has_state(client, one.parent or one.id)]
    ids = {truth.id for truth in selected}
    truths = {truth.id: _expected_reading(truth, seen, is_copy=truth.source in ids) for truth in selected}
    truths = {id_: actual for id_, actual in truths.items() if actual.ids}
    sessions = [(session, group) for session, group in sessions if session.id in truths]
    actual = {session.id: _actual_reading(client.truths[session.id], session, group) for session, group in sessions}
    assert actual.keys() == truths.keys()
    for id_, truth in truths.items():
        ours = actual[id_]
        assert ours.ids == truth.ids, id_
        assert ours.prompts == truth.prompts, id_
        assert ours.fates == truth.fates, id_
        assert ours.calls == truth.calls, id_
        assert ours.active == truth.active, id_
    billed = Counter(call.message_id for session, _ in sessions for call in session.calls)
    assert max(billed.values(), default=0) <= 1
    tokens = {call.message_id: call.tokens.total for session, _ in sessions for call in session.calls}
    assert tokens == {id_: count for truth in truths.values() for id_, count in truth.billed.items()}
    for session, _ in sessions:
        truth = truths[session.id]
        assert (session.counts.get("user", 0), session.tool_calls) == (len(truth.prompts), truth.n_calls), session.id


_CLIENT_ORIGINS = (Origin.SYNTHETIC, Origin.SESSION_CONTEXT, Origin.STATE_SNAPSHOT)
"""Origins of texts that the client repeats, which are not counted as messages of a user or a model."""


def _is_imported_response(message: MessageTruth) -> bool:
    """Return whether a message is a response to a tool call that an import copied.

    The client may record such a response twice, and both again under new IDs when it masks their output. The files do
    not show whether the second is a copy of the first, so Pollux may show only one of them.
    """
    return message.role == "response" and message.is_imported


def _has_checked_fate(message: MessageTruth) -> bool:
    return message.role not in ("other", "notice") and not message.is_lost and not _is_imported_response(message)


def _expected_reading(truth: SessionTruth, seen: bytes, *, is_copy: bool) -> SessionReading:
    """Return the reading that Pollux should give; `is_copy` means that the source of an import is there too."""
    reading = SessionReading()
    for message in truth.messages.values():
        if message.id.encode() not in seen:
            continue  # a rewind cut the document before Pollux read it
        if message.role != "other" and not _is_imported_response(message):
            reading.ids.add(message.id)
        if message.role == "prompt" and not truth.parent and not message.is_imported:
            reading.prompts.append(message.text)
        if _has_checked_fate(message):
            reading.fates[message.id] = message.fate
        if message.tokens and not (message.is_imported and is_copy):  # billed in the session that made the call
            reading.billed[message.id] = message.tokens["total"]
            if message.fate == ACTIVE:
                reading.active[message.id] = message.tokens["total"]
        for id_, (name, status) in message.calls.items() if not message.is_imported else ():
            reading.n_calls += 1
            reading.calls.append((message.id, id_, name, status, None if truth.parent else message.prompt))
    return reading


def _actual_reading(truth: SessionTruth, session: Session, group: OpenSession) -> SessionReading:
    """Return the reading that Pollux gives, without texts of the client."""
    reading = SessionReading()
    prompt: str | None = None
    for message in group.messages():
        expected = truth.messages.get(message.id)
        is_new = expected is None and message.origin not in _CLIENT_ORIGINS
        if is_new or (expected is not None and expected.role != "other" and not _is_imported_response(expected)):
            reading.ids.add(message.id)
        if message.origin == Origin.HUMAN:
            prompt = message.id
            reading.prompts.append(message.text)
        if expected is not None and _has_checked_fate(expected):
            reading.fates[message.id] = str(message.fate)
        is_own = expected is None or not (expected.role == "loaded" or expected.is_imported)
        for call in message.tool_calls if is_own else ():
            reading.calls.append((message.id, call.id or "", call.name, call.status, prompt))
    for model_call in session.calls:
        reading.billed[model_call.message_id] = model_call.tokens.total
        if model_call.fate == "active":
            reading.active[model_call.message_id] = model_call.tokens.total
    return reading


def _check_facts(database: sqlite3.Connection, sessions: Iterable[tuple[Session, OpenSession]]) -> None:
    """Check that the fact tables equal the messages shown."""
    for session, group in sessions:
        messages = list(group.messages())
        rows = database.execute(
            "SELECT message_id, origin, fate FROM messages WHERE session_id = ? ORDER BY seq", (session.id,)
        ).fetchall()
        assert rows == [(message.id, str(message.origin), str(message.fate)) for message in messages]
        rows = database.execute(
            "SELECT message_id, call_id, status, fate FROM tool_calls WHERE session_id = ?", (session.id,)
        ).fetchall()
        shown = [
            (message.id, call.id, call.status, str(message.fate))
            for entry, message in zip(group.entries, messages, strict=True)
            for call in message.tool_calls
            if entry.tool_calls  # not loaded
        ]
        assert Counter(rows) == Counter(shown)
