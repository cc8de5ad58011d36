"""The findings of `pollux doctor` as lines that fit a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from rich.text import Text

from pollux.model import Problem
from pollux.render.terminal.screen import Console, line
from pollux.reports.doctor import Diagnosis, generations
from pollux.sessions.reader import History
from pollux.text.escape import make_visible
from pollux.text.numbers import plural, size

Shorten: TypeAlias = Callable[[str], str]
"""Returns a path in a shorter form."""

_LABEL = 12
_NARROWEST = 10
_N_LOST = 10
_N_LINES = 10
_FORMATS = {"json": "JSON", "jsonl": "JSONL"}
"""Names of formats by the first word of a generation."""


def findings(diagnosis: Diagnosis, shorten: Shorten = str) -> Iterator[tuple[str, str]]:
    """Yield a label and a text per finding; the label is empty if the text continues the one before."""
    history = diagnosis.history
    for home in history.located.homes:
        missing = "" if home.tmp.is_dir() else ": no such folder"
        yield "home", f"{shorten(str(home.root))}, set by {home.source}{missing}"
    n_bytes = sum(file.size for file in diagnosis.files)
    folders = f"{plural(len(history.located.folders), 'project folder')}, {diagnosis.n_hashed} of them named by hash"
    yield "files", f"{plural(len(diagnosis.files), 'file')}, {size(n_bytes)}, in {folders}"
    yield "sessions", _sessions(history)
    yield from _formats(generations(history.sessions))
    n_unproven = sum(not session.project.proven for session in history.main)
    yield "projects", f"{plural(len(history.main) - n_unproven, 'session')} with a proven path, {n_unproven} without"
    for kind, names in diagnosis.unknown.items():
        if names:
            counts = (f"{line(name, 60)} × {number}" for name, number in sorted(names.items()))
            yield "unknown", f"{kind}: {', '.join(counts)}"
    yield from _lost(diagnosis)
    yield "problems", str(len(diagnosis.problems)) if diagnosis.problems else "none: every file was read"
    for (code, message), files in _by_message(diagnosis.problems).items():
        yield "", f"  {message} [{code}]"
        for file, lines in files.items():
            yield "", f"    {_place(file, lines, shorten)}"


def _sessions(history: History) -> str:
    n_unreadable = len(history.unreadable)
    n_subagents = sum(session.kind == "subagent" for session in history.sessions)
    n_subagents -= sum(session.kind == "subagent" for session in history.unreadable)
    n_empty = len(history.sessions) - len(history.main) - n_unreadable - n_subagents
    parts = [f"{len(history.main)} with content"]
    parts += [plural(n_subagents, "subagent")] if n_subagents else []
    parts += [f"{n_empty} empty"] if n_empty else []
    parts += [f"{n_unreadable} unreadable"] if n_unreadable else []
    return ", ".join(parts)


def _formats(counts: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """Yield how many sessions are in each format, without the client's generations of it: JSON 82, JSONL 318."""
    formats: Counter[str] = Counter()
    for generation, number in counts.items():
        formats[_FORMATS.get(generation.partition("-")[0], generation)] += number
    if formats:
        yield "formats", ", ".join(f"{line(name, 60)} {number}" for name, number in sorted(formats.items()))


def fitted(label: str, text: str, width: int) -> str:
    """Return a finding in lines of at most some width that keep its margin."""
    margin = _LABEL if label else len(text) - len(text.lstrip())
    text = text.lstrip()
    room = max(width - margin, _NARROWEST)
    pieces = Text(text).wrap(Console(width=room), room, overflow="fold")
    first, *others = (piece.plain.rstrip() for piece in pieces)
    return "\n".join([f"{label:<{margin}}{first}", *(" " * margin + other for other in others)])


def plain(label: str, text: str) -> str:
    """Return a finding in one line."""
    return f"{label:<{_LABEL}}{text}" if label else text


def _lost(diagnosis: Diagnosis) -> Iterator[tuple[str, str]]:
    if not diagnosis.lost:
        return
    yield "lost", f"{plural(len(diagnosis.lost), 'session')} deleted by the client; only the prompts are left:"
    for session_id, prompts in list(diagnosis.lost.items())[:_N_LOST]:
        yield "", f"  {line(session_id, 36)}  {plural(len(prompts), 'prompt')}: {line(prompts[0].text, 60)}"
    if len(diagnosis.lost) > _N_LOST:
        yield "", f"  … and {len(diagnosis.lost) - _N_LOST} more; --json lists them all"


def _by_message(problems: Sequence[Problem]) -> dict[tuple[str, str], dict[str, list[int]]]:
    """Return the lines of each file with the same problem, by code and message."""
    groups: dict[tuple[str, str], dict[str, list[int]]] = {}
    for problem in problems:
        files = groups.setdefault((problem.code, line(problem.message, 1000)), {})
        lines = files.setdefault(problem.file or "", [])
        if problem.line and problem.line not in lines[-1:]:
            lines.append(problem.line)
    return groups


def _place(path: str, lines: Sequence[int], shorten: Shorten) -> str:
    file = make_visible(shorten(path)).replace("\n", "␊")
    first = ", ".join(map(str, lines[:_N_LINES]))
    more = f" and {len(lines) - _N_LINES} more; --json lists them all" if len(lines) > _N_LINES else ""
    return f"{file}:{first}{more}" if lines else file
