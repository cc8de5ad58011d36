"""A session with its subagents, however deep: its root, its children and all below it.

A link to a parent counts if the parent exists and the link is not part of a circle, as forged files may contain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice

import msgspec

from pollux.model import Session


class SessionTree(msgspec.Struct, frozen=True):
    """A session and the trees of the subagents that it started."""

    session: Session
    children: tuple[SessionTree, ...] = ()

    def by_id(self) -> dict[str, Session]:
        """Return all sessions of the tree by their IDs."""
        members: dict[str, Session] = {}
        waiting = [self]
        while waiting:
            tree = waiting.pop()
            members[tree.session.id] = tree.session
            waiting += tree.children
        return members


def find_roots(parents: Mapping[str, str | None]) -> dict[str, str]:
    """Return the root of each session: the top of the chain of parents that count, or the session itself.

    Args:
        parents: the parent of each session, as recorded.

    """
    roots: dict[str, str] = {}
    for start in parents:
        path: dict[str, None] = {}
        id_ = start
        while id_ not in roots and id_ not in path:
            path[id_] = None
            parent = parents[id_]
            id_ = parent if parent is not None and parent in parents else id_
        top = roots.get(id_, id_)
        is_in_circle = False
        for member in path:
            is_in_circle = is_in_circle or member == id_  # a session without a parent is a circle of one
            roots[member] = member if is_in_circle else top
    return roots


def find_children(parents: Mapping[str, str | None]) -> dict[str, list[str]]:
    """Return the children of each session that has any, in the order of `parents`."""
    roots = find_roots(parents)
    children: dict[str, list[str]] = {}
    for id_, parent in parents.items():
        if parent is not None and roots[id_] != id_:
            children.setdefault(parent, []).append(id_)
    return children


def walk(starts: Iterable[str], children: Callable[[str], Iterable[str]]) -> Iterator[str]:
    """Yield sessions and all below them, each once and after the one that started it."""
    seen: set[str] = set()
    waiting = [*starts][::-1]
    while waiting:
        id_ = waiting.pop()
        if id_ not in seen:
            seen.add(id_)
            yield id_
            waiting += [*children(id_)][::-1]


def link_children(sessions: Iterable[Session]) -> list[Session]:
    """Return the sessions, each with the IDs of its children, oldest first."""
    by_start = sorted(sessions, key=lambda session: (session.started is not None, session.started, session.id))
    children = find_children({session.id: session.parent for session in by_start})
    return [msgspec.structs.replace(session, children=tuple(children.get(session.id, ()))) for session in by_start]


def root(session: Session, by_id: Mapping[str, Session]) -> Session:
    """Return the top of the chain of parents of a session, or the session itself."""
    path = {session.id: session}
    while session.parent is not None and session.parent in by_id:
        if session.parent in path:
            return path[session.parent]
        session = by_id[session.parent]
        path[session.id] = session
    return session


def children(session: Session, by_id: Mapping[str, Session]) -> Iterator[Session]:
    """Yield the subagents that a session started itself."""
    return (by_id[child] for child in session.children if child in by_id and child != session.id)


def with_subagents(session: Session, by_id: Mapping[str, Session]) -> Iterator[Session]:
    """Yield a session and its subagents, however deep, each after the one that started it."""

    def find(id_: str) -> Session:
        return session if id_ == session.id else by_id[id_]

    return map(find, walk([session.id], lambda id_: (child.id for child in children(find(id_), by_id))))


def descendants(session: Session, by_id: Mapping[str, Session]) -> Iterator[Session]:
    """Yield the subagents of a session, however deep, without itself."""
    return islice(with_subagents(session, by_id), 1, None)


def build_tree(session: Session, by_id: Mapping[str, Session]) -> SessionTree:
    """Return a session with all its subagents."""
    trees: dict[str, SessionTree] = {}
    for member in reversed([*with_subagents(session, by_id)]):
        below = (trees.pop(child.id, None) for child in children(member, by_id))
        trees[member.id] = SessionTree(member, tuple(tree for tree in below if tree))
    return trees[session.id]
