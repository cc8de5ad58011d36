"""What a shell offers for an id or a project: told from names alone, so that nobody waits for a key."""
# ruff: noqa: PLC0415  imported when something is completed

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from pollux.sessions.locate import Located


def session_ids(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer short ids, newest first, with date and project; or files, once a path is begun."""
    del param
    if os.sep in incomplete or incomplete.startswith((".", "~")):
        return [CompletionItem(incomplete, type="file")]
    from pollux.sessions.locate import name_facts

    found: dict[str, tuple[str, str]] = {}
    for file in _located(ctx).files:
        started, id8 = name_facts(file.path.name)
        if file.what == "session" and id8:
            told = (f"{started:%Y-%m-%d %H:%M}" if started else "", file.folder)
            found[id8] = max(told, found.get(id8, told))
    ids = sorted(found.items(), key=lambda one: one[1], reverse=True)
    items = [
        CompletionItem("latest", help="the newest session"),
        *(CompletionItem(id8, help=f"{day}  {_short(folder)}".strip()) for id8, (day, folder) in ids),
    ]
    return [item for item in items if item.value.startswith(incomplete)]


def project_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the names of project folders."""
    del param
    names = sorted({_short(folder.name) for folder in _located(ctx).folders})
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def _located(ctx: click.Context) -> Located:
    from pathlib import Path

    from pollux.sessions import homes as home
    from pollux.sessions import locate

    try:
        homes = home.homes(ctx.params.get("home") or (), os.environ, Path.home())
    except FileNotFoundError:  # said when the command runs
        homes = ()
    return locate.locate(homes)


def _short(folder: str) -> str:
    return folder[:8] if len(folder) == 64 else folder  # noqa: PLR2004  hex digits of SHA-256
