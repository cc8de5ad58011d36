"""Compare the speed of this state of the code with that of another commit: the same commands, alternately.

    python -m scripts.bench.states COMMIT [--rounds N]

Installs the other commit below `build/bench/states` and writes a section of BENCHMARKS.md.
"""

from __future__ import annotations

import argparse
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from scripts.bench import tables, trees
from scripts.bench.measure import Measured, Work, timed
from scripts.bench.peers import POLLUX, offline, surroundings
from scripts.bench.sections import write_section
from scripts.bench.trees import BUILD, ROOT, Tree

_FILES_ONLY = (
    "usage --json --no-archive",
    "usage --by session --json --no-archive",
    "usage --by tool --json --no-archive",
    "ls --json --no-archive",
    "audit latest --json --no-archive",
)
_WITH_ARCHIVE = (
    "usage --json",
    "ls --json",
    "ls -n 20",
    "stats --json",
    "show latest",
    "audit latest --json",
    "doctor --json",
)
_OTHER, _THIS = "other", "this"


def main() -> None:
    """Measure both states and write the section."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("commit")
    options.add_argument("--rounds", type=int, default=5)
    arguments = options.parse_args()
    tree = trees.generated("home-3000-760", "--sessions", "3000", "--mb", "760")
    programs = {_OTHER: install(arguments.commit), _THIS: Path(POLLUX.program)}
    results = measure(tree, programs, arguments.rounds)
    write_section(section(arguments.commit, tree, results, arguments.rounds))


def install(commit: str) -> Path:
    """Check a commit out, install it, and return its program."""
    folder = BUILD / "states" / commit
    if not folder.exists():
        subprocess.run(["git", "worktree", "add", "--detach", str(folder), commit], check=True, cwd=ROOT)
    subprocess.run(["make", "--quiet", "install"], check=True, cwd=folder)
    return folder / ".venv" / "bin" / "pollux"


def measure(tree: Tree, programs: Mapping[str, Path], rounds: int) -> dict[str, dict[str, Measured]]:
    """Return the times of each command by state; the states take turns."""
    for state, program in programs.items():
        for line in ("sync", *_WITH_ARCHIVE):  # what a command stores on its first run is not measured
            timed(_work(tree, state, program, line))
    results: dict[str, dict[str, Measured]] = {}
    for line in (*_FILES_ONLY, *_WITH_ARCHIVE):
        results[line] = {state: Measured(_work(tree, state, program, line)) for state, program in programs.items()}
    for _ in range(rounds):
        for of_line in results.values():
            for result in of_line.values():
                result.runs.append(timed(result.work))
    return results


def section(commit: str, tree: Tree, results: Mapping[str, Mapping[str, Measured]], rounds: int) -> Iterator[str]:
    """Yield the lines of the section."""
    yield f"## Compared with {commit}"
    yield ""
    yield (
        f"{tree.facts}; {datetime.now(UTC):%Y-%m-%d}, load {os.getloadavg()[0]:.1f}. "
        f"Both states ran each command alternately, {rounds} times; the times are the shortest."
    )
    yield ""
    head = ("", f"{commit} s", "now s", "ratio", f"{commit} CPU s", "now CPU s", "ratio")
    yield from tables.table(head, (_row(line, of_line) for line, of_line in results.items()))


def _row(line: str, results: Mapping[str, Measured]) -> Sequence[str]:
    other, this = results[_OTHER], results[_THIS]
    cells = [f"`pollux {line}`" + (" (**failed**)" if other.is_failed or this.is_failed else "")]
    for seconds in ([other.best, this.best], [min(run.cpu for run in result.runs) for result in (other, this)]):
        cells += [f"{seconds[0]:.2f}", f"{seconds[1]:.2f}", f"{seconds[1] / seconds[0]:.2f}"]
    return cells


def _work(tree: Tree, state: str, program: Path, line: str) -> Work:
    home = tree.home_of(f"state-{state}")
    return Work(line, line, [[*offline(), str(program), *line.split()]], surroundings(home))


if __name__ == "__main__":
    main()
