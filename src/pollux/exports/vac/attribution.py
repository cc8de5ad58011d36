"""Which lines of which files the model wrote: from the edits of a session, in the order in which they were made.

Only what a call says of itself counts: the texts before and after of a diff, or its own arguments. What a shell command
did to a file is not known. Line numbers are those of the file as the session last saw it.
"""

from __future__ import annotations

import hashlib
import ntpath
import posixpath
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import quote

from pollux.exports.vac.lines import Owner, Page
from pollux.exports.vac.values import told
from pollux.formats import lenient
from pollux.formats.tools import tool
from pollux.model import DiffDisplay, Json, Message, ToolCall
from pollux.sessions.projects.paths import is_absolute, is_windows
from pollux.views.diffs import diff_from_display

Clean: TypeAlias = Callable[[Json], Json]
"""Gives back what may be told of a value."""

_EDITS = frozenset({"file_write", "file_edit"})
ALGORITHM = "sha-256"


def may_edit(name: str, display_name: str | None) -> bool:
    """Tell from its name whether a call may write to a file."""
    return tool(name, display_name).canonical in _EDITS


@dataclass(slots=True)
class Files:
    """What is known of the files that a session wrote to."""

    root: str | None
    """The project's folder: paths below it are named from there."""
    pages: dict[str, Page] = field(default_factory=dict)

    def take(self, call: ToolCall, message: Message) -> None:
        """Take in a call, if it wrote to a file."""
        shown = call.display if isinstance(call.display, DiffDisplay) else None
        if call.status != "success" or not (shown or call.canonical in _EDITS):
            return
        args = _arguments(call)
        path = (shown and shown.file_path) or next(_texts(args, tool(call.name, call.display_name).paths), None)
        if path is None:
            return
        page = self.pages.setdefault(_place(path, self.root), Page())
        owner = Owner("mixed" if args.get("modified_by_user") else "ai", message.model)
        page.hands.setdefault(owner, []).append(call.id or "")
        if shown and shown.after is not None:
            page.found(shown.before or "")
            page.wrote(shown.after, owner, diff_from_display(shown, None).lines)
        else:
            _apply(page, args, owner)

    def told(self, clean: Clean, *, with_hashes: bool) -> dict[str, Json] | None:
        """Put the attribution together, in the words of the schema."""
        files: list[Json] = [
            {
                "path": clean(path),
                "conversations": list(_conversations(self.pages[path], clean, with_hashes=with_hashes)),
            }
            for path in sorted(self.pages)
        ]
        return {"files": files} if files else None


def _apply(page: Page, args: dict[str, Any], owner: Owner) -> None:
    """Take in an edit of which only the arguments are known."""
    content, old, new = (args.get(name) for name in ("content", "old_string", "new_string"))
    if isinstance(content, str):
        page.wrote(content, owner)
    elif old == "" and isinstance(new, str):
        page.wrote(new, owner)
    elif page.lines is not None and isinstance(old, str) and isinstance(new, str):
        text = "".join(page.lines)
        count = text.count(old)
        if count and (count == 1 or args.get("allow_multiple") or args.get("expected_replacements") == count):
            page.wrote(text.replace(old, new), owner)
        else:
            page.lose()


def _conversations(page: Page, clean: Clean, *, with_hashes: bool) -> Iterator[dict[str, Json]]:
    """Give for each hand what it wrote; nothing where that was written over since, or its place is not known."""
    for owner, calls in page.hands.items():
        contributor: Json = told(type=owner.type, model_id=clean(owner.model))
        ranges: list[Json] = [
            {"start-line": one.start, "end-line": one.end} | (_hash(one.text) if with_hashes else {})
            for one in page.ranges(owner)
        ]
        related: list[Json] = [{"type": "tool-call", "url": f"#{_quoted(clean(call))}"} for call in calls if call]
        yield told(contributor=contributor, ranges=ranges, related=related or None)


def _hash(text: str) -> dict[str, Json]:
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
    return {"content-hash": digest, "content-hash-alg": ALGORITHM}


def _quoted(call: Json) -> str:
    return quote(str(call), safe="", errors="replace")


def _arguments(call: ToolCall) -> dict[str, Any]:
    value: Any = call.args
    if isinstance(value, str):  # arguments as JSON text
        try:
            value = lenient.decode(value.encode("utf-8", "replace"))
        except ValueError:
            return {}
    return value if isinstance(value, dict) else {}


def _texts(args: dict[str, Any], names: tuple[str, ...]) -> Iterator[str]:
    return (args[name] for name in names if isinstance(args.get(name), str) and args[name])


def _place(path: str, root: str | None) -> str:
    """Name a file from the project's folder if it is below it, else as it is."""
    system = ntpath if is_windows(root or path) else posixpath
    path = system.normpath(path)
    if root is None or not is_absolute(path):
        return path.replace("\\", "/") if system is ntpath else path
    folder = system.normpath(root).rstrip(system.sep) + system.sep
    if system.normcase(path).startswith(system.normcase(folder)):
        path = path[len(folder) :]
        return path.replace("\\", "/") if system is ntpath else path
    return path
