"""Statistics on a terminal: sums, a map of the week, tables with bars; plain lines and CSV for other programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from pollux.render.terminal.tables import counted, tabbed
from pollux.render.terminal.text import line
from pollux.reports.periods import monday
from pollux.reports.stats import Row, Section, Statistics, Summary
from pollux.text.encode import csv_row, escape_formula
from pollux.text.numbers import count, lasted
from pollux.views.session_text import NO_TITLE

_LONGEST = 1000
"""Characters of a name in CSV."""

_NAMES = {
    "tool_calls": "calls",
    "error": "failed",
    "filetype": "type",
    "active_seconds": "active",
    "nonzero": "exit ≠ 0",
    "lines_added": "+lines",
    "lines_removed": "-lines",
}
"""Columns that have another name on a screen."""
_WANTED = {
    "tool": ("tool_calls", "error", "cancelled", "nonzero", "sessions"),
    "model": ("answers", "tool_calls", "error", "tokens", "sessions"),
    "filetype": ("files", "reads", "edits", "creates", "lines_added", "lines_removed", "deletes"),
    "program": ("runs", "sessions"),
}
_WORK = ("prompts", "tool_calls", "error", "active_seconds", "tokens", "answers", "sessions", "subagents")
"""The columns of a section on a screen, the most wanted first."""
_BARS = {"tool": "tool_calls", "model": "answers", "program": "runs", "filetype": "files", "session": "active_seconds"}
"""What the bar of a row shows; else its prompts."""
_TITLES = {
    "tool": "tools",
    "model": "models",
    "project": "projects",
    "session": "longest sessions",
    "filetype": "types of files",
    "program": "programs in the shell",
}
_IN_BRIEF = 8
"""Rows of a table when there are others below it."""
_GAP, _KEY_MAX, _KEY_MIN, _BAR_MIN, _BAR_MAX, _SHORT_ID = 2, 40, 12, 6, 24, 8
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_SHADES, _ASCII_SHADES = "·░▒▓█", ".-+*#"
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_HOURS = 24


def screen(found: Statistics, *, width: int, encoding: str = "utf-8") -> Iterator[RenderableType]:
    """Draw the one table that was asked for, or all in brief: sums, when it was, and the first rows of each table."""
    if found.summary is None:
        yield table(found.sections[0], width=width, encoding=encoding)
        return
    yield from _sums(found.summary)
    if found.summary.hours:
        yield Text("")
        yield from _week(found.summary.hours, found.timezone, width, encoding)
    for section in found.sections:
        if section.rows and section.by in _TITLES:
            yield Text("")
            yield Text(_TITLES[section.by], "bold")
            yield table(section, width=width, encoding=encoding, most=_IN_BRIEF)
            if len(section.rows) > _IN_BRIEF:
                more = f"… and {len(section.rows) - _IN_BRIEF} more: `pollux stats --by {section.by}`"
                yield Text(more, "dim")


def _sums(summary: Summary) -> Iterator[Text]:
    """Say what there is in all."""
    total = summary.totals
    agents = f", {counted(total['subagents'], 'subagent')}" if total["subagents"] else ""
    yield _line("sessions", count(total["sessions"]), f"in {counted(total['projects'], 'project')}{agents}")
    yield _line("prompts", count(total["prompts"]), f"and {count(total['answers'])} answers")
    if total["tool_calls"]:
        yield _line("tool calls", count(total["tool_calls"]), ", ".join(_outcomes(total)))
    if total["files"]:
        lines = f"touched, +{count(total['lines_added'])} -{count(total['lines_removed'])} lines"
        yield _line("files", count(total["files"]), lines)
    yield _line("tokens", count(total["tokens"]), f"in {counted(total['model_calls'], 'model call')}")
    if summary.first and summary.last:
        days = [f"{at.day} {at:%b %Y}" for at in (summary.first, summary.last)]
        when = days[0] if days[0] == days[1] else " to ".join(days)
        active = lasted(timedelta(seconds=total["active_seconds"]))
        yield _line("active", active, f"on {counted(total['active_days'], 'day')}, {when}")


def _line(name: str, number: str, words: str) -> Text:
    return Text.assemble((f"{name:<12}", "dim"), (number, "bold"), f"  {words}")


def _outcomes(total: Mapping[str, int]) -> Iterator[str]:
    yield f"{count(total['success'])} done"
    if total["error"]:
        yield f"{count(total['error'])} failed ({_share(total['error'], total['tool_calls'])})"
    for name in ("cancelled", "unfinished"):
        if total[name]:
            yield f"{count(total[name])} {name}"


def _share(some: int, whole: int) -> str:
    """Say how many in a hundred, with a digit more where it is few."""
    tenths = (2000 * some + whole) // (2 * whole)
    if tenths % 10 and tenths < 100:  # noqa: PLR2004
        return f"{tenths // 10}.{tenths % 10}%"
    return f"{(200 * some + whole) // (2 * whole)}%"


def _week(hours: Mapping[tuple[int, int], int], timezone: str, width: int, encoding: str) -> Iterator[Text]:
    """Draw when prompts were typed: a row a day of the week, a column an hour."""
    shades = _SHADES if encoding.lower().startswith("utf") else _ASCII_SHADES
    cell = 2 if width >= len("Mon  ") + 2 * _HOURS else 1
    most = max(hours.values())
    yield Text.assemble(("prompts by hour ", "bold"), (f"({line(timezone, 40)})", "dim"))
    ruler = "".join(f"{hour:<{6 * cell}}" for hour in range(0, _HOURS, 6))
    yield Text(f"     {ruler}".rstrip(), "dim")
    for number, day in enumerate(_DAYS, 1):
        row = Text(f"{day}  ", "dim")
        for hour in range(_HOURS):
            level = -(-hours.get((number, hour), 0) * (len(shades) - 1) // most)
            row.append(shades[level] * cell if level else f"{shades[0]:<{cell}}", "cyan" if level else "dim")
        row.rstrip()
        yield row


def table(section: Section, *, width: int, encoding: str = "utf-8", most: int | None = None) -> Table:
    """Lay a section out in columns: as many as fit, the most wanted first, and a bar if there is room left."""
    rows = section.rows[:most]
    keys = [_key(section.by, row) for row in rows]
    key_width = min(max(cell_len(one) for one in (*keys, section.by)), _KEY_MAX)
    columns, room = _fitting(section, rows, width - min(key_width, max(_KEY_MIN, width // 3)))
    key_width = min(key_width, max(_KEY_MIN, room + min(key_width, max(_KEY_MIN, width // 3))))
    cells = [[_cell(section, name, row) for name in columns] for row in rows]
    used = key_width + sum(_width(section, name, rows) for name in columns)
    bar = min(width - used - _GAP, _BAR_MAX)
    bar = bar if bar >= _BAR_MIN and len(rows) > 1 else 0
    found = Table(box=None, pad_edge=False, header_style="dim", padding=(0, _GAP, 0, 0), collapse_padding=True)
    found.add_column(_NAMES.get(section.by, section.by), no_wrap=True, max_width=key_width, style="cyan")
    for name in columns:
        found.add_column(_NAMES.get(name, name), justify="right", no_wrap=True)
    if bar:
        found.add_column("", no_wrap=True, style="blue")
    weight = section.columns.index(_BARS.get(section.by, "prompts"))
    largest = max((row.numbers[weight] for row in rows), default=0)
    for key, row, shown in zip(keys, rows, cells, strict=True):
        bars = [_bar(row.numbers[weight], largest, bar, encoding)] if bar else []
        found.add_row(line(key, key_width), *shown, *bars)
    return found


def _fitting(section: Section, rows: Sequence[Row], room: int) -> tuple[list[str], int]:
    """Choose the columns that fit and say something, and tell what room is left."""
    chosen: list[str] = []
    for name in _WANTED.get(section.by, _WORK):
        place = section.columns.index(name)
        width = _width(section, name, rows)
        if width <= room and (not chosen or any(row.numbers[place] for row in section.rows)):
            chosen.append(name)
            room -= width
    return sorted(chosen, key=section.columns.index), room


def _width(section: Section, name: str, rows: Sequence[Row]) -> int:
    return _GAP + max(cell_len(_NAMES.get(name, name)), *(cell_len(_cell(section, name, row)) for row in rows), 0)


def _cell(section: Section, name: str, row: Row) -> str:
    number = row.numbers[section.columns.index(name)]
    if name == "active_seconds":
        return lasted(timedelta(seconds=number))
    if name == "error" and number:
        return f"{count(number)} ({_share(number, row.numbers[section.columns.index('tool_calls')])})"
    return count(number)


def _key(by: str, row: Row) -> str:
    """Name a row for people."""
    if by == "session" and row.key is not None:
        return f"{row.key[:_SHORT_ID]} {row.name or NO_TITLE}"
    if by == "week" and row.key is not None:
        return f"{row.key} {monday(row.key):%d %b}"
    return row.name


def _bar(value: int, most: int, width: int, encoding: str) -> str:
    if not most:
        return ""
    if not encoding.lower().startswith("utf"):
        return "#" * (value * width // most)
    full, rest = divmod(value * width * 8 // most, 8)
    return "█" * full + (_EIGHTHS[rest] if rest else "")


def lines(found: Statistics) -> Iterator[str]:
    """Give one line a row of the table that was asked for, else one a sum; fields apart by tabs, numbers exact."""
    if found.summary is None:
        yield from (tabbed(row.key or "", row.name, *row.numbers) for row in found.sections[0].rows)
    else:
        yield from (tabbed(name, number) for name, number in found.summary.totals.items())


def section_csv(section: Section) -> Iterator[str]:
    """Give a section as CSV, with a line of names."""
    yield csv_row(["key", "name", *section.columns])
    for row in section.rows:
        names = (escape_formula(line(text, _LONGEST)) for text in (row.key or "", row.name))
        yield csv_row([*names, *row.numbers])
