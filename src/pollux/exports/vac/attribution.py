"""Find the lines that the model wrote, from the edits of a session in their order.

Only what a call records counts: the texts before and after a diff, or its own arguments. What a shell command did to a
file is unknown. Line numbers are those of the file as the session last saw it. A line that was changed between two
edits has no owner any more, which the next edit reveals.
"""

from __future__ import annotations

import hashlib
import io
import ntpath
import posixpath
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import quote

from pollux.exports.vac.values import members
from pollux.formats import lenient
from pollux.formats.tools import tool
from pollux.model import DiffDisplay, Json, Message, ToolCall
from pollux.sessions.projects.paths import is_absolute, is_windows
from pollux.views.diffs import DiffLine, LineChange, diff_from_display

Clean: TypeAlias = Callable[[Json], Json]
"""Redacts a value."""
LineBlock: TypeAlias = tuple[int, int, int]
"""A run of unchanged lines: its old start, its new start, its length."""

ALGORITHM = "sha-256"
_EDITS = frozenset({"file_write", "file_edit"})
_MAX_COMPARED = 2_000
"""Lines above which two texts are not compared, because that takes quadratic time."""


class LineOwner(NamedTuple):
    """Who wrote a line, with the names of the schema."""

    type: str
    model: str | None


class LineRange(NamedTuple):
    """Consecutive lines of one owner, counted from 1; the end is included."""

    start: int
    end: int
    text: str


@dataclass(slots=True)
class FileLines:
    """A file as the session last saw it; without lines if its text is unknown."""

    lines: list[str] | None = None
    owners: list[LineOwner | None] = field(default_factory=list)
    call_ids: dict[LineOwner, list[str]] = field(default_factory=dict)
    """The calls by which each owner edited the file."""

    def observe(self, text: str) -> None:
        """Update to the text before an edit; lines that changed since the last edit have no owner."""
        lines = lines_of(text)
        if lines != self.lines:
            self.owners = _carry(self.owners, compared(self.lines or [], lines), len(lines), None)
            self.lines = lines

    def write(self, text: str, owner: LineOwner, diff: Sequence[DiffLine] = ()) -> None:
        """Update to the text after an edit; new lines belong to its owner."""
        before, after = self.lines or [], lines_of(text)
        blocks = kept_blocks(diff, len(before), len(after)) if diff else None
        self.owners = _carry(self.owners, compared(before, after) if blocks is None else blocks, len(after), owner)
        self.lines = after

    def forget(self) -> None:
        """Drop the text after a change of unknown content."""
        self.lines, self.owners = None, []

    def ranges(self, owner: LineOwner) -> Iterator[LineRange]:
        """Yield the remaining lines of an owner."""
        start = 0
        for line_owner, run in groupby(self.owners):
            end = start + len(list(run))
            if line_owner == owner:
                yield LineRange(start + 1, end, "".join((self.lines or [])[start:end]))
            start = end


@dataclass(slots=True)
class EditedFiles:
    """The files that a session edited."""

    root: str | None
    """The project's folder: paths below it are relative."""
    files: dict[str, FileLines] = field(default_factory=dict)

    def add_call(self, call: ToolCall, message: Message) -> None:
        """Apply a tool call if it edited a file."""
        display = call.display if isinstance(call.display, DiffDisplay) else None
        if call.status != "success" or not (display or call.canonical in _EDITS):
            return
        args = _arguments(call)
        path = display.file_path if display and display.file_path else _path_argument(call, args)
        if path is None:
            return
        file = self.files.setdefault(_relative_path(path, self.root), FileLines())
        owner = LineOwner("mixed" if args.get("modified_by_user") else "ai", message.model)
        file.call_ids.setdefault(owner, []).append(call.id or "")
        if display and display.after is not None:
            file.observe(display.before or "")
            file.write(display.after, owner, diff_from_display(display, None).lines)
        else:
            _apply(file, args, owner)

    def attribution(self, clean: Clean, *, with_hashes: bool) -> dict[str, Json] | None:
        """Return the attribution of all files, with the names of the schema."""
        files: list[Json] = [
            {
                "path": clean(path),
                "conversations": list(_conversations(self.files[path], clean, with_hashes=with_hashes)),
            }
            for path in sorted(self.files)
        ]
        return {"files": files} if files else None


def may_edit(name: str, display_name: str | None) -> bool:
    """Return whether a tool of this name edits files."""
    return tool(name, display_name).canonical in _EDITS


def lines_of(text: str) -> list[str]:
    r"""Split a text at `\n` only, as the client does, and keep the line ends."""
    return list(io.StringIO(text, newline="\n"))


def kept_blocks(diff: Sequence[DiffLine], n_before: int, n_after: int) -> list[LineBlock] | None:
    """Return the lines that a diff leaves unchanged, or None if it does not match the lengths of the texts."""
    old = new = 0
    blocks: list[LineBlock] = []
    for line in diff:
        if line.change is LineChange.HUNK or (line.old is None and line.new is None):
            continue
        gap = line.old - 1 - old if line.old is not None else (line.new or 0) - 1 - new
        is_kept = line.change is LineChange.CONTEXT
        if gap < 0 or (is_kept and (line.new or 0) - 1 - new != gap):
            return None
        blocks.append((old, new, gap + is_kept))
        old += gap + (line.change is not LineChange.ADD)
        new += gap + (line.change is not LineChange.DELETE)
    if n_before - old != n_after - new or old > n_before:
        return None
    return [*blocks, (old, new, n_before - old)]


def compared(before: Sequence[str], after: Sequence[str]) -> list[LineBlock]:
    """Return the lines that two texts have in common; of long texts, only those at the beginning and the end."""
    shorter = min(len(before), len(after))
    head = next((n for n in range(shorter) if before[n] != after[n]), shorter)
    tail = next((n for n in range(shorter - head) if before[-1 - n] != after[-1 - n]), shorter - head)
    blocks = [(0, 0, head), (len(before) - tail, len(after) - tail, tail)]
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    if len(old) + len(new) <= _MAX_COMPARED:
        matches = SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
        blocks += ((head + match.a, head + match.b, match.size) for match in matches)
    return blocks


def _carry(
    owners: list[LineOwner | None], blocks: list[LineBlock], n_after: int, owner: LineOwner | None
) -> list[LineOwner | None]:
    after = [owner] * n_after
    for old, new, size in blocks:
        after[new : new + size] = owners[old : old + size]
    return after


def _apply(file: FileLines, args: dict[str, Any], owner: LineOwner) -> None:
    """Apply an edit that is known only by its arguments."""
    content, old, new = (args.get(name) for name in ("content", "old_string", "new_string"))
    if isinstance(content, str):
        file.write(content, owner)
    elif old == "" and isinstance(new, str):
        file.write(new, owner)
    elif file.lines is not None and isinstance(old, str) and isinstance(new, str):
        text = "".join(file.lines)
        count = text.count(old)
        if count and (count == 1 or args.get("allow_multiple") or args.get("expected_replacements") == count):
            file.write(text.replace(old, new), owner)
        else:
            file.forget()


def _conversations(file: FileLines, clean: Clean, *, with_hashes: bool) -> Iterator[dict[str, Json]]:
    """Yield the remaining lines of each owner; none if they were overwritten or their place is unknown."""
    for owner, call_ids in file.call_ids.items():
        ranges: list[Json] = []
        for lines in file.ranges(owner):
            hashed = _hash(lines.text) if with_hashes else {}
            ranges.append({"start-line": lines.start, "end-line": lines.end} | hashed)
        related: list[Json] = [
            {"type": "tool-call", "url": f"#{quote(str(clean(call_id)), safe='', errors='replace')}"}
            for call_id in call_ids
            if call_id
        ]
        contributor: Json = members(type=owner.type, model_id=clean(owner.model))
        yield members(contributor=contributor, ranges=ranges, related=related or None)


def _hash(text: str) -> dict[str, Json]:
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
    return {"content-hash": digest, "content-hash-alg": ALGORITHM}


def _arguments(call: ToolCall) -> dict[str, Any]:
    value: Any = call.args
    if isinstance(value, str):  # arguments as JSON text
        try:
            value = lenient.decode(value.encode("utf-8", "replace"))
        except ValueError:
            return {}
    return value if isinstance(value, dict) else {}


def _path_argument(call: ToolCall, args: dict[str, Any]) -> str | None:
    for name in tool(call.name, call.display_name).paths:
        path = args.get(name)
        if isinstance(path, str) and path:
            return path
    return None


def _relative_path(path: str, root: str | None) -> str:
    """Return a path relative to the project's folder if it is below it, else unchanged."""
    system = ntpath if is_windows(root or path) else posixpath
    path = system.normpath(path)
    if root is None or not is_absolute(path):
        return path.replace("\\", "/") if system is ntpath else path
    folder = system.normpath(root).rstrip(system.sep) + system.sep
    if system.normcase(path).startswith(system.normcase(folder)):
        path = path[len(folder) :]
        return path.replace("\\", "/") if system is ntpath else path
    return path
