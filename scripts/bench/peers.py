"""The programs that are compared: how they are installed, started and understood.

Versions are pinned. Each is installed below `build/bench/peers` and has a home of its own, so that neither it nor its
caches get anywhere else.
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
"""The programs of the peers are pinned for this one."""
_PRICES = "litellm==1.108.4"
"""Whose price table tokscale would fetch if it were online."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A program that reads the sessions of Gemini CLI."""

    name: str
    version: str
    program: str
    """Below its own folder."""
    commands: tuple[tuple[str, ...], ...]
    """Run one after another; the last one prints JSON."""
    read: Callable[[Any], Billed]
    npm: tuple[str, ...] = ()
    pip: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    cache: str = ""
    """What it keeps for the next time, below its home."""
    prepare: Callable[[Path], None] = lambda _home: None
    """Puts what it needs into its home."""
    is_slow: bool = False

    @property
    def folder(self) -> Path:
        """Return where it is installed."""
        return PEERS / self.name

    def started(self) -> list[list[str]]:
        """Return the command lines."""
        return [[str(self.folder / self.program), *command] for command in self.commands]

    def shown(self) -> str:
        """Write down what is run."""
        return " && ".join(f"{self.name} {' '.join(command)}" for command in self.commands)

    def forget(self, tree: Tree) -> None:
        """Take away what it remembers, and put what it needs."""
        home = tree.home_of(self.name)
        if self.cache:
            shutil.rmtree(home / self.cache, ignore_errors=True)
        self.prepare(home)


def surroundings(home: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment that every program gets: nothing but this."""
    path = os.environ.get("PATH", os.defpath)
    return {"PATH": path, "HOME": str(home), "TZ": "UTC", "NO_COLOR": "1", "TERM": "xterm", **(more or {})}


@cache
def offline() -> tuple[str, ...]:
    """Return what to put before a command so that it has no network, where the system can do that."""
    command = ("unshare", "-rn")
    return command if shutil.which("unshare") and not _status([*command, "true"]) else ()


def install(peer: Peer) -> str:
    """Install a program, unless it is there; return why that cannot be done."""
    system = f"{platform.system()} {platform.machine()}"
    if system != _SYSTEM:
        return f"pinned for {_SYSTEM}, and this is {system}"
    stamp, wanted = peer.folder / "installed", "\n".join((*peer.npm, *peer.pip))
    if stamp.exists() and stamp.read_text("utf-8") == wanted:
        return ""
    print(f"installing {peer.name} {peer.version} …", file=sys.stderr)
    shutil.rmtree(peer.folder, ignore_errors=True)
    peer.folder.mkdir(parents=True)
    why = _npm(peer) if peer.npm else _pip(peer.folder, *peer.pip)
    if not why and peer is TOKSCALE:
        why = _fetch_prices(peer.folder)
    if not why:
        (peer.folder / peer.program).chmod(0o755)
        stamp.write_text(wanted, "utf-8")
    return why


def interpreter() -> Path:
    """Return a Python that has orjson and msgspec, and nothing else."""
    folder, specs = PEERS / "limits", ("orjson==3.13.0", "msgspec==0.22.0")
    if not (folder / "installed").exists():
        if why := _pip(folder, *specs):
            sys.exit(f"The limits cannot be measured: {why}.")
        (folder / "installed").write_text("\n".join(specs), "utf-8")
    return folder / "bin" / "python"


def _npm(peer: Peer) -> str:
    if not shutil.which("npm"):
        return "there is no npm here"
    flags = ("--no-audit", "--no-fund", "--ignore-scripts")
    status = _status(["npm", "install", "--prefix", str(peer.folder), *flags, *peer.npm])
    return f"npm ended with {status}" if status else ""


def _pip(folder: Path, *specs: str) -> str:
    steps = ([sys.executable, "-m", "venv", str(folder)], [str(folder / "bin" / "pip"), "install", "--quiet", *specs])
    status = next((status for step in steps if (status := _status(step))), 0)
    return f"pip ended with {status}" if status else ""


def _fetch_prices(folder: Path) -> str:
    """Fetch the table that tokscale would take from the network, out of a package that has it."""
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
    """Run quietly; what went wrong is told on the terminal, and never on the page."""
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    if ended.returncode:
        print(ended.stderr[-2000:], file=sys.stderr)
    return ended.returncode


def _of_pollux(said: Any) -> Billed:  # noqa: ANN401  as decoded, here and below
    billed = said["billed"]
    return Billed.of_counts(billed["tokens"], (billed["cost_nanousd"] or 0) / 1e9)


def _of_ccusage(said: Any) -> Billed:  # noqa: ANN401
    one = said["totals"]
    return Billed(one["inputTokens"], one["cacheReadTokens"], output=one["outputTokens"], dollars=one["totalCost"])


def _of_tokscale(said: Any) -> Billed:  # noqa: ANN401
    thoughts = sum(one["reasoning"] for one in said["entries"])
    output = said["totalOutput"]
    return Billed(
        said["totalInput"], said["totalCacheRead"], output, thoughts, output + thoughts, dollars=said["totalCost"]
    )


def _of_agentsview(said: Any) -> Billed:  # noqa: ANN401
    one = said["totals"]
    dollars = one["totalCost"]["microdollars"] / 1e6
    return Billed(one["inputTokens"], one["cacheReadTokens"], answered=one["outputTokens"], dollars=dollars)


def _put_prices(home: Path) -> None:
    """Put tokscale's price table where it looks for the one that it fetched last."""
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
