"""How the cost of a session and its subagents comes about."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pollux.library.references import Ref, load_families, load_session, open_file
from pollux.reports.audit import AuditReport, SessionAudit, audited, call_owners, repeating
from pollux.sessions.family import with_subagents

if TYPE_CHECKING:
    from pollux.library.snapshot import Snapshot
    from pollux.model import Session
    from pollux.prices import Prices
    from pollux.reports.filters import Filter
    from pollux.sessions.grouping import Group


def audit_report(snapshot: Snapshot | None, reference: Ref, wanted: Filter, prices: Prices) -> AuditReport:
    """Audit the session that a reference names, with its subagents; a file is audited by itself, without a snapshot."""
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


def _repeats(snapshot: Snapshot, session: Session) -> Iterator[tuple[str, Group]]:
    """Open the sessions in scope that repeat calls of this one."""
    ids = repeating(snapshot.database, session.id)
    if snapshot.ids is not None:
        ids = ids.intersection(snapshot.ids)
    for other in snapshot.sessions.load(sorted(ids)):
        yield other.id, snapshot.sessions.open(other)
