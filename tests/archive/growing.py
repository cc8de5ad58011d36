"""Homes whose files grow by bytes, are rewritten, truncated, replaced, deleted and created again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import strategies as st
from tests import builders

from pollux.archive import ingest, raw, refresh, schema
from pollux.archive.migrations import transaction
from pollux.archive.store import Archive
from pollux.model import Session
from pollux.sessions.locate import Home, id8_in, locate

CHILD = "0c1d2e3f-4a5b-4c6d-8e7f-901234567890"
THIRD = "c0ffee00-1111-4222-8333-444455556666"
PLACES = {
    "log": f"tmp/webapp/chats/{builders.NAME}.jsonl",
    "stub": "tmp/webapp/chats/session-2026-11-15T19-45-6ece72aa.jsonl",
    "copy": "tmp/webapp/chats/session-2026-11-15T19-50-abcdef12.jsonl",
    "subagent": f"tmp/webapp/chats/{builders.SESSION}/{CHILD}.jsonl",
    "document": f"tmp/{builders.HASH}/chats/session-2026-11-14T08-00-b3e2640d.json",
    "twin": f"tmp/{builders.HASH}/chats/session-2026-11-14T08-00-b3e2640d.jsonl",
    "third": "tmp/other/chats/session-2026-11-13T10-00-c0ffee00.jsonl",
    "output": "tmp/webapp/tool-outputs/run.txt",
}
IDS = {
    "log": builders.SESSION,
    "stub": builders.SESSION,
    "copy": builders.SESSION,
    "subagent": CHILD,
    "document": builders.OTHER,
    "twin": builders.OTHER,
    "third": THIRD,
}
APPENDED = ("log", "stub", "copy", "subagent", "twin", "third", "output")

Step = tuple[str, str, int, int]
"""The change, the file, the home, and the amount."""

steps: st.SearchStrategy[Step] = st.one_of(
    st.tuples(st.just("append"), st.sampled_from(APPENDED), st.integers(0, 1), st.integers(1, 3000)),
    st.tuples(st.just("lines"), st.sampled_from(APPENDED), st.integers(0, 1), st.integers(1, 6)),
    st.tuples(st.just("rewrite"), st.just("document"), st.integers(0, 1), st.integers(0, 40)),
    st.tuples(
        st.sampled_from(["shrink", "replace", "delete", "touch", "move"]),
        st.sampled_from([*PLACES]),
        st.integers(0, 1),
        st.integers(0, 9),
    ),
)


class Life:
    """Two homes, and the bytes that will be written to each file next."""

    def __init__(self, root: Path, born_ns: int = 0) -> None:
        """Create two homes in a folder; a second instance in the same folder needs a later `born_ns`."""
        self.roots = [root / "one", root / "two"]
        self.lossy: set[str] = set()
        """Sessions of which the disk has less than there once was; and what they are called without their header."""
        self._coming: dict[tuple[int, str], bytes] = {}
        self._written: dict[tuple[int, str], int] = {}
        self._tick = 1_800_000_000_000_000_000 + born_ns
        for home in range(len(self.roots)):
            self._mark(home)

    @property
    def homes(self) -> tuple[Home, ...]:
        return tuple(builders.home(root) for root in self.roots)

    def take(self, step: Step) -> None:
        what, name, home, amount = step
        actions: dict[str, Callable[[int, str, int], None]] = {
            "append": self._append,
            "lines": self._lines,
            "rewrite": self._rewrite,
            "shrink": self._shrink,
            "replace": self._replace,
            "delete": self._delete,
            "touch": self._touch,
            "move": self._move,
        }
        actions[what](home, name, amount)

    def files(self) -> Iterable[tuple[str, str, bytes]]:
        """Yield home, path and bytes of each existing file."""
        for root in self.roots:
            base = root / ".gemini"
            for path in sorted(base.rglob("*")):
                if path.is_file():
                    yield str(base), path.relative_to(base).as_posix(), path.read_bytes()

    def path(self, home: int, name: str) -> Path:
        return self.roots[home] / ".gemini" / PLACES[name]

    def _append(self, home: int, name: str, amount: int) -> None:
        while len(self._coming.get((home, name), b"")) < amount:
            self._coming[home, name] = self._coming.get((home, name), b"") + self._next(home, name)
        coming = self._coming[home, name]
        self._add(home, name, coming[:amount])
        self._coming[home, name] = coming[amount:]

    def _lines(self, home: int, name: str, amount: int) -> None:
        unfinished = self._coming.pop((home, name), b"")
        self._add(home, name, unfinished + b"".join(self._next(home, name) for _ in range(amount)))

    def _add(self, home: int, name: str, data: bytes) -> None:
        path = self.path(home, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        self._mark(home)
        with path.open("ab") as file:
            file.write(data)
        self._stamp(path)

    def _mark(self, home: int) -> None:
        """Write the marker with the path of the project, as the client does at each start."""
        marker = self.roots[home] / ".gemini" / "tmp" / "webapp" / ".project_root"
        if not marker.exists():
            builders.put(marker, builders.ROOT.encode())

    def _next(self, home: int, name: str) -> bytes:
        """Return the next line of a log."""
        n = self._written[home, name] = self._written.get((home, name), -1) + 1
        if name == "output":
            return b"line %d of a long output\n" % n
        if n == 0:
            kind = "subagent" if name == "subagent" else "main"
            return builders.log(builders.header(IDS[name], kind=kind))
        who = f"{home}-{name}"
        match n % 7:
            case 1 | 4:
                return builders.log(builders.user(f"u{n}-{who}", f"please do thing {n}", second=n))
            case 2:
                return builders.log(builders.gemini(f"g{n}-{who}", second=n, tokens=builders.tokens(n)))
            case 3:
                calls = [builders.call(f"c{n}", "run_shell_command", args={"command": f"make {n} && ls"})]
                return builders.log(
                    builders.gemini(f"g{n - 1}-{who}", second=n, tokens=builders.tokens(n), toolCalls=calls)
                )
            case 5:
                return builders.log(builders.updates(lastUpdated=builders.at(n), summary=f"Thing {n}"))
            case 6 if n % 2:
                return builders.log(builders.rewind(f"u{n - 2}-{who}"))
            case 6:
                return b'{"id": torn\n'
            case _:
                return builders.log(builders.gemini(f"g{n}-{who}", "é" * n, second=n, tokens=builders.tokens(n)))

    def _rewrite(self, home: int, name: str, amount: int) -> None:
        """Write a complete document, as old releases do at each turn, sometimes without some messages."""
        n = self._written[home, name] = self._written.get((home, name), 0) + 1
        keep, who = amount % 8, f"{home}-{name}"
        messages = []
        for number in range(n + keep):
            if number % 5 == amount % 5 and amount % 3 == 0:
                continue
            calls = [builders.call(f"c{number}")] if number % 4 == 1 else []
            prompt = builders.user(f"u{number}-{who}", f"ask {number}", second=number)
            answer = builders.gemini(f"g{number}-{who}", second=number, tokens=builders.tokens(number), toolCalls=calls)
            messages += [prompt, answer]
        data = builders.document(
            *messages, sessionId=IDS[name], startTime=builders.at(0), lastUpdated=builders.at(n), kind="main"
        )
        self._lose(name)
        path = self.path(home, name)
        builders.put(path, data)
        self._stamp(path)

    def _shrink(self, home: int, name: str, amount: int) -> None:
        path = self.path(home, name)
        if path.exists():
            os.truncate(path, path.stat().st_size * amount // 10)
            self._lose(name)
            self._stamp(path)

    def _replace(self, home: int, name: str, amount: int) -> None:
        """Replace a file by another one: the same, longer, or different in its middle."""
        path = self.path(home, name)
        if not path.exists():
            return
        data = path.read_bytes()
        match amount % 3:
            case 1:
                data += b"" if name == "document" else self._next(home, name)
            case 2:
                data = data[: len(data) // 2] + b"\n" + data[len(data) // 2 + 1 :]
                self._lose(name)
            case _:
                pass
        new = builders.put(path.with_name(path.name + ".tmp"), data)
        new.replace(path)
        self._stamp(path)

    def _delete(self, home: int, name: str, amount: int) -> None:
        """Delete a file; a later one starts again, or continues without a header."""
        self.path(home, name).unlink(missing_ok=True)
        self._lose(name)
        if amount % 2:
            self._written.pop((home, name), None)
            self._coming.pop((home, name), None)

    def _touch(self, home: int, name: str, amount: int) -> None:
        del amount
        if self.path(home, name).exists():
            self._stamp(self.path(home, name))

    def _move(self, home: int, name: str, amount: int) -> None:
        """Move the project folder away, or back."""
        del name, amount
        folder = self.roots[home] / ".gemini" / "tmp" / "webapp"
        away = self.roots[home] / "away"
        if not away.exists():
            folder.rename(away)
        elif not folder.exists():
            away.rename(folder)
        for session_name in IDS:
            self._lose(session_name)

    def _lose(self, name: str) -> None:
        for lost in ("subagent", "log") if name == "subagent" else (name,):
            if lost in IDS:
                self.lossy |= {IDS[lost], IDS[lost][:8], id8_in(PLACES[lost].rpartition("/")[2]) or ""}

    def _stamp(self, path: Path) -> None:
        """Set a different time for each change, because two within one tick of the clock look the same."""
        self._tick += 1_000
        os.utime(path, ns=(self._tick, self._tick))


def content(archive: Archive) -> dict[str, list[Any]]:
    """Return all facts by table, in a form that can be compared."""
    rows_by_table: dict[str, list[Any]] = {table: [*schema.rows(archive.database, table)] for table in schema.TABLES}
    del rows_by_table["session_digests"]  # of rows that are compared here
    rows_by_table["readings"] = [row[:2] for row in rows_by_table["readings"]]  # the rest is for going on with
    bodies = [msgspec.msgpack.decode(row[-1]) for row in rows_by_table["sessions"]]
    rows_by_table["projects"] += [body.pop("project") for body in bodies]
    rows_by_table["sessions"] = [(*row[:-1], body) for row, body in zip(rows_by_table["sessions"], bodies, strict=True)]
    return rows_by_table


def rebuild(archive: Archive, homes: Iterable[Home]) -> None:
    """Delete the facts, and derive them from the raw bytes."""
    located = locate(homes)
    with transaction(archive.database):
        schema.reset(archive.database)
    ingest.derive_pending(archive, refresh.RefreshResult(located), memory={}, progress=lambda _done, _all: None)


def versions(archive: Archive) -> dict[tuple[str, str], list[bytes]]:
    """Return the bytes of all versions of all files."""
    contents: dict[tuple[str, str], list[bytes]] = {}
    rows = archive.database.execute(
        "SELECT files.home, files.path, versions.id FROM versions JOIN files ON files.id = versions.file_id "
        "ORDER BY versions.file_id, versions.number"
    ).fetchall()
    for home, path, version_id in rows:
        read = raw.reader(archive.database, version_id)
        contents.setdefault((home, path), []).append(read(0, read.size))
    return contents


def merge_all(archive: Archive) -> None:
    """Merge all small segments."""
    with transaction(archive.database):
        for (version_id,) in archive.database.execute("SELECT id FROM versions").fetchall():
            raw.merge(archive.database, version_id)


def comparable(session: Session) -> tuple[Any, ...]:
    """Return the fields of a session that a list shows."""
    calls = sorted((call.message_id, call.tokens) for call in session.calls)
    return session.title, session.first_prompt, session.last_prompt, session.counts, session.models, calls
