"""The usage that each program reports, next to the truth."""

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
    """The usage of one home, by program; None if the program failed."""

    home: str
    true: Billed
    reported: Mapping[str, Billed | None]


def of_generated(tree: Tree, name: str, programs: Sequence[Peer], *, known: bool) -> Answers:
    """Run all programs on a generated home; with `known`, slow programs may use what they stored before."""
    return Answers(
        name, truth(tree), {program.name: reported_usage(program, tree, known=known) for program in programs}
    )


def of_cases(programs: Sequence[Peer]) -> list[Answers]:
    """Run all programs on the small homes of our own tests, each of which contains one unusual thing."""
    answers = []
    shutil.rmtree(BUILD / "cases", ignore_errors=True)
    for number, (name, case) in enumerate(CASES.items()):
        tree = Tree(BUILD / "cases" / f"case-{number}")
        tree.root.mkdir(parents=True)
        case.build(tree.root)
        true = Billed.of_counts(case.tokens, case.nanousd / 1e9)
        answers.append(Answers(name, true, {program.name: reported_usage(program, tree) for program in programs}))
    return answers


def reported_usage(program: Peer, tree: Tree, *, known: bool = False) -> Billed | None:
    """Run a program on a home and return the usage that it reports; None if it fails."""
    home = tree.home_of(program.name)
    if not (known and program.is_slow):
        program.forget(tree)
    environment = surroundings(home, program.environment)
    output = b""
    for command in program.started():
        ended = subprocess.run([*offline(), *command], check=False, capture_output=True, env=environment)
        output = ended.stdout
    try:
        return program.read(json.loads(output))
    except (ValueError, KeyError, TypeError) as error:
        print(f"{program.name} on {Path(tree.root).name}: {error!r}", file=sys.stderr)
        return None
