"""A session with its files and subagents, from the session at the top down."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pollux.library.references import Ref, load_families, load_session, open_file
from pollux.model import Session
from pollux.sessions.family import SessionTree, build_tree, root

if TYPE_CHECKING:
    from pollux.library.snapshot import Snapshot
    from pollux.reports.filters import Filter


def session_tree(snapshot: Snapshot, reference: Ref, wanted: Filter) -> SessionTree:
    """Return the family of the session that a reference names; a file from elsewhere contains a session of its own."""
    if isinstance(reference, Path):
        session = _owner(snapshot, reference)
        if session is None:
            return SessionTree(open_file(reference)[0])
    else:
        session = load_session(snapshot, reference, wanted)
    family = load_families(snapshot, [session.id], [session])
    return build_tree(root(session, family), family)


def _owner(snapshot: Snapshot, path: Path) -> Session | None:
    """Return the session that a file is part of."""
    real = path.resolve()
    candidates = snapshot.sessions.load(snapshot.sessions.with_file(path.name))
    for session in candidates:
        is_in_scope = snapshot.ids is None or session.id in snapshot.ids
        if is_in_scope and any(ref.path.resolve() == real for ref in session.files):
            return session
    return None
