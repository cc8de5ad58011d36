"""The doctor's findings in words, fitted to a terminal's width."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from rich.console import Console
from rich.text import Text

from pollux.model import Problem
from pollux.render.terminal.tables import counted
from pollux.render.terminal.text import line
from pollux.reports.doctor import Diagnosis, generations
from pollux.sessions.reader import History
from pollux.text.escape import clean
from pollux.text.numbers import size

Named: TypeAlias = Callable[[str], str]
"""Writes a path shorter."""

_LABEL = 12
_NARROWEST = 10
_LOST = 10
_LINES = 10


def findings(health: Diagnosis, named: Named = str) -> Iterator[tuple[str, str]]:
    """Give what there is to say, each with its label; without one it belongs to what was said before."""
    found = health.found
    for home in found.located.homes:
        nothing = "" if home.tmp.is_dir() else ": nothing there"
        yield "home", f"{named(str(home.root))}, decided by {home.how}{nothing}"
    n_bytes = sum(file.size for file in health.files)
    folders = f"{counted(len(found.located.folders), 'project folder')}, {health.n_hashed} of them named by hash"
    yield "found", f"{counted(len(health.files), 'file')}, {size(n_bytes)}, in {folders}"
    yield "sessions", _sessions(found)
    yield from _counts("written by", generations(found.sessions))
    n_unproven = sum(not one.project.proven for one in found.main)
    yield "projects", f"{counted(len(found.main) - n_unproven, 'session')} with a proven path, {n_unproven} without"
    for what, names in health.unknown.items():
        yield from _counts("unknown", names, f"{what}: ")
    yield from _lost(health)
    yield "problems", str(len(health.problems)) if health.problems else "none: everything was read"
    for (code, message), files in _alike(health.problems).items():
        yield "", f"  {message} [{code}]"
        yield from (("", f"    {_place(file, lines, named)}") for file, lines in files.items())


def _sessions(found: History) -> str:
    n_unreadable = len(found.unreadable)
    n_subagents = sum(session.kind == "subagent" for session in found.sessions)
    n_subagents -= sum(session.kind == "subagent" for session in found.unreadable)
    n_empty = len(found.sessions) - len(found.main) - n_unreadable - n_subagents
    parts = [f"{len(found.main)} with content"]
    parts += [counted(n_subagents, "subagent")] if n_subagents else []
    parts += [f"{n_empty} empty"] if n_empty else []
    parts += [f"{n_unreadable} unreadable"] if n_unreadable else []
    return ", ".join(parts)


def fitted(label: str, text: str, width: int) -> str:
    """Break a finding into lines that keep its margin."""
    margin = _LABEL if label else len(text) - len(text.lstrip())
    text = text.lstrip()
    room = max(width - margin, _NARROWEST)
    pieces = Text(text).wrap(Console(width=room), room, overflow="fold")
    first, *others = (piece.plain.rstrip() for piece in pieces)
    return "\n".join([f"{label:<{margin}}{first}", *(" " * margin + other for other in others)])


def plain(label: str, text: str) -> str:
    """Leave a finding in one line."""
    return f"{label:<{_LABEL}}{text}" if label else text


def _counts(label: str, counts: Mapping[str, int], what: str = "") -> Iterator[tuple[str, str]]:
    if counts:
        yield label, what + ", ".join(f"{line(name, 60)} × {number}" for name, number in sorted(counts.items()))


def _lost(health: Diagnosis) -> Iterator[tuple[str, str]]:
    if not health.lost:
        return
    yield "lost", f"{counted(len(health.lost), 'session')} deleted by the client; only what was typed is still known:"
    for id_, typed in list(health.lost.items())[:_LOST]:
        yield "", f"  {line(id_, 36)}  {counted(len(typed), 'prompt')}: {line(typed[0].text, 60)}"
    if len(health.lost) > _LOST:
        yield "", f"  … and {len(health.lost) - _LOST} more; --json lists them all"


def _alike(problems: Sequence[Problem]) -> dict[tuple[str, str], dict[str, list[int]]]:
    """Put together what went wrong in the same way, and where: the lines of each file."""
    found: dict[tuple[str, str], dict[str, list[int]]] = {}
    for problem in problems:
        files = found.setdefault((problem.code, line(problem.message, 1000)), {})
        lines = files.setdefault(problem.file or "", [])
        if problem.line and problem.line not in lines[-1:]:
            lines.append(problem.line)
    return found


def _place(path: str, lines: Sequence[int], named: Named) -> str:
    file = clean(named(path)).replace("\n", "␊")
    shown = ", ".join(map(str, lines[:_LINES]))
    more = f" and {len(lines) - _LINES} more; --json lists them all" if len(lines) > _LINES else ""
    return f"{file}:{shown}{more}" if lines else file
