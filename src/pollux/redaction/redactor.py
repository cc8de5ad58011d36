"""Replace secrets and names in texts, values, messages and sessions by pseudonyms."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import PurePath
from typing import TypeAlias

from pollux.model import Json, Message, Session
from pollux.redaction import messages, values
from pollux.redaction.joined_text import JoinedText
from pollux.redaction.matches import Pseudonyms, RuleMatch, has_neighbour, with_neighbours
from pollux.redaction.names import CustomNames, KnownNames, find_people, may_name_people
from pollux.redaction.report import Finding, Ledger, RedactionSummary, mask
from pollux.redaction.rule import Rule
from pollux.redaction.rules import HOST, OPTIONAL, USER
from pollux.redaction.scan import PLAIN, ScanResult, clean_texts, scan

_MIN_BINARY = 400
"""Length from which base64 is reported if it cannot be read."""
_MAX_CHAIN = 4
"""Number of adjacent secrets that are replaced separately."""
_SPACE = re.compile(r"\s+")
_MAX_CACHED_LENGTH, _MAX_CACHED = 1000, 10_000
"""Length and number of redacted texts that are cached."""

_Note: TypeAlias = tuple[Callable[[], str], int]
"""How to show the first place of a match, and how often it was replaced."""
_Redacted: TypeAlias = tuple[Sequence[str], dict[tuple[Rule, str], _Note]]
"""Redacted texts, and what was replaced in them, by rule and pseudonym."""
_LEARNED = {"user": USER, "host": HOST}


class Redactor:
    """Replaces the same value by the same pseudonym in all sessions and messages it is given."""

    def __init__(self, names: CustomNames | None = None, *, drop_binary: bool = False) -> None:
        """Replace custom names, too; `drop_binary` removes pictures and files, which no rule can read."""
        self._names: KnownNames = names if names is not None else KnownNames()
        self._pseudonyms = Pseudonyms()
        self._ledger = Ledger()
        self._clean = clean_texts(names.all() if names is not None else frozenset())
        self._redacted: dict[str, _Redacted] = {}
        self.drop_binary = drop_binary
        self.has_custom_rules = names is not None

    def text(self, text: str) -> str:
        """Redact a text."""
        return self.redact_text(text, "text")

    def json(self, value: Json) -> Json:
        """Redact all texts and keys of a decoded value."""
        return values.redact_value(value, self, "value")

    def message(self, message: Message) -> Message:
        """Redact a message."""
        self._ledger.message = message.id
        return messages.redact_message(message, self)

    def session(self, session: Session) -> Session:
        """Redact the fields of a session; the messages that follow are recorded as its own."""
        self._ledger.session, self._ledger.message = session.id, None
        paths = (session.project.path or "", *(str(file.path) for file in session.files))
        for match in find_people("\n".join(paths)):  # the owner of a home is the user of its sessions
            self.add_user(match.value)
        self.learn(session)
        return messages.redact_session(session, self)

    def learn(self, message: Message | Session) -> None:
        """Learn the names in a message, so that they are also redacted in the messages before it."""
        json = messages.encode(message)
        if json is None or may_name_people(json, self._names):
            for match in find_people("\n".join(messages.all_texts(message))):
                self._learn(match)

    def report(self) -> RedactionSummary:
        """Return what was replaced so far, and what could not be read."""
        return self._ledger.report(self._names.n_ignored)

    def findings(self) -> tuple[Finding, ...]:
        """Return what was replaced so far, field by field."""
        return self._ledger.findings()

    def add_user(self, name: str) -> None:
        """Redact the name of a user from now on."""
        if self._names.add(name, USER):
            self._clear_cache()

    def redact_text(self, text: str, where: str) -> str:
        """Redact a text on its own."""
        if text in self._clean:
            return text
        redacted = self._redacted.get(text)
        if redacted is None:
            if text in PLAIN and not self._names.are_in(text):
                self._clean.keep(text)
                return text
            result = scan(text, self._names)
            if not result.matches and not result.binary:
                self._clean.keep(text)
                return text
            cache = self._redacted  # replaced by an empty one if a name is learned
            redacted = self._replace(JoinedText((text,)), result)
            if not result.binary and len(text) < _MAX_CACHED_LENGTH and len(cache) < _MAX_CACHED:
                cache[text] = redacted
        return self._record(redacted, where)[0]

    def redact_joined(self, joined: JoinedText, where: str) -> Sequence[str]:
        """Redact texts that belong together; what starts in one and ends in the next is found, too."""
        return self._record(self._replace(joined, scan(joined.text, self._names, joined.seams)), where)

    def note_unscanned(self, media_type: str, size: int) -> None:
        """Record an attachment that is not text."""
        self._ledger.note_unscanned("attachment", media_type, size, is_dropped=self.drop_binary)

    def _replace(self, joined: JoinedText, result: ScanResult) -> _Redacted:
        """Replace the matches, and those that show only then, until none is left."""
        for size in result.binary:
            if size >= _MIN_BINARY:
                self._ledger.note_unscanned("base64 in a text", "", size * 3 // 4)
        notes: dict[tuple[Rule, str], _Note] = {}
        n_rounds = 0
        while result.matches:
            text, n_rounds = joined.text, n_rounds + 1
            matches = with_neighbours(text, result.matches) if n_rounds > _MAX_CHAIN else result.matches
            learned = [self._learn(match) for match in matches if match.is_sure]
            pseudonyms = [self._pseudonyms.assign(match) for match in matches]
            joined = joined.replace([(match.start, match.end) for match in matches], pseudonyms)
            for match, pseudonym in zip(matches, pseudonyms, strict=True):
                key = (match.rule, pseudonym)
                excerpt, n_times = notes.get(key) or (partial(_excerpt, joined, pseudonym, match), 0)
                notes[key] = excerpt, n_times + 1
            if not any(learned) and not any(has_neighbour(text, match) for match in matches):
                break
            result = scan(joined.text, self._names, joined.seams)
        return joined.texts, notes

    def _record(self, redacted: _Redacted, where: str) -> Sequence[str]:
        texts, notes = redacted
        for (rule, pseudonym), (excerpt, n_times) in notes.items():
            self._ledger.note(rule, pseudonym, where, excerpt, n_times)
        return texts

    def _learn(self, match: RuleMatch) -> bool:
        """Return whether a match is a name that was not known yet, and add it."""
        rule = _LEARNED.get(match.rule.label)
        if rule is None or not match.is_sure or not self._names.add(match.value, rule):
            return False
        self._clear_cache()
        return True

    def _clear_cache(self) -> None:
        self._clean, self._redacted = clean_texts(self._names.all()), {}


def redactor(
    *,
    user_home: str | PurePath | None = None,
    user_name: str | None = None,
    words: Iterable[str] = (),
    rules: Iterable[str] = (),
    drop_binary: bool = False,
) -> Redactor:
    """Return a redactor for the sessions of a user.

    Args:
        user_home: the user's home folder, whose name is redacted.
        user_name: the user's name.
        words: more words to redact, in any case.
        rules: the ids of optional rules to apply.
        drop_binary: remove pictures and files.

    """
    names = None
    if words or rules:
        rule_ids = frozenset(rules)
        names = CustomNames(words, [row for row in OPTIONAL if row.rule.id in rule_ids])
    made = Redactor(names, drop_binary=drop_binary)
    if user_name:
        made.add_user(user_name)
    if user_home:
        made.add_user(user_home.name if isinstance(user_home, PurePath) else PurePath(user_home).name)
    return made


def _excerpt(joined: JoinedText, pseudonym: str, match: RuleMatch) -> str:
    """Return the text around a match, with its value masked."""
    text = joined.text
    at = text.find(pseudonym)
    before, behind = text[max(at - 24, 0) : at], text[at + len(pseudonym) : at + len(pseudonym) + 12]
    return _SPACE.sub(" ", f"{before}{mask(match.value, match.rule.kind)}{behind}").strip()
