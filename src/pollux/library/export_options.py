"""What an export may be asked for: its formats, and the options that some of them have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from pollux.exports import EXPORTERS as FORMATS
from pollux.library.config import UsageError

if TYPE_CHECKING:
    from pollux.exports.source import Wanted

__all__ = ("FORMATS", "RedactionOptions", "format_options")


class RedactionOptions(msgspec.Struct, frozen=True):
    """Whether secrets, e-mail addresses and names are replaced by pseudonyms."""

    redact: bool | None = None
    """None: only where `share` or the format demands it."""
    share: bool = False
    """Made for others: redacted, and without pictures and files, which redaction cannot read."""
    dry_run: bool = False
    """Only look for what would be replaced; write nothing."""


def format_options(name: str, given: Mapping[str, Any]) -> Wanted:
    """Return the options of a format; None and () count as not given. Raises `UsageError` for one that it ignores."""
    from pollux.exports.source import Wanted  # noqa: PLC0415  not needed to complete a command line
    from pollux.views.transcript import Branches, Detail  # noqa: PLC0415

    options = {key: value for key, value in given.items() if value not in (None, ())}
    for key in options:
        if key not in FORMATS[name].heeds:
            fitting = ", ".join(other for other, exporter in FORMATS.items() if key in exporter.heeds)
            raise UsageError(f"--{key.replace('_', '-')} means nothing for {name}; it is for {fitting}.")
    for key, parse in (("detail", Detail), ("branches", Branches), ("include", _split_words)):
        if key in options:
            options[key] = parse(options[key])
    return Wanted(**options)


def _split_words(text: str) -> frozenset[str]:
    return frozenset(filter(None, map(str.strip, text.split(","))))
