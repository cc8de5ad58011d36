"""The frame of every page: head, bar with the search field, footer and the list of keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import Response

from pollux import __version__
from pollux.render.html.icons import MARK
from pollux.render.html.markup import Html, closing, element, joined, opening
from pollux.web.routing import StreamedResponse
from pollux.web.static_names import asset_name
from pollux.web.times import zone_name, zone_of

PLACES = ("Overview", "Sessions", "Usage", "Projects", "Files", "Health")
"""The words of the bar; the first leads to the root."""
LISTS = "lists.js"
"""The script of pages with lists: results while the user types, and lists that follow the archive."""
SEARCH_FILTERS = ("in", "project", "model", "tool", "fate", "since", "until", "last", "on", "sort")
"""Parameters of the search page that stay when other words are searched for."""
QueryValue = str | int | bool | None | Sequence[str]

_KEYS = (
    (("j", "k"), "next, previous row or prompt"),
    (("/",), "find"),
    (("J", "K"), "next, previous message"),
    (("n", "N"), "next, previous hit"),
    (("[", "]"), "previous, next session or page"),
    (("e", "c"), "expand, collapse all"),
    (("Enter",), "open or collapse"),
    (("d",), "more or less detail"),
    (("y",), "copy link"),
    (("h",), "thoughts"),
    (("r",), "copy resume command"),
    (("b",), "dropped messages"),
    (("x",), "export"),
    (("u",), "raw record"),
    ((".",), "follow the latest"),
    (("t",), "light or dark theme"),
    (("g", "s"), "go to sessions, g u usage …"),
    (("?",), "show keys"),
)


def address(request: Request, path: str = "", /, **query: QueryValue) -> str:
    """Return the address of a page below the label; parameters that are None or empty are left out.

    Write `on_` for a parameter that is a Python word. A sequence repeats its parameter.
    """
    pairs = []
    for name, value in query.items():
        values = [value] if isinstance(value, str | int) or value is None else list(value)
        pairs += [(name.rstrip("_"), _written(item)) for item in values if item is not None and item != ""]
    words = f"?{urlencode(pairs, errors='replace')}" if pairs else ""
    return f"/{request.app.state.label}/{quote(path, errors='replace')}{words}"


def _written(value: str | int) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def asset(request: Request, name: str) -> str:
    """Return the address of a file in `assets`."""
    return address(request, f"static/{asset_name(name)}")


def document(  # noqa: PLR0913  what pages differ in
    request: Request,
    title: str,
    body: Iterable[Html],
    *,
    place: str = "",
    main: str | None = "wide",
    styles: Sequence[str] = (),
    scripts: Sequence[str] = (),
    footer: Sequence[str] = (),
    status: int = 200,
    mark: str | None = None,
) -> Response:
    """Return a page, which is sent while its body is produced.

    Args:
        request: what is answered; its app knows the label.
        title: the words before `· Pollux`.
        body: the content, in pieces.
        place: the word of the bar that the page belongs to.
        main: the class of the `main` element; None if the body has its own.
        styles: style sheets of `assets` besides `base.css`.
        scripts: modules of `assets` besides `base.js`.
        footer: what the footer says before the version.
        status: the HTTP status.
        mark: of the newest change that the page shows (`live.mark_of`); the page then follows later ones.

    """
    if mark is not None:
        scripts = (*scripts, LISTS)
    start = joined((_head(request, title, styles, scripts), _bar(request, place)))
    zone = zone_name(request)
    notes = (*footer, f"Times in {zone}") if zone else footer
    return StreamedResponse(_pieces(start, body, main, notes, mark), status)


def _pieces(
    start: Html, body: Iterable[Html], main: str | None, footer: Sequence[str], mark: str | None
) -> Iterator[str]:
    parts = iter(body)
    first = next(parts, Html())  # an error in the library becomes an error page, not half a page
    yield start
    if main is not None:
        yield opening("main", id="main", class_=main or None, data_mark=mark)
    yield first
    yield from parts
    if main is not None:
        yield closing("main")
    yield _foot(footer)
    yield _keys()
    yield f"{closing('body')}{closing('html')}\n"


def _head(request: Request, title: str, styles: Sequence[str], scripts: Sequence[str]) -> Html:
    links = (element("link", rel="stylesheet", href=asset(request, name)) for name in ("base.css", *styles))
    modules = (element("script", type="module", src=asset(request, name)) for name in scripts)
    inside = (
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"{title} · Pollux"),
        element("link", rel="icon", href=asset(request, "icon.svg")),
        *links,
        element("script", src=asset(request, "base.js")),  # before the page is painted, for the theme
        *modules,
    )
    zone = zone_name(request) if zone_of(request) else None
    root = opening("html", lang="en", data_root=address(request), data_zone=zone)
    skip = element("a", "Skip to content", class_="skip", href="#main")
    return Html(f"<!doctype html>\n{root}{element('head', *inside)}\n{opening('body')}{skip}")


def _bar(request: Request, place: str) -> Html:
    links = []
    for word in PLACES:
        path = "" if word == PLACES[0] else word.lower()
        current = "page" if word.lower() == place.lower() else None
        links.append(element("a", word, href=address(request, path), aria_current=current))
    is_search = request.url.path == address(request, "search")
    query = request.query_params.get("q") if is_search else None
    kept = [(name, request.query_params.get(name)) for name in SEARCH_FILTERS] if is_search else []
    hidden = (element("input", type="hidden", name=name, value=value) for name, value in kept if value)
    field = element("input", type="search", id="q", name="q", placeholder="Search", value=query, autocomplete="off")
    search = element(
        "form",
        element("label", "Search all sessions", class_="unseen", for_="q"),
        field,
        *hidden,
        element("kbd", "/", aria_hidden="true"),
        class_="find",
        role="search",
        aria_label="All sessions",
        action=address(request, "search"),
    )
    buttons = (_button("theme", "◐", "Light or dark"), _button("help", "?", "Keys"))
    return element(
        "header",
        element("a", MARK, "Pollux", class_="brand", href=address(request)),
        element("nav", *links, aria_label="Main"),
        search,
        element("div", *buttons, class_="tools"),
        class_="top",
    )


def _button(action: str, mark: str, label: str) -> Html:
    return element("button", mark, class_="plain", type="button", data_do=action, aria_label=label, title=label)


def _foot(footer: Sequence[str]) -> Html:
    notes = (element("span", note) for note in (*footer, f"Pollux {__version__} · local only"))
    return element("footer", *notes, class_="foot")


def _keys() -> Html:
    rows = []
    for keys, meaning in _KEYS:
        marks = Html(" ").join(element("kbd", key) for key in keys)
        rows.append(joined((element("dt", Html(marks)), element("dd", meaning))))
    close = element("button", "Close", class_="button", type="button", data_do="close")
    heading = element("h2", "Keys", id="keys-h")
    return element("dialog", heading, element("dl", *rows), close, id="keys", aria_labelledby="keys-h")
