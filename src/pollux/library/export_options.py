"""Options of an export: its formats, what each format accepts, and redaction."""
# ruff: noqa: PLC0415  completing a command line needs the formats only

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from pollux.exports import EXPORTERS as FORMATS
from pollux.library.config import UsageError

if TYPE_CHECKING:
    from pollux.exports.source import ExportOptions

__all__ = ("FORMATS", "RedactionOptions", "format_options", "optional_rules", "read_words")

_ALL_RULES = "all"


class RedactionOptions(msgspec.Struct, frozen=True):
    """What an export replaces by pseudonyms: by default secrets, e-mail addresses and names."""

    redact: bool | None = None
    """None: only if another option or the format requires it."""
    share: bool = False
    """For other people: redacted, and without pictures and files, which redaction cannot read."""
    dry_run: bool = False
    """Only list what would be replaced; write nothing."""
    words: tuple[str, ...] = ()
    """Words of the user's own to replace, in any case."""
    rules: tuple[str, ...] = ()
    """Optional rules to switch on: phone-number, card-number, ip-address, host-name or all."""

    @property
    def is_requested(self) -> bool:
        """Whether one of the options asks for redaction."""
        return bool(self.redact or self.share or self.dry_run or self.words or self.rules)

    def check(self) -> None:
        """Raise `UsageError` for a word or a rule that cannot be used, and for options that contradict each other."""
        from pollux.redaction.names import word_fault

        for word in self.words:
            if fault := word_fault(word):
                raise UsageError(f"Cannot redact the word '{word}': {fault}.")
        optional_rules(self.rules)
        if self.redact is False and (self.words or self.rules):
            raise UsageError("--no-redact contradicts --redact-word, --redact-words and --redact-rule.")


def optional_rules(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the ids of the optional rules that are named. Raises `UsageError` for any other name."""
    if not names:
        return ()
    from difflib import get_close_matches

    from pollux.redaction import OPTIONAL_RULES, RULES

    optional = tuple(rule.id for rule in OPTIONAL_RULES)
    for name in names:
        if name not in optional and name != _ALL_RULES:
            is_on = any(rule.id == name for rule in RULES)
            fault = f"The redaction rule '{name}' is always on." if is_on else f"There is no redaction rule '{name}'."
            close = [rule for rule in optional if name in rule] or get_close_matches(name, optional, 1)
            hint = f" Did you mean {close[0]}?" if close else ""
            raise UsageError(f"{fault}{hint} Rules to switch on: {', '.join(optional)}, all.")
    return optional if _ALL_RULES in names else tuple(rule for rule in optional if rule in names)


def read_words(path: Path) -> tuple[str, ...]:
    """Return the words of a file, one a line; lines that start with # are comments. Raises `UsageError`."""
    from pollux.redaction.names import word_fault

    try:
        text = path.read_text("utf-8-sig")
    except OSError as error:
        raise UsageError(f"Cannot read the words in {path}: {error.strerror or error}.") from None
    except UnicodeDecodeError:
        raise UsageError(f"Cannot read the words in {path}: the file is not UTF-8 text.") from None
    words = []
    for number, line in enumerate(text.splitlines(), 1):
        word = line.strip()
        if not word or word.startswith("#"):
            continue
        if fault := word_fault(word):
            raise UsageError(f"{path}, line {number}: cannot redact the word '{word}': {fault}.")
        words.append(word)
    return tuple(words)


def format_options(name: str, given: Mapping[str, Any]) -> ExportOptions:
    """Return the options of a format; None and () count as not given. Raises `UsageError` for one that it ignores."""
    from pollux.exports.source import ExportOptions
    from pollux.views.transcript import Branches, Detail

    options = {key: value for key, value in given.items() if value not in (None, ())}
    for key in options:
        if key not in FORMATS[name].options:
            formats = ", ".join(other for other, exporter in FORMATS.items() if key in exporter.options)
            raise UsageError(f"--{key.replace('_', '-')} has no effect on {name}; it is for {formats}.")
    for key, parse in (("detail", Detail), ("branches", Branches), ("include", _split_words)):
        if key in options:
            options[key] = parse(options[key])
    return ExportOptions(**options)


def _split_words(text: str) -> frozenset[str]:
    return frozenset(filter(None, map(str.strip, text.split(","))))
