"""Small homes with one peculiarity each, and the usage that was billed for them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from tests import builders
from tests.builders import Wire, at, call, chats, document, gemini, header, log, put, rewind, updates, user

Build: TypeAlias = Callable[[Path], None]

PRO, FLASH = "gemini-2.5-pro", "gemini-2.5-flash"
NAME, OTHER = f"{builders.NAME}.json", f"session-2026-11-15T19-30-{builders.OTHER[:8]}"


class Case(NamedTuple):
    """A function that builds a home, and its true usage."""

    build: Build
    nanousd: int
    calls: int
    tokens: Wire


def counts(input_: int, output: int, *, cached: int = 0, thoughts: int = 0, tool: int = 0) -> Wire:
    total = input_ + output + thoughts + tool
    return {
        "input": input_,
        "output": output,
        "cached": cached,
        "thoughts": thoughts,
        "tool": tool,
        "total": total,
    }


def answer(id_: str, tokens: Wire, model: str = PRO, **more: Any) -> Wire:  # noqa: ANN401  as on the wire
    return gemini(id_, "ok", tokens=tokens, model=model, **more)


# The cases of a comparison of such programs: two old answers, three new ones of which one is rewound, one subagent.
OLD = (
    user("u1"),
    answer("g1", counts(1000, 100, thoughts=50)),
    answer("g2", counts(2000, 200, cached=1500, thoughts=75, tool=25)),
)
NEW_TOKENS = counts(4000, 400, cached=1500, thoughts=100)
SUBAGENT = answer("s1", counts(7000, 700, cached=3000, thoughts=300))
SMALL = counts(1000, 100, cached=600, thoughts=50)


def old(root: Path, folder: str = "webapp") -> None:
    put(chats(root, folder) / NAME, document(*OLD))


def new(root: Path) -> None:
    bare = [gemini(f"n{n}", "ok", second=n, model=FLASH, tokens=None) for n in (1, 2, 3)]
    full = [one | {"tokens": NEW_TOKENS} for one in bare]
    shell = [call("c1", "run_shell_command", args={"command": "ls"}), call("c2", "Shell", args={"command": "ls"})]
    records = (bare[0], full[0], full[0] | {"toolCalls": shell}, full[1], user("u3"), full[2], rewind("u3"))
    data = log(header(builders.OTHER), user("u2"), *records, updates(lastUpdated=at(9)))
    put(chats(root) / f"{OTHER}.jsonl", data)


def subagent_log(root: Path) -> None:
    head = header("5ab00000-0000-4000-8000-000000000000", kind="subagent")
    put(chats(root) / builders.OTHER / f"{head['sessionId']}.jsonl", log(head, user("us"), SUBAGENT))


def subagent_document(root: Path) -> None:
    data = document(user("us"), SUBAGENT, sessionId="5ab00000-0000-4000-8000-000000000000", kind="subagent")
    put(chats(root) / builders.OTHER / "5ab00000-0000-4000-8000-000000000000.json", data)


def tiny(root: Path) -> None:
    old(root)
    new(root)
    subagent_log(root)


def copied(root: Path) -> None:
    old(root)
    old(root, builders.HASH)


def resumed(root: Path) -> None:
    old(root)
    records = (header(), *OLD, user("u9", second=8), answer("g9", counts(2500, 50), second=9))
    put(chats(root) / f"{NAME}l", log(*records))


def logged(*answers: Wire, tail: bytes = b"") -> Build:
    def build(root: Path) -> None:
        put(chats(root) / f"{NAME}l", log(header(), user(), *answers) + tail)

    return build


def stray(root: Path) -> None:
    logged(answer("g1", SMALL, FLASH))(root)
    stats = {"models": {FLASH: {"tokens": counts(9000, 100)}}}
    put(root / ".gemini" / "tmp" / "webapp" / "report.json", json.dumps({"stats": stats}).encode())
    put(root / ".gemini" / "tmp" / "webapp" / "chats" / "notes.json", json.dumps({"stats": stats}).encode())


def reused(root: Path) -> None:
    old(root)
    data = document(user("us"), answer("s1", counts(500, 10)), kind="subagent")
    put(chats(root) / f"session-2026-11-15T19-31-{builders.SESSION[:8]}.json", data)


NO_TOTAL = {key: value for key, value in SMALL.items() if key != "total"}
OLD_COUNTS = counts(3000, 300, cached=1500, thoughts=125, tool=25)
CASES: dict[str, Case] = {
    "tiny": Case(tiny, 27_853_750, 6, counts(22_000, 2_200, cached=9_000, thoughts=725, tool=25)),
    "document alone": Case(old, 6_343_750, 2, OLD_COUNTS),
    "log alone": Case(new, 6_135_000, 3, counts(12_000, 1_200, cached=4_500, thoughts=300)),
    "subagent's log alone": Case(subagent_log, 15_375_000, 1, SUBAGENT["tokens"]),
    "subagent's document alone": Case(subagent_document, 15_375_000, 1, SUBAGENT["tokens"]),
    "hash folder and its copy": Case(copied, 6_343_750, 2, OLD_COUNTS),
    "resumed with one more turn": Case(resumed, 9_968_750, 3, counts(5_500, 350, cached=1_500, thoughts=125, tool=25)),
    "one prompt of 300k": Case(
        logged(answer("g1", counts(300_000, 1500, cached=100_000))),
        547_500_000,
        1,
        counts(300_000, 1500, cached=100_000),
    ),
    "two prompts of 150k": Case(
        logged(answer("g1", counts(150_000, 1000)), answer("g2", counts(150_000, 1000))),
        395_000_000,
        2,
        counts(300_000, 2000),
    ),
    "no total": Case(logged(answer("g1", NO_TOTAL, FLASH)), 513_000, 1, SMALL),
    "total without thoughts": Case(
        logged(answer("g1", SMALL | {"total": 1100}, FLASH)), 513_000, 1, SMALL | {"total": 1100}
    ),
    "torn last line": Case(
        logged(answer("g1", SMALL, FLASH), tail=b'{"id":"g2","type":"gemini","con'), 513_000, 1, SMALL
    ),
    "stray JSON with stats": Case(stray, 513_000, 1, SMALL),
    "parent's id reused": Case(reused, 7_068_750, 3, counts(3_500, 310, cached=1_500, thoughts=125, tool=25)),
    "unknown model among others": Case(
        logged(answer("g1", SMALL, FLASH), answer("g2", SMALL, "gemini-9.9-ultra")),
        513_000,
        2,
        counts(2_000, 200, cached=1_200, thoughts=100),
    ),
}
