"""The rows of a list of sessions, the same on every page, and the words of times and amounts in them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from starlette.requests import Request

from pollux.model import Fate, Project
from pollux.render.html.guide import CallMark, strip
from pollux.render.html.icons import glyph
from pollux.render.html.markup import Html, element
from pollux.text.numbers import count, dollars, plural
from pollux.views.session_text import title
from pollux.web.layout import address
from pollux.web.times import time_words

if TYPE_CHECKING:
    from pollux.library.values import CallTokens, SessionRow

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TITLE = 200


def session_address(request: Request, session_id: str, message: int | None = None) -> str:
    """Return the address of a session, or of one of its messages."""
    name = session_id[:8] if _UUID.fullmatch(session_id) else session_id
    return address(request, f"s/{name}" if message is None else f"s/{name}/{message}")


def project_address(request: Request, project: Project) -> str:
    """Return the address of a project's sessions."""
    return address(request, "sessions", project=project.path or project.hash or project.name)


def session_list(
    request: Request,
    rows: Iterable[SessionRow],
    calls: Mapping[str, Sequence[CallTokens]] | None = None,
    *,
    now: datetime,
) -> Html:
    """Return a list of sessions; `calls` are drawn as a strip, `now` is in the zone of the times."""
    items = (element("li", _session(request, row, (calls or {}).get(row.id, ()), now)) for row in rows)
    return element("ol", *items, class_="sessions")


def _session(request: Request, row: SessionRow, calls: Sequence[CallTokens], now: datetime) -> Html:
    marks = [CallMark(call.fresh, call.cached, call.is_dropped) for call in calls]
    usage = row.usage
    return element(
        "a",
        element("span", title(row, _TITLE), class_="t"),
        element("span", *_facts(row, now), class_="by"),
        strip(marks) if marks else Html(),
        element("span", count(usage.tokens.total), class_="num tok"),
        element("span", dollars(usage.cost_nanousd, 3), class_="num usd"),
        href=session_address(request, row.id),
        data_stop="nearest",
    )


def _facts(row: SessionRow, now: datetime) -> list[Html]:
    tools = plural(row.tool_calls, "tool call") if row.tool_calls else "no tool calls"
    facts = [element("span", row.project.name)]
    if row.last_used:
        facts.append(time_words(row.last_used, now))
    facts.append(element("span", f"{plural(row.prompts, 'prompt')}, {tools}"))
    n_dropped = sum(number for fate, number in row.fates.items() if fate != Fate.ACTIVE)
    if n_dropped:
        facts.append(element("span", glyph("branch"), f" {n_dropped:,} dropped", class_="flag c"))
    if row.deleted:
        facts.append(element("span", "deleted by Gemini CLI", class_="flag"))
    if row.problems:
        words = "problem" if len(row.problems) == 1 else plural(len(row.problems), "problem")
        facts.append(element("span", glyph("problem"), f" {words}", class_="flag b"))
    return facts
