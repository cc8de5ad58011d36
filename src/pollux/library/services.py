"""Service files that make the system start `pollux watch` at every login: a systemd user unit, a launchd agent."""

from __future__ import annotations

import os
import plistlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pollux.disk.write import make_private_folder, write_private
from pollux.errors import PolluxError
from pollux.library.config import UsageError, demo_folder
from pollux.library.freshness import NOTHING_TO_SYNC, archive_file

if TYPE_CHECKING:
    from pollux.library.config import Config

NAME = "pollux-watch.service"
LABEL = "dev.pollux.watch"

_PASSED_ON = ("POLLUX_HOME", "GEMINI_CLI_HOME", "GEMINI_DIR", "GEMINI_SESSIONS_DIR")
"""Variables that decide which homes are read."""
_UNIT = """\
# Written by `pollux watch --install`; `pollux watch --uninstall` removes it.
[Unit]
Description=Pollux archives Gemini CLI sessions

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
    """A service file, its path, and the commands to run after it is written or removed."""

    path: Path
    text: str
    to_enable: tuple[str, ...]
    to_disable: tuple[str, ...]
    links: tuple[Path, ...] = ()
    """Links that enabling the service creates."""


def watch_service(config: Config, python: str, *, poll: bool) -> Service:
    """Return the service that watches the homes of a library. Raises `PolluxError` on Windows, which has none.

    Args:
        config: names the homes and the archive.
        python: the interpreter to run.
        poll: poll for changes instead of waiting for notifications of the system.

    """
    if demo_folder():
        raise UsageError("The demo installs nothing: run `pollux watch --install` without `demo`.")
    command = [python, "-m", "pollux", "watch", "--quiet"]
    for home in config.named_homes:
        command += ["--home", str(home.expanduser().absolute())]
    command += ["--archive", str(archive_file(config, NOTHING_TO_SYNC))]
    command += ["--poll"] if poll else []
    environ = {}
    for name in _PASSED_ON:
        if value := config.environ.get(name):
            environ[name] = _absolute(value)
    if sys.platform == "darwin":
        return launchd(command, environ, user_home=config.user_home)
    if sys.platform == "win32":
        raise PolluxError(
            f"Pollux writes no service file on Windows. Run `{' '.join(command)}` at logon with the Task Scheduler."
        )
    return systemd(command, environ, config=config.config_dir.parent)


def install(service: Service) -> None:
    """Write a service file."""
    make_private_folder(service.path.parent)
    write_private(service.path, [service.text.encode()])


def uninstall(service: Service) -> bool:
    """Remove a service file and its links; return whether it existed."""
    if not service.path.exists():
        return False
    for path in (service.path, *service.links):
        path.unlink(missing_ok=True)
    return True


def systemd(command: Sequence[str], environ: Mapping[str, str], *, config: Path) -> Service:
    """Return a unit for systemd's user instance."""
    folder = config / "systemd" / "user"
    environment = "".join(f"Environment={_quoted(f'{name}={value}')}\n" for name, value in sorted(environ.items()))
    text = _UNIT.format(command=" ".join(_quoted(word).replace("$", "$$") for word in command), environment=environment)
    return Service(
        folder / NAME,
        text,
        ("systemctl --user daemon-reload", f"systemctl --user enable --now {NAME}"),
        (f"systemctl --user stop {NAME}", "systemctl --user daemon-reload"),
        (folder / "default.target.wants" / NAME,),
    )


def launchd(command: Sequence[str], environ: Mapping[str, str], *, user_home: Path) -> Service:
    """Return an agent for launchd."""
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


def _absolute(paths: str) -> str:
    """Return a list of paths with absolute paths."""
    return os.pathsep.join(str(Path(path).expanduser().absolute()) for path in paths.split(os.pathsep) if path)


def _quoted(word: str) -> str:
    """Return a word quoted for systemd."""
    for char, escaped in (("\\", "\\\\"), ('"', '\\"'), ("%", "%%"), ("\n", "\\n")):
        word = word.replace(char, escaped)
    return f'"{word}"'
