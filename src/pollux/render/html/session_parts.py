"""What the viewer and an exported page show around a conversation: the list of prompts and the facts."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from pollux.render.html.icons import glyph
from pollux.render.html.markup import Html, element, joined, time_element


def outline_item(words: str, at: datetime | None, fate: str, href: str) -> Html:
    """Return a prompt in the list of prompts; `fate` is empty for an active one."""
    shown = joined((glyph("branch"), words, element("span", f" ({fate})", class_="unseen"))) if fate else words
    time = time_element(at) if at else Html()
    link = element("a", element("span", shown, class_="q"), time, href=href)
    return element("li", link, class_="off" if fate else None)


def facts_list(facts: Iterable[tuple[str, str]]) -> Html:
    """Return facts about a session: names above their values."""
    rows = (element("div", element("dt", name), element("dd", value)) for name, value in facts)
    return element("dl", *rows, class_="facts")
