"""How a session is continued in the client: in which folder, by which command, and what must be written first."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from pollux.archive import restore
from pollux.disk.placing import CollisionError
from pollux.errors import PolluxError
from pollux.library.client_command import client_home, command_line, resume_option
from pollux.library.references import load_session
from pollux.text.shell import quoted

if TYPE_CHECKING:
    from pollux.archive.restore import Plan
    from pollux.library.config import Config
    from pollux.library.snapshot import Snapshot
    from pollux.model import Session
    from pollux.reports.filters import Filter
    from pollux.sessions.homes import Home


class ResumePlan(msgspec.Struct, frozen=True):
    """How a session is continued."""

    id: str
    """The ID that the client resumes; another one than the session's own if that is in the way."""
    folder: str
    """Where the client must be started."""
    command: str
    """What to type."""
    option: str
    """The one word that the client is started with."""
    environ: Mapping[str, str]
    """The variables that the client is started with."""
    restore: Plan | None = None
    """What the client finds, or must be written first; None without an archive."""
    problems: tuple[str, ...] = ()
    """Why the client does not find the session."""
    notes: tuple[str, ...] = ()
    is_renamed: bool = False
    """Whether the session gets another ID."""

    @property
    def is_safe(self) -> bool:
        """Whether no release of the client deletes the session after it was resumed: it has a name of our own."""
        return self.restore is None or restore.is_restored(self.restore.main)

    def write(self) -> None:
        """Write the session back to where the client looks for it. Raises `RestoreError`."""
        if self.restore:
            restore.carry_out(self.restore)


def resume_plan(snapshot: Snapshot, reference: str, wanted: Filter, *, may_rename: bool) -> ResumePlan:
    """Return how the session that a reference names is continued.

    Args:
        snapshot: where to look.
        reference: the session.
        wanted: a filter that the reference is looked up within.
        may_rename: whether the session may get another ID if other files are in the way.

    """
    config = snapshot.config
    session = load_session(snapshot, reference, wanted)
    resume_option(session.id)  # refuse a bad ID before anything is looked up
    folder = _project_folder(session)
    plan, problems, is_renamed = _restore_plan(snapshot, session, may_rename=may_rename)
    home = plan.home if plan else _home(config, session)
    id_ = plan.id if plan else session.id
    place = client_home(home, config.environ, config.user_home)
    return ResumePlan(
        id_,
        folder,
        command_line(folder, id_, home, config.environ, config.user_home),
        resume_option(id_),
        {**config.environ, **({"GEMINI_CLI_HOME": str(place)} if place else {})},
        plan,
        problems,
        plan.notes if plan and not plan.files else (),
        is_renamed,
    )


def _restore_plan(
    snapshot: Snapshot, session: Session, *, may_rename: bool
) -> tuple[Plan | None, tuple[str, ...], bool]:
    """Return what the client finds or must be written first, why it does not find it, and whether under another ID."""
    if snapshot.archive is None:
        return None, (), False
    config, is_renamed = snapshot.config, False
    try:
        plan = restore.plan(snapshot.database, session, config.homes, now=config.clock())
    except CollisionError as error:
        if not may_rename:
            return None, (str(error),), False
        new_id = str(uuid.uuid4())
        plan = restore.plan(snapshot.database, session, config.homes, now=config.clock(), new_id=new_id)
        is_renamed = True
    hint = f"It is not where the client looks for it: `pollux restore {quoted(session.id)}` writes it back."
    return plan, (hint,) if plan.files else (), is_renamed


def _project_folder(session: Session) -> str:
    project = session.project
    if project.path is None:
        raise PolluxError(
            f"Nobody knows the folder of this session; `pollux projects` tells what is known of {project.name}."
        )
    if not os.path.isdir(project.path):  # noqa: PTH112  which does not fail where it may not look
        raise PolluxError(
            f"The folder of this session, {project.path}, is gone; make it again, since the client goes by its path."
        )
    return project.path


def _home(config: Config, session: Session) -> Home | None:
    for home in config.homes:
        if any(ref.path.is_relative_to(home.tmp) for ref in session.files):
            return home
    return None
