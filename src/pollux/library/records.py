"""A session as the record that is sealed: in its plainest form, so that it can be made again at any time."""
# ruff: noqa: PLC0415  imported when a command runs

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pollux.cli.scope import Scope
    from pollux.model import Json, Session


def record_of(scope: Scope, by_id: Mapping[str, Session]) -> Callable[[str], dict[str, Any]]:
    """Return what makes the record of a session of an archive; its entries are made when they are asked for."""
    from pollux.exports.source import subject
    from pollux.exports.vac.record import record

    def made(session_id: str) -> dict[str, Any]:
        session = by_id[session_id]
        return record(subject(session, scope.opened(session), by_id, scope.opened))

    return made


def whole(record: dict[str, Any]) -> dict[str, Json]:
    """Make all entries of a record."""
    from pollux.exports.vac.encode import json_pieces
    from pollux.proofs.canonical import json_value

    value = json_value(b"".join(json_pieces(record)))
    assert isinstance(value, dict)
    return value
