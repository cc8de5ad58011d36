from __future__ import annotations

import subprocess
import sys

from tests.conftest import ROOT

SECONDS = 90
SCRIPT = "from tests.hostile_texts import main; main()"


def test_time_does_not_grow_with_the_square_of_a_text() -> None:
    command = [sys.executable, "-c", SCRIPT, str(SECONDS)]
    child = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert child.returncode == 0, f"{child.stdout[-60:]} {child.stderr[-1500:]}"
