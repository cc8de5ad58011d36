"""Reports on a session and its subagents: their tree, and an audit of their cost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pollux.library.references import Ref, load_families, load_session, open_file
from pollux.reports.audit import AuditReport, SessionAudit, audited, call_owners, repeating
from pollux.sessions.family import SessionTree, build_tree, root, with_subagents

if TYPE_CHECKING:
    from pollux.library.snapshot import Snapshot
    from pollux.model import Session
    from pollux.prices import Prices
    from pollux.reports.filters import Filter
    from pollux.sessions.grouping import OpenSession


def audit_report(snapshot: Snapshot | None, reference: Ref, wanted: Filter, prices: Prices) -> AuditReport:
    """Return the audit of a session and its subagents; a file is audited alone and needs no snapshot."""
    if isinstance(reference, Path):
        session, group = open_file(reference)
        audits = [SessionAudit(session, tuple(audited(session, group, prices, owners={})))]
    else:
        assert snapshot is not None
        session = load_session(snapshot, reference, wanted)
        family = load_families(snapshot, [session.id], [session])
        audits = [_audit(snapshot, member, prices) for member in with_subagents(session, family)]
    return AuditReport(tuple(audits), prices.table, prices.date)


def _audit(snapshot: Snapshot, session: Session, prices: Prices) -> SessionAudit:
    group = snapshot.sessions.open(session)
    owners = call_owners(snapshot.database, session.id)
    return SessionAudit(
        session, tuple(audited(session, group, prices, owners=owners, others=_repeats(snapshot, session)))
    )


def _repeats(snapshot: Snapshot, session: Session) -> Iterator[tuple[str, OpenSession]]:
    """Open the sessions in the snapshot that repeat calls of this one."""
    ids = repeating(snapshot.database, session.id)
    if snapshot.ids is not None:
        ids = ids.intersection(snapshot.ids)
    for other in snapshot.sessions.load(sorted(ids)):
        yield other.id, snapshot.sessions.open(other)


def session_tree(snapshot: Snapshot, reference: Ref, wanted: Filter) -> SessionTree:
    """Return the tree that contains the session; a file outside the homes is a tree of one."""
    if isinstance(reference, Path):
        session = _owner(snapshot, reference)
        if session is None:
            return SessionTree(open_file(reference)[0])
    else:
        session = load_session(snapshot, reference, wanted)
    family = load_families(snapshot, [session.id], [session])
    return build_tree(root(session, family), family)


def _owner(snapshot: Snapshot, path: Path) -> Session | None:
    """Return the session that a file belongs to."""
    real = path.resolve()
    candidates = snapshot.sessions.load(snapshot.sessions.with_file(path.name))
    for session in candidates:
        is_in_scope = snapshot.ids is None or session.id in snapshot.ids
        if is_in_scope and any(ref.path.resolve() == real for ref in session.files):
            return session
    return None
