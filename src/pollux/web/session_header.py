"""The upper part of a session page: title, facts, actions, the guide, and the bar that changes the view."""

from __future__ import annotations

from collections.abc import Iterator

from starlette.requests import Request

from pollux.errors import PolluxError
from pollux.library.library import Library
from pollux.library.values import SessionRow
from pollux.library.windows import OpenConversation
from pollux.model import Fate
from pollux.render.html.guide import GuideMark, call_mark, error_mark, guide, prompt_mark
from pollux.render.html.icons import glyph, star
from pollux.render.html.markup import Html, element, joined, time_element
from pollux.render.html.session_parts import facts_list
from pollux.text.escape import make_visible
from pollux.text.numbers import plural
from pollux.text.shell import quoted
from pollux.views import session_text
from pollux.views.session_text import TITLE, amount_text, count_messages
from pollux.views.transcript import Detail, TranscriptOptions
from pollux.web.door import with_commands
from pollux.web.layout import address
from pollux.web.lists import visible
from pollux.web.open_sessions import open_sessions
from pollux.web.requests import parameter
from pollux.web.session_links import message_address, session_address


def session_header(request: Request, library: Library, row: SessionRow, conversation: OpenConversation) -> Html:
    """Return title, facts, actions and guide of a session."""
    project = make_visible(row.project.name)
    crumb = [element("a", project, href=address(request, "sessions", project=row.project.key or None))]
    if row.kind != "main" and row.parent_id:
        crumb.append(element("a", "started by another session", href=session_address(request, row.parent_id)))
    crumb.append(_period(row))
    return element(
        "header",
        element("p", *crumb, class_="crumb"),
        element("h1", make_visible(session_text.title(row, TITLE))),
        session_facts(row, conversation),
        session_actions(request, library, row, conversation),
        *_problems(request, row),
        open_sessions(request).guide(conversation, lambda: _guide(request, row, conversation)),
    )


def _guide(request: Request, row: SessionRow, conversation: OpenConversation) -> Html:
    """Return the drawing of all model calls, prompts and errors; each is a link to its message."""
    marks: list[GuideMark] = []
    for moment in conversation.moments():
        href = message_address(request, row.id, moment.number)
        is_dropped = moment.fate is not Fate.ACTIVE
        if moment.kind == "prompt":
            marks.append(prompt_mark(moment.number, make_visible(moment.words), href, is_dropped=is_dropped))
        elif moment.kind == "error":
            marks.append(error_mark(moment.number, href))
        else:
            marks.append(call_mark(moment.number, moment.usage, href, is_dropped=is_dropped))
    table = element("a", "As a table", href=session_address(request, row.id, "calls"))
    return guide(marks, [table]) if marks else Html()


def _period(row: SessionRow) -> Html:
    start, end = row.started, row.ended
    if start is None:
        return element("span", "no date")
    if end is None or end <= start:
        return element("span", time_element(start, "full"))
    until = time_element(end, "until" if start.date() == end.date() else "full")
    return element("span", time_element(start, "full"), " to ", until)


def session_facts(row: SessionRow, conversation: OpenConversation) -> Html:
    """Return models, messages, tokens and cost of a session."""
    facts = []
    if row.models:
        facts.append(("Model" if len(row.models) == 1 else "Models", visible(", ".join(row.models), 500)))
    n_dropped = sum(n_messages for fate, n_messages in row.fates.items() if fate != Fate.ACTIVE)
    dropped = element("span", f"{n_dropped:,} dropped", class_="c") if n_dropped else Html()
    facts.append(("Messages", joined((count_messages(conversation.session, conversation.family), " ", dropped))))
    tokens, usage = row.usage.tokens, row.usage
    if usage.calls:
        share = f"{tokens.cached / tokens.input:.0%} cached" if tokens.input and tokens.cached else ""
        facts.append(("Tokens in", joined((f"{tokens.input:,} ", element("span", share, class_="soft")))))
        lost_nanousd = usage.cost.nanousd - row.active.cost.nanousd
        lost = element("span", f"{amount_text(lost_nanousd)} dropped", class_="c") if lost_nanousd else Html()
        more = "+" if usage.cost.unpriced_calls and usage.cost_nanousd is not None else ""
        facts.append(("Billed", joined((amount_text(usage.cost_nanousd), more, " ", lost))))
    return facts_list(facts)


def session_actions(request: Request, library: Library, row: SessionRow, conversation: OpenConversation) -> Html:
    """Return the commands to copy, the links to what lies below a session, and whether it is archived."""
    n_agents = sum(id_ != row.id for id_ in conversation.family)
    inside: list[Html] = []
    notes: list[str] = []
    needs_restore = bool(row.deleted)
    try:
        plan = library.resume(row.id)
    except PolluxError as error:
        notes.append(str(error))
    else:
        inside.append(_copy_button("Copy resume command", plan.command, "button main", key="resume"))
        needs_restore = needs_restore or bool(plan.problems)
        notes += plan.problems
    if needs_restore:
        command = f"pollux restore {quoted(row.id)}"
        inside.append(_copy_button("Copy restore command", command, "button", key="restore"))
    export = session_address(request, row.id, "export")
    raw = session_address(request, row.id, "raw")
    inside.append(element("a", glyph("export"), "Export", class_="button", href=export, data_key="export"))
    inside.append(element("a", glyph("raw"), "Raw files", class_="button", href=raw, data_key="raw"))
    if n_agents:
        words = plural(n_agents, "subagent")
        inside.append(
            element("a", glyph("agent"), words, class_="button", href=session_address(request, row.id, "tree"))
        )
    if len(row.files) and row.kind == "main":
        inside.append(_state(library, row))
    if notes:
        inside.append(element("span", with_commands(make_visible(" ".join(notes))), class_="soft small"))
    return element("p", *inside, class_="acts")


def _copy_button(words: str, command: str, class_: str, *, key: str) -> Html:
    return element(
        "button", glyph("copy"), words, class_=class_, type="button", data_do="copy", data_text=command, data_key=key
    )


def _state(library: Library, row: SessionRow) -> Html:
    """Return whether the archive has the session, and when the client deletes its own copy."""
    if library.config.archive is None:
        return element("span", "Not archived: this viewer reads the session files.", class_="state")
    if row.deleted:
        return element("span", star(), "Archived. Gemini CLI has deleted its copy.", class_="state")
    label = library.deletions([row.id]).get(row.id, "")
    words = "Archived."
    if label == "due":
        words += " Gemini CLI deletes its copy at its next start in this project."
    elif label:
        words += f" Gemini CLI deletes its copy soon: {label}."
    return element("span", star(), words, class_="state")


def _problems(request: Request, row: SessionRow) -> Iterator[Html]:
    if row.problems:
        words = f"{plural(len(row.problems), 'problem')} while reading its files"
        yield element("p", glyph("problem"), " ", element("a", words, href=address(request, "health")), class_="flag b")


def view_bar(request: Request, row: SessionRow, options: TranscriptOptions, n_prompts: int) -> Html:
    """Return the links that change the view; they work without a script."""

    def view(**changes: str | int) -> str:
        shown: dict[str, str | int | bool | None] = {
            "detail": None if options.detail is Detail.NORMAL else str(options.detail),
            "thoughts": None if options.thoughts else 0,
            "branches": None if options.folds_dropped else 0,
            **changes,
        }
        return session_address(request, row.id, request.path_params.get("number", ""), **shown)

    details = []
    for detail in Detail:
        current = "true" if detail is options.detail else None
        details.append(element("a", detail.capitalize(), href=view(detail=str(detail)), aria_current=current))
    thoughts = _check("Thoughts", view(thoughts=int(not options.thoughts)), is_on=bool(options.thoughts), key="h")
    dropped = _check("Dropped", view(branches=int(not options.folds_dropped)), is_on=options.folds_dropped, key="b")
    field = element(
        "input",
        id="w",
        data_find=True,
        type="search",
        name="q",
        placeholder="Find in this session",
        autocomplete="off",
        value=parameter(request, "find") or None,
    )
    within = element(
        "form",
        element("label", "Find in this session", class_="unseen", for_="w"),
        field,
        element("output", id="hits", class_="soft small"),
        _step("back", "up", "Previous"),
        _step("next", "down", "Next"),
        class_="within",
        role="search",
        action=session_address(request, row.id, "find"),
    )
    return element(
        "div",
        element("a", plural(n_prompts, "prompt"), class_="button list", href="#prompts"),
        element("span", *details, class_="pick", role="group", aria_label="Detail"),
        thoughts,
        dropped,
        within,
        class_="view noprint",
    )


def _check(words: str, target: str, *, is_on: bool, key: str) -> Html:
    pressed = "true" if is_on else "false"
    return element("a", words, class_="check", role="button", aria_pressed=pressed, href=target, data_key=key)


def _step(action: str, drawing: str, label: str) -> Html:
    return element("button", glyph(drawing), class_="plain", type="button", data_hit=action, aria_label=label)
