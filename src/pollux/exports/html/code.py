"""Code with syntax colours: the words of all lexers put into a handful of classes that the page has colours for."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import groupby

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Generic, Keyword, Literal, Name, Operator, _TokenType
from pygments.util import ClassNotFound

from pollux.exports.html.markup import Html, element, joined, long_text, text

LONG = 20_000
"""Characters above which code is not coloured: some lexers take very long."""
_NAME = re.compile(r"[A-Za-z0-9_+#.-]{1,40}")

_CLASSES: tuple[tuple[_TokenType, str], ...] = (
    (Comment.Preproc, "sp"),
    (Comment, "sc"),
    (Keyword.Type, "st"),
    (Keyword.Constant, "sn"),
    (Keyword, "sk"),
    (Operator.Word, "sk"),
    (Literal.String, "ss"),
    (Literal.Number, "sn"),
    (Literal.Date, "sn"),
    (Name.Function, "sf"),
    (Name.Class, "st"),
    (Name.Builtin, "sf"),
    (Name.Decorator, "sp"),
    (Name.Tag, "sk"),
    (Name.Attribute, "sp"),
    (Name.Variable, "sp"),
    (Generic.Inserted, "add"),
    (Generic.Deleted, "del"),
    (Generic.Heading, "sk"),
    (Generic.Subheading, "sk"),
)
"""The first that a token belongs to counts."""


def coloured_code(code: str, language: str) -> Html:
    """Colour code of a language that somebody named; what is unknown, too long or not understood stays as it is."""
    lexer = _lexer(language.strip().lower()) if len(code) <= LONG else None
    if lexer is None:
        return long_text(code)
    tokens = [*lexer.get_tokens(code)]
    if "".join(value for _, value in tokens) != code:
        return text(code)
    runs = groupby(tokens, lambda token: _class(token[0]))
    return joined(_run(name, "".join(value for _, value in run)) for name, run in runs)


def _run(name: str, value: str) -> Html:
    return element("span", value, class_=name) if name and value.strip() else text(value)


@lru_cache(maxsize=512)
def _class(token: _TokenType) -> str:
    return next((name for kind, name in _CLASSES if token in kind), "")


@lru_cache(maxsize=64)
def _lexer(language: str) -> Lexer | None:
    if not _NAME.fullmatch(language) or language in {"text", "txt", "plain"}:
        return None
    try:
        return get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None
