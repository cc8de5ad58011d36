"""The search page: sessions that match a query, with the words around each hit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pollux.library.library import Library
from pollux.library.values import Hit, HitPage, SessionHits, Snippet
from pollux.model import Fate
from pollux.render.html.icons import glyph
from pollux.render.html.markup import Html, element, joined, text
from pollux.text.escape import make_visible
from pollux.text.numbers import plural
from pollux.views import session_text
from pollux.views.session_text import TITLE
from pollux.web.layout import address, document
from pollux.web.lists import formats, kept, turn, when
from pollux.web.requests import choice, page_of, parameter, wanted
from pollux.web.routing import page
from pollux.web.session_links import message_address, session_address

SIZE = 20
HITS = 3
SORTS = ("relevance", "newest", "oldest", "cost")
PARTS = ("prompt", "answer", "thoughts", "args", "output", "notice")
"""Values of `in:`, which a link adds to the query."""


def query_of(request: Request) -> str:
    """Return the query with the part of messages that `in=` names."""
    words, part = parameter(request, "q"), choice(request, "in", ("", *PARTS))
    return f"{words} in:{part}".strip() if part else words


def hit_page(request: Request, library: Library) -> HitPage:
    """Return the hits that a request asks for."""
    sort = choice(request, "sort", SORTS)
    return library.search(
        query_of(request), page_of(request, SIZE), wanted=wanted(request, library), sort=sort, hits_per_session=HITS
    )


def search(request: Request, library: Library) -> Response:
    """Return the search page."""
    words = parameter(request, "q")
    if not query_of(request):
        return document(request, "Search", _start())
    found = hit_page(request, library)
    title = f"{make_visible(words)} · Search"
    return document(request, title, _body(request, found))


def _start() -> Iterator[Html]:
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
    rows = [joined((element("dt", element("code", words)), element("dd", meaning))) for words, meaning in examples]
    yield element("dl", *rows, class_="facts")


def _body(request: Request, found: HitPage) -> Iterator[Html]:
    n_sessions = len(found.sessions) if found.n_sessions is None else found.n_sessions
    more = "+" if found.n_sessions is None and found.next else ""
    yield element("h1", f"“{make_visible(found.query)}”")
    yield element("p", f"{n_sessions:,}{more} {'session' if n_sessions == 1 else 'sessions'}", class_="soft")
    for note in found.notes:
        yield element("p", make_visible(note), class_="soft small")
    if not found.sessions:
        yield _nothing(request, found)
        return
    items = [item for session in found.sessions for item in _session(request, session)]
    yield element("div", _facets(request, found.sessions), element("ol", *items), class_="found")
    yield turn(request, "search", found.next, plural(len(found.sessions), "session"))
    yield formats(request, "api/search", csv=False)


def _session(request: Request, session: SessionHits) -> Iterator[Html]:
    row = session.row
    title = make_visible(session_text.title(row, TITLE))
    if not session.hits:
        link = element("a", title, class_="t", href=session_address(request, row.id), data_stop="nearest")
        where = element("p", element("span", make_visible(row.project.name)), when(row.last_used), class_="where")
        yield element("li", link, where, class_="hit")
    for hit in session.hits:
        yield _hit(request, session, hit, title)
    n_more = session.n_hits - len(session.hits)
    if n_more > 0 and session.hits:
        words = f"{plural(n_more, 'more hit')} in this session"
        link = element("a", words, href=session_address(request, row.id, find=_first_word(request)))
        yield element("li", link, class_="hit more")


def _first_word(request: Request) -> str:
    words = [word for word in parameter(request, "q").split() if ":" not in word and not word.startswith("-")]
    return words[0].strip('"') if words else ""


def _hit(request: Request, session: SessionHits, hit: Hit, title: str) -> Html:
    link = element(
        "a", title, class_="t", href=message_address(request, hit.session_id, hit.number + 1), data_stop="nearest"
    )
    snippets = [element("p", snippet_html(snippet)) for snippet in hit.snippets]
    about = [element("span", make_visible(session.row.project.name)), when(hit.at), element("span", hit.part)]
    if hit.fate != Fate.ACTIVE:
        about.append(element("span", glyph("branch"), " ", Fate(hit.fate).label, class_="flag c"))
    return element("li", link, *snippets, element("p", *about, class_="where"), class_="hit")


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


def _facets(request: Request, sessions: Iterable[SessionHits]) -> Html:
    """Return links that narrow the query; the numbers count the sessions on this page."""
    sessions = tuple(sessions)
    here = parameter(request, "in")
    everywhere = _facet_link(request, "everywhere", None, is_current=not here, **{"in": None})
    parts = [_facet_link(request, part, None, is_current=here == part, **{"in": part}) for part in PARTS]
    groups = [element("div", element("h2", "In"), everywhere, *parts)]
    projects = Counter((session.row.project.key, session.row.project.name) for session in sessions)
    links = [
        _facet_link(request, name, n_sessions, is_current=parameter(request, "project") == key, project=key)
        for (key, name), n_sessions in projects.most_common(10)
        if key
    ]
    groups.append(element("div", element("h2", "Project"), *links))
    models = Counter(model for session in sessions for model in session.row.models)
    links = [
        _facet_link(request, name, n_sessions, is_current=parameter(request, "model") == name, model=name)
        for name, n_sessions in models.most_common(10)
    ]
    groups.append(element("div", element("h2", "Model"), *links))
    orders = [
        _facet_link(request, word, None, is_current=choice(request, "sort", SORTS) == word, sort=word) for word in SORTS
    ]
    groups.append(element("div", element("h2", "Order"), *orders))
    return element("nav", *groups, class_="facet", aria_label="Narrow down")


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
