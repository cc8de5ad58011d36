"""What was once proven about the paths of projects: remembered, and added to by trying hashes on folders."""
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
    """Return the pairs of hash and path that were proven before."""
    from pollux.sessions.projects import claims

    return claims.load_memory(config.project_memory)


def with_current_folder(config: Config) -> dict[str, str]:
    """Return the pairs proven before, and those of the current folder and the folders above it."""
    from pollux.sessions.projects.paths import project_hash, spellings

    pairs = load(config)
    for folder in (config.cwd, *config.cwd.parents):
        for spelling in spellings(str(folder)):
            pairs.setdefault(project_hash(spelling), spelling)
    return pairs


def store(config: Config, projects: Iterable[Project]) -> Problem | None:
    """Remember the paths that these projects prove and that are not known yet; without an archive, nothing."""
    from pollux.sessions.projects import claims

    if config.archive is None:
        return None
    known = load(config)
    proven = {project.hash: project.path for project in projects if project.proven}
    new = {digest: path for digest, path in proven.items() if digest and path and known.get(digest) != path}
    return claims.remember(config.project_memory, new) if new else None


def learn(config: Config, hashes: Iterable[str], pairs: Mapping[str, str]) -> None:
    """Remember the paths of projects that are known by their hash alone, as far as the pairs have them."""
    from pollux.sessions.projects import claims

    new = {digest: pairs[digest] for digest in hashes if digest in pairs}
    if new and not new.items() <= load(config).items():
        claims.remember(config.project_memory, new)


def memory_path() -> Path:
    """Return where proven project paths are remembered."""
    return data_folder() / "projects.json"
