"""`--redact`, `--share` and `--redact-dry-run`: secrets and names are taken out of what is handed over."""
# ruff: noqa: PLC0415  imported when a command runs

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from pollux.cli import output

if TYPE_CHECKING:
    from pollux.model import Message, Session
    from pollux.redaction import Redactor
    from pollux.redaction.report import Finding

_GEMINI = ".gemini"
_Function = TypeVar("_Function", bound=Callable[..., Any])


class Asked(NamedTuple):
    """What somebody asked for."""

    redact: bool | None
    share: bool
    only_tries: bool


def redaction_options(function: _Function) -> _Function:
    """Give a command the options of redaction; it gets them as one `asked`."""

    @functools.wraps(function)
    def wrapped(*, redact: bool | None, share: bool, redact_dry_run: bool, **rest: Any) -> object:  # noqa: ANN401
        return function(asked=Asked(redact, share, redact_dry_run), **rest)

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


@dataclass(slots=True)
class Redaction:
    """What was asked for, and what came of it."""

    is_wanted: bool
    drops_binary: bool = False
    only_tries: bool = False
    redactors: list[Redactor] = field(default_factory=list)

    @property
    def made_by(self) -> str:
        """All that it depends on, to tell whether something has to be done again."""
        return f"{self.is_wanted} {self.drops_binary} {_whose() if self.is_wanted else ''}"

    def redactor(self, session: Session, messages: Iterable[Message]) -> Redactor | None:
        """Make the redactor of one session, so that its pseudonyms do not depend on others; it learns all names first.

        A name may be told at the end and stand at the beginning.
        """
        from pollux.redaction import redactor

        if not self.is_wanted:
            return None
        made = redactor(user_home=Path.home(), user_name=_whose(), drop_binary=self.drops_binary)
        for owner in _owners(session):
            made.know(owner, is_user=True)
        for message in messages:
            made.learn(message)
        self.redactors.append(made)
        return made

    def say(self) -> None:
        """Say what was replaced, and what could not be looked into."""
        from collections import Counter

        reports = [one.report() for one in self.redactors]
        counts = Counter[str]()
        for found in (found for report in reports for found in report.replaced):
            counts[f"{found.finds} ({found.rule})"] += found.count
        if self.is_wanted:
            done = "Would be redacted" if self.only_tries else "Redacted"
            output.words(f"{done}: {', '.join(f'{n} × {what}' for what, n in counts.most_common()) or 'nothing'}.")
        unread = Counter[tuple[str, str, bool]]()
        for left in (left for report in reports for left in report.unscanned):
            unread[left.what, left.media_type, left.is_dropped] += left.count
        for (what, media_type, is_dropped), n in sorted(unread.items()):
            name = " ".join(filter(None, (media_type, what)))
            output.words(f"Not looked into: {n} × {name}{', left out' if is_dropped else '; check them yourself'}.")

    def findings(self) -> list[Finding]:
        """List what was found, place by place."""
        return [found for one in self.redactors for found in one.findings()]


def _owners(session: Session) -> set[str]:
    """Name those in whose home folders the client put the session."""
    folders = (ref.path.parts for ref in session.files)
    return {parts[parts.index(_GEMINI) - 1] for parts in folders if _GEMINI in parts[1:]}


def _whose() -> str | None:
    from getpass import getuser

    try:
        return getuser()
    except (KeyError, OSError):  # nobody, as in some containers
        return None


def redaction(asked: Asked, *, is_for_others: bool) -> Redaction:
    """Tell what is wanted; what is made to be published is always redacted."""
    is_wanted = asked.share or is_for_others
    if asked.redact is False and is_wanted:
        raise click.UsageError("What is made for others is always redacted: leave --no-redact out.")
    is_wanted = bool(asked.redact) or asked.only_tries or is_wanted
    return Redaction(is_wanted, drops_binary=asked.share, only_tries=asked.only_tries)


def print_findings(findings: Iterable[Finding]) -> None:
    """Print what would be replaced, one line each, fields apart by tabs."""
    from pollux.render.terminal.tables import tabbed

    lines = [tabbed(one.rule, one.session, one.message or "", one.where, one.count, one.excerpt) for one in findings]
    output.write(line.encode("utf-8", "replace") for line in lines)
    output.words(f"Found in {len(lines)} place{'s' * (len(lines) != 1)}; nothing was written.")
