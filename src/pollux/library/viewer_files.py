"""The private files of the web viewer: its label, the description of a running server, and pages that sign a tab in.

The label is the first part of the viewer's addresses. It is created once for an archive and stored next to it, so that
bookmarks stay valid. All files have mode 0600, and folders that are created for them 0700.
"""

from __future__ import annotations

import hashlib
import html
import os
import re
import secrets
import socket
import string
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import msgspec

from pollux.disk.read import read_side_file
from pollux.disk.write import CollisionError, RestoreError, Writing, make_private_folder, place_all, write_private
from pollux.errors import PolluxError
from pollux.library.config import Config

HOST = "127.0.0.1"
"""The only address that a viewer listens on."""
_LETTERS = string.ascii_lowercase + string.digits
_LABEL = re.compile(rb"[a-z0-9]{10}\n?")
_MAX_SIZE = 4096
_KEY_DIGITS = 16


class RunningViewer(msgspec.Struct, frozen=True):
    """What a second start must know about a running server."""

    pid: int
    port: int
    label: str
    secret: str
    """Proves to the server that the caller may read this file, and so belongs to the same user."""


_decode_viewer = msgspec.json.Decoder(RunningViewer).decode


def viewer_label(config: Config) -> str:
    """Return the label of the archive, which is created on the first call.

    Without an archive, or if its folder cannot be written to, every call returns a new label.
    """
    label = "".join(secrets.choice(_LETTERS) for _ in range(10))
    if config.archive is None:
        return label
    path = config.archive.with_name(f"{config.archive.name}.label")
    if stored := _stored_label(path):
        return stored
    with suppress(CollisionError, RestoreError, OSError):
        make_private_folder(path.parent)
        if os.path.lexists(path):
            write_private(path, [label.encode()])  # it is damaged
        else:
            place_all([Writing(path, lambda: [label.encode()])])
    return _stored_label(path) or label


def _stored_label(path: Path) -> str:
    """Return the label in a file; an empty text if there is none that only the user can read."""
    try:
        if os.name == "posix" and path.stat().st_mode & 0o077:
            return ""
        data = read_side_file(path, limit=_MAX_SIZE)
    except OSError:
        return ""
    return data.decode().strip() if _LABEL.fullmatch(data) else ""


def runtime_file(config: Config) -> Path:
    """Return the file that describes the running server of the same archive and homes."""
    return config.runtime_dir / f"web-{_runtime_key(config)}.json"


def running_viewer(config: Config) -> RunningViewer | None:
    """Return what the runtime file says; None if there is none, or one that only an attacker can have written."""
    path = runtime_file(config)
    try:
        if os.name == "posix" and path.stat().st_uid != os.getuid():
            return None
        return _decode_viewer(read_side_file(path, limit=_MAX_SIZE))
    except (OSError, msgspec.DecodeError):
        return None


class ViewerLinks(msgspec.Struct, frozen=True):
    """The addresses of sessions and messages in the running viewer."""

    root: str

    def session(self, session_id: str, number: int | None = None) -> str:
        """Return the address of a session, or of its message with a number from 1."""
        address = f"{self.root}s/{quote(session_id, safe='')}"
        return address if number is None else f"{address}/{number}"


def viewer_links(config: Config) -> ViewerLinks:
    """Return the addresses of the viewer that runs for the same archive and homes. Raises `PolluxError` without one."""
    running = running_viewer(config)
    if running is None or not _is_listening(running.port):
        raise PolluxError("No viewer is running, so there is no address to add. Start one with `pollux web`.")
    return ViewerLinks(f"http://{HOST}:{running.port}/{running.label}/")


def _is_listening(port: int) -> bool:
    try:
        with socket.create_connection((HOST, port), timeout=1):
            return True
    except (OSError, OverflowError):  # nobody listens, or the file names no port
        return False


def store_viewer(config: Config, viewer: RunningViewer) -> None:
    """Write the runtime file. Raises `PolluxError` if the folder cannot be used."""
    try:
        _prepare_folder(config)
        write_private(runtime_file(config), [msgspec.json.encode(viewer)])
    except OSError as error:
        raise PolluxError(
            f"Cannot write to {config.runtime_dir}: {error.strerror}. "
            "Make the folder writable, or set XDG_RUNTIME_DIR to another one."
        ) from None


def remove_viewer(config: Config, viewer: RunningViewer) -> None:
    """Delete the runtime file if it still describes this server, and the pages that sign tabs in to it."""
    if running_viewer(config) == viewer:
        runtime_file(config).unlink(missing_ok=True)
    remove_tab_files(config)


def write_tab_file(config: Config, ticket: str, address: str) -> Path:
    """Write a page that leads a browser to an address with a ticket, and return its path.

    The command line of a browser can be read by all users of the computer, so it must not contain the ticket.
    """
    path = _tab_file(config, ticket)
    refresh = f'<meta http-equiv="refresh" content="0; url={html.escape(address)}">'
    page = f'<!doctype html><meta charset="utf-8">{refresh}<title>Pollux</title>\n'
    _prepare_folder(config)
    write_private(path, [page.encode()])
    return path


def remove_tab_file(config: Config, ticket: str) -> None:
    """Delete the page for a ticket, which has been used."""
    with suppress(OSError):
        _tab_file(config, ticket).unlink(missing_ok=True)


def remove_tab_files(config: Config) -> None:
    """Delete the pages for all tickets."""
    for path in config.runtime_dir.glob(f"tab-{_runtime_key(config)}-*.html"):
        with suppress(OSError):
            path.unlink(missing_ok=True)


def _prepare_folder(config: Config) -> None:
    """Create the folder for runtime files. Raises `PolluxError` if another user can replace files in it."""
    folder = config.runtime_dir
    make_private_folder(folder)
    if os.name != "posix":
        return
    status = folder.stat()
    if status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise PolluxError(
            f"Other users may write to {folder}, so they could redirect your browser. Run `chmod 700 {folder}` if it "
            "is yours, or set XDG_RUNTIME_DIR to a folder of your own."
        )


def _tab_file(config: Config, ticket: str) -> Path:
    digest = hashlib.sha256(ticket.encode("utf-8", "replace")).hexdigest()[:_KEY_DIGITS]
    return config.runtime_dir / f"tab-{_runtime_key(config)}-{digest}.html"


def _runtime_key(config: Config) -> str:
    """Return a name for the archive and the homes: servers of others are no replacement."""
    archive = str(config.archive.absolute()) if config.archive else ""
    roots = sorted(str(home.root) for home in config.homes)
    parts = [archive, str(config.all_homes), *roots]
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:_KEY_DIGITS]
