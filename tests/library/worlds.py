"""Homes that live while they are read: conversations, growing and vanishing files, forged files, changing prices."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from hypothesis import strategies as st
from tests import builders
from tests.archive.growing import Life, Step, steps
from tests.builders import Wire
from tests.recorder.strategies import Conversation, conversations

from pollux.library.config import Config, configure

MODELS = ("gemini-2.5-pro", "gemini-3.8-flash", "house-model")
"""Two that the built-in table prices, and one that nobody prices."""
PRICES = {
    "built in": "",
    "own": '[[price]]\nmodel = "gemini-2.5-pro"\nuntil = 2026-11-16\ninput = 7\noutput = 9\n',
    "everything": "".join(
        f'[[price]]\nmodel = "{model}"\ninput = {number}.5\ncached = 0.1\noutput = {number}\n'
        f"above_200k = {{ input = 9, output = 11 }}\n"
        for number, model in enumerate(MODELS, 1)
    ),
}
"""Price files by a name; no text for none."""
_MAIN, _SUBAGENTS = (tuple(f"{digit * 8}-1111-4222-8333-444455556666" for digit in digits) for digits in ("ab", "cd"))
"""The sessions of forged files: few, so that they meet, and a subagent may be its own ancestor."""


@dataclass(frozen=True)
class Forgery:
    """A file that says what it likes: of any session, below any other, with messages that others have too."""

    home: int
    project: str
    session: str
    parent: str | None
    records: tuple[bytes, ...]

    def path(self, roots: list[Path]) -> Path:
        """Return where it is put; a parent is named by its folder."""
        folder = builders.chats(roots[self.home], self.project)
        if self.parent:
            return folder / self.parent / f"{self.session}.jsonl"
        return folder / f"session-2026-11-15T19-30-{self.session[:8]}.jsonl"


@dataclass(frozen=True)
class Grow:
    """Write the next part of a conversation or of a forgery."""

    number: int
    amount: int


@dataclass(frozen=True)
class Vanish:
    """Delete a forgery."""

    number: int


Event: TypeAlias = Step | Grow | Vanish


@dataclass(frozen=True)
class Round:
    """What happens before an answer, and how it is asked for."""

    events: tuple[Event, ...]
    prices: str
    is_locked: bool = False
    """Whether another process writes to the archive meanwhile."""
    homes: tuple[int, ...] = (0, 1)


@dataclass(frozen=True)
class Story:
    """Files to come, and the rounds in which they do."""

    conversations: tuple[Conversation, ...]
    models: tuple[str, ...]
    """The model that answers in each conversation."""
    forgeries: tuple[Forgery, ...]
    rounds: tuple[Round, ...]


class World:
    """Two homes on the disk, in which a story happens."""

    def __init__(self, folder: Path, story: Story) -> None:
        """Take the folder of the homes and of the archive."""
        self.folder = folder
        self.life = Life(folder)
        self._forgeries = story.forgeries
        self._writes = []
        for conversation, model in zip(story.conversations, story.models, strict=True):
            writes = conversation.played().writes
            self._writes.append([(write, write.data.replace(b"gemini-3.8-flash", model.encode())) for write in writes])
        self._done = [0] * (len(self._writes) + len(self._forgeries))
        for name, text in PRICES.items():
            self.price_file(name).write_text(text, "utf-8")

    def happen(self, event: Event) -> None:
        """Change the homes."""
        match event:
            case Grow(number, amount) if self._done:
                number %= len(self._done)
                start = self._done[number]
                self._done[number] += amount
                if number < len(self._writes):
                    self._converse(number, start, amount)
                else:
                    forgery = self._forgeries[number - len(self._writes)]
                    self._append(forgery.path(self.life.roots), b"".join(forgery.records[start : start + amount]))
            case Vanish(number) if self._forgeries:
                forgery = self._forgeries[number % len(self._forgeries)]
                forgery.path(self.life.roots).unlink(missing_ok=True)
            case tuple():
                self.life.take(event)
            case _:
                pass

    def config(self, prices: str, archive: str | None, homes: tuple[int, ...] = (0, 1)) -> Config:
        """Return the settings of a library."""
        return configure(
            named_homes=[self.life.roots[number] for number in homes],
            archive=self.folder / archive if archive else None,
            prices=self.price_file(prices),
            zone="UTC",
            environ={},
        )

    def price_file(self, name: str) -> Path:
        return self.folder / f"{name}.toml"

    def _converse(self, number: int, start: int, amount: int) -> None:
        project = builders.chats(self.life.roots[number % 2]).parent
        for write, data in self._writes[number][start : start + amount]:
            path = project / write.path
            if write.is_whole:
                builders.put(path, data)
            else:
                self._append(path, data)

    @staticmethod
    def _append(path: Path, data: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(data)


@st.composite
def messages(draw: st.DrawFn) -> Wire:
    """Draw a message, a prompt or an answer, whose ID, counts and time other files have too."""
    number, second = draw(st.integers(0, 5)), draw(st.integers(0, 3)) * 600
    if draw(st.integers(0, 3)) == 0:
        return builders.user(f"u{number}", draw(st.sampled_from(["fix", "do it"])), second=second)
    record = builders.gemini(f"g{number}", "Fine.", second=second, model=draw(st.sampled_from([*MODELS, None])))
    if draw(st.integers(0, 4)):
        record["tokens"] = builders.tokens(draw(st.sampled_from([0, 10, 11, 250_000])))
        if draw(st.integers(0, 5)) == 0:
            record["tokens"]["total"] += 1
    if draw(st.integers(0, 2)) == 0:
        name, status = draw(st.sampled_from(["read_file", "run_shell_command"])), draw(st.sampled_from(_STATUSES))
        record["toolCalls"] = [builders.call(f"c{draw(st.integers(0, 2))}", name, status=status)]
    elif draw(st.integers(0, 4)) == 0:
        record["content"] = [{"text": "Fine."}, builders.asks(f"c{number}")]
    if draw(st.integers(0, 7)) == 0:
        del record["timestamp"]
    return record


_STATUSES = ("success", "error", "cancelled", "executing")


@st.composite
def forgeries(draw: st.DrawFn) -> Forgery:
    """Draw a file whose session may be its own ancestor."""
    session = draw(st.sampled_from([*_MAIN, *_SUBAGENTS]))
    parent = draw(st.sampled_from([*_MAIN, *_SUBAGENTS])) if session in _SUBAGENTS else None
    head = builders.header(
        session, kind="subagent" if parent else "main", startTime=builders.at(draw(st.integers(0, 3)))
    )
    if draw(st.integers(0, 5)) == 0:
        del head["startTime"]
    records = [builders.log(head)]
    for record in draw(st.lists(messages(), min_size=1, max_size=5)):
        records.append(builders.log(record))
        if draw(st.integers(0, 7)) == 0:
            records.append(builders.log(builders.rewind(record["id"])))
    return Forgery(draw(st.integers(0, 1)), draw(st.sampled_from(["webapp", "other"])), session, parent, tuple(records))


events: st.SearchStrategy[Event] = st.one_of(
    st.builds(Grow, st.integers(0, 5), st.integers(1, 30)),
    st.builds(Grow, st.integers(0, 5), st.integers(1, 30)),
    st.builds(Grow, st.integers(0, 5), st.integers(1, 4)),
    steps,
    steps,
    st.builds(Vanish, st.integers(0, 4)),
)
rounds = st.builds(
    Round,
    st.lists(events, min_size=1, max_size=5).map(tuple),
    st.sampled_from([*PRICES]),
    st.sampled_from([False, False, False, True]),
    st.sampled_from([(0, 1), (0, 1), (0,), (1,)]),
)


@st.composite
def stories(draw: st.DrawFn) -> Story:
    """Draw up to two conversations, up to four forgeries, and up to four rounds."""
    talks = draw(st.lists(conversations(max_size=6), max_size=2))
    models = draw(st.lists(st.sampled_from(MODELS), min_size=len(talks), max_size=len(talks)))
    forged = draw(st.lists(forgeries(), max_size=4))
    return Story(tuple(talks), tuple(models), tuple(forged), tuple(draw(st.lists(rounds, min_size=1, max_size=4))))
