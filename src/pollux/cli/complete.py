"""What a shell offers for an ID or a project."""
# ruff: noqa: PLC0415  imported when something is completed

from __future__ import annotations

import os

import click
from click.shell_completion import CompletionItem


def session_ids(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer short ids, newest first, with date and project; or files, once a path is begun."""
    del param
    if os.sep in incomplete or incomplete.startswith((".", "~")):
        return [CompletionItem(incomplete, type="file")]
    from pollux.library.completion import offered_sessions

    sessions = offered_sessions(ctx.params.get("home") or ())
    items = [
        CompletionItem("latest", help="the newest session"),
        *(CompletionItem(session.id8, help=f"{session.day}  {session.folder}".strip()) for session in sessions),
    ]
    return [item for item in items if item.value.startswith(incomplete)]


def project_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the names of project folders."""
    del param
    from pollux.library.completion import offered_projects

    names = offered_projects(ctx.params.get("home") or ())
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]
