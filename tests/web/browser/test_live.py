"""Follow a session in a browser while a test writes it, as Gemini CLI does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.builders import NAME, SESSION, Wire, call, chats, gemini, header, line, log, put, rewind, tokens, user
from tests.web.browser.driving import Browser, BrowserTab
from tests.web.browser.serving import Served, serving

SHORT = SESSION[:8]
N_TURNS = 20
PARAGRAPHS = "\n\n".join(f"paragraph {number} of a long answer" for number in range(30))
AT_END = "innerHeight + scrollY >= document.body.scrollHeight - 5"
OTHER = "0badcafe-0000-4000-8000-000000000000"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    records: list[Wire] = []
    for turn in range(N_TURNS):
        records += [
            user(f"u{turn}", f"prompt {turn}", second=turn),
            gemini(
                f"g{turn}",
                f"answer {turn}\n\n{PARAGRAPHS}",
                second=turn,
                tokens=tokens(turn + 1),
                thoughts=[{"subject": "thinking", "description": f"about {turn}", "timestamp": "2026-11-15T19:31:00Z"}],
                toolCalls=[call(f"c{turn}", "run_shell_command", args={"command": "ls"}, resultDisplay="a\nb\nc")],
            ),
        ]
    put(session_file(tmp_path), log(header(), *records))
    return tmp_path / "sessions"


def session_file(folder: Path) -> Path:
    return chats(folder / "sessions") / f"{NAME}.jsonl"


@pytest.fixture
def served(browser: Browser, tmp_path: Path, home: Path) -> Iterator[Served]:
    assert browser is not None
    with serving(tmp_path / "served", home) as served:
        yield served


def write(folder: Path, *records: Wire) -> None:
    with session_file(folder).open("ab") as file:
        for record in records:
            file.write(line(record) + b"\n")


def test_a_session_grows_in_place(tab: BrowserTab, tmp_path: Path) -> None:
    """What the reader looks at does not move, and folds stay as they are."""
    tab.go(f"s/{SHORT}")
    tab.tell("scrollTo(0, 3000)")
    tab.click("#m6 .thinking > summary")
    fold = "document.querySelector('#m6 .thinking').open"
    was_open = tab.tell(fold)
    tab.pause(200)
    before = tab.tell("[scrollY, document.getElementById('m6').getBoundingClientRect().top]")
    write(tmp_path, user("new", "a new prompt", second=60))
    tab.wait("document.getElementById('m41')")
    write(tmp_path, gemini("newer", "a new answer", second=61, tokens=tokens(77)))
    tab.wait("document.getElementById('m42')?.textContent.includes('a new answer')")
    assert tab.count(".thread article.msg") == 42
    assert tab.tell("[scrollY, document.getElementById('m6').getBoundingClientRect().top]") == before
    assert tab.tell(fold) == was_open
    assert tab.count("#prompts li") == N_TURNS + 1
    assert "new message" in tab.texts("[role=status]")[-1]


def test_the_end_is_followed_if_it_is_in_sight(tab: BrowserTab, tmp_path: Path) -> None:
    tab.go(f"s/{SHORT}")
    tab.press(".")
    tab.wait(AT_END)
    write(tmp_path, user("new", "a new prompt", second=60), gemini("newer", PARAGRAPHS, second=61))
    tab.wait("document.getElementById('m42')")
    tab.wait(AT_END)


def test_a_growing_message_is_replaced(tab: BrowserTab, tmp_path: Path) -> None:
    """The client writes an answer again when it has grown."""
    tab.go(f"s/{SHORT}")
    write(tmp_path, user("new", "a new prompt", second=60), gemini("newer", "half", second=61))
    tab.wait("document.getElementById('m42')?.textContent.includes('half')")
    write(tmp_path, gemini("newer", "half and the other half", second=61, toolCalls=[call("c99")]))
    tab.wait("document.getElementById('m42')?.textContent.includes('the other half')")
    assert tab.count(".thread article.msg") == 42


def test_a_rewind_is_shown(tab: BrowserTab, tmp_path: Path) -> None:
    tab.go(f"s/{SHORT}")
    write(tmp_path, rewind(f"u{N_TURNS - 1}"), user("new", "another way", second=60))
    tab.wait("document.querySelector('.branch.rewound') && document.body.textContent.includes('another way')")
    assert "prompt 19" in tab.texts(".branch.rewound")[0]


@pytest.mark.parametrize("is_replaced", [True, False])
def test_a_file_that_is_rewritten_moves_nothing(tab: BrowserTab, tmp_path: Path, *, is_replaced: bool) -> None:
    """The archive keeps the messages that the new file lacks, so that no message gets another number."""
    tab.go(f"s/{SHORT}/39#m39")
    tab.wait("scrollY > 1000")
    tab.pause(200)
    before = tab.tell("document.getElementById('m39').getBoundingClientRect().top")
    file = session_file(tmp_path)
    records = file.read_bytes().split(b"\n")[:11] if not is_replaced else [log(header()).rstrip()]
    new = file.with_suffix(".new")
    new.write_bytes(b"\n".join([*records, line(user("new", "a new prompt", second=60)), b""]))
    new.rename(file)
    tab.wait("document.getElementById('m41')?.textContent.includes('a new prompt')")
    assert tab.count(".thread article.msg") == 41
    assert tab.tell("document.getElementById('m39').getBoundingClientRect().top") == before


def test_a_tab_without_changes_asks_for_nothing(tab: BrowserTab) -> None:
    tab.go(f"s/{SHORT}")
    tab.wait("document.readyState === 'complete'")
    tab.pause(500)
    before = len(tab.seen.requests)
    tab.pause(1500)
    assert len(tab.seen.requests) == before


def test_hostile_words_arrive_as_text(tab: BrowserTab, tmp_path: Path) -> None:
    tab.go(f"s/{SHORT}")
    evil = "</section><script>owned=1</script><img src=x onerror=owned=1>\n\nevent: bye\ndata: {}\r\r\u2028"
    write(tmp_path, user("new", evil, second=60))
    tab.wait("document.getElementById('m41')?.textContent.includes('<script>owned=1</script>')")
    assert tab.tell("typeof owned") == "undefined"
    write(tmp_path, gemini("newer", "still here", second=61))
    tab.wait("document.getElementById('m42')")


def test_what_is_new_since_the_last_visit_is_marked(tab: BrowserTab, tmp_path: Path) -> None:
    tab.go(f"s/{SHORT}")
    assert tab.count(".new") == tab.count("#to-new") == 0
    tab.go("health")
    write(tmp_path, user("new", "a new prompt", second=60), gemini("newer", PARAGRAPHS, second=61))
    tab.go(f"s/{SHORT}")
    tab.wait("document.getElementById('m42')")
    tab.wait("document.querySelector('.new')?.nextElementSibling.id === 'm41'")
    assert tab.texts(".new") == ["New since your last visit"]
    assert tab.texts("#to-new") == ["2 new since your last visit"]
    assert tab.faults() == []
    tab.click("#to-new")
    tab.wait("document.querySelector('.new').getBoundingClientRect().top < innerHeight")
    write(tmp_path, user("newest", "the newest prompt", second=62))
    tab.wait("document.getElementById('m43')")
    assert tab.count(".new") == 1
    assert tab.tell("document.querySelector('.new').nextElementSibling.id") == "m41"
    tab.go("health")
    tab.go(f"s/{SHORT}")
    tab.wait("document.getElementById('m43')")
    assert tab.count(".new") == tab.count("#to-new") == 0


VISIBILITY = """
Object.defineProperty(document, "hidden", { configurable: true, value: %s });
document.dispatchEvent(new Event("visibilitychange"));
"""
"""Hide or show a page as a browser does; a browser without a screen shows all of its tabs."""


def test_thirty_tabs_of_one_browser(tab: BrowserTab, tmp_path: Path) -> None:
    """A browser opens six connections to a server: a hidden tab must close its stream."""
    tabs = [tab]
    tab.go(f"s/{SHORT}")
    for number in range(1, 30):
        tabs[-1].tell(VISIBILITY % "true")
        tabs.append(tab.beside())
        assert tabs[-1].go(f"s/{SHORT}" if number % 2 else "sessions") == 200
    write(tmp_path, user("new", "a prompt for all tabs", second=40), gemini("answer", "seen", second=41))
    tabs[-1].wait("document.body.textContent.includes('a prompt for all tabs')")
    tabs[-1].tell(VISIBILITY % "true")
    tab.tell(VISIBILITY % "false")
    tab.wait("document.body.textContent.includes('a prompt for all tabs')")
    for other in tabs[1:]:
        other.close()
