"""What each program says was billed, beside the truth."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts.bench.billed import Billed
from scripts.bench.peers import Peer, offline, surroundings
from scripts.bench.trees import BUILD, Tree, truth
from tests.cli.usage_cases import CASES


@dataclass(frozen=True, slots=True)
class Answers:
    """What was said about one home; nothing by those who failed."""

    home: str
    true: Billed
    said: Mapping[str, Billed | None]


def of_generated(tree: Tree, name: str, programs: Sequence[Peer], *, known: bool) -> Answers:
    """Ask all programs about a generated tree; where they know it, those that are slow may use that."""
    return Answers(name, truth(tree), {one.name: ask(one, tree, known=known) for one in programs})


def of_cases(programs: Sequence[Peer]) -> list[Answers]:
    """Ask all programs about the small homes of our own tests, in each of which one thing is odd."""
    found = []
    shutil.rmtree(BUILD / "cases", ignore_errors=True)
    for number, (name, case) in enumerate(CASES.items()):
        tree = Tree(BUILD / "cases" / f"case-{number}")
        tree.root.mkdir(parents=True)
        case.build(tree.root)
        true = Billed.of_counts(case.tokens, case.nanousd / 1e9)
        found.append(Answers(name, true, {one.name: ask(one, tree) for one in programs}))
    return found


def ask(program: Peer, tree: Tree, *, known: bool = False) -> Billed | None:
    """Run a program and read its numbers."""
    home = tree.home_of(program.name)
    if not (known and program.is_slow):
        program.forget(tree)
    environment = surroundings(home, program.environment)
    said = b""
    for command in program.started():
        ended = subprocess.run([*offline(), *command], check=False, capture_output=True, env=environment)
        said = ended.stdout
    try:
        return program.read(json.loads(said))
    except (ValueError, KeyError, TypeError) as error:
        print(f"{program.name} on {Path(tree.root).name}: {error!r}", file=sys.stderr)
        return None
