"""The command that continues a session in the client."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pollux.errors import PolluxError
from pollux.text import shell

if TYPE_CHECKING:
    from pollux.sessions.homes import Home

CLIENT = "gemini"
_WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\")
_LONGEST_ID = 60
"""Characters of an ID in a sentence."""


class UnsafeIdError(PolluxError):
    """A session has an ID that the client would not take for one."""

    status = 2

    def __init__(self, id_: str) -> None:
        """Say what to do instead."""
        shown = id_ if len(id_) <= _LONGEST_ID else f"{id_[:_LONGEST_ID]}…"
        super().__init__(
            f"The client cannot be started with the session ID {shown!r}, which begins with a dash, is empty or holds "
            "control characters; `pollux restore --new-id` writes a copy under another ID."
        )


def command_line(folder: str | None, id_: str, home: Home | None, environ: Mapping[str, str], user_home: Path) -> str:
    """Return what to type: for PowerShell where the folder is one of Windows, else for any other shell.

    Raises `UnsafeIdError`.
    """
    is_windows = bool(folder and _WINDOWS.match(folder))
    quote = shell.powershell_quoted if is_windows else shell.quoted
    resume = f"{CLIENT} {quote(resume_option(id_))}"
    if (place := client_home(home, environ, user_home)) is not None:
        name = "$env:GEMINI_CLI_HOME = {}; {}" if is_windows else "GEMINI_CLI_HOME={} {}"
        resume = name.format(quote(str(place)), resume)
    if folder is None:
        return resume
    return f"cd -LiteralPath {quote(folder)}; {resume}" if is_windows else f"cd {quote(folder)} && {resume}"


def resume_option(id_: str) -> str:
    """Return the one word that has the client resume a session. Raises `UnsafeIdError`.

    The ID comes from a file that anybody may have written, and as a word of its own it could be an option, `--yolo`.
    """
    if not id_ or id_.startswith("-") or not id_.isprintable():
        raise UnsafeIdError(id_)
    return f"--resume={id_}"


def client_home(home: Home | None, environ: Mapping[str, str], user_home: Path) -> Path | None:
    """Return what GEMINI_CLI_HOME must be for the client to look into a home; nothing if it does so by itself."""
    if home is None or home.root.name != ".gemini":
        return None
    usual = Path(environ.get("GEMINI_CLI_HOME") or user_home)
    if home.root.resolve() in ((usual / ".gemini").resolve(), (usual / ".cache" / ".gemini").resolve()):
        return None
    return home.root.parent
