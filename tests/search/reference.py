"""A slow search that shares nothing with the index: it reads every message and compares folded texts.

It knows two sets for a query: the parts that must be found, because a text of theirs plainly contains the words, and
the messages that may be found, because the letters of the query are somewhere in them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import msgspec

from pollux.library.library import Library
from pollux.model import Json, Kind, Message, Origin

_NOT_TYPED = frozenset({Origin.TOOL_RESPONSE, Origin.SESSION_CONTEXT, Origin.HOOK_CONTEXT, Origin.IDE_CONTEXT})


@dataclass(frozen=True, slots=True)
class ReadMessage:
    """The texts of a message by the name of their part, and all its strings."""

    session_id: str
    number: int
    texts: tuple[tuple[str, str], ...]
    strings: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.session_id}/{self.number}"


def read_messages(library: Library) -> list[ReadMessage]:
    """Read all messages of all sessions, subagents included."""
    with library.snapshot() as snapshot:
        rows = snapshot.database.execute("SELECT DISTINCT session_id FROM messages").fetchall()
    return [
        ReadMessage(session_id, number, tuple(_texts(message)), tuple(_strings(msgspec.to_builtins(message))))
        for (session_id,) in rows
        for number, message in enumerate(library.messages(session_id))
    ]


def must_find(messages: Iterable[ReadMessage], is_in: Callable[[str], bool]) -> set[str]:
    """Return the parts in which a text plainly contains what is searched for."""
    return {f"{message.name} {part}" for message in messages for part, text in message.texts if is_in(text)}


def may_find(messages: Iterable[ReadMessage], is_in: Callable[[str], bool]) -> set[str]:
    """Return the messages that contain it in any of their strings."""
    return {message.name for message in messages if any(is_in(text) for text in message.strings)}


def contains_words(query: str) -> Callable[[str], bool]:
    """Return a test for a text with these words in a row, whatever stands between them."""
    words = re.findall(r"[^\W_]+", folded(query))
    pattern = re.compile(r"(?<![^\W_])" + r"[\W_]+".join(map(re.escape, words)) + r"(?![^\W_])")
    return lambda text: pattern.search(folded(text)) is not None


def contains_letters(query: str) -> Callable[[str], bool]:
    """Return a test for a text with the letters and digits of a query in a row, whatever stands between them."""
    letters = _letters(query)
    return lambda text: letters in _letters(text)


def contains_run(query: str) -> Callable[[str], bool]:
    """Return a test for a text that contains a query of a script without spaces."""
    wanted = unicodedata.normalize("NFKC", query)
    return lambda text: wanted in unicodedata.normalize("NFKC", text)


def folded(text: str) -> str:
    """Return a text without accents and case."""
    decomposed = unicodedata.normalize("NFKD", text)
    return "".join(char for char in decomposed if not unicodedata.combining(char)).casefold()


def _letters(text: str) -> str:
    return "".join(re.findall(r"[^\W_]+", folded(text)))


def _texts(message: Message) -> Iterator[tuple[str, str]]:
    if message.origin not in _NOT_TYPED and message.text:
        yield _part_of_text(message), message.text
    for thought in message.thoughts:
        yield "thoughts", f"{thought.subject}\n{thought.text}"
    for call in message.tool_calls:
        for text in _strings(call.args):
            yield "args", text
        for output in filter(None, (call.output, call.error)):
            yield "output", output


def _part_of_text(message: Message) -> str:
    if message.origin in (Origin.HUMAN, Origin.LOADED, Origin.AGENT_PROMPT, Origin.SHELL_MODE):
        return "prompt"
    return "answer" if message.kind is Kind.GEMINI and message.origin is Origin.MODEL else "notice"


def _strings(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _strings(item)
