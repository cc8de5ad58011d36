"""Run commands on invented sessions, with an archive and a key in a temporary folder."""
# ruff: noqa: PLC0415  imported when a command of the demo needs it

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from pollux.library.config import DEMO_HOME, configure, demo_in, keys_folder

if TYPE_CHECKING:
    from pollux.library.library import Library

_WRITE_TO_HOME = ("restore", "resume")
_OF_ARCHIVE = ("archive", "forget", "keys", "record", "restore", "verify")
"""Commands that are about an archive, so that they need a filled one."""
_KEY = "demo"


@contextmanager
def running_demo(words: Sequence[str]) -> Iterator[None]:
    """Replace the user's homes, archive and keys while a command runs, and delete what it has written.

    The archive is filled for commands that do not read the homes themselves. `restore` starts from a home from which
    the client has deleted everything; commands that check seals start from a sealed archive.

    Args:
        words: the command and its arguments.

    """
    name = words[0] if words else ""
    with TemporaryDirectory(prefix="pollux-demo-", ignore_cleanup_errors=True) as folder:
        if name in _WRITE_TO_HOME:
            shutil.copytree(DEMO_HOME, Path(folder, "home"))
        with demo_in(folder):
            if name in _OF_ARCHIVE:
                _prepare(words)
            yield


def _prepare(words: Sequence[str]) -> None:
    from pollux.library.keys import create_key
    from pollux.library.library import Library

    with Library(configure()) as library:
        library.sync()
        if words[0] == "restore":
            _delete_sessions(library)
        else:
            create_key(keys_folder(), _KEY)
        if "--seal" in words or "prove" in words or "redact" in words:
            _seal(library)


def _delete_sessions(library: Library) -> None:
    """Delete all sessions of the copied home, as the client does when they have expired."""
    for home in library.config.homes:
        for chats in home.tmp.glob("*/chats"):
            shutil.rmtree(chats)


def _seal(library: Library) -> None:
    from pollux.errors import PolluxError
    from pollux.library.keys import signing_key
    from pollux.library.sealing import seal_archive

    def no_passphrase(name: str) -> bytes:
        raise PolluxError(f"The key {name} of the demo has no passphrase.")

    seal_archive(library, signing_key(keys_folder(), _KEY, no_passphrase))
