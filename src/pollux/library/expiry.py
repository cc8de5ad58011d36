"""Forecast which sessions the client will delete, when and why."""
# ruff: noqa: PLC0415  imported when the question is asked

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pollux.library.freshness import Reporter, read_only
from pollux.reports.freshness import FreshnessState
from pollux.sessions.projects.paths import is_project_hash
from pollux.text.escape import escape_surrogates

if TYPE_CHECKING:
    from pollux.library.snapshot import Snapshot
    from pollux.reports.status import ArchivedState, FolderPolicy
    from pollux.sessions.client_settings import ClientSettings, RetentionPolicy
    from pollux.sessions.locate import Home, HomeScan, ProjectFolder, SessionFile
    from pollux.sessions.projects.resolve import ProjectClaims
    from pollux.sessions.retention import CleanupFile, Deletion


@dataclass(slots=True)
class Forecast:
    """What the client's clean-up would do at its next start."""

    deletions: dict[Path, Deletion] = field(default_factory=dict)
    by_key: dict[tuple[str, str], Deletion] = field(default_factory=dict)
    """The same by home and path, as in the tables."""
    archived: dict[Path, bool] = field(default_factory=dict)
    """Whether the archive has every byte of each session file."""
    policies: list[FolderPolicy] = field(default_factory=list)
    is_stable: bool = True
    """Whether archive and settings alone decide; not if a file was read from the disk or is always of now."""


def folder_policies(snapshot: Snapshot, scan: HomeScan | None = None) -> list[FolderPolicy]:
    """Return what the client's settings say about deletion, for each project folder of a snapshot, or of a scan."""
    from pollux.reports.status import FolderPolicy

    if scan is None and snapshot.policies is not None:
        return snapshot.policies
    settings = _SettingsReader(snapshot.config.environ)
    policies = [FolderPolicy(folder.path, *settings.policy(folder)) for folder in (scan or snapshot.scan).folders]
    if scan is None:
        snapshot.policies = policies
    return policies


def forecast(
    snapshot: Snapshot,
    now: datetime,
    report: Reporter,
    policies: list[FolderPolicy] | None = None,
    *,
    by_path: bool = True,
    of_folders: Collection[Path] | None = None,
) -> Forecast:
    """Apply the client's clean-up rules to each project folder.

    Without `by_path`, `deletions` is empty and `archived` has only the files that are not archived completely: a
    server has no room for a path of each file. `of_folders` limits the forecast to some project folders.

    While another process fills the archive, files that it has not read are left out: if they were read here, too, the
    first pages of the viewer would wait for as long as that process runs.
    """
    from pollux.reports.status import archive_key
    from pollux.sessions.retention import forecast_deletions

    located = snapshot.located if of_folders is None else _located_in(snapshot, of_folders)
    if policies is None or located is not snapshot.scan:  # which may have other folders
        policies = folder_policies(snapshot, located)
    made = Forecast(policies=policies)
    n_bytes, done = sum(file.size for file in located.files), 0
    with report("examining") as progress:
        for folder, folder_policy in zip(located.folders, made.policies, strict=True):
            policy = folder_policy.policy
            archived = _archived_files(snapshot, folder)
            chats, keys = [], {}
            for file in folder.files:
                path, key = file.path, archive_key(file)
                copy = archived.get(key)
                copy = copy if copy and copy.is_complete(file) else None
                if by_path or copy is None:
                    made.archived[path] = copy is not None
                if snapshot.freshness.is_filling and not (copy and copy.cleanup_traits):
                    made.is_stable = False
                elif file.what != "leftover":
                    chats.append(_chat(file, path, copy, now))
                    traits = copy.cleanup_traits if copy else None
                    if not file.parent and (traits is None or traits.is_of_now):
                        made.is_stable = False
                    keys[path] = key if snapshot.is_archived else ("", escape_surrogates(file.place))
                done += file.size
                progress(done, n_bytes)
            deletions = forecast_deletions(chats, policy, now=now)
            if by_path:
                made.deletions.update(deletions)
            for path, fate in deletions.items():
                made.by_key[keys[path]] = fate
    return made


def _located_in(snapshot: Snapshot, folders: Collection[Path]) -> HomeScan:
    """Return the session files of some project folders."""
    from pollux.sessions.locate import locate

    chosen = {str(folder) for folder in folders}
    scan = locate(snapshot.config.homes, of_folders=lambda path: path in chosen)
    return msgspec.structs.replace(scan, folders=tuple(folder for folder in scan.folders if folder.path in folders))


def _archived_files(snapshot: Snapshot, folder: ProjectFolder) -> dict[tuple[str, str], ArchivedState]:
    """Return the archived files of a project folder, even if sessions are read from session files."""
    from pollux.errors import PolluxError
    from pollux.reports.status import archived_files

    config = snapshot.config
    if snapshot.is_archived and snapshot.freshness.state != FreshnessState.COMBINED:
        return archived_files(snapshot.database, config.machine, folder)
    if config.archive is None:
        return {}
    try:
        with read_only(config.archive) as archive:
            return archived_files(archive.database, config.machine, folder)
    except (PolluxError, OSError):  # there is none yet, or it may not be read
        return {}


def deletion_times(snapshot: Snapshot, made: Forecast, of: Collection[str] | None = None) -> dict[str, Deletion]:
    """Return when and why the client will delete each session with messages, or some, if it will."""
    from pollux.reports.status import first_deletions

    times = first_deletions(snapshot.database, made.by_key, of)
    return times if snapshot.ids is None else {key: fate for key, fate in times.items() if key in snapshot.ids}


def _chat(file: SessionFile, path: Path, known: ArchivedState | None, now: datetime) -> CleanupFile:
    """Return what the clean-up knows about a file, from the archive if possible, else from the disk."""
    from pollux.sessions.replay.reading import read
    from pollux.sessions.retention import CleanupFile, cleanup_file, cleanup_file_from_reading

    if file.parent:
        return CleanupFile(path, file.parent, size=file.size)
    if known and known.cleanup_traits:
        return cleanup_file(known.cleanup_traits, file, path, now=now)
    try:
        return cleanup_file_from_reading(read(path), file, now=now)
    except OSError:
        return CleanupFile(path, is_readable=False, size=file.size)  # reported by the history already


class _SettingsReader:
    """Reads each file of settings once."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._files: dict[Path, ClientSettings | None] = {}
        self._known: dict[Home, ProjectClaims] = {}

    def policy(self, folder: ProjectFolder) -> tuple[str | None, RetentionPolicy]:
        """Return the project of a folder, and the retention policy that applies there."""
        from pollux.sessions import client_settings
        from pollux.sessions.projects import resolve
        from pollux.sessions.retention import HASHED

        if is_project_hash(folder.name) and not folder.has_marker:
            return None, client_settings.RetentionPolicy(off=HASHED)
        home = folder.home
        if home not in self._known:
            self._known[home] = resolve.read_claims(home.root, home.tmp, home.link_limit)
        claim = self._known[home].by_folder.get(folder.name)
        project = claim.path if claim else None
        return project, client_settings.retention_policy(list(self._layers(home, project)))

    def _layers(self, home: Home, project: str | None) -> Iterator[ClientSettings]:
        """Yield the settings that apply to a project, highest precedence last."""
        from pollux.sessions.client_settings import is_trusted

        defaults, system = _system_settings(self._environ)
        root = home.root.parent.parent / ".gemini" if home.source.endswith("sandbox") else home.root
        users = self._read(root / "settings.json", root if home.link_limit else None)
        below = [settings for settings in (self._read(defaults), users) if settings]
        above = [settings for settings in (self._read(system),) if settings]
        own = None
        if project and Path(project).is_absolute() and Path(project) != root.parent:
            own = self._read(Path(project, ".gemini", "settings.json"), Path(project))
        rules = self._read(home.root / "trustedFolders.json", home.link_limit)
        yield from below
        if own and project and is_trusted(project, [*below, *above], rules.value if rules else {}):
            yield own
        yield from above

    def _read(self, path: Path, within: Path | None = None) -> ClientSettings | None:
        """Read a settings file; it must not link outside `within`."""
        from pollux.disk.read import is_missing, read_side_file
        from pollux.sessions.client_settings import ClientSettings, parse_settings

        if path not in self._files:
            try:
                self._files[path] = parse_settings(str(path), read_side_file(path, within=within), self._environ)
            except OSError as error:
                self._files[path] = None if is_missing(error) else ClientSettings(str(path), unread=error.strerror)
        return self._files[path]


def _system_settings(environ: Mapping[str, str]) -> tuple[Path, Path]:
    """Return the paths of the administrator's defaults and overrides."""
    folders = {"darwin": "/Library/Application Support/GeminiCli", "win32": "C:\\ProgramData\\gemini-cli"}
    system = Path(environ.get("GEMINI_CLI_SYSTEM_SETTINGS_PATH") or Path(_system_folder(folders), "settings.json"))
    defaults = environ.get("GEMINI_CLI_SYSTEM_DEFAULTS_PATH")
    return Path(defaults) if defaults else system.with_name("system-defaults.json"), system


def _system_folder(folders: dict[str, str]) -> str:
    return folders.get(sys.platform, "/etc/gemini-cli")
