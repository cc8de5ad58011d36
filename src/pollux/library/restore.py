"""Write a session back to a Gemini home."""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from pollux.archive import restore as archive_restore
from pollux.library.config import UsageError
from pollux.library.references import load_session
from pollux.library.resume import UnsafeIdError, command_line
from pollux.sessions.homes import homes
from pollux.text.escape import printable
from pollux.views.contracts.archive import RestorePlan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pollux.library.config import Config
    from pollux.library.snapshot import Snapshot
    from pollux.model import Session
    from pollux.reports.filters import Filter
    from pollux.sessions.homes import Home


def restore(
    snapshot: Snapshot, reference: str, wanted: Filter, *, to: Path | None, new_id: bool, dry_run: bool
) -> RestorePlan:
    """Write a session back to where the client looks for it, and return what was written.

    Never overwrites a file. Raises `RestoreError` if that would be necessary.

    Args:
        snapshot: of an archive.
        reference: the session.
        wanted: the reference is looked up among the sessions that match.
        to: a home other than the session's own.
        new_id: give the copy a new ID, which collides with no file.
        dry_run: write nothing.

    """
    if snapshot.archive is None:
        raise UsageError("Sessions are restored from the archive: leave --no-archive out.")
    config = snapshot.config
    session = load_session(snapshot, reference, wanted)
    plan = archive_restore.plan(
        snapshot.database,
        session,
        config.homes,
        now=config.clock(),
        to=_home(to, config) if to else None,
        new_id=str(uuid.uuid4()) if new_id else None,
    )
    is_written = bool(plan.files) and not dry_run
    if is_written:
        archive_restore.write_plan(plan)
    warnings = list(_warnings(session, plan.home))
    command = None
    try:
        command = command_line(session.project.path, plan.id, plan.home, config.environ, config.user_home)
    except UnsafeIdError as error:
        warnings.append(str(error))
    return RestorePlan(plan, session, command, is_written, tuple(warnings))


def _home(path: Path, config: Config) -> Home:
    try:
        return homes([path], config.environ, config.user_home)[0]
    except FileNotFoundError:
        raise UsageError(f"--to {path} is no folder; name one that contains .gemini, or .gemini itself.") from None


def _warnings(session: Session, home: Home) -> Iterator[str]:
    """Yield the reasons for which the client may not find the session."""
    path = session.project.path
    if path is None:
        yield f"The folder of its project {printable(session.project.name)} is unknown: start the client there."
    elif not os.path.isdir(path):  # noqa: PTH112  which does not fail where it may not look
        folder = printable(path)
        reason = "the client finds sessions by this path"
        yield f"The folder of its project, {folder}, does not exist. Create it before resuming: {reason}."
    if home.root.name != ".gemini":
        yield f"The client only looks into folders called .gemini: it will not find {home.root}."
