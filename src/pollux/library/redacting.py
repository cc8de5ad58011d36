"""Redact exports, and report what was replaced."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import msgspec

from pollux.library.config import Config, UsageError
from pollux.library.export_options import optional_rules
from pollux.redaction import OPTIONAL_RULES, Finding, Redactor, redactor

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
    """Number of replacements by kind and rule, most frequent first."""
    unscanned: tuple[UnscannedData, ...]
    findings: tuple[Finding, ...]
    """Every match with its place."""
    dry_run: bool
    kinds: Mapping[str, int] = {}
    """How often something of each kind was replaced, the most frequent first."""
    rules_off: tuple[str, ...] = ()
    """The optional rules that were not switched on."""
    is_shared: bool = False
    """Whether the result is made for other people."""


class Redaction:
    """Creates a redactor per session, so that pseudonyms do not depend on other sessions, and adds up the results."""

    def __init__(self, options: RedactionOptions, config: Config, *, is_for_others: bool) -> None:
        """Store the options. Formats for publication are always redacted, otherwise raises `UsageError`."""
        is_public = options.share or is_for_others
        if options.redact is False and is_public:
            raise UsageError("What is made for others is always redacted: leave --no-redact out.")
        options.check()
        self.is_wanted = options.is_requested or is_public
        self._options, self._config, self._is_public = options, config, is_public
        self._rules = optional_rules(options.rules)
        self._redactors: list[Redactor] = []

    @property
    def made_by(self) -> str:
        """Everything besides the sessions that the output depends on."""
        options, user_name = self._options, self._config.user_name() if self.is_wanted else ""
        custom = f" {options.words} {self._rules}" if options.words or self._rules else ""
        return f"{self.is_wanted} {options.share} {user_name}{custom}"

    def redactor(self, session: Session, messages: Iterable[Message]) -> Redactor | None:
        """Return a redactor that has read the whole session, because a name may be introduced after its first use."""
        if not self.is_wanted:
            return None
        config = self._config
        made = redactor(
            user_home=config.user_home,
            user_name=config.user_name(),
            words=self._options.words,
            rules=self._rules,
            drop_binary=self._options.share,
        )
        for owner in _owners(session):
            made.add_user(owner)
        for message in messages:
            made.learn(message)
        self._redactors.append(made)
        return made

    def report(self) -> RedactionReport | None:
        """Return the replacements so far; None if redaction is off."""
        if not self.is_wanted:
            return None
        replaced, unscanned, kinds = Counter[str](), Counter[tuple[str, str, bool]](), Counter[str]()
        findings: list[Finding] = []
        for made in self._redactors:
            report = made.report()
            for match in report.replaced:
                replaced[f"{match.finds} ({match.rule})"] += match.count
                kinds[match.kind.value] += match.count
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
            dict(kinds.most_common()),
            tuple(rule.id for rule in OPTIONAL_RULES if rule.id not in self._rules),
            self._is_public,
        )


def _owners(session: Session) -> set[str]:
    """Return the names of the home folders in which the client stored the session."""
    folders = (ref.path.parts for ref in session.files)
    return {parts[parts.index(_GEMINI) - 1] for parts in folders if _GEMINI in parts[1:]}
