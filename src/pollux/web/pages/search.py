"""The search page: sessions that match a query, with the words around each hit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, timedelta

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pollux.errors import InvalidQueryError
from pollux.library.library import Library
from pollux.library.values import FacetValue, Hit, HitPage, SessionHits, Snippet
from pollux.model import Fate
from pollux.render.html.icons import glyph
from pollux.render.html.markup import Html, element, joined, text
from pollux.text.escape import make_visible
from pollux.text.numbers import plural
from pollux.views import session_text
from pollux.views.session_text import TITLE
from pollux.views.tools import title_of_label
from pollux.web.layout import LISTS, address, document
from pollux.web.lists import formats, kept, orders, turn
from pollux.web.requests import choice, flag, page_of, parameter, wanted
from pollux.web.routing import page
from pollux.web.session_links import message_address, session_address
from pollux.web.times import stamp

SIZE = 20
HITS = 3
SORTS = {"relevance": "Relevance", "newest": "Newest", "oldest": "Oldest", "cost": "Cost"}
"""Values of the parameter `sort`, the default first, with their words above the list."""
PARTS = {
    "prompt": "prompts",
    "answer": "answers",
    "thoughts": "thoughts",
    "args": "tool arguments",
    "output": "tool output",
    "notice": "notices",
}
"""Values of the parameter `in`, with their words."""
_PART_OF_HIT = {"args": "tool arguments", "output": "tool output"}
"""Words for the part in which a hit is, where its name is not a word."""
FATES = tuple(str(fate) for fate in Fate)


def fields_of(request: Request) -> str:
    """Return what `in`, `tool` and `fate` require, in the language of queries."""
    values = (
        ("in", choice(request, "in", ("", *PARTS))),
        ("tool", parameter(request, "tool").replace('"', "")),
        ("fate", choice(request, "fate", ("", *FATES))),
    )
    return " ".join(f'{name}:"{value}"' if name == "tool" else f"{name}:{value}" for name, value in values if value)


def is_asked(request: Request) -> bool:
    """Return whether a request has anything to search for."""
    return bool(parameter(request, "q") or fields_of(request))


def hit_page(request: Request, library: Library) -> HitPage:
    """Return the hits that a request asks for."""
    return library.search(
        parameter(request, "q"),
        page_of(request, SIZE),
        wanted=wanted(request, library),
        sort=choice(request, "sort", tuple(SORTS)),
        hits_per_session=HITS,
        fields=fields_of(request),
        is_typing=flag(request, "typing", default=False),
        facets=True,
    )


def search(request: Request, library: Library) -> Response:
    """Return the search page."""
    if not is_asked(request):
        return document(request, "Search", _start(request), scripts=(LISTS,))
    try:
        hits = hit_page(request, library)
    except InvalidQueryError as error:
        if not flag(request, "typing", default=False):
            raise
        return document(request, "Search", _unfinished(error), scripts=(LISTS,))
    title = f"{make_visible(parameter(request, 'q'))} · Search"
    return document(request, title, _body(request, hits), scripts=(LISTS,))


def _unfinished(error: InvalidQueryError) -> Iterator[Html]:
    """Yield what is missing in a query that the user is still typing."""
    yield element("h1", "Search")
    yield element("p", make_visible(str(error)), class_="soft")


def _start(request: Request) -> Iterator[Html]:
    yield element("h1", "Search")
    examples = (
        ("alerts mail", "both words, in any order"),
        ('"false alarm"', "a phrase"),
        ("alert OR alarm", "one of them"),
        ("alert -mail", "without a word"),
        ("in:prompt", "or in:answer, thoughts, args, output, notice"),
        ("file:*.py cmd:pytest", "messages that touched a file, or ran a command"),
        ("last:7d cost:>0.50", "sessions by time and by cost in US dollars"),
    )
    rows = []
    for words, meaning in examples:
        link = element("a", element("code", words), href=address(request, "search", q=words))
        rows += [element("dt", link), element("dd", meaning)]
    yield element("dl", *rows, class_="facts")


def _body(request: Request, found: HitPage) -> Iterator[Html]:
    words = parameter(request, "q")
    yield element("h1", f"“{make_visible(words)}”" if words else "Search")
    yield element("p", make_visible(_reading(request, found)), class_="soft")
    for note in found.notes:
        yield element("p", make_visible(note), class_="soft small")
    if not found.sessions:
        yield _nothing(request, found)
        return
    items = (element("li", *_session(request, session), class_="hit") for session in found.sessions)
    hits = element("div", orders(request, "search", SORTS, _number(found)), element("ol", *items))
    yield element("div", _facets(request, found), hits, class_="found")
    place = "" if found.next is None and not parameter(request, "after") else plural(len(found.sessions), "session")
    yield turn(request, "search", found.next, place)
    yield formats(request, "api/search", csv=False)


def _reading(request: Request, found: HitPage) -> str:
    """Return how the query was understood, and by what it is narrowed: `3 words, in project skywatch`."""
    parts = [found.reading] if found.reading else []
    if project := parameter(request, "project"):
        names = {value.key: value.name for value in (found.facets.projects if found.facets else ())}
        parts.append(f"in project {names.get(project, project)}")
    filters = ((name, parameter(request, name)) for name in ("model", "since", "until", "last", "on"))
    return ", ".join([*parts, *(f"{name} {value}" for name, value in filters if value)])


def _number(found: HitPage) -> str:
    """Return how many sessions match, as far as that is known."""
    facets = found.facets
    n_sessions = facets.n_counted if facets and facets.is_complete else found.n_sessions
    if n_sessions is not None:
        return plural(n_sessions, "session")
    return f"{len(found.sessions):,} sessions of more" if found.next else plural(len(found.sessions), "session")


def _session(request: Request, session: SessionHits) -> Iterator[Html]:
    """Yield the title of a session, which leads to its best hit, and its hits, each of which leads to its message."""
    row, hits = session.row, session.hits
    title = make_visible(session_text.title(row, TITLE))
    target = _address_of(request, hits[0]) if hits else session_address(request, row.id)
    yield element("a", title, class_="t", href=target, data_stop=None if hits else "nearest")
    last_used = Html() if hits else stamp(request, row.last_used)  # each hit has its own time
    yield element("p", element("span", make_visible(row.project.name)), last_used, class_="where")
    for hit in hits:
        yield _hit(request, hit)
    n_more = session.n_hits - len(hits)
    if n_more > 0 and hits:
        words = f"{plural(n_more, 'more hit')} in this session"
        link = element("a", words, href=session_address(request, row.id, find=_first_word(request)))
        yield element("p", link, class_="where")


def _first_word(request: Request) -> str:
    words = [word for word in parameter(request, "q").split() if ":" not in word and not word.startswith("-")]
    return words[0].strip('"') if words else ""


def _hit(request: Request, hit: Hit) -> Html:
    about = [element("span", _PART_OF_HIT.get(hit.part, hit.part), class_="part")]
    if hit.fate != Fate.ACTIVE:
        about.append(element("span", glyph("branch"), " ", Fate(hit.fate).label, class_="flag c"))
    snippets = [element("p", snippet_html(snippet)) for snippet in hit.snippets]
    return element(
        "a",
        element("p", *about, stamp(request, hit.at), class_="where"),
        *snippets,
        class_="snip",
        href=_address_of(request, hit),
        data_stop="nearest",
    )


def _address_of(request: Request, hit: Hit) -> str:
    return message_address(request, hit.session_id, hit.number + 1)


def snippet_html(snippet: Snippet) -> Html:
    """Return the text around highlights, which become marks; the offsets count characters."""
    pieces: list[str] = ["… "] if snippet.has_before else []
    at = 0
    for span in snippet.spans:
        if at <= span.start < span.end <= len(snippet.text):
            pieces += [snippet.text[at : span.start], element("mark", snippet.text[span.start : span.end])]
            at = span.end
    pieces.append(snippet.text[at:])
    if snippet.has_after:
        pieces.append(" …")
    return joined(text(piece) for piece in pieces)


def _facets(request: Request, found: HitPage) -> Html:
    """Return links that narrow the query, with the number of sessions that each leads to."""
    facets = found.facets
    parts = tuple(FacetValue(part, words, None) for part, words in PARTS.items())
    groups = []
    if facets:
        named = [FacetValue(value.key, PARTS[value.key], value.n_sessions) for value in facets.parts]
        fates = [FacetValue(value.key, value.name, value.n_sessions) for value in facets.fates]
        tools = [FacetValue(value.key, title_of_label(value.key), value.n_sessions) for value in facets.tools]
        groups += [
            _group(request, "In", "everywhere", "in", named),
            _group(request, "Project", "all", "project", facets.projects),
            _group(request, "Model", "all", "model", facets.models),
            _group(request, "Tool", "all", "tool", tools),
            _group(request, "Fate", "any", "fate", fates),
            _months(request, facets.months),
        ]
        if not facets.is_complete:
            words = f"Numbers count the {facets.n_counted:,} newest sessions that match."
            groups.append(element("p", words, class_="soft small"))
    else:
        groups.append(_group(request, "In", "everywhere", "in", parts))
        groups.append(element("p", "Too many or too slow to count: narrow the query.", class_="soft small"))
    links = element("nav", *groups, class_="facet", aria_label="Narrow down")
    return element("details", element("summary", "Narrow down"), links, class_="narrow")


def _group(request: Request, heading: str, everything: str, name: str, values: Sequence[FacetValue]) -> Html:
    """Return the links of one facet; the first takes it back. A facet without a choice is left out.

    The sessions are counted within the current value, so the numbers of the others are unknown then.
    """
    current = parameter(request, name)
    if not values or (len(values) == 1 and not current):
        return Html()
    links = [_facet_link(request, everything, None, is_current=False, **{name: None})] if current else []
    for value in values:
        is_current = current == value.key
        number = value.n_sessions if is_current or not current else None
        links += [_facet_link(request, value.name, number, is_current=is_current, **{name: value.key})]
    return element("div", element("h2", heading), *links)


def _months(request: Request, values: Sequence[FacetValue]) -> Html:
    since, until = parameter(request, "since"), parameter(request, "until")
    is_limited = any(parameter(request, name) for name in ("since", "until", "last", "on"))
    links = []
    if is_limited:
        links.append(_facet_link(request, "any", None, is_current=False, since=None, until=None, last=None, on=None))
    for value in values:
        first = date.fromisoformat(f"{value.key}-01")
        after = (first + timedelta(days=32)).replace(day=1)
        changes: dict[str, str | None] = {"since": first.isoformat(), "until": after.isoformat()}
        changes |= {"last": None, "on": None}
        is_current = (since, until) == (changes["since"], changes["until"])
        number = value.n_sessions if is_current or not is_limited else None
        links.append(_facet_link(request, f"{first:%b %Y}", number, is_current=is_current, **changes))
    return element("div", element("h2", "Month"), *links) if len(links) > 1 else Html()


def _facet_link(request: Request, words: str, number: int | None, *, is_current: bool, **changes: str | None) -> Html:
    count = element("span", f"{number:,}", class_="num soft") if number is not None else Html()
    target = address(request, "search", **kept(request, **changes))
    return element(
        "a", element("span", make_visible(words)), count, href=target, aria_current="true" if is_current else None
    )


def _nothing(request: Request, found: HitPage) -> Html:
    inside = [element("p", f"No session contains “{make_visible(found.query)}”.")]
    links: list[str] = []
    for number, suggestion in enumerate(found.suggestions):
        link = element("a", make_visible(suggestion), href=address(request, "search", q=suggestion))
        links += [" or " if number else "", link]
    if links:
        inside.append(element("p", "Try ", *links, "."))
    if found.problems:
        problems = f"{plural(len(found.problems), 'problem')} while reading: "
        inside.append(element("p", problems, element("a", "health", href=address(request, "health")), "."))
    return element("div", *inside, class_="empty")


ROUTES = (Route("/search", page(search)),)
