"""The works to measure: a first and a second look at many files, a growing session, and one very long session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from scripts.bench.measure import Work
from scripts.bench.peers import AGENTSVIEW, POLLUX, TOKSCALE, Peer, interpreter, offline, surroundings
from scripts.bench.trees import Growing, Tree

_LIMITS = Path(__file__).with_name("limits.py")
_LIMIT_NAMES = {
    "read": "Python, reading alone",
    "orjson": "orjson, every line and document",
    "msgspec": "msgspec, the needed fields",
}


def first_look(tree: Tree, peers: Sequence[Peer]) -> list[Work]:
    """Return works that read all files: the limits of the machine, Pollux, and its peers without their caches."""
    return [
        _cat(tree, "cat"),
        *(_limit(tree, how) for how in _LIMIT_NAMES),
        _pollux(tree, "first", "usage --json --no-archive"),
        _pollux(tree, "first by session", "usage --by session --json --no-archive"),
        *(_peer(tree, peer, f"first {peer.name}", partial(peer.forget, tree)) for peer in peers),
        _pollux(tree, "first ls", "ls --json --no-archive"),
    ]


def second_look(tree: Tree, peers: Sequence[Peer]) -> list[Work]:
    """Return works that use what the work before them stored, so their order matters."""
    return [
        _pollux(tree, "keep", "sync --raw-only", partial(POLLUX.forget, tree), note="first, raw bytes only"),
        _pollux(tree, "sync", "sync", partial(POLLUX.forget, tree), note="first, with facts and search index"),
        _pollux(tree, "priced", "usage --json", note="first after that, every call priced"),
        _pollux(tree, "second", "usage --json", note="nothing changed"),
        _pollux(tree, "second ls", "ls --json", note="nothing changed"),
        _pollux(tree, "second sync", "sync", note="nothing changed"),
        *(_peer(tree, peer, f"second {peer.name}", note="its own cache") for peer in peers if peer.cache),
    ]


def growth(tree: Tree, peers: Sequence[Peer], growing: Growing) -> list[Work]:
    """Return works that run after a session has grown by a turn."""
    return [
        _pollux(tree, "grown", "usage --json", growing.grow, note="one session grew by a turn"),
        *(
            _peer(tree, peer, f"grown {peer.name}", growing.grow, note="one session grew by a turn")
            for peer in peers
            if peer is TOKSCALE
        ),
    ]


def one_session(tree: Tree, peers: Sequence[Peer], growing: Growing) -> list[Work]:
    """Return works on one very long session."""
    return [
        _cat(tree, "big cat"),
        _pollux(tree, "big usage", "usage --json --no-archive"),
        *(
            _peer(tree, peer, f"big {peer.name}", partial(peer.forget, tree))
            for peer in peers
            if peer is not AGENTSVIEW
        ),
        _pollux(tree, "big ls", "ls --json --no-archive"),
        _pollux(tree, "big show", "show latest --no-archive"),
        _pollux(tree, "big export", "export latest -f gemini --no-archive"),
        _pollux(tree, "big sync", "sync", partial(POLLUX.forget, tree), note="first"),
        _pollux(tree, "big priced", "usage --json", note="first after that"),
        _pollux(tree, "big second", "usage --json", note="nothing changed"),
        _pollux(tree, "big grown", "usage --json", growing.grow, note="it grew by a turn"),
    ]


def sync(tree: Tree) -> Work:
    """Return the work that updates the archive of a home."""
    return _in_place(tree, "large sync", "sync")


def large_archive(tree: Tree) -> list[Work]:
    """Return works on a large archive in which nothing has changed."""
    return [
        _in_place(tree, "large ls", "ls -n 20"),
        _in_place(tree, "large usage", "usage"),
        _in_place(tree, "large show", "show latest"),
        _in_place(tree, "large overview", "", note="the overview"),
    ]


def _in_place(tree: Tree, key: str, line: str, note: str = "") -> Work:
    """Return a command on the home itself, because following a link to each of many files takes time."""
    name = f"`pollux {line}`" if line else "`pollux`"
    command = [*offline(), POLLUX.program, *line.split()]
    return Work(key, _named(name, note), [command], surroundings(tree.root))


def _cat(tree: Tree, key: str) -> Work:
    return Work(key, "`cat`", [["cat", *map(str, tree.files)]], surroundings(tree.home_of("cat")))


def _limit(tree: Tree, how: str) -> Work:
    command = [str(interpreter()), str(_LIMITS), how, str(tree.root)]
    return Work(how, _LIMIT_NAMES[how], [command], surroundings(tree.home_of(how)))


def _pollux(tree: Tree, key: str, line: str, before: Callable[[], None] | None = None, note: str = "") -> Work:
    command = [*offline(), POLLUX.program, *line.split()]
    return Work(key, _named(f"`pollux {line}`", note), [command], surroundings(tree.home_of("pollux")), before)


def _peer(tree: Tree, peer: Peer, key: str, before: Callable[[], None] | None = None, note: str = "") -> Work:
    commands = [[*offline(), *command] for command in peer.started()]
    environment = surroundings(tree.home_of(peer.name), peer.environment)
    return Work(key, _named(peer.name, note), commands, environment, before, peer.is_slow)


def _named(name: str, note: str) -> str:
    return f"{name}, {note}" if note else name
