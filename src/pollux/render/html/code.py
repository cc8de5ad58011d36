"""Code with syntax colours: the words of all lexers put into a handful of classes that the page has colours for."""

from __future__ import annotations

from functools import lru_cache
from itertools import groupby

from pygments.token import Comment, Generic, Keyword, Literal, Name, Operator, _TokenType

from pollux.render.html.markup import Html, element, joined, long_text, text
from pollux.views.languages import lexer_for

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
    """Return code with the colours of its language, if it has any (`views.languages`)."""
    lexer = lexer_for(language, code)
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
