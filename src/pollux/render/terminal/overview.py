"""The first look, in words and with a small chart."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from pollux.render.terminal.tables import counted
from pollux.render.terminal.text import line
from pollux.reports.overview import Overview
from pollux.text.numbers import count

_BARS = " ▁▂▃▄▅▆▇█"
_ASCII_BARS = " .:-=+*#@"


def first_look(view: Overview, homes: str, *, encoding: str = "utf-8") -> Iterator[Text]:
    """Say what there is, how much of it is new, what will be deleted and what could not be read."""
    if not view.n_sessions:
        yield Text(f"No Gemini CLI sessions in {line(homes, 300)}.", "bold")
        yield Text("`pollux demo` shows invented ones; `pollux doctor` says where was looked and why.")
        return
    facts = (counted(view.n_projects, "project"), counted(view.n_prompts, "prompt"))
    subagents = f", {counted(view.n_subagents, 'subagent')}" if view.n_subagents else ""
    yield Text.assemble((counted(view.n_sessions, "session"), "bold"), f" in {', '.join(facts)}{subagents}")
    yield Text(line(homes, 300), "dim")
    since = f" since {view.first.day} {view.first:%B %Y}" if view.first else ""
    yield Text.assemble(
        (f"{count(view.tokens.total)} tokens", "bold"), f" in {counted(view.n_calls, 'model call')}{since}"
    )
    yield from _days(view, _BARS if encoding.lower().startswith("utf") else _ASCII_BARS)
    if view.n_deleted:
        yield Text(f"{counted(view.n_deleted, 'session')} deleted by the client, and kept here.", "magenta")
    if view.due or view.soon:
        yield Text(_deletion(view), "yellow")
    if view.n_problems:
        yield Text(f"{counted(view.n_problems, 'problem')} while reading: `pollux doctor` lists them.", "yellow")


def _days(view: Overview, bars: str) -> Iterator[Text]:
    most = max(tokens for _, tokens in view.days)
    if not most:
        return
    chart = "".join(bars[-(-tokens * (len(bars) - 1) // most)] for _, tokens in view.days)
    first, last = view.days[0][0], view.days[-1][0]
    yield Text.assemble(
        (f"{first.day} {first:%b} ", "dim"),
        (chart, "cyan"),
        (f" {last.day} {last:%b}", "dim"),
        f"   {count(sum(tokens for _, tokens in view.days))} tokens in {len(view.days)} days",
    )


_WHICH = "`pollux status` says which, and what is kept."


def _deletion(view: Overview) -> str:
    soon = f"{view.soon} more within a week" if view.due else f"{counted(view.soon, 'session')} within a week"
    now = f"{counted(view.due, 'session')} at its next start" if view.due else ""
    return f"The client will delete {', '.join(filter(None, (now, soon if view.soon else '')))}. {_WHICH}"
