"""A cache of proven project paths, by hash."""
# ruff: noqa: PLC0415  imported when a command runs

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pollux.library.config import data_folder

if TYPE_CHECKING:
    from pollux.library.config import Config
    from pollux.model import Problem, Project


def load(config: Config) -> dict[str, str]:
    """Return the cached paths by hash."""
    from pollux.sessions.projects import resolve

    return resolve.load_project_paths(config.project_memory)


def with_current_folder(config: Config) -> dict[str, str]:
    """Return the cached paths, with the current folder and its parents added."""
    from pollux.sessions.projects.paths import project_hash, spellings

    pairs = load(config)
    for folder in (config.cwd, *config.cwd.parents):
        for spelling in spellings(str(folder)):
            pairs.setdefault(project_hash(spelling), spelling)
    return pairs


def store(config: Config, projects: Iterable[Project]) -> Problem | None:
    """Cache the proven paths of projects; without an archive, store nothing."""
    from pollux.sessions.projects import resolve

    if config.archive is None:
        return None
    cached = load(config)
    proven = {project.hash: project.path for project in projects if project.proven}
    new = {digest: path for digest, path in proven.items() if digest and path and cached.get(digest) != path}
    return resolve.save_project_paths(config.project_memory, new) if new else None


def learn(config: Config, hashes: Iterable[str], pairs: Mapping[str, str]) -> None:
    """Cache the paths of these hashes, as far as `pairs` has them."""
    from pollux.sessions.projects import resolve

    new = {digest: pairs[digest] for digest in hashes if digest in pairs}
    if new and not new.items() <= load(config).items():
        resolve.save_project_paths(config.project_memory, new)


def memory_path() -> Path:
    """Return the file of the cache."""
    return data_folder() / "projects.json"
