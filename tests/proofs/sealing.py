"""Archives that are sealed, and what was found in them afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.proofs.samples import AT, KEY, PUBLIC, record

from pollux.archive import seals, store
from pollux.proofs import chain, verify_archive
from pollux.proofs.public import PublicKey
from pollux.proofs.seal import SealOutcome, seal
from pollux.proofs.verdict import Verdict


def record_of(session: str) -> Mapping[str, Any]:
    return record(id=session)


def seal_it(archive: Path, *, hours: int = 0, **more: Any) -> SealOutcome:  # noqa: ANN401
    with store.open_archive(archive) as opened:
        made: dict[str, Any] = {"record_of": record_of, "at": AT + timedelta(hours=hours)} | more
        return seal(opened, KEY, **made)


def look(archive: Path, given: bytes | None = None, keys: tuple[PublicKey, ...] = (PUBLIC,)) -> Verdict:
    with store.open_archive(archive, write=False) as opened:
        return verify_archive.verify(opened, keys, chain.seal_copy_from(given) if given is not None else None)


def messages(found: Verdict) -> list[str]:
    return [f"{one.file or one.what}: {one.message}" for one in found.errors]


def full(archive: Path) -> bytes:
    """Copy the newest seal with all its entries to another place."""
    with store.open_archive(archive, write=False) as opened:
        entries = tuple(body for _, body in seals.entries(opened.database))
        return chain.SealCopy(seals.seals(opened.database)[-1][1], entries).file_bytes


def bare(archive: Path) -> bytes:
    with store.open_archive(archive, write=False) as opened:
        return seals.seals(opened.database)[-1][1]
