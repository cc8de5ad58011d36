"""What the client's clean-up would do at its next start, by what is on the disk and in the archive."""
# ruff: noqa: PLC0415  imported when a command runs

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pollux.cli.scope import progress

if TYPE_CHECKING:
    from pollux.archive.store import Archive
    from pollux.cli.scope import Scope
    from pollux.reports.status import FolderPolicy, KeptFile, Row
    from pollux.sessions.client_settings import Policy, Settings
    from pollux.sessions.locate import Folder, Home, Located, SessionFile
    from pollux.sessions.projects.resolve import Known
    from pollux.sessions.reader import History
    from pollux.sessions.retention import Chat, Fate

_HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(slots=True)
class Cleanup:
    """What was seen of the files and of the settings."""

    fates: dict[Path, Fate] = field(default_factory=dict)
    live: dict[Path, bool] = field(default_factory=dict)
    """The session files on the disk, and whether each is kept."""
    policies: list[FolderPolicy] = field(default_factory=list)


def cleanup(located: Located, archive: Archive | None, now: datetime) -> Cleanup:
    """Look at each folder as the client's clean-up does."""
    from pollux.reports.status import FolderPolicy, kept_files, key_of
    from pollux.sessions.retention import fates

    look = Cleanup()
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
                    chats.append(_chat(file, one, now))
                done += file.size
                tell(done, n_bytes)
            look.fates |= fates(chats, policy, now=now)
    return look


def _chat(file: SessionFile, kept: KeptFile | None, now: datetime) -> Chat:
    """Look at one file: in the archive if it has been read there, else on the disk."""
    from pollux.sessions.replay.reading import read
    from pollux.sessions.retention import Chat, chat, chat_from

    if file.parent:
        return Chat(file.path, file.parent, size=file.size)
    if kept and kept.look:
        return chat(kept.look, file, now=now)
    try:
        return chat_from(read(file.path), file, now=now)
    except OSError:
        return Chat(file.path, is_readable=False, size=file.size)  # reported by the history already
    except Exception:  # noqa: BLE001  a fault in Pollux, reported by the history; the client may read the file
        return Chat(file.path, size=file.size)


class _SettingsReader:
    """Reads each file of settings once."""

    def __init__(self) -> None:
        self._files: dict[Path, Settings | None] = {}
        self._known: dict[Home, Known] = {}

    def policy(self, folder: Folder) -> tuple[str | None, Policy]:
        """Tell which project a folder belongs to, and what the client's settings say there."""
        from pollux.sessions import client_settings
        from pollux.sessions.projects import resolve
        from pollux.sessions.retention import HASHED

        if _HASH.fullmatch(folder.name) and not folder.has_marker:
            return None, client_settings.Policy(off=HASHED)
        home = folder.home
        if home not in self._known:
            self._known[home] = resolve.known_paths(home)
        claim = self._known[home].by_folder.get(folder.name)
        project = claim.path if claim else None
        return project, client_settings.policy(list(self._layers(home, project)))

    def _layers(self, home: Home, project: str | None) -> Iterator[Settings]:
        """Yield the settings that count in a project, the strongest last."""
        from pollux.sessions.client_settings import is_trusted

        defaults, system = _system_settings()
        root = home.root.parent.parent / ".gemini" if home.how.endswith("sandbox") else home.root
        users = self._read(root / "settings.json", root if home.link_limit else None)
        below = [one for one in (self._read(defaults), users) if one]
        above = [one for one in (self._read(system),) if one]
        own = None
        if project and Path(project).is_absolute() and Path(project) != root.parent:
            own = self._read(Path(project, ".gemini", "settings.json"), Path(project))
        rules = self._read(home.root / "trustedFolders.json", home.link_limit)
        yield from below
        if own and project and is_trusted(project, [*below, *above], rules.value if rules else {}):
            yield own
        yield from above

    def _read(self, path: Path, within: Path | None = None) -> Settings | None:
        """Read a file of settings; no link may lead out of the folder that it must lie in."""
        from pollux.disk.regular_files import is_missing, read_side_file
        from pollux.sessions.client_settings import Settings, settings_from

        if path not in self._files:
            try:
                self._files[path] = settings_from(str(path), read_side_file(path, within=within), os.environ)
            except OSError as error:
                self._files[path] = None if is_missing(error) else Settings(str(path), unread=error.strerror)
        return self._files[path]


def _system_settings() -> tuple[Path, Path]:
    """Return where an administrator's defaults and an administrator's last word are."""
    folders = {"darwin": "/Library/Application Support/GeminiCli", "win32": "C:\\ProgramData\\gemini-cli"}
    system = Path(os.environ.get("GEMINI_CLI_SYSTEM_SETTINGS_PATH") or Path(_system_folder(folders), "settings.json"))
    defaults = os.environ.get("GEMINI_CLI_SYSTEM_DEFAULTS_PATH")
    return Path(defaults) if defaults else system.with_name("system-defaults.json"), system


def _system_folder(folders: dict[str, str]) -> str:
    return folders.get(sys.platform, "/etc/gemini-cli")


def fates_of(scope: Scope, found: History, now: datetime) -> list[Row]:
    """Tell what becomes of each session; nothing without an archive, where every file would have to be read again."""
    from pollux.reports.status import status_rows

    if scope.archive is None:
        return []
    look = cleanup(found.located, scope.archive, now)
    return status_rows(found.sessions, look.fates, look.live, now=now)
