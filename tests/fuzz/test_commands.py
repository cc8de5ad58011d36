"""No session file, however broken, stops a command or spoils what is said of another session.

A failure names the seed and writes its file to `build/fuzz`; `POLLUX_FUZZ=N` begins with other seeds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import ROOT
from tests.fuzz.mutants import mutant

from pollux.exports import EXPORTERS

if sys.platform == "win32":
    pytest.skip("there are no limits of time and memory here", allow_module_level=True)

N_HOMES, N_MUTANTS = 20, 100
FIRST = int(os.environ.get("POLLUX_FUZZ", "1"))
FORMS = [name for name, exporter in EXPORTERS.items() if not exporter.reads_archive]
KEPT = ROOT / "build" / "fuzz"


@pytest.mark.parametrize("number", range(N_HOMES))
def test_mutants_stop_no_command_and_spoil_no_other_session(tmp_path: Path, number: int) -> None:
    seeds = [FIRST + number * N_MUTANTS + one for one in range(N_MUTANTS)]
    form = FORMS[number % len(FORMS)]
    if faults := faults_of(tmp_path / "all", form, seeds):
        pytest.fail("\n".join(problems_of(tmp_path, form, seeds, faults)))


def faults_of(folder: Path, form: str, seeds: list[int]) -> list[tuple[int | None, str]]:
    """Run the commands on the mutants of some seeds in a child process; return the faults, with the seeds at fault."""
    folder.mkdir()
    paths = {"HOME": folder / "user", "POLLUX_HOME": folder, "POLLUX_ARCHIVE": folder / "archive.db"}
    environment = {**os.environ, **{name: str(path) for name, path in paths.items()}, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.fuzz.child", str(folder), form, *map(str, seeds)]
    child = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=600)
    lines = [json.loads(line) for line in child.stdout.splitlines()]
    if lines[-1:] == ["done"]:
        return [(seed, words) for seed, words in lines[:-1]]
    return [(None, f"the process ended with status {child.returncode}: {child.stderr[-2000:]}")]


def problems_of(folder: Path, form: str, seeds: list[int], faults: list[tuple[int | None, str]]) -> list[str]:
    """Say which mutants are at fault, and write them down; where that is not known, look for one by halves."""
    if all(seed is None for seed, _ in faults):
        seeds, faults = blamed(folder, form, seeds, faults)
        faults = [(seeds[0], words) for _, words in faults] if len(seeds) == 1 else faults
    KEPT.mkdir(parents=True, exist_ok=True)
    lines = []
    for seed, words in faults:
        place = "" if seed is None else f" ({KEPT / str(seed)}-{mutant(seed).name})"
        if seed is not None:
            (KEPT / f"{seed}-{mutant(seed).name}").write_bytes(mutant(seed).data)
        lines.append(f"seed {seed or f'{seeds[0]} to {seeds[-1]}'}{place}: {words}")
    return lines


def blamed(
    folder: Path, form: str, seeds: list[int], faults: list[tuple[int | None, str]]
) -> tuple[list[int], list[tuple[int | None, str]]]:
    """Return the fewest seeds that still show a fault; none of two halves may, if it takes several."""
    while len(seeds) > 1:
        middle = len(seeds) // 2
        for half in (seeds[:middle], seeds[middle:]):
            if found := faults_of(folder / f"{half[0]}-{len(half)}", form, half):
                seeds, faults = half, found
                break
        else:
            break
    return seeds, faults
