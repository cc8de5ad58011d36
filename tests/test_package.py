"""The wheel holds all of the package and nothing else; `make test-wheel` installs and starts it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

import pollux

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


def test_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    source = ROOT / "src"
    files = {
        path.relative_to(source).as_posix()
        for path in (source / "pollux").rglob("*")
        if path.is_file() and not any(part.endswith(("__pycache__", "_cache")) for part in path.parts)
    }
    with ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert packed == files


def test_wheel_says_who_it_is_and_how_to_start_it(wheel: Path) -> None:
    about = f"pollux_cli-{pollux.__version__}.dist-info"
    with ZipFile(wheel) as archive:
        assert f"\nVersion: {pollux.__version__}\n" in archive.read(f"{about}/METADATA").decode()
        assert "\npollux = pollux.__main__:program\n" in archive.read(f"{about}/entry_points.txt").decode()
