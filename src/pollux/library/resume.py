"""Plan how to continue a session in the client: the folder, the command, and the files to restore first."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pollux.archive import restore
from pollux.disk.write import CollisionError
from pollux.errors import PolluxError
from pollux.library.references import load_session
from pollux.text import shell
from pollux.text.shell import quoted

if TYPE_CHECKING:
    from pollux.archive.restore import WritePlan
    from pollux.library.config import Config
    from pollux.library.snapshot import Snapshot
    from pollux.model import Session
    from pollux.reports.filters import Filter
    from pollux.sessions.homes import Home

CLIENT = "gemini"
_WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\")
_LONGEST_ID = 60
"""Characters of an ID that an error message shows."""


class UnsafeIdError(PolluxError):
    """The client would misread the ID of a session, for example as an option."""

    status = 2

    def __init__(self, id_: str) -> None:
        """Build the message from the ID."""
        shown = id_ if len(id_) <= _LONGEST_ID else f"{id_[:_LONGEST_ID]}…"
        super().__init__(
            f"The client cannot be started with the session ID {shown!r}: it is empty, begins with a dash or contains "
            "control characters. Run `pollux restore --new-id` to write a copy with another ID."
        )


class ResumePlan(msgspec.Struct, frozen=True):
    """How a session is continued."""

    id: str
    """The ID that the client resumes; a new one if files of the session are in the way."""
    folder: str
    """The folder in which to start the client."""
    command: str
    """The complete command line."""
    option: str
    """The client's only argument."""
    environ: Mapping[str, str]
    """Environment variables for the client."""
    restore: WritePlan | None = None
    """The files that must be written first, if any; None without an archive."""
    problems: tuple[str, ...] = ()
    """Why the client would not find the session."""
    notes: tuple[str, ...] = ()
    is_renamed: bool = False
    """Whether the session gets a new ID."""

    @property
    def is_safe(self) -> bool:
        """Whether its file has a name that no release of the client deletes after a resume."""
        return self.restore is None or restore.is_restored(self.restore.main)

    def write(self) -> None:
        """Write the session back to where the client looks for it. Raises `RestoreError`."""
        if self.restore:
            restore.write_plan(self.restore)


def resume_plan(snapshot: Snapshot, reference: str, wanted: Filter, *, may_rename: bool) -> ResumePlan:
    """Return the plan for the session that a reference names.

    Args:
        snapshot: to look it up in.
        reference: the session.
        wanted: the reference is looked up among the sessions that match.
        may_rename: give the session a new ID if other files are in the way.

    """
    config = snapshot.config
    session = load_session(snapshot, reference, wanted, with_calls=False)
    resume_option(session.id)  # refuse an unsafe ID first
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
) -> tuple[WritePlan | None, tuple[str, ...], bool]:
    """Return the files to write first, why the client does not find the session, and whether it gets a new ID."""
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
    hint = f"The client would not find this session. Run `pollux restore {quoted(session.id)}` first."
    return plan, (hint,) if plan.files else (), is_renamed


def _project_folder(session: Session) -> str:
    project = session.project
    if project.path is None:
        raise PolluxError(
            f"The folder of this session's project is unknown. Run `pollux projects` to list {project.name} and others."
        )
    if not os.path.isdir(project.path):  # noqa: PTH112  Path.is_dir() raises PermissionError
        raise PolluxError(
            f"The project folder {project.path} does not exist. Create it: the client finds sessions by this path."
        )
    return project.path


def _home(config: Config, session: Session) -> Home | None:
    for home in config.homes:
        if any(ref.path.is_relative_to(home.tmp) for ref in session.files):
            return home
    return None


def command_line(folder: str | None, id_: str, home: Home | None, environ: Mapping[str, str], user_home: Path) -> str:
    """Return the command line, for PowerShell if the folder is a Windows path, else for a POSIX shell.

    Raises `UnsafeIdError`.
    """
    is_windows = bool(folder and _WINDOWS.match(folder))
    quote = shell.powershell_quoted if is_windows else shell.quoted
    resume = f"{CLIENT} {quote(resume_option(id_))}"
    if (place := client_home(home, environ, user_home)) is not None:
        name = "$env:GEMINI_CLI_HOME = {}; {}" if is_windows else "GEMINI_CLI_HOME={} {}"
        resume = name.format(quote(str(place)), resume)
    if folder is None:
        return resume
    return f"cd -LiteralPath {quote(folder)}; {resume}" if is_windows else f"cd {quote(folder)} && {resume}"


def resume_option(id_: str) -> str:
    """Return the client's option that resumes a session. Raises `UnsafeIdError`.

    The ID comes from an untrusted file; passed as a separate argument, it could be an option such as `--yolo`.
    """
    if not id_ or id_.startswith("-") or not id_.isprintable():
        raise UnsafeIdError(id_)
    return f"--resume={id_}"


def client_home(home: Home | None, environ: Mapping[str, str], user_home: Path) -> Path | None:
    """Return the GEMINI_CLI_HOME with which the client reads a home; None if it reads it by default."""
    if home is None or home.root.name != ".gemini":
        return None
    usual = Path(environ.get("GEMINI_CLI_HOME") or user_home)
    if home.root.resolve() in ((usual / ".gemini").resolve(), (usual / ".cache" / ".gemini").resolve()):
        return None
    return home.root.parent
