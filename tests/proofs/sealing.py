"""Functions that seal archives, verify them, and copy their seals."""

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


def verify(archive: Path, copy_data: bytes | None = None, keys: tuple[PublicKey, ...] = (PUBLIC,)) -> Verdict:
    with store.open_archive(archive, write=False) as opened:
        return verify_archive.verify(opened, keys, chain.seal_copy_from(copy_data) if copy_data is not None else None)


def messages(verdict: Verdict) -> list[str]:
    return [f"{error.file or error.what}: {error.message}" for error in verdict.errors]


def seal_copy_with_entries(archive: Path) -> bytes:
    """Return a copy of the newest seal with all its entries."""
    with store.open_archive(archive, write=False) as opened:
        entries = tuple(body for _, body in seals.entries(opened.database))
        return chain.SealCopy(seals.seals(opened.database)[-1][1], entries).file_bytes


def seal_copy(archive: Path) -> bytes:
    with store.open_archive(archive, write=False) as opened:
        return seals.seals(opened.database)[-1][1]
