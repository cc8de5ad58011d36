"""`pollux doctor`: what was found where, and all that could not be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import click

from pollux.cli import output
from pollux.cli.scope import Scope, options, progress
from pollux.formats import prompts
from pollux.formats.prompts import LoggedPrompt
from pollux.model import Problem
from pollux.sessions import History
from pollux.terminal.text import clean, size
from pollux.views.health import HEALTH, Unknowns, generations, look_into, lost
from pollux.views.listing import problem_row


@click.command()
@options()
def command(scope: Scope) -> None:
    """Say what was found, which variable decided where, and everything that could not be read or is unknown.

    \b
      pollux doctor
      pollux doctor --home /mnt/backup/alice
      pollux doctor --json | jq '.problems[]'
    """
    found = scope.history()
    unknowns = _unknowns(found)
    logged, log_problems = _logged(found)
    gone = lost(logged, found.sessions)
    problems = [*found.problems, *log_problems, *(problem for one in found.sessions for problem in one.problems)]
    if scope.as_json:
        output.print_json(_json(found, unknowns, gone, problems))
    else:
        _print(found, unknowns, gone, problems)
    click.get_current_context().exit(1 if problems or not found.sessions else 0)


def _unknowns(found: History) -> Unknowns:
    unknowns = Unknowns()
    files = list(found.located.files)
    n_bytes, done = sum(file.size for file in files), 0
    with progress("examining") as tell:
        for file in files:
            try:
                look_into(file, unknowns)
            except OSError:
                continue  # reported by the history already
            finally:
                done += file.size
                tell(done, n_bytes)
    return unknowns


def _logged(found: History) -> tuple[list[LoggedPrompt], list[Problem]]:
    logged: list[LoggedPrompt] = []
    problems: list[Problem] = []
    for path in (folder.logs for folder in found.located.folders if folder.logs):
        try:
            read = prompts.read(path.read_bytes())
        except OSError as error:
            problems.append(Problem("unreadable-file", f"cannot be read: {error.strerror}", str(path)))
            continue
        logged += read.prompts
        problems += [Problem(one.code, one.message, str(path), one.line) for one in read.problems]
    return logged, problems


def _json(
    found: History, unknowns: Unknowns, gone: dict[str, list[LoggedPrompt]], problems: list[Problem]
) -> dict[str, object]:
    return {
        "schema": HEALTH,
        "homes": [{"root": str(home.root), "tmp": str(home.tmp), "how": home.how} for home in found.located.homes],
        "folders": len(found.located.folders),
        "files": {
            "count": sum(1 for _ in found.located.files),
            "bytes": sum(file.size for file in found.located.files),
        },
        "sessions": {"main": len(found.main), "all": len(found.sessions), "by_generation": generations(found.sessions)},
        "unknown": {
            "operators": _operators(problems),
            "fields": dict(unknowns.fields),
            "kinds": dict(unknowns.kinds),
            "tools": dict(unknowns.tools),
        },
        "lost": [{"id": id_, "prompts": len(typed)} for id_, typed in gone.items()],
        "problems": [problem_row(problem) for problem in problems],
    }


def _print(found: History, unknowns: Unknowns, gone: dict[str, list[LoggedPrompt]], problems: list[Problem]) -> None:
    for home in found.located.homes:
        _say(f"home       {home.root}  (decided by {home.how})" + ("" if home.tmp.is_dir() else "  — nothing there"))
    files = list(found.located.files)
    _say(f"found      {len(files)} files, {size(sum(file.size for file in files))}, in {_folders(found)}")
    _say(f"sessions   {len(found.main)} with content, {len(found.sessions) - len(found.main)} subagents and stubs")
    _say_counts("written by", generations(found.sessions))
    unproven = sum(not one.project.proven for one in found.main)
    _say(f"projects   {len(found.main) - unproven} sessions with a proven path, {unproven} without")
    for name, counts in (("operators", _operators(problems)), ("fields", unknowns.fields), ("tools", unknowns.tools)):
        _say_counts(f"unknown {name}", counts)
    if gone:
        _say(f"lost       {len(gone)} sessions are deleted; only what was typed is still known:")
        for id_, typed in list(gone.items())[:10]:
            _say(f"           {id_}  {len(typed)} prompts, first: {typed[0].text[:60]!r}")
    _say(f"problems   {len(problems)}" if problems else "problems   none: everything was read")
    for problem in problems:
        place = f"{problem.file}:{problem.line}" if problem.line else problem.file
        _say(f"  {problem.code}: {problem.message}\n    {place}")


def _folders(found: History) -> str:
    n_hashed = sum(len(folder.name) == 64 for folder in found.located.folders)  # noqa: PLR2004  hex digits of SHA-256
    return f"{len(found.located.folders)} project folders ({n_hashed} named by hash)"


def _operators(problems: Iterable[Problem]) -> dict[str, int]:
    words = (
        problem.message.removeprefix("unknown operator ") for problem in problems if problem.code == "unknown-operator"
    )
    return dict(Counter(word for text in words for word in text.split(", ")))


def _say_counts(name: str, counts: dict[str, int]) -> None:
    if counts:
        _say(f"{name:<11}" + ", ".join(f"{key} × {number}" for key, number in sorted(counts.items())))


def _say(text: str) -> None:
    click.echo(clean(text))
