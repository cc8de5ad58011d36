"""What was found, what could not be read, and what nobody knows yet: the doctor's findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
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
    """Names that no table of ours has, with how often each was met."""

    fields: Counter[str] = field(default_factory=Counter)
    tools: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All that the doctor has to say."""

    found: History
    unknowns: Unknowns
    lost: Mapping[str, Sequence[LoggedPrompt]]
    """Sessions that only the log of prompts still knows."""
    problems: Sequence[Problem]

    @property
    def files(self) -> tuple[SessionFile, ...]:
        """The session files."""
        return tuple(self.found.located.files)

    @property
    def n_hashed(self) -> int:
        """How many project folders are named by a hash."""
        return sum(len(folder.name) == 64 for folder in self.found.located.folders)  # noqa: PLR2004  hex digits

    @property
    def unknown(self) -> dict[str, dict[str, int]]:
        """What no table of ours has, by what it is."""
        return {
            "operators": _operators(self.problems),
            "fields": dict(self.unknowns.fields),
            "kinds": dict(self.unknowns.kinds),
            "tools": dict(self.unknowns.tools),
        }


def look_into(file: SessionFile, unknowns: Unknowns) -> None:
    """Note every unknown field, kind and tool of one file."""
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
    """Count sessions by the generation of the client that wrote them."""
    return dict(sorted(Counter(one.generation for one in sessions).items()))


def lost(
    prompts: Sequence[LoggedPrompt], sessions: Iterable[Session], files: Iterable[SessionFile] = ()
) -> dict[str, list[LoggedPrompt]]:
    """Return the sessions that only the log of prompts still knows: the client has deleted the rest."""
    known = {one.id for one in sessions}
    there = {id8_in(file.path.name) for file in files}  # be they readable or not
    found: dict[str, list[LoggedPrompt]] = {}
    for prompt in prompts:
        if prompt.session_id not in known and prompt.session_id[:8] not in there:
            found.setdefault(prompt.session_id, []).append(prompt)
    return {id_: typed for id_, typed in found.items() if any(not one.text.startswith(("/", "?")) for one in typed)}


def _operators(problems: Iterable[Problem]) -> dict[str, int]:
    words = (one.message.removeprefix("unknown operator ") for one in problems if one.code == "unknown-operator")
    return dict(Counter(word for text in words for word in text.split(", ")))


def _note_fields(data: bytes, unknowns: Unknowns) -> None:
    try:
        unknowns.fields.update(unknown_fields(lenient.decode(data)))
    except ValueError:
        return  # the file changed meanwhile


_KINDS = frozenset({"user", "gemini", "info", "warning", "error"})
