"""A session → its record, of which only the entries are made later."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from pollux import __version__
from pollux.exports.source import Subject
from pollux.exports.vac import PROFILE, VERSION
from pollux.exports.vac.entries import entries
from pollux.exports.vac.plan import survey
from pollux.exports.vac.trace import agent_meta
from pollux.exports.vac.values import Open, sound, time, told
from pollux.model import Json


def record(subject: Subject, *, created: datetime | None = None, vcs: Mapping[str, Json] | None = None) -> Open:
    """Make the record of a session.

    Args:
        subject: what is handed over.
        created: when the record was made; without it, the same session gives the same bytes on any day.
        vcs: what was seen of the version control of the project; not said in any session.

    """
    plan, found = survey(subject)
    members = told(
        version=VERSION,
        id=subject.session.id,
        created=time(created),
        file_attribution=found.files.told(subject.clean, with_hashes=subject.redactor is None),
        vcs=subject.clean(vcs),
        recording_agent={"name": "pollux", "version": __version__},
        profile=PROFILE,
        branches=subject.wanted.branches,
        redacted=True if subject.redactor else None,
        sources=found.sources,
        problems=found.problems or None,
    )
    session = Open(sound(plan.trace, subject.losses), entries=entries(subject, plan))
    session["agent-meta"] = sound(agent_meta([*found.models]), subject.losses)
    return Open(sound(members, subject.losses), session=session)
