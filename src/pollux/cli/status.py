"""`pollux status`: what the client will delete, when and why, and what is kept of it."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pollux.cli import output
from pollux.cli.scope import Scope, options, progress

if TYPE_CHECKING:
    from pollux.archive.store import Archive
    from pollux.locate import Folder, Home, Located, SessionFile
    from pollux.model import Session
    from pollux.projects import Known
    from pollux.retention import Chat, Fate, Policy, Settings
    from pollux.sessions import History
    from pollux.views.status import FolderPolicy, KeptFile, Row

_HASH = re.compile(r"[0-9a-f]{64}")


@click.command()
@options()
@click.option("--all", "everything", is_flag=True, help="Also what goes later, what stays, and empty stubs.")
def command(scope: Scope, *, everything: bool) -> None:
    """Say what the client will delete at its next start, and whether it is kept.

    Gemini CLI deletes sessions at every start in their project: after 30 days unless its settings say otherwise, and
    much earlier what it cannot use. Ends with status 1 if something goes within a week that is not in the archive.

    \b
      pollux status
      pollux status --project . --all
      pollux status --json | jq '.sessions[] | select(.at_risk)'
    """
    from pollux.sessions import History
    from pollux.views.status import status_json, status_rows

    now = output.now()
    found = scope.history()
    sessions = (*found.sessions, *_only_on_disk(scope, found))
    look = _look(found.located, scope.archive, now)
    chosen = scope.sessions(History(found.located, sessions), everything=True)
    rows = status_rows(chosen, look.fates, look.live, now=now)
    if scope.as_json:
        place = scope.archive.path if scope.archive else None
        output.print_json(status_json(rows, look.policies, found.problems, archive=place, now=now))
    else:
        _print([row for row in rows if everything or _is_telling(row)], rows, look, now)
        _say(rows, look)
    click.get_current_context().exit(1 if any(row.is_at_risk for row in rows) else 0)


@dataclass(slots=True)
class _Look:
    """What was seen of the files and of the settings."""

    fates: dict[Path, Fate] = field(default_factory=dict)
    live: dict[Path, bool] = field(default_factory=dict)
    """The session files on the disk, and whether each is kept."""
    policies: list[FolderPolicy] = field(default_factory=list)


def _only_on_disk(scope: Scope, found: History) -> list[Session]:
    """Return what an archive that cannot be written has never seen."""
    from pollux.sessions import history

    if scope.archive is None or scope.archive.is_writable:
        return []
    known = {one.id for one in found.sessions}
    return [one for one in history(scope.places()).sessions if one.id not in known]


def _look(located: Located, archive: Archive | None, now: datetime) -> _Look:
    """Look at each folder as the client's clean-up does."""
    from pollux.retention import fates
    from pollux.views.status import FolderPolicy, kept_files, key_of

    look = _Look()
    kept = kept_files(archive.database) if archive else {}
    reader = _SettingsReader()
    n_bytes, done = sum(file.size for file in located.files), 0
    with progress("examining") as tell:
        for folder in located.folders:
            project, policy = reader.policy(folder)
            look.policies.append(FolderPolicy(folder.path, project, policy))
            chats = []
            for file in folder.files:
                one = kept.get(key_of(file))
                one = one if one and one.is_whole(file) else None
                look.live[file.path] = one is not None
                if file.what != "leftover":
                    chats.append(_chat(file, one, archive, now))
                done += file.size
                tell(done, n_bytes)
            look.fates |= fates(chats, policy, now=now)
    return look


def _chat(file: SessionFile, kept: KeptFile | None, archive: Archive | None, now: datetime) -> Chat:
    """Look at one file: in the archive if it has been read there, else on the disk."""
    from pollux.archive.readings import source_of, taken_up
    from pollux.reading import read
    from pollux.retention import Chat, chat_from

    if file.parent:
        return Chat(file.path, file.parent, size=file.size)
    if archive and kept and kept.snapshot:
        return chat_from(taken_up(source_of(archive.database, kept.version_id), kept.snapshot), file, now=now)
    try:
        return chat_from(read(file.path), file, now=now)
    except OSError:
        return Chat(file.path, is_readable=False, size=file.size)  # reported by the history already


class _SettingsReader:
    """Reads each file of settings once."""

    def __init__(self) -> None:
        self._files: dict[Path, Settings | None] = {}
        self._known: dict[Home, Known] = {}

    def policy(self, folder: Folder) -> tuple[str | None, Policy]:
        """Tell which project a folder belongs to, and what the client's settings say there."""
        from pollux import projects, retention

        if _HASH.fullmatch(folder.name) and not folder.has_marker:
            return None, retention.Policy(off=retention.HASHED)
        home = folder.home
        if home not in self._known:
            self._known[home] = projects.known_paths(home)
        claim = self._known[home].by_folder.get(folder.name)
        project = claim.path if claim else None
        return project, retention.policy(list(self._layers(home, project)))

    def _layers(self, home: Home, project: str | None) -> Iterator[Settings]:
        """Give the settings that count in a project, the strongest last."""
        from pollux.retention import is_trusted

        defaults, system = _system_settings()
        root = home.root.parent.parent / ".gemini" if home.how.endswith("sandbox") else home.root
        below = [one for path in (defaults, root / "settings.json") if (one := self._read(path))]
        above = [one for path in (system,) if (one := self._read(path))]
        own = None
        if project and Path(project).is_absolute() and Path(project) != root.parent:
            own = self._read(Path(project, ".gemini", "settings.json"))
        rules = self._read(home.root / "trustedFolders.json")
        yield from below
        if own and project and is_trusted(project, [*below, *above], rules.value if rules else {}):
            yield own
        yield from above

    def _read(self, path: Path) -> Settings | None:
        from pollux.retention import settings_from

        if path not in self._files:
            try:
                self._files[path] = settings_from(str(path), path.read_bytes(), os.environ)
            except OSError:
                self._files[path] = None
        return self._files[path]


def _system_settings() -> tuple[Path, Path]:
    """Return where an administrator's defaults and an administrator's last word are."""
    folders = {"darwin": "/Library/Application Support/GeminiCli", "win32": "C:\\ProgramData\\gemini-cli"}
    system = Path(os.environ.get("GEMINI_CLI_SYSTEM_SETTINGS_PATH") or Path(_system_folder(folders), "settings.json"))
    defaults = os.environ.get("GEMINI_CLI_SYSTEM_DEFAULTS_PATH")
    return Path(defaults) if defaults else system.with_name("system-defaults.json"), system


def _system_folder(folders: dict[str, str]) -> str:
    return folders.get(sys.platform, "/etc/gemini-cli")


def _is_telling(row: Row) -> bool:
    return row.turn in ("next", "soon", "gone") and not row.session.is_stub


def _print(shown: Sequence[Row], rows: Sequence[Row], look: _Look, now: datetime) -> None:
    from pollux.terminal.status import status_lines, status_tables, summary

    if not output.is_terminal():
        output.write(one.encode("utf-8", "replace") for one in status_lines(shown, look.policies, now=now))
        return
    console = output.console()
    for title, table in status_tables(shown, look.policies, now=now, width=output.width()):
        console.print(title, style="bold")
        console.print(table)
        console.print()
    console.print(summary(rows))


def _say(rows: Sequence[Row], look: _Look) -> None:
    from pollux.retention import CLIENT
    from pollux.terminal.status import remarks, summary

    if not output.is_terminal():
        output.words(summary(rows))
    for text in dict.fromkeys(text for one in look.policies for text in remarks(one)):
        output.words(text)
    output.words(f"By the rules of Gemini CLI {CLIENT}, the newest known: older releases delete less.")
    if not all(row.is_kept for row in rows):
        output.words("`pollux sync` keeps what is not kept yet.")
