"""What a page is used with: the bar at its top and the list of keys."""

from __future__ import annotations

from collections.abc import Sequence

from pollux.render.html.markup import Html, element, joined

KEYS = (
    ("j, k", "next and previous prompt"),
    ("/", "search"),
    ("n, N", "next and previous hit"),
    ("e, c", "open and close all folds"),
    ("t", "light or dark"),
    ("?", "this list"),
    ("Esc", "close, or clear the search"),
)


def bar(menu: str, target: str, search: str) -> Html:
    """Write the bar; what needs the script is only there when it runs."""
    tools = element(
        "div",
        element("input", type="search", id="search", placeholder=search, aria_label=search, autocomplete="off"),
        element("output", id="hits", aria_live="polite"),
        button("previous", "↑", "Previous hit"),
        button("next", "↓", "Next hit"),
        button("expand", "⊞", "Open all folds"),
        button("collapse", "⊟", "Close all folds"),
        button("theme", "◐", "Light or dark"),
        button("help", "?", "Keys"),
        class_="tools",
        role="search",
        hidden=True,
    )
    skip = element("a", "To the conversation", href="#main", class_="skip")
    return joined((skip, element("div", element("a", menu, href=target, class_="menu"), tools, class_="bar")))


def help_box(keys: Sequence[tuple[str, str]] = KEYS) -> Html:
    """Write the list of keys, which is shown when asked for."""
    rows = (joined((element("dt", element("kbd", key)), element("dd", words))) for key, words in keys)
    close = element("button", "Close", type="button", data_do="close")
    return element("dialog", element("h2", "Keys"), element("dl", *rows), close, id="keys", aria_label="Keys")


def button(name: str, mark: str, words: str) -> Html:
    """Write a button that the script knows by its name."""
    return element("button", mark, type="button", data_do=name, title=words, aria_label=words)
