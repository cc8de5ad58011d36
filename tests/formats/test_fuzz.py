from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import ROOT
from tests.formats.fuzz import fuzzed

N_FILES = 10_000
N_PARTS = 4
SCRIPT = "from tests.formats.fuzz import main; main()"


@pytest.mark.parametrize("part", range(N_PARTS))
def test_fuzzed_files_are_read_without_errors(part: int, tmp_path: Path) -> None:
    size = N_FILES // N_PARTS
    note = tmp_path / "seed"
    seeds = (str(part * size), str((part + 1) * size))
    command = [sys.executable, "-c", SCRIPT, str(note), *seeds]
    child = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if child.returncode:
        seed = int(note.read_text())
        pytest.fail(f"seed {seed} ended with status {child.returncode}\n{fuzzed(seed)!r}\n{child.stderr[-2000:]}")
