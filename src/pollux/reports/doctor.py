"""The findings of `pollux doctor`: unreadable files, unknown names, and sessions that only the prompt log has."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pollux.formats import lenient
from pollux.formats.messages import unknown_fields
from pollux.formats.prompts import LoggedPrompt
from pollux.formats.tools import is_known
from pollux.model import Problem, Session
from pollux.sessions.locate import SessionFile, id8_in
from pollux.sessions.reader import History
from pollux.sessions.replay.reading import read


@dataclass(slots=True)
class Unknowns:
    """Names that Pollux does not know, with the number of occurrences of each."""

    fields: Counter[str] = field(default_factory=Counter)
    tools: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The findings of `pollux doctor`."""

    history: History
    unknowns: Unknowns
    lost: Mapping[str, Sequence[LoggedPrompt]]
    """Deleted sessions of which only the prompts in the log remain, by ID."""
    problems: Sequence[Problem]

    @property
    def files(self) -> tuple[SessionFile, ...]:
        """The session files."""
        return tuple(self.history.located.files)

    @property
    def n_hashed(self) -> int:
        """The number of project folders that are named by a hash."""
        return sum(len(folder.name) == 64 for folder in self.history.located.folders)  # noqa: PLR2004  hex digits

    @property
    def unknown(self) -> dict[str, dict[str, int]]:
        """All unknown names, by category."""
        return {
            "operators": _operators(self.problems),
            "fields": dict(self.unknowns.fields),
            "kinds": dict(self.unknowns.kinds),
            "tools": dict(self.unknowns.tools),
        }


def inspect_file(file: SessionFile, unknowns: Unknowns) -> None:
    """Count the unknown fields, kinds and tools of one file."""
    reading = read(file.path)
    with reading.source:
        for entry in reading.replay.timeline:
            if entry.kind not in _KINDS:
                unknowns.kinds[entry.kind] += 1
            for call in entry.calls:
                if not is_known(call.name, call.display_name):
                    unknowns.tools[call.name] += 1
            for record in {entry.content, entry.calls_from or entry.content}:
                _note_fields(reading.source.slice(record.span), unknowns)


def generations(sessions: Iterable[Session]) -> dict[str, int]:
    """Return the number of sessions by the generation of their format."""
    return dict(sorted(Counter(session.generation for session in sessions).items()))


def sessions_only_in_log(
    prompts: Sequence[LoggedPrompt], sessions: Iterable[Session], files: Iterable[SessionFile] = ()
) -> dict[str, list[LoggedPrompt]]:
    """Return the prompts of deleted sessions that only the log still has; commands alone do not count."""
    return logged_without_session(prompts, {session.id for session in sessions}, files)


def logged_without_session(
    prompts: Sequence[LoggedPrompt], ids: Collection[str], files: Iterable[SessionFile] = ()
) -> dict[str, list[LoggedPrompt]]:
    """Return the same as `sessions_only_in_log`, given the IDs of the sessions."""
    file_ids = {id8_in(file.place.rpartition(os.sep)[2]) for file in files}  # also of unreadable files
    logged: dict[str, list[LoggedPrompt]] = {}
    for prompt in prompts:
        if prompt.session_id not in ids and prompt.session_id[:8] not in file_ids:
            logged.setdefault(prompt.session_id, []).append(prompt)

    def has_text(own_prompts: list[LoggedPrompt]) -> bool:
        return any(not prompt.text.startswith(("/", "?")) for prompt in own_prompts)

    return {session_id: own_prompts for session_id, own_prompts in logged.items() if has_text(own_prompts)}


def _operators(problems: Iterable[Problem]) -> dict[str, int]:
    operators: Counter[str] = Counter()
    for problem in problems:
        if problem.code == "unknown-operator":
            operators.update(problem.message.removeprefix("unknown operator ").split(", "))
    return dict(operators)


def _note_fields(data: bytes, unknowns: Unknowns) -> None:
    try:
        unknowns.fields.update(unknown_fields(lenient.decode(data)))
    except ValueError:
        return  # the file has changed since it was read


_KINDS = frozenset({"user", "gemini", "info", "warning", "error"})
