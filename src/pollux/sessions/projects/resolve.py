"""Hash or slug of a project → its path, and how the path is known.

A session file names its project only by `sha256(path)`. So a path is *proven* when it has that hash and *inferred*
when something merely says so; a proof from any source beats every inference.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

import msgspec

from pollux.model import Json, Project, Session
from pollux.sessions.projects.claims import NOTHING_KNOWN, Claim, Known, known_paths
from pollux.sessions.projects.paths import (
    LONGEST_PATH,
    is_absolute,
    is_project_hash,
    is_windows,
    lineage,
    project_hash,
    slug,
    spellings,
)
from pollux.text.unicode import sound

__all__ = ["Known", "argument_paths", "known_paths", "project_hash", "resolve", "slug", "workspace_directories"]

_NO_PATHS: Mapping[str, str] = MappingProxyType({})
_IN_COMMAND = re.compile(r"""(?<![\w.:/\\~-])(?:/|[A-Za-z]:[\\/])[^\s'"`;&|<>()$*?]*""")
_ONE_DIRECTORY = re.compile(r"^[ \t]*I'm currently working in the directory: (.+)$", re.MULTILINE)
_DIRECTORIES = re.compile(
    r"^[ \t]*(?:- \*\*Workspace Directories:\*\*|I'm currently working in the following directories:)[ \t\r]*\n"
    r"((?:[ \t]+- .+(?:\n|\Z))+)",
    re.MULTILINE,
)


def resolve(
    digest: str | None,
    folder: str | None,
    known: Known = NOTHING_KNOWN,
    *,
    directories: Sequence[str] = (),
    session_context: Sequence[str] = (),
    scanned: Mapping[str, str] = _NO_PATHS,
    arguments: Iterable[str] = (),
    memory: Mapping[str, str] = _NO_PATHS,
) -> Project:
    """Tell the project of one session.

    Args:
        digest: `projectHash` of the session; without it, the folder's name where that is a hash.
        folder: name of the project folder.
        known: what the session's home says.
        directories: the field of that name in the session.
        session_context: what `workspace_directories` found.
        scanned: what `scan` found.
        arguments: absolute paths in tool calls, whose ancestors are tried; only read if nothing better is a proof.
        memory: what `load_memory` gave.

    """
    is_hash = folder is not None and is_project_hash(folder)
    digest = digest or (folder if is_hash else None)
    name = None if is_hash else folder
    told = {
        "directories": tuple(filter(is_absolute, directories)),
        "session_context": tuple(filter(is_absolute, session_context)),
    }
    claim = known.by_hash.get(digest) if digest else None
    claim = claim or _proof(digest, {**told, "scan": _entry(scanned, digest)})
    ancestors = () if claim else tuple(_ancestors(filter(is_absolute, arguments)))
    claim = claim or _proof(digest, {"arguments": ancestors, "memory": _entry(memory, digest)})
    is_proven = claim is not None
    claim = claim or (known.by_folder.get(folder) if folder else None) or _inference(digest, name, told, ancestors)
    if claim is None:
        return Project(_sound(digest), _sound(name))
    return Project(_sound(digest), _sound(name or claim.folder), sound(claim.path), claim.how, is_proven)


def _sound(text: str | None) -> str | None:
    return text and sound(text)


def certainty(project: Project) -> tuple[bool, bool, bool, str, str, str]:
    """Return a value that is greater the more is known of a project; ties are broken by the texts themselves."""
    known = (project.proven, project.path is not None, project.slug is not None)
    return *known, project.path or "", project.slug or "", project.how or ""


def with_path_of(project: Project, best: Project) -> Project:
    """Return a project with the path that is known best for its hash; the slug is its own folder's name."""
    return Project(project.hash, project.slug, best.path, best.how, best.proven)


def agreed_projects(sessions: Iterable[Session]) -> list[Session]:
    """Return sessions so that those of one project hash have one path: the one that is most certain."""
    sessions = list(sessions)
    best: dict[str | None, Project] = {}
    for session in sessions:
        project = session.project
        best[project.hash] = max(project, best.get(project.hash, project), key=certainty)
    agreed = []
    for session in sessions:
        own = session.project
        project = with_path_of(own, best[own.hash]) if own.hash else own
        agreed.append(session if project == own else msgspec.structs.replace(session, project=project))
    return agreed


def workspace_directories(text: str) -> tuple[str, ...]:
    """Read the directories out of the context that the client puts before the first prompt, in any of its wordings."""
    if listed := _DIRECTORIES.search(text):
        lines = (line.strip().removeprefix("- ") for line in listed[1].rstrip("\n").split("\n"))
        return tuple(filter(is_absolute, lines))
    one = _ONE_DIRECTORY.search(text)
    return tuple(filter(is_absolute, [one[1].strip()] if one else []))


def argument_paths(arguments: Json) -> Iterator[str]:
    """Give the absolute paths in the arguments of a tool call, also those inside a shell command."""
    match arguments:
        case str() if is_absolute(arguments) and len(arguments) <= LONGEST_PATH and "\n" not in arguments:
            yield arguments
        case Mapping():
            for key, value in arguments.items():
                if key == "command" and isinstance(value, str):
                    yield from _IN_COMMAND.findall(value)
                else:
                    yield from argument_paths(value)
        case list() | tuple():
            for value in arguments:
                yield from argument_paths(value)
        case _:
            pass


def _entry(paths: Mapping[str, str], digest: str | None) -> tuple[str, ...]:
    return (paths[digest],) if digest is not None and digest in paths else ()


def _proof(digest: str | None, told: Mapping[str, Iterable[str]]) -> Claim | None:
    for how, paths in told.items():
        for path in paths:
            for spelling in spellings(path):
                if project_hash(spelling) == digest:
                    return Claim(how, spelling)
    return None


def _inference(
    digest: str | None, name: str | None, told: Mapping[str, Iterable[str]], ancestors: Iterable[str]
) -> Claim | None:
    """Believe a path whose slug is the folder's; beside a hash, only one that Windows may have spelled otherwise."""
    for how, paths in told.items():
        for path in paths:
            if _has_slug(path, name) if name else digest is None or is_windows(path):
                return Claim(how, path)
    fitting = {path for path in ancestors if name and _has_slug(path, name)}
    return Claim("arguments", fitting.pop()) if len(fitting) == 1 else None


def _has_slug(path: str, name: str) -> bool:
    return re.fullmatch(rf"{re.escape(slug(path))}(?:-\d+)?", name) is not None


def _ancestors(paths: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for path in paths:
        for ancestor in lineage(path):
            if ancestor in seen:
                break  # and so are those above it
            seen.add(ancestor)
            yield ancestor
