"""Which sessions the client will delete, when and why, by what is on the disk and in the archive."""
# ruff: noqa: PLC0415  imported when the question is asked

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pollux.library.freshness import Reporter, read_only
from pollux.sessions.projects.paths import is_project_hash
from pollux.text.unicode import sound

if TYPE_CHECKING:
    from pollux.library.snapshot import Snapshot
    from pollux.reports.status import ArchivedFile, FolderPolicy
    from pollux.sessions.client_settings import Policy, Settings
    from pollux.sessions.locate import Folder, Home, SessionFile
    from pollux.sessions.projects.resolve import Known
    from pollux.sessions.retention import Chat, Fate


@dataclass(slots=True)
class Forecast:
    """What the client's clean-up would do at its next start."""

    deletions: dict[Path, Fate] = field(default_factory=dict)
    by_key: dict[tuple[str, str], Fate] = field(default_factory=dict)
    """The same by home and path, as the tables have them."""
    archived: dict[Path, bool] = field(default_factory=dict)
    """The session files on the disk, and whether the archive has every byte of each."""
    policies: list[FolderPolicy] = field(default_factory=list)
    is_stable: bool = True
    """Whether archive and settings alone decide; not if a file was read from the disk or is always of now."""


def folder_policies(snapshot: Snapshot) -> list[FolderPolicy]:
    """Return what the client's settings say about deletion, for each project folder."""
    from pollux.reports.status import FolderPolicy

    settings = _SettingsReader(snapshot.config.environ)
    return [FolderPolicy(folder.path, *settings.policy(folder)) for folder in snapshot.located.folders]


def forecast(
    snapshot: Snapshot, now: datetime, report: Reporter, policies: list[FolderPolicy] | None = None
) -> Forecast:
    """Apply the client's clean-up rules to each project folder."""
    from pollux.reports.status import archive_key
    from pollux.sessions.retention import fates

    made = Forecast(policies=folder_policies(snapshot) if policies is None else policies)
    archived = _archived_files(snapshot)
    n_bytes, done = sum(file.size for file in snapshot.located.files), 0
    with report("examining") as progress:
        for folder, folder_policy in zip(snapshot.located.folders, made.policies, strict=True):
            policy = folder_policy.policy
            chats, keys = [], {}
            for file in folder.files:
                path, key = file.path, archive_key(file)
                known = archived.get(key)
                known = known if known and known.is_whole(file) else None
                made.archived[path] = known is not None
                if file.what != "leftover":
                    chats.append(_chat(file, path, known, now))
                    if not file.parent and (known is None or known.look is None or known.look.is_of_now):
                        made.is_stable = False
                    keys[path] = key if snapshot.is_archived else ("", sound(file.place))
                done += file.size
                progress(done, n_bytes)
            deletions = fates(chats, policy, now=now)
            made.deletions.update(deletions)
            for path, fate in deletions.items():
                made.by_key[keys[path]] = fate
    return made


def _archived_files(snapshot: Snapshot) -> dict[tuple[str, str], ArchivedFile]:
    """Return what the archive has, also if it lacks so much that sessions are read from their files."""
    from pollux.errors import PolluxError
    from pollux.reports.status import archived_files

    config = snapshot.config
    if snapshot.is_archived:
        return archived_files(snapshot.database, config.machine)
    if config.archive is None:
        return {}
    try:
        with read_only(config.archive) as archive:
            return archived_files(archive.database, config.machine)
    except PolluxError:  # there is none yet
        return {}


def deletion_times(snapshot: Snapshot, made: Forecast) -> dict[str, Fate]:
    """Return when and why the client deletes each session with messages that it deletes at all."""
    from pollux.reports.status import first_deletions

    times = first_deletions(snapshot.database, made.by_key)
    return times if snapshot.ids is None else {key: fate for key, fate in times.items() if key in snapshot.ids}


def _chat(file: SessionFile, path: Path, known: ArchivedFile | None, now: datetime) -> Chat:
    """Look at one file: in the archive if it has been read there, else on the disk."""
    from pollux.sessions.replay.reading import read
    from pollux.sessions.retention import Chat, chat, chat_from

    if file.parent:
        return Chat(path, file.parent, size=file.size)
    if known and known.look:
        return chat(known.look, file, path, now=now)
    try:
        return chat_from(read(path), file, now=now)
    except OSError:
        return Chat(path, is_readable=False, size=file.size)  # reported by the history already


class _SettingsReader:
    """Reads each file of settings once."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._files: dict[Path, Settings | None] = {}
        self._known: dict[Home, Known] = {}

    def policy(self, folder: Folder) -> tuple[str | None, Policy]:
        """Tell which project a folder belongs to, and what the client's settings say there."""
        from pollux.sessions import client_settings
        from pollux.sessions.projects import resolve
        from pollux.sessions.retention import HASHED

        if is_project_hash(folder.name) and not folder.has_marker:
            return None, client_settings.Policy(off=HASHED)
        home = folder.home
        if home not in self._known:
            self._known[home] = resolve.known_paths(home.root, home.tmp, home.link_limit)
        claim = self._known[home].by_folder.get(folder.name)
        project = claim.path if claim else None
        return project, client_settings.policy(list(self._layers(home, project)))

    def _layers(self, home: Home, project: str | None) -> Iterator[Settings]:
        """Yield the settings that count in a project, the strongest last."""
        from pollux.sessions.client_settings import is_trusted

        defaults, system = _system_settings(self._environ)
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
                self._files[path] = settings_from(str(path), read_side_file(path, within=within), self._environ)
            except OSError as error:
                self._files[path] = None if is_missing(error) else Settings(str(path), unread=error.strerror)
        return self._files[path]


def _system_settings(environ: Mapping[str, str]) -> tuple[Path, Path]:
    """Return where an administrator's defaults and an administrator's last word are."""
    folders = {"darwin": "/Library/Application Support/GeminiCli", "win32": "C:\\ProgramData\\gemini-cli"}
    system = Path(environ.get("GEMINI_CLI_SYSTEM_SETTINGS_PATH") or Path(_system_folder(folders), "settings.json"))
    defaults = environ.get("GEMINI_CLI_SYSTEM_DEFAULTS_PATH")
    return Path(defaults) if defaults else system.with_name("system-defaults.json"), system


def _system_folder(folders: dict[str, str]) -> str:
    return folders.get(sys.platform, "/etc/gemini-cli")
