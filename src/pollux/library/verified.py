"""The result of the last `pollux verify`, in a small file next to the archive, so that others need not check again."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from pollux.disk.read import read_side_file
from pollux.disk.write import write_private

if TYPE_CHECKING:
    from pathlib import Path

    from pollux.archive.damage import VerifyReport
    from pollux.library.config import Config

_MAX_SIZE = 4096


class LastVerification(msgspec.Struct, frozen=True):
    """What the last verification has found."""

    at: datetime
    is_deep: bool
    """Whether the facts were compared, too."""
    n_bytes: int
    n_damaged: int
    """Damage that was not repaired."""


_decode = msgspec.json.Decoder(LastVerification).decode


def remember_verification(config: Config, report: VerifyReport, *, deep: bool) -> None:
    """Store the result of a verification; where the folder cannot be written to, do nothing."""
    if config.archive is None:
        return
    n_damaged = sum(not damage.is_repaired for damage in report.damage)
    with suppress(OSError):
        result = LastVerification(config.clock(), deep, report.n_bytes, n_damaged)
        write_private(_file(config.archive), [msgspec.json.encode(result)])


def last_verification(config: Config) -> LastVerification | None:
    """Return the result of the last verification; None if there was none, or its file is damaged."""
    if config.archive is None:
        return None
    try:
        return _decode(read_side_file(_file(config.archive), limit=_MAX_SIZE))
    except (OSError, msgspec.DecodeError):
        return None


def _file(archive: Path) -> Path:
    return archive.with_name(f"{archive.name}.verified")
