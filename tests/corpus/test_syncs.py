"""After any sequence of syncs, real sessions are equal in the archive and in their files."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

from tests.corpus.trees import Tree, every_tree
from tests.refreshing import refresh

from pollux.archive import open_session, store
from pollux.model import Session
from pollux.sessions import reader
from pollux.sessions.grouping import OpenSession
from pollux.sessions.homes import homes

_SYNCS = 3


@every_tree
def test_archive_agrees_with_the_files_after_any_syncs(tree: Tree, tmp_path: Path) -> None:
    root = tmp_path / ".gemini"
    if (tree.folder / "gemini").is_dir():  # 0.3 wrote none
        shutil.copytree(tree.folder / "gemini", root, symlinks=True)
    root.mkdir(exist_ok=True)
    places = homes([root], {}, tmp_path)
    contents = {path: path.read_bytes() for path in root.rglob("*.jsonl") if path.is_file() and not path.is_symlink()}
    choose = random.Random(tree.name)  # noqa: S311  the same cuts in every run
    ends = {path: sorted(choose.randrange(len(data) + 1) for _ in range(_SYNCS - 1)) for path, data in contents.items()}
    with store.open_archive(tmp_path / "archive.db") as archive:
        for number in range(_SYNCS):
            for path, data in contents.items():
                path.write_bytes(data[: ends[path][number]] if number < _SYNCS - 1 else data)
            located = refresh(archive, places).located
        archived = open_session.history(archive.database, located)
        from_archive = {
            session.id: facts_of(session, open_session.open_session(archive.database, session))
            for session in archived.sessions
        }
    from_files = {session.id: facts_of(session, reader.opened(session)) for session in reader.history(places).sessions}
    assert from_archive == from_files


def facts_of(session: Session, group: OpenSession) -> dict[str, Any]:
    """Return the facts of lists and transcripts: messages with fates, calls with counts, and links."""
    tools = {message.id: [(call.id, call.status) for call in message.tool_calls] for message in group.messages()}
    return {
        "messages": [(entry.id, entry.kind, str(entry.origin), str(entry.fate)) for entry in group.entries],
        "tools": tools,
        "calls": sorted((call.message_id, str(call.fate), str(call.tokens)) for call in session.calls),
        "counts": (dict(session.counts), dict(session.fates), session.tool_calls, session.models),
        "links": (session.parent, session.parent_call, sorted(session.children)),
    }
