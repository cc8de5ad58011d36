"""What the client showed for a tool call, in each of the forms it was ever recorded in."""

from __future__ import annotations

from typing import Any

from pollux.model import (
    Activity,
    AgentDisplay,
    Cell,
    DiffDisplay,
    Display,
    FileDisplay,
    Match,
    MatchDisplay,
    ScreenDisplay,
    TextDisplay,
    Todo,
    TodoDisplay,
    UnknownDisplay,
)
from pollux.text.integers import COUNTED, fits


def display(value: Any) -> Display | None:  # noqa: ANN401  the decoding edge
    """Convert a display; a form that nobody knows is kept as it is."""
    if value is None or value == "":
        return None
    if isinstance(value, str):
        return TextDisplay(value)
    if isinstance(value, list):
        return _screen(value) or UnknownDisplay(value)
    if not isinstance(value, dict):
        return UnknownDisplay(value)
    for key, convert in _FORMS:
        if key in value:
            return convert(value) or UnknownDisplay(value)
    return UnknownDisplay(value)


def _diff(value: dict[str, Any]) -> Display | None:
    diff = value.get("fileDiff")
    if not isinstance(diff, str):
        return None
    stat = value.get("diffStat")
    stat = stat if isinstance(stat, dict) else {}
    return DiffDisplay(
        diff,
        file_name=_text(value.get("fileName")),
        file_path=_text(value.get("filePath")) or None,
        before=value.get("originalContent") if isinstance(value.get("originalContent"), str) else None,
        after=value.get("newContent") if isinstance(value.get("newContent"), str) else None,
        lines_added=_sum(stat, "model_added_lines", "user_added_lines"),
        lines_removed=_sum(stat, "model_removed_lines", "user_removed_lines"),
        is_new=value.get("isNewFile") if isinstance(value.get("isNewFile"), bool) else None,
    )


def _screen(value: list[Any]) -> Display | None:
    if not all(isinstance(line, list) and all(isinstance(cell, dict) for cell in line) for line in value):
        return None
    return ScreenDisplay(tuple(tuple(_cell(cell) for cell in line) for line in value))


def _cell(cell: dict[str, Any]) -> Cell:
    styles = {key: bool(cell.get(key)) for key in ("bold", "italic", "underline", "dim", "inverse")}
    return Cell(_text(cell.get("text")), _text(cell.get("fg")), _text(cell.get("bg")), **styles)


def _todos(value: dict[str, Any]) -> Display | None:
    todos = value["todos"]
    if not isinstance(todos, list) or not all(isinstance(todo, dict) for todo in todos):
        return None
    return TodoDisplay(tuple(Todo(_text(todo.get("description")), _text(todo.get("status"))) for todo in todos))


def _agent(value: dict[str, Any]) -> Display | None:
    recent = value.get("recentActivity")
    return AgentDisplay(
        _text(value.get("agentName")),
        _text(value.get("state")) or None,
        _text(value.get("result")) or None,
        _text(value.get("terminateReason")) or None,
        tuple(
            Activity(
                _text(one.get("type")),
                _text(one.get("displayName") or one.get("content")),
                _text(one.get("status")),
                _text(one.get("description")),
            )
            for one in (recent if isinstance(recent, list) else ())
            if isinstance(one, dict)
        ),
    )


def _matches(value: dict[str, Any]) -> Display | None:
    matches = value["matches"]
    if not isinstance(matches, list) or not all(isinstance(match, dict) for match in matches):
        return None
    return MatchDisplay(_text(value.get("summary")), tuple(_match(match) for match in matches))


def _match(match: dict[str, Any]) -> Match:
    number = match.get("lineNumber")
    return Match(
        _text(match.get("filePath") or match.get("absolutePath")),
        number if isinstance(number, int) and fits(number) else None,
        _text(match.get("line")),
        bool(match.get("isContext")),
    )


def _files(value: dict[str, Any]) -> Display | None:
    files = value["files"]
    if not isinstance(files, list):
        return None
    return FileDisplay(_text(value.get("summary")), tuple(_text(file) for file in files))


_FORMS = (
    ("fileDiff", _diff),
    ("todos", _todos),
    ("isSubagentProgress", _agent),
    ("matches", _matches),
    ("files", _files),
)


def _sum(stat: dict[str, Any], *keys: str) -> int | None:
    counts = [stat[key] for key in keys if isinstance(stat.get(key), int)]
    return sum(counts) if counts and abs(sum(counts)) < COUNTED else None


def _text(value: Any) -> str:  # noqa: ANN401
    return value if isinstance(value, str) else "" if value is None else str(value)
