"""Statistics on a terminal: totals, a map of the week and tables with bars; lines and CSV for other programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

from rich.console import RenderableType
from rich.text import Text

from pollux.render.terminal.screen import line
from pollux.render.terminal.tables import NO_NAMES, TableColumn, TextTable, csv_lines, key_column, tab_lines
from pollux.reports.stats import Statistics, StatsRow, StatsTable, StatsTotals
from pollux.text.numbers import count, duration, plural

_NAMES = {
    "tool_calls": "calls",
    "error": "failed",
    "active_seconds": "active",
    "nonzero_exit": "exit ≠ 0",
    "lines_added": "+lines",
    "lines_removed": "-lines",
}
"""Columns that have another name on a screen."""
_COLUMNS = {
    "tool": ("tool_calls", "error", "cancelled", "nonzero_exit", "sessions"),
    "model": ("answers", "tool_calls", "error", "tokens", "sessions"),
    "filetype": ("files", "reads", "edits", "creates", "lines_added", "lines_removed", "deletes"),
    "program": ("runs", "sessions"),
}
_WORK_COLUMNS = ("prompts", "tool_calls", "error", "active_seconds", "tokens", "answers", "sessions", "subagents")
"""The columns of a table on a screen, the most important first."""
_BARS = {"tool": "tool_calls", "model": "answers", "program": "runs", "filetype": "files", "session": "active_seconds"}
"""What the bar of a row shows; otherwise its prompts."""
_TITLES = {
    "tool": "tools",
    "model": "models",
    "project": "projects",
    "session": "longest sessions",
    "filetype": "file types",
    "program": "shell programs",
}
_IN_BRIEF = 8
"""Rows of a table when there are others below it."""
_SHADES, _ASCII_SHADES = "·░▒▓█", ".-+*#"
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_HOURS = 24


def stats_screen(
    statistics: Statistics, *, width: int, encoding: str = "utf-8", projects: Mapping[str, str] = NO_NAMES
) -> Iterator[RenderableType]:
    """Yield the one table that was asked for, or totals, a map of the week and the first rows of each table."""
    if statistics.summary is None:
        yield stats_table(statistics.sections[0], projects=projects)
        return
    yield from _totals(statistics.summary)
    if statistics.summary.hours:
        yield Text("")
        yield from _week(statistics.summary.hours, statistics.timezone, width, encoding)
    for section in statistics.sections:
        if section.rows and section.by in _TITLES:
            yield Text("")
            yield Text(_TITLES[section.by], "bold")
            yield stats_table(section, limit=_IN_BRIEF, projects=projects)
            if len(section.rows) > _IN_BRIEF:
                more = f"… and {len(section.rows) - _IN_BRIEF} more: `pollux stats --by {section.by}`"
                yield Text(more, "dim")


def _totals(summary: StatsTotals) -> Iterator[Text]:
    total = summary.totals
    subagents = f", {plural(total['subagents'], 'subagent')}" if total["subagents"] else ""
    yield _line("sessions", count(total["sessions"]), f"in {plural(total['projects'], 'project')}{subagents}")
    yield _line("prompts", count(total["prompts"]), f"and {count(total['answers'])} answers")
    if total["tool_calls"]:
        yield _line("tool calls", count(total["tool_calls"]), ", ".join(_outcomes(total)))
    if total["files"]:
        lines = f"touched, +{count(total['lines_added'])} -{count(total['lines_removed'])} lines"
        yield _line("files", count(total["files"]), lines)
    yield _line("tokens", count(total["tokens"]), f"in {plural(total['model_calls'], 'model call')}")
    if summary.first and summary.last:
        days = [f"{at.day} {at:%b %Y}" for at in (summary.first, summary.last)]
        period = days[0] if days[0] == days[1] else " to ".join(days)
        active = duration(timedelta(seconds=total["active_seconds"]))
        yield _line("active", active, f"on {plural(total['active_days'], 'day')}, {period}")


def _line(name: str, number: str, words: str) -> Text:
    return Text.assemble((f"{name:<12}", "dim"), (number, "bold"), f"  {words}")


def _outcomes(total: Mapping[str, int]) -> Iterator[str]:
    yield f"{count(total['success'])} succeeded"
    if total["error"]:
        yield f"{count(total['error'])} failed ({_share(total['error'], total['tool_calls'])})"
    for name, label in (("cancelled", "cancelled"), ("no_result", "without result")):
        if total[name]:
            yield f"{count(total[name])} {label}"


def _share(part: int, total: int) -> str:
    """Return a percentage, with one decimal if it is below ten."""
    tenths = (2000 * part + total) // (2 * total)
    if tenths % 10 and tenths < 100:  # noqa: PLR2004
        return f"{tenths // 10}.{tenths % 10}%"
    return f"{(200 * part + total) // (2 * total)}%"


def _week(hours: Mapping[tuple[int, int], int], timezone: str, width: int, encoding: str) -> Iterator[Text]:
    """Yield a map of when prompts were typed: a row per day of the week, a column per hour."""
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
            row.append(shades[level] * cell if level else f"{shades[0]:<{cell}}", "bright_blue" if level else "dim")
        row.rstrip()
        yield row


def stats_table(section: StatsTable, *, limit: int | None = None, projects: Mapping[str, str] = NO_NAMES) -> TextTable:
    """Return the first rows of a section; the most important columns stay on a narrow terminal.

    `projects` are the names of all projects by their keys.
    """
    rows = section.rows[:limit]
    columns = [key_column(section.by, [(row.key, row.name) for row in rows], projects)]
    by_importance = _COLUMNS.get(section.by, _WORK_COLUMNS)
    for name in sorted(by_importance, key=section.columns.index):
        rank = by_importance.index(name)
        position = section.columns.index(name)
        if rank == 0 or any(row.numbers[position] for row in section.rows):
            cells = [_cell(section, name, row) for row in rows]
            columns.append(TableColumn(_NAMES.get(name, name), cells, rank=rank, is_right=True))
    weight = section.columns.index(_BARS.get(section.by, "prompts"))
    return TextTable(columns, weights=[row.numbers[weight] for row in rows])


def _cell(section: StatsTable, name: str, row: StatsRow) -> str:
    number = row.numbers[section.columns.index(name)]
    if name == "active_seconds":
        return duration(timedelta(seconds=number))
    if name == "error" and number:
        return f"{count(number)} ({_share(number, row.numbers[section.columns.index('tool_calls')])})"
    return count(number)


def stats_lines(statistics: Statistics, *, header: bool = True) -> Iterator[str]:
    """Yield a tab-separated line per row of the table that was asked for, otherwise per total."""
    if statistics.summary is None:
        return tab_lines(*_export(statistics.sections[0]), header=header)
    return tab_lines(("name", "total"), list(statistics.summary.totals.items()), header=header)


def stats_csv(section: StatsTable, *, header: bool = True) -> Iterator[str]:
    """Yield a line of CSV per row of a table."""
    return csv_lines(*_export(section), header=header)


def _export(section: StatsTable) -> tuple[Sequence[str], list[Sequence[object]]]:
    rows: list[Sequence[object]] = [(row.key or "", row.name, *row.numbers) for row in section.rows]
    return ("key", "name", *section.columns), rows
