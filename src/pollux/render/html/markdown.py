"""Markdown as HTML: tags stay text, only web and mail links can be followed, and no image is loaded."""

from __future__ import annotations

import re
from collections.abc import MutableMapping, Sequence
from functools import cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict

from pollux.render.html.colours import coloured_code
from pollux.render.html.markup import Html, closing, element, long_text, opening, text
from pollux.text.escape import make_visible

LONG = 100_000
"""Characters above which Markdown stays text, because parsing would take seconds."""
DEEP = 20
"""Levels of nesting above which the parser drops text."""
_LOWER = 2
"""Levels by which headings are lowered, below the titles of the session and of its prompts."""
_LOWEST = 6
_LINK = re.compile(r"(?:https?://|mailto:)[^\s\"'<>\\]+", re.IGNORECASE)
_ALIGNED = {"text-align:right": "right", "text-align:center": "centre"}

_Env = MutableMapping[str, Any]


def answer(words: str) -> Html:
    """Return Markdown as HTML, or as plain text if it is too long or nested too deeply."""
    words = make_visible(words)
    if len(words) <= LONG:
        tokens = _parser().parse(words)
        levels = [token.level for token in tokens if token.content or token.type == "hr"]
        if levels and max(levels) < DEEP - 1:
            return Html(_parser().renderer.render(tokens, _parser().options, {}))
    return element("div", long_text(words), class_="words")


def code_block(head: Html, *more: Html, classes: str = "") -> Html:
    """Return code with a button that copies it; `more` are folds and `preformatted` parts of the same code."""
    button = element("button", "Copy", type="button", class_="copy")
    return element("div", preformatted(head), *more, button, class_=f"code {classes}".rstrip())


def preformatted(code: Html) -> Html:
    """Return code in an element that the keyboard can scroll."""
    return element("pre", code, tabindex="0")


def link(words: str, target: str) -> Html:
    """Return a link if its target may be followed, else its text and its target."""
    if _LINK.fullmatch(target):
        return element("a", words, href=target, rel="noopener noreferrer nofollow")
    return element("span", words, element("span", f" ({target})", class_="target"))


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "xhtmlOut": False, "maxNesting": DEEP}, renderer_cls=_Renderer)
    parser.validateLink = _accept_link  # type: ignore[method-assign]
    return parser.enable(["table", "strikethrough"]).disable("reference")


def _accept_link(url: str) -> bool:  # noqa: ARG001  `link` decides
    return True


class _Renderer(RendererHTML):
    """Writes tokens as HTML; every text goes through `text`."""

    def text(self, tokens: Sequence[Token], at: int, _options: OptionsDict, _env: _Env) -> str:
        return text(tokens[at].content)

    def code_inline(self, tokens: Sequence[Token], at: int, _options: OptionsDict, _env: _Env) -> str:
        return element("code", tokens[at].content)

    def code_block(self, tokens: Sequence[Token], at: int, _options: OptionsDict, _env: _Env) -> str:
        return code_block(text(tokens[at].content.rstrip("\n")))

    def fence(self, tokens: Sequence[Token], at: int, _options: OptionsDict, _env: _Env) -> str:
        language = tokens[at].info.strip().partition(" ")[0]
        return code_block(coloured_code(tokens[at].content.rstrip("\n"), language))

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
