"""Takes secrets and names out of texts, values, messages and sessions, and remembers which is which."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import count
from pathlib import Path, PurePath

from pollux.model import Json, Message, Session
from pollux.redaction import messages, values
from pollux.redaction.names import KnownNames
from pollux.redaction.pieces import Pieces
from pollux.redaction.report import Finding, Ledger, Report, masked
from pollux.redaction.rule import Kind
from pollux.redaction.rules import HOST, NAME, USER
from pollux.redaction.scan import Found, is_plain, people, scan

_CACHED = 4 << 20
"""So many characters that nothing was found in are remembered, for they come again and again."""
_SHORT = 1000
_BINARY = 400
"""Base64 from this length on is worth a word when it cannot be read."""
_NOISE = re.compile(r"\\[nrt]|[^A-Za-z0-9]")
_REST = re.compile(r"[\w+/=@.~\\-]*")
_CHAIN = 3
"""So many secrets without anything between them are told apart."""
_SPACE = re.compile(r"\s+")


class Redactor:
    """Replaces secrets and names by pseudonyms: the same by the same, numbered as they come."""

    def __init__(self, *, drop_binary: bool = False) -> None:
        """Begin with no names; pictures and files can be dropped, since nothing reads them."""
        self._names = KnownNames()
        self._numbers: dict[str, dict[str, int]] = {}
        self._ledger = Ledger()
        self._clean: set[str] = set()
        self._n_cached = 0
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
        for path in (session.project.path, *(str(file.path) for file in session.files)):
            self._learn_home(path or "")
        self.learn(session)
        return messages.redacted_session(session, self)

    def learn(self, message: Message | Session) -> None:
        """Look for names only, so that what stands before the place where a name is told is redacted too."""
        for text in messages.texts(message):
            for found in people(text):
                self._learn(found)

    def report(self) -> Report:
        """Tell what was replaced so far, and what could not be looked into."""
        if self._names.n_ignored:
            self._ledger.unscanned["names beyond the first 200, as words", "", False] = self._names.n_ignored
        return self._ledger.report()

    def findings(self) -> tuple[Finding, ...]:
        """List what was found, place by place."""
        return tuple(self._ledger.findings.values())

    def one(self, text: str, where: str) -> str:
        """Redact a text that stands alone."""
        if text in self._clean:
            return text
        if len(text) < _SHORT and is_plain(text, self._names):
            self._remember(text)
            return text
        return self.pieces(Pieces((text,)), where)[0]

    def pieces(self, pieces: Pieces, where: str) -> Sequence[str]:
        """Redact texts that belong together: what begins in one and goes on in the next is found, too."""
        result = scan(pieces.whole, self._names, pieces.seams)
        for size in result.binary:
            if size >= _BINARY:
                self._ledger.note_unscanned("base64 in a text", "", size * 3 // 4)
        if len(pieces.texts) == 1 and not result.found and not result.binary:
            self._remember(pieces.texts[0])
        for number in count():
            found = _with_rest(pieces.whole, result.found) if number > _CHAIN else result.found
            learned = [self._learn(one) for one in found]  # all of them
            is_glued = any(_is_glued(pieces.whole, one) for one in found)
            pieces = self._replaced(pieces, found, where) if found else pieces
            if not (any(learned) or is_glued):
                break
            result = scan(pieces.whole, self._names, pieces.seams)
        return pieces.texts

    def _replaced(self, pieces: Pieces, found: Sequence[Found], where: str) -> Pieces:
        pseudonyms = [self._pseudonym(one) for one in found]
        done = pieces.replaced([(one.start, one.end) for one in found], pseudonyms)
        for one, pseudonym in zip(found, pseudonyms, strict=True):
            self._ledger.note(one.rule, pseudonym, where, partial(_excerpt, done, pseudonym, one))
        return done

    def note_unscanned(self, media_type: str, size: int) -> None:
        """Note an attachment that is no text."""
        self._ledger.note_unscanned("attachment", media_type, size, is_dropped=self.drop_binary)

    def know(self, name: str, *, is_user: bool = False) -> None:
        """Learn a name that was given."""
        if self._names.add(name, USER if is_user else NAME):
            self._forget_clean()

    def _learn_home(self, path: str) -> None:
        """Learn whose home a folder is in: where a session was, its user was."""
        for found in people(path):
            self.know(found.value, is_user=True)

    def _learn(self, found: Found) -> bool:
        """Learn the name that was found, if it is one; tell whether it is new."""
        rule = {"user": USER, "host": HOST}.get(found.rule.word)
        if rule is None or not found.is_sure or not self._names.add(found.value, rule):
            return False
        self._forget_clean()
        return True

    def _pseudonym(self, found: Found) -> str:
        """Name a value; the same value has the same name."""
        rule, value = found.rule, found.value
        key = value if rule.kind is Kind.SECRET else value.casefold()
        if rule.id.startswith("private-key"):
            key = _NOISE.sub("", value)  # the same key in a diff, in JSON and in a file
        numbers = self._numbers.setdefault(rule.word, {})
        return f"[redacted:{rule.word}#{numbers.setdefault(key, len(numbers) + 1)}]"

    def _remember(self, text: str) -> None:
        self._n_cached += len(text) + 50
        if self._n_cached > _CACHED:
            self._forget_clean()
        self._clean.add(text)

    def _forget_clean(self) -> None:
        self._clean.clear()
        self._n_cached = 0


def redactor(
    *,
    user_home: str | PurePath | None = None,
    user_name: str | None = None,
    extra_names: Iterable[str] = (),
    drop_binary: bool = False,
) -> Redactor:
    """Make a redactor that knows whose sessions these are."""
    made = Redactor(drop_binary=drop_binary)
    for name in filter(None, (user_name, Path(user_home).name if user_home else None)):
        made.know(name, is_user=True)
    for name in extra_names:
        made.know(name)
    return made


def _is_glued(text: str, found: Found) -> bool:
    """Tell whether what stands beside may only now be seen for what it is: a word or a path with an end there."""
    before, behind = text[max(found.start - 1, 0) : found.start], text[found.end : found.end + 1]
    signs = "_-" if found.rule.kind is not Kind.SECRET else "_-+/@.~\\"
    return any(char.isalnum() or char in signs for char in before + behind)


def _with_rest(text: str, found: Sequence[Found]) -> list[Found]:
    """Take in all that is glued to what was found, so that a chain of secrets comes to its end."""
    done: list[Found] = []
    at = 0
    for one in found:
        before, behind = _REST.match(text[at : one.start][::-1]), _REST.match(text, one.end)
        if before and behind and one.start >= at:
            start, at = one.start - before.end(), behind.end()
            done.append(one._replace(start=start, end=at, value=text[start:at]))
    return done


def _excerpt(pieces: Pieces, pseudonym: str, found: Found) -> str:
    """Show where something stood, and hardly anything of it."""
    text = pieces.whole
    at = text.find(pseudonym)
    before, behind = text[max(at - 24, 0) : at], text[at + len(pseudonym) : at + len(pseudonym) + 12]
    return _SPACE.sub(" ", f"{before}{masked(found.value, found.rule.kind)}{behind}").strip()
