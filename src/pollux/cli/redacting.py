"""`--redact`, `--share` and `--redact-dry-run`: secrets and names are taken out of what is handed over."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pollux.cli import output
from pollux.library.export_options import RedactionOptions

if TYPE_CHECKING:
    from pollux.library.export_values import Finding, RedactionReport

_Function = TypeVar("_Function", bound=Callable[..., Any])


def redaction_options(function: _Function) -> _Function:
    """Add the options of redaction to a command, which gets them as one `redaction`."""

    @functools.wraps(function)
    def wrapped(*, redact: bool | None, share: bool, redact_dry_run: bool, **rest: Any) -> object:  # noqa: ANN401
        return function(redaction=RedactionOptions(redact, share, redact_dry_run), **rest)

    for option in (
        click.option(
            "--redact-dry-run", is_flag=True, help="Only list what would be replaced, without giving it away."
        ),
        click.option(
            "--share", is_flag=True, help="For others: redacted, and without pictures and files, which nothing reads."
        ),
        click.option(
            "--redact/--no-redact",
            default=None,
            help="Replace secrets, e-mail addresses and names by pseudonyms; by default only with --share.",
        ),
    ):
        wrapped = option(wrapped)
    return wrapped  # type: ignore[return-value]


def print_redaction(report: RedactionReport) -> None:
    """Print what was replaced, and what redaction could not look into."""
    label = "Would be redacted" if report.dry_run else "Redacted"
    replaced = ", ".join(f"{count} × {what}" for what, count in report.replaced.items())
    output.words(f"{label}: {replaced or 'nothing'}.")
    for data in report.unscanned:
        advice = ", left out" if data.is_dropped else "; check them yourself"
        output.words(f"Not looked into: {data.count} × {data.name}{advice}.")


def print_findings(findings: Iterable[Finding]) -> None:
    """Print what would be replaced, one line each, fields apart by tabs."""
    from pollux.render.terminal.tables import tabbed  # noqa: PLC0415  slow to load

    lines = []
    for finding in findings:
        message = finding.message or ""
        lines.append(tabbed(finding.rule, finding.session, message, finding.where, finding.count, finding.excerpt))
    output.write(line.encode("utf-8", "replace") for line in lines)
    output.words(f"Found in {len(lines)} place{'s' * (len(lines) != 1)}; nothing was written.")
