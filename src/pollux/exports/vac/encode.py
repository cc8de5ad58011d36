"""Make the record of a session, and encode it piece by piece: as RFC 8785 JSON or as deterministic CBOR."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from pollux import __version__
from pollux.exports.source import ExportSource
from pollux.exports.vac import PROFILE, VERSION
from pollux.exports.vac.entries import entries
from pollux.exports.vac.plan import agent_meta, survey
from pollux.exports.vac.values import LazyEntries, LazyMap, members, representable, time_text
from pollux.model import Json
from pollux.proofs import canonical, cbor


def render_json(source: ExportSource) -> Iterator[bytes]:
    """Yield a session as a record in JSON."""
    return json_pieces(record(source))


def render_cbor(source: ExportSource) -> Iterator[bytes]:
    """Yield a session as a record in CBOR."""
    return cbor_pieces(record(source))


def record(source: ExportSource, *, created: datetime | None = None, vcs: Mapping[str, Json] | None = None) -> LazyMap:
    """Return the record of a session; its entries are made while it is encoded.

    Args:
        source: the session.
        created: when the record was made; without it, the same session always gives the same bytes.
        vcs: the observed version control state of the project, which sessions do not record.

    """
    plan, collected = survey(source)
    header = members(
        version=VERSION,
        id=source.session.id,
        created=time_text(created),
        file_attribution=collected.files.attribution(source.clean, with_hashes=source.redactor is None),
        vcs=source.clean(vcs),
        recording_agent={"name": "pollux", "version": __version__},
        profile=PROFILE,
        branches=source.export_options.branches,
        redacted=True if source.redactor else None,
        sources=collected.sources,
        problems=collected.problems or None,
    )
    session = LazyMap(representable(plan.trace, source.losses), entries=entries(source, plan))
    session["agent-meta"] = representable(agent_meta([*collected.models]), source.losses)
    return LazyMap(representable(header, source.losses), session=session)


def json_pieces(value: Any) -> Iterator[bytes]:  # noqa: ANN401  a record, or a part of one
    """Yield a value as canonical JSON (RFC 8785)."""
    match value:
        case LazyEntries():
            yield b"["
            for number, entry in enumerate(value.each()):
                yield b"," if number else b""
                yield from json_pieces(entry)
            yield b"]"
        case list() if any(isinstance(item, LazyMap) for item in value):
            yield from json_pieces(LazyEntries(len(value), value.__iter__))
        case LazyMap():
            for number, key in enumerate(sorted(value)):  # names of the schema, all ASCII
                yield (b"," if number else b"{") + canonical.json_bytes(key) + b":"
                yield from json_pieces(value[key])
            yield b"}"
        case _:
            yield canonical.json_bytes(value)


def cbor_pieces(value: Any) -> Iterator[bytes]:  # noqa: ANN401
    """Yield a value as deterministic CBOR (RFC 8949, section 4.2.1)."""
    match value:
        case LazyEntries():
            yield cbor.head(cbor.ARRAY, value.count)
            for entry in value.each():
                yield from cbor_pieces(entry)
        case list() if any(isinstance(item, LazyMap) for item in value):
            yield from cbor_pieces(LazyEntries(len(value), value.__iter__))
        case LazyMap():
            yield cbor.head(cbor.MAP, len(value))
            for key in sorted(value, key=canonical.cbor_bytes):
                yield canonical.cbor_bytes(key)
                yield from cbor_pieces(value[key])
        case _:
            yield canonical.cbor_bytes(value)
