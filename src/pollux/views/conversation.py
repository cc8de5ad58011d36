"""The blocks of a session in order, each with the number of its message and the subagents that its call started.

Every renderer reads a session and its subagents through this module, so that all of them place an agent alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, Self, TypeVar

from pollux.model import Message, Origin, Session
from pollux.views.transcript import Block, Branches, Detail, PromptBlock, ToolBlock, TranscriptOptions, blocks


class ConversationSource(Protocol):
    """A session whose messages and subagents can be read."""

    @property
    def session(self) -> Session:
        """Its summary."""

    @property
    def by_id(self) -> Mapping[str, Session]:
        """All sessions that were read, to look up subagents."""

    @property
    def options(self) -> TranscriptOptions:
        """How much of it is shown."""

    def shown_messages(self) -> Iterator[Message]:
        """Yield its timeline, with very long texts cut."""

    def children(self) -> Iterator[Self]:
        """Yield its subagents."""


_Source = TypeVar("_Source", bound=ConversationSource)
_Source_co = TypeVar("_Source_co", bound=ConversationSource, covariant=True)


@dataclass(frozen=True, slots=True)
class PlacedBlock(Generic[_Source_co]):
    """A block with the numbers of its message and its prompt, and the agents below it."""

    number: int
    """The message's number in the timeline, from 1; the same with all options."""
    prompt: int
    """The number of the prompt that it belongs to, from 1; 0 before the first. Each agent counts its own."""
    block: Block | None
    """None for the agents at the end whose call is not recorded."""
    agents: tuple[_Source_co, ...] = ()
    above: frozenset[str] = frozenset()
    """IDs of the sessions around this block, to be passed on when its agents are read."""

    @property
    def is_prompt(self) -> bool:
        """Return whether the block is that prompt."""
        return _is_prompt(self.block)


def placed_blocks(
    source: _Source,
    above: frozenset[str] = frozenset(),
    *,
    n_before: int = 0,
    prompts_before: int = 0,
    is_last: bool = True,
) -> Iterator[PlacedBlock[_Source]]:
    """Yield the blocks of a session, or of a part of it.

    Args:
        source: the session; a part of one yields only the messages of that part.
        above: IDs of the sessions around it; agents among them are left out, which ends cycles.
        n_before: messages before the part.
        prompts_before: prompts before the part.
        is_last: whether the part ends the session; agents without a call follow it.

    """
    options = source.options
    above |= {source.session.id}
    waiting: list[_Source] = []
    if options.detail in {Detail.NORMAL, Detail.FULL}:
        waiting += (child for child in source.children() if child.session.id not in above)
    number, prompt = n_before, prompts_before

    def numbered_messages() -> Iterator[Message]:
        nonlocal number
        for number, message in enumerate(source.shown_messages(), n_before + 1):  # noqa: B007  read below for each block
            yield message

    for block in blocks(numbered_messages(), options):
        agents: tuple[_Source, ...] = ()
        if isinstance(block, ToolBlock) and waiting:
            agents = tuple(child for child in waiting if _is_started_by(block, child.session))
            waiting = [child for child in waiting if not _is_started_by(block, child.session)]
        prompt += _is_prompt(block)
        yield PlacedBlock(number, prompt, block, agents, above)
    is_part = n_before > 0 or not is_last
    if is_part or (options.branches is not Branches.ALL and not options.folds_dropped):
        # An agent with a known call that was not shown belongs to a dropped branch or to another part.
        waiting = [child for child in waiting if child.session.parent_call is None]
    if waiting and is_last:
        yield PlacedBlock(number, prompt, None, tuple(waiting), above)


def _is_prompt(block: Block | None) -> bool:
    return isinstance(block, PromptBlock) and block.origin is not Origin.AGENT_PROMPT


def _is_started_by(call: ToolBlock, agent: Session) -> bool:
    if agent.parent_call is not None:
        return agent.parent_call == call.call_id
    return call.agent_id == agent.id
