"""A session with its subagents: each block with the number of its message and the agents that its call started.

Renderers go through a session by this, and through its agents in the same way: where an agent stands is decided here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, Self, TypeVar

from pollux.model import Message, Origin, Session
from pollux.views.transcript import Block, Branches, Detail, Options, Prompt, Tool, blocks


class Talk(Protocol):
    """A session that can be read, and those of its subagents."""

    @property
    def session(self) -> Session:
        """What a list says of it."""

    @property
    def by_id(self) -> Mapping[str, Session]:
        """All sessions that were read, among them its subagents."""

    @property
    def options(self) -> Options:
        """What is to be shown of it."""

    def shown_messages(self) -> Iterator[Message]:
        """Yield its timeline, with very long texts cut."""

    def children(self) -> Iterator[Self]:
        """Yield its subagents."""


_Talk = TypeVar("_Talk", bound=Talk)
_Talk_co = TypeVar("_Talk_co", bound=Talk, covariant=True)


@dataclass(frozen=True, slots=True)
class Shown(Generic[_Talk_co]):
    """A block in its place."""

    number: int
    """Of its message in the whole timeline, from 1: the same whatever is shown."""
    block: Block | None
    """None at the end, where the agents stand that no call is known of."""
    agents: tuple[_Talk_co, ...] = ()
    above: frozenset[str] = frozenset()
    """The sessions that this is shown within; agents are gone through with it."""


@dataclass(frozen=True, slots=True)
class Numbered(Generic[_Talk_co]):
    """A block in its place, and the number of the prompt that it belongs to."""

    shown: Shown[_Talk_co]
    prompt: int
    """From 1; 0 before the first one."""
    begins: bool = False
    """Whether it is that prompt itself."""


def numbered(talk: _Talk, above: frozenset[str] = frozenset()) -> Iterator[Numbered[_Talk]]:
    """Yield what is shown of a session with the numbers of its prompts; those of its agents are counted apart."""
    prompt = 0
    for shown in conversation(talk, above):
        begins = isinstance(shown.block, Prompt) and shown.block.origin is not Origin.AGENT_PROMPT
        prompt += begins
        yield Numbered(shown, prompt, begins)


def conversation(talk: _Talk, above: frozenset[str] = frozenset()) -> Iterator[Shown[_Talk]]:
    """Yield what is shown of a session, in order; what stands `above` it is not shown within it once more."""
    options = talk.options
    above |= {talk.session.id}
    waiting: list[_Talk] = []
    if options.detail in {Detail.NORMAL, Detail.FULL}:
        waiting += (child for child in talk.children() if child.session.id not in above)
    number = 0

    def counted() -> Iterator[Message]:
        nonlocal number
        for number, message in enumerate(talk.shown_messages(), 1):  # noqa: B007  read below, while the message is at hand
            yield message

    for block in blocks(counted(), options):
        agents: tuple[_Talk, ...] = ()
        if isinstance(block, Tool) and waiting:
            agents = tuple(child for child in waiting if _started(block, child.session))
            waiting = [child for child in waiting if not _started(block, child.session)]
        yield Shown(number, block, agents, above)
    # An agent whose call was not shown belongs to a branch that is left out.
    if rest := tuple(one for one in waiting if options.branches is Branches.ALL or one.session.parent_call is None):
        yield Shown(number, None, rest, above)


def _started(call: Tool, agent: Session) -> bool:
    """Tell whether a call started an agent."""
    if agent.parent_call is not None:
        return agent.parent_call == call.call_id
    return call.agent_id == agent.id
