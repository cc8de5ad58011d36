"""The session that an argument names: an id, its beginning, a stem, `latest`, `@2`, or a file."""

from __future__ import annotations

import os
from pathlib import Path

from pollux.cli.scope import Scope
from pollux.grouping import Group
from pollux.model import Session
from pollux.sessions import from_file, opened


def meant(scope: Scope, wanted: str) -> tuple[Session, Group, dict[str, Session]]:
    """Open a session; the last value holds all sessions that were read on the way, by id."""
    if is_file(wanted):
        session, group = from_file(Path(wanted))
        return session, group, {session.id: session}
    found = scope.history()
    session = scope.session(found, wanted)
    return session, opened(session), {one.id: one for one in found.sessions}


def is_file(wanted: str) -> bool:
    """Tell whether an argument means a file: it names one, or can mean nothing else."""
    looks_like_path = os.sep in wanted or wanted.endswith((".json", ".jsonl"))
    return Path(wanted).is_file() or (looks_like_path and ":" not in wanted)
