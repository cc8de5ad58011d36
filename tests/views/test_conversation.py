"""Agents are placed at their calls, numbers are stable, and a session never contains itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.views.build import call, message, prompt

from pollux.model import Fate, Message, Project, Session
from pollux.views.conversation import placed_blocks
from pollux.views.transcript import Branches, Detail, HiddenBlock, ToolBlock, TranscriptOptions


@dataclass(frozen=True, slots=True)
class Talk:
    session: Session
    timeline: Sequence[Message] = ()
    agents: Sequence[Talk] = ()
    options: TranscriptOptions = field(default_factory=TranscriptOptions)
    by_id: Mapping[str, Session] = field(default_factory=dict)

    def shown_messages(self) -> Iterator[Message]:
        return iter(self.timeline)

    def children(self) -> Iterator[Talk]:
        return iter(self.agents)


def agent(id_: str = "a", parent_call: str | None = None) -> Talk:
    return Talk(Session(id_, "subagent", Project(), parent_call=parent_call))


def talk(*messages: Message, agents: Sequence[Talk] = (), options: TranscriptOptions | None = None) -> Talk:
    return Talk(Session("main", "main", Project()), messages, agents, options or TranscriptOptions())


def placed(session: Talk) -> list[tuple[int, str, list[str]]]:
    """Return number, kind of block and agents of every placed block."""
    return [
        (shown.number, type(shown.block).__name__.removesuffix("Block"), [child.session.id for child in shown.agents])
        for shown in placed_blocks(session)
    ]


def starts(call_id: str | None, agent_id: str | None = None, **more: Any) -> Message:  # noqa: ANN401
    return message(tool_calls=(call("invoke_agent", {"prompt": "x"}, id=call_id, agent_id=agent_id),), **more)


def test_agent_is_placed_at_the_call_that_started_it() -> None:
    two = talk(prompt("go"), starts("c1"), starts("c2"), agents=[agent("second", "c2"), agent("first", "c1")])
    assert placed(two) == [(1, "Prompt", []), (2, "Tool", ["first"]), (3, "Tool", ["second"])]


def test_call_that_names_its_agent_needs_no_id() -> None:
    assert placed(talk(starts(None, "a"), agents=[agent("a")])) == [(1, "Tool", ["a"])]


def test_agent_is_shown_once_though_its_call_is_recorded_twice() -> None:
    assert placed(talk(starts("c"), starts("c"), agents=[agent("a", "c")])) == [
        (1, "Tool", ["a"]),
        (2, "Tool", []),
    ]


def test_one_call_may_start_several_agents() -> None:
    both = talk(starts("c"), agents=[agent("a", "c"), agent("b", "c")])
    assert placed(both) == [(1, "Tool", ["a", "b"])]


def test_agent_without_a_recorded_call_comes_last() -> None:
    assert placed(talk(prompt("go"), agents=[agent()])) == [(1, "Prompt", []), (1, "NoneType", ["a"])]
    assert placed(talk(agents=[agent()])) == [(0, "NoneType", ["a"])]


def test_agent_of_a_hidden_branch_is_hidden() -> None:
    gone = (prompt("go"), starts("c", fate=Fate.REWOUND))
    assert placed(talk(*gone, agents=[agent("a", "c")])) == [(1, "Prompt", []), (2, "Hidden", [])]
    everything = talk(*gone, agents=[agent("a", "c")], options=TranscriptOptions(branches=Branches.ALL))
    assert placed(everything) == [(1, "Prompt", []), (2, "Tool", ["a"])]
    lost = talk(prompt("go"), agents=[agent("a", "never recorded")], options=TranscriptOptions(branches=Branches.ALL))
    assert placed(lost)[-1] == (1, "NoneType", ["a"])


def test_agents_are_not_opened_when_calls_are_hidden() -> None:
    class Closed(list[Talk]):
        def __iter__(self) -> Iterator[Talk]:
            raise AssertionError

    for detail in (Detail.PROMPTS, Detail.DIALOGUE):
        closed = talk(prompt("go"), starts("c"), agents=Closed(), options=TranscriptOptions(detail))
        assert [shown.number for shown in placed_blocks(closed)] == [1]


def test_numbers_count_the_whole_timeline() -> None:
    timeline = (prompt("one"), message("two"), prompt("gone", fate=Fate.REWOUND), prompt("four"))
    shown = [*placed_blocks(talk(*timeline, options=TranscriptOptions(Detail.PROMPTS)))]
    assert [(block.number, isinstance(block.block, HiddenBlock)) for block in shown] == [
        (1, False),
        (4, True),
        (4, False),
    ]
    assert [block.number for block in placed_blocks(talk(*timeline))] == [1, 2, 4, 4]


def test_session_is_never_shown_within_itself() -> None:
    session = talk(starts("c"), starts("d"), agents=[agent("outer", "c"), agent("main", "d"), agent("new", "d")])
    shown = [*placed_blocks(session, frozenset({"outer"}))]
    assert [[child.session.id for child in each.agents] for each in shown] == [[], ["new"]]
    assert shown[0].above == {"outer", "main"}


def test_blocks_are_yielded_while_messages_are_read() -> None:
    read: list[int] = []

    def messages() -> Iterator[Message]:
        for number in range(9):
            read.append(number)
            yield prompt(str(number))

    endless = talk()
    object.__setattr__(endless, "timeline", messages())
    shown = next(placed_blocks(endless))
    assert (shown.number, read) == (1, [0])
    assert not isinstance(shown.block, ToolBlock)
