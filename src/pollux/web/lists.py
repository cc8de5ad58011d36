"""What the pages with lists share: forms of filters, links to the next page and to other formats."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from starlette.requests import Request

from pollux.render.html.markup import Html, element, joined
from pollux.text.escape import make_visible
from pollux.web.door import with_commands
from pollux.web.layout import address
from pollux.web.requests import page_size, page_start


def field(request: Request, name: str, label: str, *, placeholder: str = "", type_: str = "text") -> Html:
    """Return a field of a form, with the value that the address has for it."""
    value = request.query_params.get(name, "")
    box = element("input", type=type_, name=name, value=value or None, placeholder=placeholder or None)
    return element("label", element("span", label), box)


def select(
    request: Request, name: str, label: str, options: Iterable[tuple[str, str]], *, is_named: bool = True
) -> Html:
    """Return a choice of a form: pairs of a value and its words; without its visible name if those say enough."""
    current = request.query_params.get(name, "")
    made = [element("option", words, value=value, selected=value == current) for value, words in options]
    return _menu(name, label, made, is_named=is_named)


def _menu(name: str, label: str, options: Iterable[Html], *, is_named: bool) -> Html:
    if not is_named:
        return element("select", *options, name=name, aria_label=label)
    return element("label", element("span", label), element("select", *options, name=name))


def project_choice(request: Request, names: Mapping[str, str], *, everything: str = "all") -> Html:
    """Return the field for a project, from the names of all projects by their keys: a menu, unless there are many.

    `everything` is the choice of all of them; if it says of what, the field needs no visible name.
    """
    if len(names) > _MOST_CHOICES:
        return field(request, "project", "Project", placeholder="name or path")
    current = request.query_params.get("project", "")
    choices = sorted(((key, name) for key, name in names.items() if key), key=lambda pair: pair[1].casefold())
    chosen = [key for key, name in choices if current in (key, name)][:1]
    if current and not chosen:
        choices.append((current, current))
        chosen = [current]
    options = [element("option", everything, value="")]
    for key, name in choices:
        options.append(element("option", visible(name), value=key, selected=key in chosen))
    return _menu("project", "Project", options, is_named=everything == "all")


_MOST_CHOICES = 100
"""Projects; a menu with more is slow to load and hard to use."""


def hidden(request: Request, name: str) -> Html:
    """Return a field that repeats a parameter of the address, so that sending the form does not lose it."""
    value = request.query_params.get(name, "")
    return element("input", type="hidden", name=name, value=value) if value else Html()


def orders(request: Request, path: str, words: Mapping[str, str], note: str) -> Html:
    """Return links to the same list in other orders, the default first, after a note on the list."""
    default = next(iter(words))
    current = request.query_params.get("sort") or default
    links = []
    for name, label in words.items():
        target = address(request, path, **kept(request, sort=None if name == default else name))
        links.append(element("a", label, href=target, aria_current="true" if name == current else None))
    pick = element("nav", *links, class_="pick noprint", aria_label="Order")
    return element("div", element("span", note, class_="soft"), pick, class_="order")


def kept(request: Request, **changes: str | int | None) -> dict[str, str | int | None]:
    """Return the parameters of the address with some changed, or left out if None; the place in the list is lost."""
    query: dict[str, str | int | None] = dict(request.query_params)
    query.pop("after", None)
    return {**query, **changes}


def turn(request: Request, path: str, next_: str | None, words: str, *, size: int | None = None) -> Html:
    """Return the links to the pages of a list; `size` rows are on a page whose place is a number."""
    links = []
    if request.query_params.get("after"):
        start = page_start(request)
        before = max(0, start - page_size(request, size)) if size else 0
        label = "Previous page" if before else "First page"
        target = address(request, path, **kept(request, after=before or None))
        links.append(element("a", label, href=target, rel="prev"))
    links.append(element("span", words))
    if next_ is not None:
        links.append(element("a", "Next page", href=address(request, path, **kept(request, after=next_)), rel="next"))
    return element("nav", *links, class_="turn", aria_label="Pages")


def extent(request: Request, n_rows: int, total: int) -> str:
    """Return which part of a list with numbered places a page shows: `51–100 of 240`."""
    first = page_start(request) + 1
    return f"{first:,}–{first + n_rows - 1:,} of {total:,}"


def nothing(request: Request, path: str, words: str, total: int, plural_noun: str, notes: Sequence[str] = ()) -> Html:
    """Return what a page without rows says: that nothing matches, or that the list ends before it."""
    if total:
        words = f"There are no {plural_noun} this far down the list."
        link = element("a", "Go to its start", href=address(request, path, **kept(request)))
    else:
        link = element("a", f"Show all {path}", href=address(request, path))
    sentences = (element("p", with_commands(visible(note, 500))) for note in notes)
    return element("div", element("p", words), *sentences, element("p", link), class_="empty")


def formats(request: Request, path: str, *, csv: bool = True) -> Html:
    """Return the links to the same list for programs."""
    links = [element("a", "JSON", href=address(request, path, **kept(request)))]
    if csv:
        links.append(element("a", "CSV", href=address(request, path, **kept(request, format="csv"))))
    return element("p", "As ", joined(_between(links)), class_="formats soft small noprint")


def _between(links: Sequence[Html]) -> list[str]:
    pieces: list[str] = []
    for number, link in enumerate(links):
        pieces += [", " if number else "", link]
    return pieces


def table(head: Sequence[str], rows: Iterable[Sequence[str]], numeric: frozenset[int] = frozenset()) -> Html:
    """Return a table; `numeric` are the columns of numbers."""
    cells = [
        element("th", word, scope="col", class_="num" if place in numeric else None) for place, word in enumerate(head)
    ]
    body = []
    for row in rows:
        columns = [_cell(place, head[place], cell, numeric) for place, cell in enumerate(row)]
        body.append(element("tr", *columns))
    inside = element("table", element("thead", element("tr", *cells)), element("tbody", *body), class_="rows")
    return element("div", inside, class_="scroll", tabindex="0")


def _cell(place: int, name: str, cell: str, numeric: frozenset[int]) -> Html:
    """Return a cell; on a phone, where a row is a paragraph, the name of its column stands before it."""
    return element("td", cell, class_="num" if place in numeric else None, data_h=name if place else None)


def chart_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Html:
    """Return the numbers of a chart as a light table in a fold; all columns but the first are numbers."""
    names = element("tr", *(element("th", name, scope="col") for name in head))
    lines = (element("tr", *(element("td", cell) for cell in row)) for row in rows)
    inside = element("table", element("thead", names), element("tbody", *lines), class_="plot")
    return element("details", element("summary", "As a table"), inside, class_="asrows")


def visible(words: str, limit: int = 200) -> str:
    """Return a text of a session on one line, with its invisible characters visible."""
    text = make_visible(" ".join(words.split()))
    return text if len(text) <= limit else f"{text[:limit]}…"
