"""Texts that make the system start `pollux watch` at every login: a systemd user unit, a launchd agent."""

from __future__ import annotations

import plistlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

NAME = "pollux-watch.service"
LABEL = "dev.pollux.watch"

_UNIT = """\
# Written by `pollux watch --install`; `pollux watch --uninstall` removes it.
[Unit]
Description=Pollux keeps what Gemini CLI writes

[Service]
ExecStart={command}
{environment}Restart=on-failure
RestartSec=10
Nice=10
UMask=0077

[Install]
WantedBy=default.target
"""


@dataclass(frozen=True, slots=True)
class Service:
    """A service file, where it belongs, and what to run after it came or went."""

    path: Path
    text: str
    to_enable: tuple[str, ...]
    to_disable: tuple[str, ...]
    links: tuple[Path, ...] = ()
    """What enabling it leaves behind."""


def systemd(command: Sequence[str], environ: Mapping[str, str], *, config: Path) -> Service:
    """Make a unit for systemd's user instance."""
    folder = config / "systemd" / "user"
    environment = "".join(f"Environment={_quoted(f'{name}={value}')}\n" for name, value in sorted(environ.items()))
    text = _UNIT.format(command=" ".join(_quoted(one).replace("$", "$$") for one in command), environment=environment)
    return Service(
        folder / NAME,
        text,
        ("systemctl --user daemon-reload", f"systemctl --user enable --now {NAME}"),
        (f"systemctl --user stop {NAME}", "systemctl --user daemon-reload"),
        (folder / "default.target.wants" / NAME,),
    )


def launchd(command: Sequence[str], environ: Mapping[str, str], *, user_home: Path) -> Service:
    """Make an agent for launchd."""
    path = user_home / "Library" / "LaunchAgents" / f"{LABEL}.plist"
    agent: dict[str, object] = {
        "Label": LABEL,
        "ProgramArguments": [*command],
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ProcessType": "Background",
        "Umask": 0o077,
    }
    if environ:
        agent["EnvironmentVariables"] = {**environ}
    return Service(
        path,
        plistlib.dumps(agent, sort_keys=False).decode(),
        (f"launchctl bootstrap gui/$(id -u) '{path}'",),
        (f"launchctl bootout gui/$(id -u)/{LABEL}",),
    )


def _quoted(word: str) -> str:
    """Write a word so that systemd takes it as it is."""
    for char, escaped in (("\\", "\\\\"), ('"', '\\"'), ("%", "%%"), ("\n", "\\n")):
        word = word.replace(char, escaped)
    return f'"{word}"'
