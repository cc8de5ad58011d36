"""Relations between sessions: parents and subagents, and which session owns a model call that several contain.

A link to a parent counts if the parent exists and the link is not part of a cycle, which forged files may contain.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple, TypeVar

import msgspec

from pollux.model import Role, Session
from pollux.text.times import microseconds


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
        is_in_cycle = False
        for member in path:
            is_in_cycle = is_in_cycle or member == id_  # a session without a parent is a cycle of one
            roots[member] = member if is_in_cycle else top
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
    """Yield sessions and all their descendants, each once and after its parent."""
    seen: set[str] = set()
    waiting = [*starts][::-1]
    while waiting:
        id_ = waiting.pop()
        if id_ not in seen:
            seen.add(id_)
            yield id_
            waiting += [*children(id_)][::-1]


def link_children(sessions: Iterable[Session]) -> list[Session]:
    """Return the sessions, oldest first, each with the IDs of its children."""
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
    """Yield the subagents that a session started directly."""
    return (by_id[child] for child in session.children if child in by_id and child != session.id)


def with_subagents(session: Session, by_id: Mapping[str, Session]) -> Iterator[Session]:
    """Yield a session and its subagents at any depth, each after its parent."""

    def find(id_: str) -> Session:
        return session if id_ == session.id else by_id[id_]

    return map(find, walk([session.id], lambda id_: (child.id for child in children(find(id_), by_id))))


def descendants(session: Session, by_id: Mapping[str, Session]) -> Iterator[Session]:
    """Yield the subagents of a session at any depth."""
    return islice(with_subagents(session, by_id), 1, None)


def build_tree(session: Session, by_id: Mapping[str, Session]) -> SessionTree:
    """Return a session with all its subagents."""
    trees: dict[str, SessionTree] = {}
    for member in reversed([*with_subagents(session, by_id)]):
        below = (trees.pop(child.id, None) for child in children(member, by_id))
        trees[member.id] = SessionTree(member, tuple(tree for tree in below if tree))
    return trees[session.id]


_Call = TypeVar("_Call", bound=Hashable)


class Holder(NamedTuple):
    """A session that contains a model call; the smallest of several holders owns the call."""

    is_imported: bool
    """Whether all of its files came from another archive, so that this machine read none of them."""
    is_loaded: bool
    """Whether the client loaded it from another session: none of its files has the role `main`."""
    has_no_start: bool
    started_us: int
    session_id: str


def holder(session_id: str, started_us: int | None, *, is_loaded: bool, is_imported: bool = False) -> Holder:
    """Return the holder for a session's ID and start."""
    return Holder(is_imported, is_loaded, started_us is None, started_us or 0, session_id)


def session_holder(session: Session) -> Holder:
    """Return the holder for a session that was read from the disk."""
    is_loaded = not any(ref.role == Role.MAIN for ref in session.files)
    return holder(session.id, microseconds(session.started), is_loaded=is_loaded)


def find_owners(claims: Iterable[tuple[Holder, _Call]]) -> dict[_Call, Holder]:
    """Return the session that owns each call.

    Args:
        claims: pairs of a session and a call that it contains: the message ID and the six token counts.

    """
    owners: dict[_Call, Holder] = {}
    for candidate, call in claims:
        owner = owners.setdefault(call, candidate)
        if owner is not candidate and candidate < owner:
            owners[call] = candidate
    return owners
