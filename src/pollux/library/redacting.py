"""Redaction of exports: which sessions are redacted, with whose names, and what came of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import msgspec

from pollux.library.config import Config, UsageError
from pollux.redaction import Finding, Redactor, redactor

if TYPE_CHECKING:
    from pollux.library.export_options import RedactionOptions
    from pollux.model import Message, Session

_GEMINI = ".gemini"


class UnscannedData(msgspec.Struct, frozen=True):
    """Data that redaction cannot look into."""

    name: str
    count: int
    is_dropped: bool


class RedactionReport(msgspec.Struct, frozen=True):
    """What redaction replaced, and what it could not look into."""

    replaced: Mapping[str, int]
    """What was found and by which rule, the most frequent first."""
    unscanned: tuple[UnscannedData, ...]
    findings: tuple[Finding, ...]
    """What was found, place by place."""
    dry_run: bool


class Redaction:
    """Makes a redactor per session, so that pseudonyms of one do not depend on the others, and sums up their work."""

    def __init__(self, options: RedactionOptions, config: Config, *, is_for_others: bool) -> None:
        """Take what was asked for; a format that is made to be published is always redacted. Raises `UsageError`."""
        is_public = options.share or is_for_others
        if options.redact is False and is_public:
            raise UsageError("What is made for others is always redacted: leave --no-redact out.")
        self.is_wanted = bool(options.redact) or options.dry_run or is_public
        self._options, self._config = options, config
        self._redactors: list[Redactor] = []

    @property
    def made_by(self) -> str:
        """All that the result depends on besides the sessions."""
        return f"{self.is_wanted} {self._options.share} {self._config.user_name() if self.is_wanted else ''}"

    def redactor(self, session: Session, messages: Iterable[Message]) -> Redactor | None:
        """Return a redactor that knows all names of a session: one may be told at the end and used at the beginning."""
        if not self.is_wanted:
            return None
        config = self._config
        made = redactor(user_home=config.user_home, user_name=config.user_name(), drop_binary=self._options.share)
        for owner in _owners(session):
            made.know(owner, is_user=True)
        for message in messages:
            made.learn(message)
        self._redactors.append(made)
        return made

    def report(self) -> RedactionReport | None:
        """Return what was replaced so far; None if nothing is redacted."""
        if not self.is_wanted:
            return None
        replaced, unscanned = Counter[str](), Counter[tuple[str, str, bool]]()
        findings: list[Finding] = []
        for made in self._redactors:
            report = made.report()
            for match in report.replaced:
                replaced[f"{match.finds} ({match.rule})"] += match.count
            for data in report.unscanned:
                unscanned[data.what, data.media_type, data.is_dropped] += data.count
            findings += made.findings()
        return RedactionReport(
            dict(replaced.most_common()),
            tuple(
                UnscannedData(" ".join(filter(None, (media_type, what))), count, is_dropped)
                for (what, media_type, is_dropped), count in sorted(unscanned.items())
            ),
            tuple(findings),
            self._options.dry_run,
        )


def _owners(session: Session) -> set[str]:
    """Return the names of the home folders in which the client stored the session."""
    folders = (ref.path.parts for ref in session.files)
    return {parts[parts.index(_GEMINI) - 1] for parts in folders if _GEMINI in parts[1:]}
