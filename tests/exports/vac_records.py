"""Decoded records of sessions, and their entries."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cbor2
from tests import builders
from tests.builders import PRICES

from pollux.exports.source import ExportOptions, ExportSource, export_source
from pollux.exports.vac.encode import render_cbor, render_json
from pollux.model import Session
from pollux.redaction.redactor import Redactor
from pollux.sessions.reader import History, history, opened
from pollux.views.transcript import Branches

ALL = ExportOptions(branches=Branches.ALL)


def decoded(made: ExportSource) -> Any:  # noqa: ANN401  as decoded
    """Return a decoded record, after a check that JSON and CBOR are equal."""
    exported = json.loads(b"".join(render_json(made)))
    assert cbor2.loads(b"".join(render_cbor(made))) == exported
    return exported


def record_of(folder: Path, *records: object, options: ExportOptions | None = None) -> Any:  # noqa: ANN401
    """Return the record of a log with these lines after its header."""
    file = builders.put(folder / f"{builders.NAME}.jsonl", builders.log(builders.header(), *records))
    return decoded(builders.subject(file, options=options))


def entries_of(folder: Path, *records: object, options: ExportOptions | None = None) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = record_of(folder, *records, options=options)["session"]["entries"]
    return entries


def subject_of(
    read: History, session: Session, options: ExportOptions | None = None, redactor: Redactor | None = None
) -> ExportSource:
    """Return the export source of a session of a home."""
    by_id = {session.id: session for session in read.sessions}
    return export_source(session, opened(session), by_id, opened, PRICES, options=options, redactor=redactor)


def home_record(root: Path, id_: str, options: ExportOptions | None = None, redactor: Redactor | None = None) -> Any:  # noqa: ANN401
    """Return the record of a session of a home."""
    read = history([builders.home(root)])
    return decoded(subject_of(read, next(session for session in read.sessions if session.id == id_), options, redactor))


def walked(entries: list[dict[str, Any]], depth: int = 1) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield each entry with its depth, children after their parents."""
    for entry in entries:
        yield depth, entry
        yield from walked(entry.get("children", []), depth + 1)
