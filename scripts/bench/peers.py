"""The programs that are compared: how to install and start them, and how to read their reports.

Versions are pinned. Each program is installed below `build/bench/peers` and has its own home there, for its caches.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from scripts.bench.billed import Billed
from scripts.bench.trees import BUILD, Tree

PEERS = BUILD / "peers"
_SYSTEM = "Linux x86_64"
"""The system for which the programs are pinned."""
_PRICES = "litellm==1.108.4"
"""Contains the price table that tokscale would fetch from the network."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A program that reads the sessions of Gemini CLI."""

    name: str
    version: str
    program: str
    """Path below the folder of the installation."""
    commands: tuple[tuple[str, ...], ...]
    """Run one after another; the last one prints JSON."""
    read: Callable[[Any], Billed]
    npm: tuple[str, ...] = ()
    pip: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    cache: str = ""
    """Where it stores data for its next run, below its home."""
    prepare: Callable[[Path], None] = lambda _home: None
    """Writes the files that it needs into its home."""
    is_slow: bool = False

    @property
    def folder(self) -> Path:
        """Return the folder of the installation."""
        return PEERS / self.name

    def started(self) -> list[list[str]]:
        """Return its command lines."""
        return [[str(self.folder / self.program), *command] for command in self.commands]

    def shown(self) -> str:
        """Return the command lines as text for the page."""
        return " && ".join(f"{self.name} {' '.join(command)}" for command in self.commands)

    def forget(self, tree: Tree) -> None:
        """Delete its cache, and write the files that it needs."""
        home = tree.home_of(self.name)
        if self.cache:
            shutil.rmtree(home / self.cache, ignore_errors=True)
        self.prepare(home)


def surroundings(home: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the whole environment of a measured program."""
    path = os.environ.get("PATH", os.defpath)
    return {"PATH": path, "HOME": str(home), "TZ": "UTC", "NO_COLOR": "1", "TERM": "xterm", **(more or {})}


@cache
def offline() -> tuple[str, ...]:
    """Return the words that start a command without a network, if the system allows it."""
    command = ("unshare", "-rn")
    return command if shutil.which("unshare") and not _status([*command, "true"]) else ()


def install(peer: Peer) -> str:
    """Install a program unless it is installed; return why it cannot be installed, or an empty text."""
    system = f"{platform.system()} {platform.machine()}"
    if system != _SYSTEM:
        return f"pinned for {_SYSTEM}, and this is {system}"
    stamp, specs = peer.folder / "installed", "\n".join((*peer.npm, *peer.pip))
    if stamp.exists() and stamp.read_text("utf-8") == specs:
        return ""
    print(f"installing {peer.name} {peer.version} …", file=sys.stderr)
    shutil.rmtree(peer.folder, ignore_errors=True)
    peer.folder.mkdir(parents=True)
    why = _npm(peer) if peer.npm else _pip(peer.folder, *peer.pip)
    if not why and peer is TOKSCALE:
        why = _fetch_prices(peer.folder)
    if not why:
        (peer.folder / peer.program).chmod(0o755)
        stamp.write_text(specs, "utf-8")
    return why


def interpreter() -> Path:
    """Return a Python interpreter with orjson and msgspec only."""
    folder, specs = PEERS / "limits", ("orjson==3.13.0", "msgspec==0.22.0")
    if not (folder / "installed").exists():
        if why := _pip(folder, *specs):
            sys.exit(f"Cannot install orjson and msgspec, which `limits.py` needs: {why}.")
        (folder / "installed").write_text("\n".join(specs), "utf-8")
    return folder / "bin" / "python"


def _npm(peer: Peer) -> str:
    if not shutil.which("npm"):
        return "npm is not installed"
    flags = ("--no-audit", "--no-fund", "--ignore-scripts")
    status = _status(["npm", "install", "--prefix", str(peer.folder), *flags, *peer.npm])
    return f"npm ended with {status}" if status else ""


def _pip(folder: Path, *specs: str) -> str:
    steps = ([sys.executable, "-m", "venv", str(folder)], [str(folder / "bin" / "pip"), "install", "--quiet", *specs])
    status = next((status for step in steps if (status := _status(step))), 0)
    return f"pip ended with {status}" if status else ""


def _fetch_prices(folder: Path) -> str:
    """Copy the price table that tokscale would fetch from a package that contains it."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), _PRICES]
    if status := _status(command):
        return f"pip ended with {status}"
    (wheel,) = folder.glob("litellm-*.whl")
    with zipfile.ZipFile(wheel) as packed:
        data = packed.read("litellm/model_prices_and_context_window_backup.json")
    (folder / "prices.json").write_bytes(data)
    wheel.unlink()
    return ""


def _status(command: Sequence[str]) -> int:
    """Run a command and return its status; if it fails, print its errors to the terminal, not to the page."""
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    if ended.returncode:
        print(ended.stderr[-2000:], file=sys.stderr)
    return ended.returncode


def _of_pollux(report: Any) -> Billed:  # noqa: ANN401  decoded JSON, here and below
    billed = report["billed"]
    return Billed.of_counts(billed["tokens"], (billed["cost_nanousd"] or 0) / 1e9)


def _of_ccusage(report: Any) -> Billed:  # noqa: ANN401
    totals = report["totals"]
    return Billed(
        totals["inputTokens"], totals["cacheReadTokens"], output=totals["outputTokens"], dollars=totals["totalCost"]
    )


def _of_tokscale(report: Any) -> Billed:  # noqa: ANN401
    thoughts = sum(entry["reasoning"] for entry in report["entries"])
    fresh, cached, output = report["totalInput"], report["totalCacheRead"], report["totalOutput"]
    return Billed(fresh, cached, output, thoughts, output + thoughts, dollars=report["totalCost"])


def _of_agentsview(report: Any) -> Billed:  # noqa: ANN401
    totals = report["totals"]
    dollars = totals["totalCost"]["microdollars"] / 1e6
    return Billed(totals["inputTokens"], totals["cacheReadTokens"], answered=totals["outputTokens"], dollars=dollars)


def _put_prices(home: Path) -> None:
    """Write tokscale's price table to where tokscale stores the last one that it fetched."""
    table = json.loads((TOKSCALE.folder / "prices.json").read_bytes())
    file = home / TOKSCALE.cache / "pricing-litellm.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"timestamp": int(time.time()), "data": table}), "utf-8")


POLLUX = Peer(
    name="pollux",
    version="",
    program=str(Path(sys.executable).with_name("pollux")),
    commands=(("usage", "--json", "--no-archive"),),
    read=_of_pollux,
    cache=".local/share/pollux",
)
CCUSAGE = Peer(
    name="ccusage",
    version="20.0.24",
    npm=("ccusage@20.0.24", "@ccusage/ccusage-linux-x64@20.0.24"),
    program="node_modules/@ccusage/ccusage-linux-x64/bin/ccusage",
    commands=(("gemini", "daily", "--offline", "--json", "-z", "UTC"),),
    read=_of_ccusage,
)
TOKSCALE = Peer(
    name="tokscale",
    version="4.17.0",
    npm=("@tokscale/cli-linux-x64-gnu@4.17.0",),
    program="node_modules/@tokscale/cli-linux-x64-gnu/bin/tokscale",
    commands=(("models", "--json", "--no-spinner", "-c", "gemini"),),
    read=_of_tokscale,
    environment={"TOKSCALE_PRICING_CACHE_ONLY": "1"},
    cache=".config/tokscale/cache",
    prepare=_put_prices,
)
AGENTSVIEW = Peer(
    name="agentsview",
    version="0.46.1",
    pip=("agentsview==0.46.1",),
    program="bin/agentsview",
    commands=(("sync",), ("usage", "daily", "--json", "--offline", "--all", "--no-sync")),
    read=_of_agentsview,
    environment={"AGENTSVIEW_NO_DAEMON": "1"},
    cache=".agentsview",
    is_slow=True,
)
OTHERS = (CCUSAGE, TOKSCALE, AGENTSVIEW)
