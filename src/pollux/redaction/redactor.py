"""Takes secrets and names out of texts, values, messages and sessions, and remembers which is which."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import PurePath
from typing import TypeAlias

from pollux.model import Json, Message, Session
from pollux.redaction import messages, values
from pollux.redaction.adjacent import is_glued, with_rest
from pollux.redaction.clean_cache import PLAIN, clean
from pollux.redaction.joined_text import Pieces
from pollux.redaction.matches import Found
from pollux.redaction.mentions import may_tell, people
from pollux.redaction.names import KnownNames
from pollux.redaction.pseudonyms import Pseudonyms
from pollux.redaction.report import Finding, Ledger, Report, masked
from pollux.redaction.rule import Rule
from pollux.redaction.rules import HOST, NAME, USER
from pollux.redaction.scan import Scan, scan

_BINARY = 400
"""Base64 from this length on is worth a word when it cannot be read."""
_CHAIN = 4
"""So many secrets without anything between them are told apart."""
_SPACE = re.compile(r"\s+")
_SHORT, _MANY = 1000, 10_000
"""So long are texts with something in them that are remembered, and so many of them."""

_Note: TypeAlias = tuple[Callable[[], str], int]
"""How to show where something stood first, and how often it was replaced."""
_Cleaned: TypeAlias = tuple[Sequence[str], dict[tuple[Rule, str], _Note]]
"""What is left of texts, and what was replaced in them, by rule and pseudonym."""
_LEARNED = {"user": USER, "host": HOST}


class Redactor:
    """Replaces secrets and names by pseudonyms: the same by the same, numbered as they come."""

    def __init__(self, *, drop_binary: bool = False) -> None:
        """Begin with no names; pictures and files can be dropped, since nothing reads them."""
        self._names = KnownNames()
        self._pseudonyms = Pseudonyms()
        self._ledger = Ledger()
        self._clean = clean(frozenset())
        self._dirty: dict[str, _Cleaned] = {}
        self.drop_binary = drop_binary

    def text(self, text: str) -> str:
        """Redact a text."""
        return self.one(text, "text")

    def json(self, value: Json) -> Json:
        """Redact a decoded value: all its texts and keys."""
        return values.redacted(value, self, "value")

    def message(self, message: Message) -> Message:
        """Redact a message."""
        self._ledger.message = message.id
        return messages.redacted(message, self)

    def session(self, session: Session) -> Session:
        """Redact what a list says of a session; messages are taken for its own until the next session comes."""
        self._ledger.session, self._ledger.message = session.id, None
        paths = (session.project.path or "", *(str(file.path) for file in session.files))
        for found in people("\n".join(paths)):  # where a session was, its user was
            self.know(found.value, is_user=True)
        self.learn(session)
        return messages.redacted_session(session, self)

    def learn(self, message: Message | Session) -> None:
        """Look for names only, so that what stands before the place where a name is told is redacted too."""
        json = messages.written(message)
        if json is None or may_tell(json, self._names):
            for found in people("\n".join(messages.texts(message))):
                self._learn(found)

    def report(self) -> Report:
        """Tell what was replaced so far, and what could not be looked into."""
        return self._ledger.report(self._names.n_ignored)

    def findings(self) -> tuple[Finding, ...]:
        """List what was found, place by place."""
        return self._ledger.findings()

    def one(self, text: str, where: str) -> str:
        """Redact a text that stands alone."""
        if text in self._clean:
            return text
        cleaned = self._dirty.get(text)
        if cleaned is None:
            if text in PLAIN and not self._names.are_in(text):
                self._clean.keep(text)
                return text
            result = scan(text, self._names)
            if not result.found and not result.binary:
                self._clean.keep(text)
                return text
            dirty = self._dirty  # another one, if a name is learned
            cleaned = self._cleaned(Pieces((text,)), result)
            if not result.binary and len(text) < _SHORT and len(dirty) < _MANY:
                dirty[text] = cleaned
        return self._noted(cleaned, where)[0]

    def pieces(self, pieces: Pieces, where: str) -> Sequence[str]:
        """Redact texts that belong together: what begins in one and goes on in the next is found, too."""
        return self._noted(self._cleaned(pieces, scan(pieces.whole, self._names, pieces.seams)), where)

    def _cleaned(self, pieces: Pieces, result: Scan) -> _Cleaned:
        """Replace what was found, and what is seen only then, until there is no more."""
        for size in result.binary:
            if size >= _BINARY:
                self._ledger.note_unscanned("base64 in a text", "", size * 3 // 4)
        notes: dict[tuple[Rule, str], _Note] = {}
        n_rounds = 0
        while result.found:
            whole, n_rounds = pieces.whole, n_rounds + 1
            found = with_rest(whole, result.found) if n_rounds > _CHAIN else result.found
            learned = [self._learn(one) for one in found if one.is_sure]  # all of them
            pseudonyms = [self._pseudonyms.of(one) for one in found]
            pieces = pieces.replaced([(one.start, one.end) for one in found], pseudonyms)
            for one, pseudonym in zip(found, pseudonyms, strict=True):
                key = (one.rule, pseudonym)
                excerpt, n_times = notes.get(key) or (partial(_excerpt, pieces, pseudonym, one), 0)
                notes[key] = excerpt, n_times + 1
            if not any(learned) and not any(is_glued(whole, one) for one in found):
                break
            result = scan(pieces.whole, self._names, pieces.seams)
        return pieces.texts, notes

    def _noted(self, cleaned: _Cleaned, where: str) -> Sequence[str]:
        """Note what was replaced, and return what is left."""
        for (rule, pseudonym), (excerpt, n_times) in cleaned[1].items():
            self._ledger.note(rule, pseudonym, where, excerpt, n_times)
        return cleaned[0]

    def note_unscanned(self, media_type: str, size: int) -> None:
        """Note an attachment that is no text."""
        self._ledger.note_unscanned("attachment", media_type, size, is_dropped=self.drop_binary)

    def know(self, name: str, *, is_user: bool = False) -> None:
        """Learn a name that was given."""
        if self._names.add(name, USER if is_user else NAME):
            self._forget()

    def _learn(self, found: Found) -> bool:
        """Learn the name that was found, if it is one; tell whether it is new."""
        rule = _LEARNED.get(found.rule.word)
        if rule is None or not found.is_sure or not self._names.add(found.value, rule):
            return False
        self._forget()
        return True

    def _forget(self) -> None:
        """Forget which texts were looked at, for there is a new name."""
        self._clean, self._dirty = clean(self._names.all()), {}


def redactor(
    *,
    user_home: str | PurePath | None = None,
    user_name: str | None = None,
    extra_names: Iterable[str] = (),
    drop_binary: bool = False,
) -> Redactor:
    """Make a redactor that knows whose sessions these are."""
    made = Redactor(drop_binary=drop_binary)
    if user_name:
        made.know(user_name, is_user=True)
    if user_home:
        home = user_home if isinstance(user_home, PurePath) else PurePath(user_home)
        made.know(home.name, is_user=True)
    for name in extra_names:
        made.know(name)
    return made


def _excerpt(pieces: Pieces, pseudonym: str, found: Found) -> str:
    """Show where something stood, and hardly anything of it."""
    text = pieces.whole
    at = text.find(pseudonym)
    before, behind = text[max(at - 24, 0) : at], text[at + len(pseudonym) : at + len(pseudonym) + 12]
    return _SPACE.sub(" ", f"{before}{masked(found.value, found.rule.kind)}{behind}").strip()
