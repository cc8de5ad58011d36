"""`pollux export`: hand sessions over."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from pollux.cli import output
from pollux.cli.complete import session_ids
from pollux.cli.meant import in_file, in_history, named_file
from pollux.cli.scope import Scope, options, progress
from pollux.exports import EXPORTERS, Exporter

if TYPE_CHECKING:
    from pollux.grouping import Group
    from pollux.model import Problem, Session

_HELP = """Write sessions in another form; several go into a folder, a file each, with stable names.

\b
{formats}
\b
  pollux export latest --format gemini -o session.json
  pollux export --all --project . --format jsonl -o exports/
"""


class _Chosen(NamedTuple):
    """A session to hand over; one from a file that was named is open already."""

    session: Session
    group: Group | None = None


class _Job(NamedTuple):
    """What to hand over, and in which form."""

    chosen: list[_Chosen]
    exporter: Exporter
    by_id: dict[str, Session]
    problems: list[Problem]
    scope: Scope

    def rendered(self, one: _Chosen) -> Iterator[bytes]:
        """Write one session in the form wanted."""
        return self.exporter.render(one.session, one.group or self.scope.opened(one.session), self.by_id)


@click.command(help=_HELP.format(formats="\n".join(f"  {name:<9} {one.summary}" for name, one in EXPORTERS.items())))
@click.argument("wanted", metavar="[ID|FILE]...", nargs=-1, shell_complete=session_ids)
@options(json=False)
@click.option("--format", "-f", "name", type=click.Choice(list(EXPORTERS)), default="json", show_default=True)
@click.option("--all", "everything", is_flag=True, help="All sessions that fit the other options.")
@click.option("--output", "-o", "target", default="-", show_default=True, help="A file, a folder, or - for stdout.")
def command(scope: Scope, wanted: tuple[str, ...], *, name: str, everything: bool, target: str) -> None:
    """Choose the sessions, and hand them over."""
    if not wanted and not everything:
        raise click.UsageError("Say which sessions: some ids, files, `latest`, or --all.")
    by_id: dict[str, Session] = {}
    exporter = EXPORTERS[name]
    chosen = list(_chosen(scope, wanted, by_id, everything=everything, with_subagents=exporter.with_subagents))
    if not chosen:
        raise click.ClickException("No session fits; `pollux ls` lists what there is.")
    problems = [problem for one in chosen for problem in one.session.problems]
    _hand_over(_Job(chosen, exporter, by_id, problems, scope), target, everything=everything)
    click.get_current_context().exit(output.say_problems(problems))


def _chosen(
    scope: Scope, wanted: tuple[str, ...], by_id: dict[str, Session], *, everything: bool, with_subagents: bool
) -> Iterator[_Chosen]:
    """Yield the sessions meant, in the order asked for, and each once."""
    from pollux.locate import Located
    from pollux.sessions import History

    files = {one: named_file(one) for one in wanted}
    needs_history = everything or not all(files.values())
    found = scope.history() if needs_history else History(Located((), ()))
    by_id.update((one.id, one) for one in found.sessions)
    taken: set[str] = set()
    for one, file in files.items():
        chosen = _Chosen(*in_file(file)) if file else _Chosen(in_history(scope, found, one))
        if file or chosen.session.id not in taken:
            yield chosen
        taken.add(chosen.session.id)
        for child in _descendants(chosen.session, by_id) if with_subagents else ():
            if child.id not in taken:
                taken.add(child.id)
                yield _Chosen(child)
    if everything:
        yield from (_Chosen(one) for one in scope.sessions(found, everything=with_subagents) if one.id not in taken)


def _descendants(session: Session, by_id: dict[str, Session]) -> Iterator[Session]:
    """Yield the subagents of a session, and theirs."""
    for child in (by_id[id_] for id_ in session.children if id_ in by_id):
        yield child
        yield from _descendants(child, by_id)


def _hand_over(job: _Job, target: str, *, everything: bool) -> None:
    """Write to stdout, into one file, or into a folder, whichever is meant."""
    suffix = job.exporter.suffix
    is_stream = suffix == ".jsonl"  # of which many make one
    if target == "-" and (len(job.chosen) == 1 or is_stream):
        for one in job.chosen:
            output.write(job.rendered(one))
        return
    path = Path(target)
    is_folder = (
        path.is_dir() or target.endswith(("/", os.sep)) or ((everything or len(job.chosen) > 1) and not path.suffix)
    )
    try:
        if target != "-" and is_folder:
            _to_folder(job, path)
        elif len(job.chosen) == 1 or (is_stream and target != "-"):
            _write(path, chain.from_iterable(job.rendered(one) for one in job.chosen))
        else:
            raise click.UsageError(
                f"{len(job.chosen)} sessions do not fit into one {suffix} file; give a folder: `-o exports/`."
            )
    except OSError as error:
        raise click.ClickException(
            f"{target} cannot be written: {error.strerror}; give another place with `-o`."
        ) from None


def _to_folder(job: _Job, folder: Path) -> None:
    from pollux.errors import UnreadableFileError
    from pollux.model import Problem

    folder.mkdir(parents=True, exist_ok=True)
    names: set[str] = set()
    with progress("exporting") as tell:
        for number, one in enumerate(job.chosen, 1):
            name = _name(one.session, job.exporter.suffix, names)
            names.add(name)
            try:
                _write(folder / name, job.rendered(one))
            except UnreadableFileError as error:  # gone since it was listed: the others are still wanted
                job.problems.append(Problem("unreadable-file", str(error)))
                names.remove(name)
            tell(number, len(job.chosen))
    output.words(f"{len(names)} session{'s' * (len(names) != 1)} written to {folder}")


def _name(session: Session, suffix: str, taken: set[str]) -> str:
    """Name a file by when the session began and its id: the same session always gets the same name."""
    from pollux.formats.times import stamp

    began = stamp(session.started)[:16].replace(":", "-") + "_" if session.started else ""
    safe = began + "".join(char if char.isalnum() or char in "-_" else "_" for char in session.id)
    others = (f"{safe}-{number}{suffix}" for number in range(2, len(taken) + 3))
    return next(name for name in chain([f"{safe}{suffix}"], others) if name not in taken)


def _write(path: Path, pieces: Iterable[bytes]) -> None:
    """Write beside the place and move into it, so that nobody ever sees half a file."""
    if path.exists() and not path.is_file():  # a device or a pipe
        with path.open("wb") as stream:
            stream.writelines(pieces)
        return
    path = path.resolve()  # a link stays one
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        try:
            file.writelines(pieces)
            file.flush()
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise
    Path(file.name).replace(path)
