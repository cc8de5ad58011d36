"""What models write, as HTML: Markdown in which tags are text, links lead to pages only, and nothing is loaded."""

from __future__ import annotations

import re
from collections.abc import MutableMapping, Sequence
from functools import cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict

from pollux.render.html.code import coloured_code
from pollux.render.html.markup import Html, closing, element, long_text, opening, text
from pollux.text.escape import clean

LONG = 100_000
"""Characters above which text is not laid out: it would take seconds."""
DEEP = 20
"""Levels above which the parser leaves words out."""
_LOWER = 2
"""Ranks that a heading loses: above are the session and its prompts."""
_LOWEST = 6
_LINK = re.compile(r"(?:https?://|mailto:)[^\s\"'<>\\]+", re.IGNORECASE)
_ALIGNED = {"text-align:right": "right", "text-align:center": "centre"}

_Env = MutableMapping[str, Any]


def answer(words: str) -> Html:
    """Lay out Markdown; what is too long or too deep for that is shown as it was written."""
    words = clean(words)
    if len(words) <= LONG:
        tokens = _parser().parse(words)
        levels = [token.level for token in tokens if token.content or token.type == "hr"]
        if levels and max(levels) < DEEP - 1:
            return Html(_parser().renderer.render(tokens, _parser().options, {}))
    return element("div", long_text(words), class_="words")


def copyable(code: Html, classes: str = "") -> Html:
    """Write a block of code with a button that copies it."""
    button = element("button", "Copy", type="button", class_="copy")
    return element("div", element("pre", code, tabindex="0"), button, class_=f"code {classes}".rstrip())


def link(words: str, target: str) -> Html:
    """Write a link to a page; any other target is only told."""
    if _LINK.fullmatch(target):
        return element("a", words, href=target, rel="noopener noreferrer nofollow")
    return element("span", words, element("span", f" ({target})", class_="target"))


@cache
def _parser() -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False, "xhtmlOut": False, "maxNesting": DEEP}, renderer_cls=_Renderer)
    made.validateLink = _any_link  # type: ignore[method-assign]
    return made.enable(["table", "strikethrough"]).disable("reference")


def _any_link(url: str) -> bool:  # noqa: ARG001  the renderer decides
    return True


class _Renderer(RendererHTML):
    """Writes what was parsed; every text goes through `text`."""

    def text(self, tokens: Sequence[Token], at: int, _options: OptionsDict, _env: _Env) -> str:
        return text(tokens[at].content)

    def code_inline(self, tokens: Sequence[Token], at: int, _options: OptionsDict, _env: _Env) -> str:
        return element("code", tokens[at].content)

    def code_block(self, tokens: Sequence[Token], at: int, _options: OptionsDict, _env: _Env) -> str:
        return copyable(text(tokens[at].content.rstrip("\n")))

    def fence(self, tokens: Sequence[Token], at: int, _options: OptionsDict, _env: _Env) -> str:
        language = tokens[at].info.strip().partition(" ")[0]
        return copyable(coloured_code(tokens[at].content.rstrip("\n"), language))

    def image(self, tokens: Sequence[Token], at: int, options: OptionsDict, env: _Env) -> str:
        words = self.renderInlineAsText(tokens[at].children, options, env) or "picture"
        return link(f"▣ {words}", str(tokens[at].attrs.get("src", "")))

    def link_open(self, tokens: Sequence[Token], at: int, _options: OptionsDict, env: _Env) -> str:
        target = str(tokens[at].attrs.get("href", ""))
        begin, _, end = link("\0", target).partition(text("\0"))
        env.setdefault("ends", []).append(end)
        return begin

    def link_close(self, _tokens: Sequence[Token], _at: int, _options: OptionsDict, env: _Env) -> str:
        return str(env["ends"].pop())

    def heading_open(self, tokens: Sequence[Token], at: int, _options: OptionsDict, _env: _Env) -> str:
        return opening(_lower(tokens[at].tag))

    def heading_close(self, tokens: Sequence[Token], at: int, _options: OptionsDict, _env: _Env) -> str:
        return closing(_lower(tokens[at].tag)) + "\n"

    def table_open(self, _tokens: Sequence[Token], _at: int, _options: OptionsDict, _env: _Env) -> str:
        return opening("div", class_="table", tabindex="0") + opening("table")

    def table_close(self, _tokens: Sequence[Token], _at: int, _options: OptionsDict, _env: _Env) -> str:
        return f"{closing('table')}{closing('div')}\n"

    def th_open(self, tokens: Sequence[Token], at: int, _options: OptionsDict, _env: _Env) -> str:
        return opening("th", class_=_ALIGNED.get(str(tokens[at].attrs.get("style"))))

    def td_open(self, tokens: Sequence[Token], at: int, _options: OptionsDict, _env: _Env) -> str:
        return opening("td", class_=_ALIGNED.get(str(tokens[at].attrs.get("style"))))


def _lower(tag: str) -> str:
    return f"h{min(int(tag[1:]) + _LOWER, _LOWEST)}"
