"""The options of redaction, and what a command prints about it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pollux.cli import output
from pollux.library.export_options import RedactionOptions, optional_rules, read_words

if TYPE_CHECKING:
    from pollux.library.export_values import Finding, RedactionReport

_Function = TypeVar("_Function", bound=Callable[..., Any])

_KINDS = {
    "secret": ("secret", "secrets"),
    "e-mail": ("e-mail address", "e-mail addresses"),
    "name": ("name", "names"),
    "path": ("home folder", "home folders"),
    "word": ("word of yours", "words of yours"),
    "phone number": ("phone number", "phone numbers"),
    "card number": ("card number", "card numbers"),
    "IP address": ("IP address", "IP addresses"),
    "host name": ("host name", "host names"),
}
"""One and several matches of the rules of each kind."""


def redaction_options(function: _Function) -> _Function:
    """Add the options of redaction to a command, which receives them as `redaction`."""

    @functools.wraps(function)
    def wrapped(
        *,
        redact: bool | None,
        share: bool,
        redact_dry_run: bool,
        redact_word: tuple[str, ...],
        redact_words: tuple[Path, ...],
        redact_rule: tuple[str, ...],
        **others: Any,  # noqa: ANN401  the options of the command itself
    ) -> object:
        words = [*redact_word]
        for path in redact_words:
            words += read_words(path)
        redaction = RedactionOptions(redact, share, redact_dry_run, tuple(words), redact_rule)
        redaction.check()
        return function(redaction=redaction, **others)

    for option in reversed(
        (
            click.option(
                "--redact/--no-redact",
                default=None,
                help="Replace secrets, e-mail addresses and names with pseudonyms; implied by the options below.",
            ),
            click.option(
                "--share", is_flag=True, help="Make a copy for other people: redacted, without pictures and files."
            ),
            click.option(
                "--redact-word",
                metavar="WORD",
                multiple=True,
                help="Also replace this word, in any case, such as a company or a project. Repeatable.",
            ),
            click.option(
                "--redact-words",
                metavar="FILE",
                multiple=True,
                type=click.Path(path_type=Path),
                help="Also replace the words in this file: one per line, # starts a comment.",
            ),
            click.option(
                "--redact-rule",
                metavar="RULE",
                multiple=True,
                shell_complete=_complete_rules,
                help="Also replace phone-number, card-number, ip-address, host-name or all of them. Repeatable.",
            ),
            click.option(
                "--redact-dry-run", is_flag=True, help="List what would be replaced, masked, and write nothing."
            ),
        )
    ):
        wrapped = option(wrapped)
    return wrapped  # type: ignore[return-value]


def _complete_rules(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in (*optional_rules(("all",)), "all") if name.startswith(incomplete)]


def print_redaction(report: RedactionReport) -> None:
    """Print what was replaced, what redaction could not read and, for a shared copy, what it does not look for."""
    if not report.is_shared or report.dry_run:
        label = "Would be redacted" if report.dry_run else "Redacted"
        replaced = ", ".join(f"{count} × {what}" for what, count in report.replaced.items())
        output.note(f"{label}: {replaced or 'nothing'}.")
    for data in report.unscanned:
        advice = "left out" if data.is_dropped else "included unchecked; look at them yourself"
        output.note(f"Cannot be read by redaction: {data.count} × {data.name}, {advice}.")
    if report.is_shared and not report.dry_run:
        output.note(_sharing_note(report))


def _sharing_note(report: RedactionReport) -> str:
    counts = []
    for kind, count in report.kinds.items():
        counts.append(f"{count:,} {_KINDS[kind][count != 1]}")
    off = f"{', '.join(report.rules_off)} (--redact-rule), " if report.rules_off else ""
    return (
        f"Replaced: {', '.join(counts) or 'nothing'}. Not looked for: {off}people and companies in sentences"
        " (--redact-word), postal addresses. Read the result before you send it."
    )


def print_findings(findings: Iterable[Finding]) -> None:
    """Print what would be replaced: one line for each place, with tabs between the fields."""
    from pollux.render.terminal.tables import tabbed  # noqa: PLC0415  slow to load

    lines = []
    for finding in findings:
        message = finding.message or ""
        lines.append(tabbed(finding.rule, finding.session, message, finding.where, finding.count, finding.excerpt))
    output.write(line.encode("utf-8", "replace") for line in lines)
    output.note(f"Found in {len(lines)} place{'s' * (len(lines) != 1)}; nothing was written.")
