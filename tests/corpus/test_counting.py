"""The quick count equals that of a complete reading or gives up, which it does not on ordinary sessions."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from pytest import TempPathFactory  # noqa: PT013
from tests import builders
from tests.corpus.trees import Tree, every_release

from pollux import prices
from pollux.archive.pricing import priced
from pollux.reports import usage_quick
from pollux.sessions.grouping import bundles
from pollux.sessions.homes import homes
from pollux.sessions.locate import SessionFile, locate
from pollux.sessions.reader import SessionReader

PRICE = partial(priced, prices.load())
ORDINARY = ("qa", "tools", "image", "todos", "mcp", "subagent")
"""Scenarios in which nothing is interrupted, resumed or compressed."""


def both(bundle: list[SessionFile]) -> tuple[list[usage_quick.CountedSession] | None, list[usage_quick.CountedSession]]:
    """Return the quick count of a bundle and that of a complete reading, without the order of calls."""
    quick = usage_quick.quick_sessions(bundle, PRICE)
    read = [_counted(usage_quick._counted(session, PRICE)) for session in SessionReader({}).sessions(bundle)]
    return (None if quick is None else ordered(quick)), ordered(read)


def _counted(session: usage_quick.CountedSession) -> usage_quick.CountedSession:
    """Return a session without the problem that changes no sum and that `usage` never reports."""
    return session._replace(
        problems=tuple(problem for problem in session.problems if problem.code != "split-by-newer-node")
    )


def ordered(sessions: list[usage_quick.CountedSession]) -> list[usage_quick.CountedSession]:
    return sorted(session._replace(calls=sorted(session.calls, key=str)) for session in sessions)


@every_release
def test_quick_count_equals_a_complete_reading(trees: list[Tree]) -> None:
    for tree in trees:
        home = tree.folder / "gemini"
        searched = homes([home], {}, tree.folder / "nowhere") if home.is_dir() else ()
        for bundle in bundles(locate(searched).files):
            quick, read = both(bundle)
            assert quick in (None, read), tree.name
            has_agent_inside = tree.folder.name == "subagent" and tree.version < (0, 32)
            if tree.folder.name in ORDINARY and tree.version[1] > 3 and not has_agent_inside:
                assert quick is not None, tree.name


LINES = [
    builders.header(),
    builders.checkpoint(builders.preamble()),
    builders.user("u1", "hello"),
    builders.gemini("g1", "hi", tokens=builders.tokens()),
    builders.updates(lastUpdated=builders.at(3)),
    builders.gemini("g1", "hi", tokens=builders.tokens(), toolCalls=[builders.call()]),
    builders.user("u2", "more", second=4),
    builders.notice("i1", second=5),
    builders.gemini("g2", "yes", second=6, tokens=builders.tokens(20)),
    builders.checkpoint(builders.preamble(), builders.user("u1"), builders.gemini("g1", tokens=builders.tokens(11))),
    builders.rewind("u2"),
    builders.gemini("g3", [{"text": "hi"}], second=7, model=None),
    builders.gemini("g2", "yes", second=8, tokens=None),
    builders.updates(summary="a talk", sessionId=builders.SESSION),
]


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_quick_count_of_damaged_lines_equals_a_complete_reading(
    tmp_path_factory: TempPathFactory, data: st.DataObject
) -> None:
    chosen = data.draw(st.lists(st.sampled_from(LINES), max_size=14))
    content = builders.log(LINES[0], *chosen)
    cut = data.draw(st.integers(0, len(content)))
    instead = data.draw(st.sampled_from([b"", b"\n", b"}", b"\0", b'"', b"{"]))
    for damaged in (content, content[:cut] + instead + content[cut + 1 :]):
        home = tmp_path_factory.getbasetemp() / "counting"
        builders.put(builders.chats(home) / f"{builders.NAME}.jsonl", damaged)
        quick, exact = both([*locate([builders.home(home)]).files])
        assert quick in (None, exact)


def test_quick_count_reads_ordinary_lines(tmp_path: Path) -> None:
    builders.put(builders.chats(tmp_path) / f"{builders.NAME}.jsonl", builders.log(*LINES[:9], LINES[10], LINES[13]))
    quick, exact = both([*locate([builders.home(tmp_path)]).files])
    assert quick == exact
    assert [(call[1], call[4]) for session in exact for call in session.calls] == [("g1", "active"), ("g2", "rewound")]
