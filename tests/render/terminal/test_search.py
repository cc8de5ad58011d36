"""Hits on a terminal of any width and in a pipe, and the caret below a mistake in a query."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from rich.cells import cell_len

from pollux.archive.memory import in_memory
from pollux.model import Fate, ModelCall, Project, Session, Tokens
from pollux.render.terminal.layout import Safe
from pollux.render.terminal.screen import Console
from pollux.render.terminal.search import count_text, foot_notes, hit_lines, pointed_query, render_hits
from pollux.render.terminal.snippets import HIGHLIGHT
from pollux.reports.freshness import Freshness, FreshnessState
from pollux.reports.sessions import SessionRow, rows
from pollux.search.values import Hit, HitPage, IndexCoverage, SessionHits, Snippet, TextSpan

AT = datetime(2026, 11, 14, 7, 51, tzinfo=UTC)
HOSTILE = [
    "[bold red]x[/] :smile: [link=http://x]",
    "\x1b]0;title\x07\x1b[2J\x1b[31m",
    "\r\b\x00\x7f\x9b1m",
    "\u202etxt.exe\u2066\u200b\ufeff",
    "one\ttwo\nthree\r\nfour\u2028five",
    "\ud800 lone",
    "👨‍👩‍👧 e\u0301 連接超时",
    "\U000e0041\U000e0042",
    "",
]
WIDTHS = [30, 40, 59, 60, 80, 120, 160]


def session_row(id_: str = "602c50c2-52c5-4acc", **more: object) -> SessionRow:
    fields: dict[str, object] = {
        "kind": "main",
        "project": Project("ab" * 32, "skywatch", "/home/mara/src/skywatch", "arguments"),
        "title": "Find the cause of duplicate alerts",
        "ended": AT,
        "counts": {"user": 3},
        "calls": (ModelCall(id_, "m", None, "gemini-2.5-pro", Fate.ACTIVE, Tokens(total=12345), "f", 1),),
    }
    session = Session(id=id_, **fields | more)  # type: ignore[arg-type]
    with closing(in_memory([session], [])) as database:
        (row,) = rows(database, [session])
        return row


def marked(text: str, **more: bool) -> Snippet:
    """Build a snippet from a text with its highlights in brackets."""
    plain, spans = "", []
    for number, piece in enumerate(text.replace("]", "[").split("[")):
        if number % 2:
            spans.append(TextSpan(len(plain), len(plain) + len(piece)))
        plain += piece
    return Snippet(plain, tuple(spans), **more)


def hit(*snippets: str | Snippet, **more: object) -> Hit:
    fields: dict[str, object] = {
        "session_id": "602c50c2-52c5-4acc",
        "message_id": "9f7c1a52",
        "number": 11,
        "part": "output",
        "at": AT,
        "role": "gemini",
        "fate": "active",
        "score": 1.0,
    }
    made = tuple(marked(snippet) if isinstance(snippet, str) else snippet for snippet in snippets)
    return Hit(snippets=made, **fields | more)  # type: ignore[arg-type]


def group(*hits: Hit, n_hits: int | None = None, scope: str = "message", **more: object) -> SessionHits:
    return SessionHits(session_row(**more), hits, len(hits) if n_hits is None else n_hits, scope, 1.0)  # type: ignore[arg-type]


def drawn(*sessions: SessionHits, width: int = 80) -> list[str]:
    console = Console(width=width, color_system=None, force_terminal=False)
    with console.capture() as capture:
        for part in render_hits(sessions, zone=UTC):
            console.print(Safe(part, "utf-8"))
    return capture.get().splitlines()


def highlighted(*sessions: SessionHits, width: int = 80) -> list[str]:
    """Return the texts that are highlighted, in order."""
    console = Console(width=width, color_system="256", force_terminal=True)
    style = console.get_style(HIGHLIGHT)
    texts = []
    for part in render_hits(sessions, zone=UTC):
        texts += [segment.text for segment in console.render(Safe(part, "utf-8")) if segment.style == style]
    return texts


def test_session_is_a_header_with_its_hits_below() -> None:
    session = group(
        hit("Two false [alarms] last night", number=0, part="prompt"),
        hit("sent 2 [alarms]", at=AT + timedelta(minutes=4)),
        n_hits=6,
    )
    assert drawn(session) == [
        "2026-11-14  602c50c2  skywatch  Find the cause of duplicate alerts      no price",
        "   #1  prompt  07:51  Two false alarms last night",
        "  #12  output  07:55  sent 2 alarms",
        "  … and 4 more in this session",
    ]


def test_highlights_are_bold_and_coloured_and_nothing_else_marks_them() -> None:
    session = group(hit("a [duplicate] key makes [alerts] twice"))
    assert highlighted(session) == ["duplicate", "alerts"]
    assert "a duplicate key makes alerts twice" in drawn(session)[1]


@pytest.mark.parametrize("width", WIDTHS)
def test_every_line_fits(width: int) -> None:
    long = "mail log of the night " * 8
    session = group(
        hit(f"{long}[alarm] {long}", fate="rewound", number=1233, part="thoughts", at=AT - timedelta(days=3)),
        hit(f"{'連接' * 40}[超时]{'錯誤' * 40}", "second [place]", f"{'x' * 90}[third]{'y' * 90}"),
        n_hits=7_654,
        scope="session",
        title="連接超时错误 " * 20,
        project=Project(None, None, f"/home/mara/{'項目' * 20}", "arguments"),
    )
    lines = drawn(session, group(hit("[x]")), width=width)
    assert max(map(cell_len, lines)) <= width
    assert "602c50c2" in lines[0]
    text = "".join(line.strip() for line in lines)
    for word in ("alarm", "超时", "place", "third", "rewound", "#1234", "thoughts", "11-11 07:51"):
        assert word in text


def test_header_gives_up_cost_then_project_then_date() -> None:
    headers = {width: drawn(group(), width=width)[0] for width in range(30, 100)}
    shown = {
        width: [word in header for word in ("no price", "skywatch", "2026-11-14")] for width, header in headers.items()
    }
    assert shown[80] == [True, True, True]
    assert shown[60] == [False, True, True]
    assert shown[50] == [False, False, True]
    assert shown[40] == [False, False, False]
    assert all("602c50c2  Find" in header or "  Find the" in header for header in headers.values())


@pytest.mark.parametrize("width", WIDTHS)
def test_long_snippet_is_cut_around_its_highlight(width: int) -> None:
    text = f"{'before ' * 14}[needle] {'after ' * 14}".strip()
    assert highlighted(group(hit(text)), width=width) == ["needle"]
    lines = drawn(group(hit(text)), width=width)[1:]
    joined = " ".join(line.strip() for line in lines)
    if width < 120:
        assert "…" in joined
    words = set(joined.partition("07:51")[2].replace("…", " ").split())
    assert words <= {"before", "needle", "after"}, "a word is cut in half"


def test_places_of_one_hit_share_its_lines() -> None:
    places = [f"{'one ' * 20}[first] {'two ' * 20}", f"{'three ' * 20}[second] {'four ' * 20}", "[third] five"]
    lines = drawn(group(hit(*places)))[1:]
    assert len(lines) <= 4
    assert highlighted(group(hit(*places))) == ["first", "second", "third"]
    assert "…  …" not in " ".join(lines)
    assert "… …" not in " ".join(" ".join(lines).split())


@pytest.mark.parametrize("width", WIDTHS)
def test_words_far_apart_in_one_snippet_are_all_shown(width: int) -> None:
    text = f"{'one ' * 8}[mail] {'two ' * 25}[greylisted] {'three ' * 10}[Mail] four"
    session = group(hit(text))
    assert [word for word in highlighted(session, width=width) if word != "Mail"] == ["mail", "greylisted"]
    assert max(map(cell_len, drawn(session, width=width))) <= width


def test_cut_ends_of_a_text_are_marked() -> None:
    snippet = msgspec.structs.replace(marked("in the [middle] of"), has_before=True, has_after=True)
    assert drawn(group(hit(snippet)))[1].endswith("…in the middle of…")


@pytest.mark.parametrize("fate", [fate for fate in Fate if fate is not Fate.ACTIVE])
@pytest.mark.parametrize("width", [40, 80])
def test_dropped_messages_are_marked(fate: Fate, width: int) -> None:
    assert fate.replace("_", " ") in " ".join(drawn(group(hit("[x]", fate=str(fate))), width=width)[1:])


def test_words_in_different_messages_and_subagents_are_named() -> None:
    lines = drawn(group(hit("[a]"), hit("[b]"), scope="session", kind="subagent", parent="e92f6bc2-1111"))
    assert lines[1:3] == ["  subagent of e92f6bc2", "  words in different messages"]


def test_sessions_without_hits_are_a_plain_list() -> None:
    assert len(drawn(group(), group())) == 2
    assert len(drawn(group(hit("[x]")), group(hit("[x]")))) == 5


def test_session_that_is_found_by_its_title_says_so() -> None:
    assert drawn(group(scope="title"))[1] == "  words in the title"
    (line,) = hit_lines([group(scope="title")], header=False)
    assert line.split("\t")[3] == "title"


def test_hit_without_time_or_words_has_a_label() -> None:
    assert drawn(group(hit(at=None)))[1] == "  #12  output"


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text)[:30])
def test_hostile_text_neither_controls_the_terminal_nor_moves_highlights(text: str) -> None:
    snippet = Snippet(f"{text}needle{text}", (TextSpan(len(text), len(text) + 6),))
    session = group(hit(snippet), title=text, project=Project(None, None, f"/{text}", "arguments"))
    for width in (40, 80):
        lines = drawn(session, width=width)
        assert max(map(cell_len, lines)) <= width
        assert not any(ord(character) < 0x20 or 0x7F <= ord(character) < 0xA0 for line in lines for character in line)
        assert "".join(highlighted(session, width=width)) == "needle"


def test_characters_that_a_terminal_lacks_are_escaped_before_lines_are_broken() -> None:
    session = group(hit("überall für die Übung " * 4 + "[nötig]"), title="Übung " * 20)
    console = Console(width=60, color_system=None, force_terminal=False)
    with console.capture() as capture:
        for part in render_hits([session], zone=UTC, encoding="ascii"):
            console.print(Safe(part, "ascii"))
    lines = capture.get().splitlines()
    assert capture.get().isascii()
    assert max(map(len, lines)) <= 60
    assert "n\\xf6tig" in lines[-1]


def test_pipe_has_a_field_per_column() -> None:
    session = group(
        hit(Snippet("a\tb\nc\x1b[2J", (TextSpan(2, 3),)), "d"),
        hit(fate="rewound", at=None),
        title="one\ttwo",
        n_hits=9,
        id_="602c50c2-52c5-4acc",
    )
    header, first, second = hit_lines([session])
    assert header == "session\tmessage\tnumber\tpart\tat\tfate\tproject\ttitle\tcost_usd\tsnippet\n"
    place = ["/home/mara/src/skywatch", "one two", ""]
    start = ["602c50c2-52c5-4acc", "9f7c1a52", "12", "output"]
    assert first.split("\t") == [*start, "2026-11-14T07:51:00.000Z", "active", *place, "a b c␛[2J … d\n"]
    assert second.split("\t") == [*start, "", "rewound", *place, "\n"]
    assert len(list(hit_lines([session], header=False))) == 2


def test_pipe_has_a_line_for_a_session_without_hits() -> None:
    (line,) = hit_lines([group()], header=False)
    assert line.split("\t")[:5] == ["602c50c2-52c5-4acc", "", "", "", "2026-11-14T07:51:00.000Z"]


def page(total: int | None, n_sessions: int | None) -> HitPage:
    freshness = Freshness(FreshnessState.CURRENT)
    return HitPage("x", (), None, total, n_sessions, (), (), IndexCoverage(1, 1), (), freshness)


def test_counts_are_words() -> None:
    assert count_text(page(1, 1)) == "1 hit in 1 session"
    assert count_text(page(1234, 20)) == "1,234 hits in 20 sessions"
    assert count_text(page(0, 0)) == "0 hits in 0 sessions"
    assert count_text(page(0, 3)) == "3 sessions"


def test_a_search_that_stopped_does_not_claim_that_nothing_matches() -> None:
    stopped = msgspec.structs.replace(page(None, None), next="cursor", notes=("Stopped after 0.8 s.",))
    notes = list(foot_notes(stopped, is_found=False, is_terminal=True, is_scan=False, has_filter=False))
    assert notes == ["Stopped after 0.8 s.", "No match for 'x' so far."]


@pytest.mark.parametrize(
    ("query", "position", "expected"),
    [
        ("alerts projct:sky", 7, "  alerts projct:sky\n         ^"),
        ('超时 "x', 3, '  超时 "x\n       ^'),
        ("x", 1, "  x\n   ^"),
        ("\x1b[2J \x00", 5, "  ␛[2J ␀\n       ^"),
    ],
)
def test_caret_is_below_the_mistake(query: str, position: int, expected: str) -> None:
    assert pointed_query(query, position, 80) == expected


@pytest.mark.parametrize("width", [20, 40, 80])
@pytest.mark.parametrize("position", [0, 30, 999, 2000])
@pytest.mark.parametrize("word", ["abc ", "超时 "])
def test_caret_of_a_long_query_fits_and_points_at_its_character(width: int, position: int, word: str) -> None:
    query = word * 500
    query = f"{query[:position]}@{query[position:]}"[:2000]
    shown, caret = pointed_query(query, position, width).splitlines()
    assert max(cell_len(shown), len(caret)) <= width
    if position < len(query):
        before = shown.partition("@")[0]
        assert cell_len(before) == len(caret) - 1
