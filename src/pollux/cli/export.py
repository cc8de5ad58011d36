"""`pollux export`: hand sessions over."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from pollux.cli import output
from pollux.cli.meant import is_file
from pollux.cli.scope import Scope, options, progress
from pollux.exports import EXPORTERS, Exporter
from pollux.formats.times import stamp
from pollux.grouping import Group
from pollux.model import Session
from pollux.sessions import from_file, opened


@click.command()
@click.argument("wanted", metavar="[ID|FILE]...", nargs=-1)
@options(json=False)
@click.option("--format", "-f", "name", type=click.Choice(list(EXPORTERS)), default="json", show_default=True)
@click.option("--all", "everything", is_flag=True, help="All sessions that fit the other options.")
@click.option("--output", "-o", default="-", show_default=True, help="A file, a folder, or - for stdout.")
def command(scope: Scope, wanted: tuple[str, ...], *, name: str, everything: bool, output: str) -> None:
    """Write sessions in another form; several go into a folder, a file each, with stable names.

    \b
      gemini   what the client itself would load; `gemini --session-file` takes it
      json     all that Pollux knows, in one object
      jsonl    the same, one record a line
    \b
      pollux export latest --format gemini -o session.json
      pollux export --all --project . --format jsonl -o exports/
    """
    if not wanted and not everything:
        raise click.UsageError("Say which sessions: some ids, files, `latest`, or --all.")
    exporter = EXPORTERS[name]
    by_id: dict[str, Session] = {}
    chosen = list(_chosen(scope, wanted, by_id, everything=everything))
    if output == "-":
        _to_stdout(chosen, exporter, by_id)
    elif len(chosen) == 1 and not everything and not (Path(output).is_dir() or output.endswith(("/", os.sep))):
        _write(Path(output), exporter.render(*_opened(chosen[0]), by_id))
    else:
        _to_folder(Path(output), chosen, exporter, by_id)
    click.get_current_context().exit(_status(chosen))


def _chosen(
    scope: Scope, wanted: tuple[str, ...], by_id: dict[str, Session], *, everything: bool
) -> Iterator[tuple[Session, Group | None]]:
    """Yield the sessions meant; a file that was named is open already."""
    if everything or not all(is_file(one) for one in wanted):
        found = scope.history()
        by_id.update((one.id, one) for one in found.sessions)
    for one in wanted:
        yield from_file(Path(one)) if is_file(one) else (scope.session(found, one), None)
    if everything:
        yield from ((session, None) for session in scope.sessions(found))


def _opened(chosen: tuple[Session, Group | None]) -> tuple[Session, Group]:
    session, group = chosen
    return session, group or opened(session)


def _to_stdout(chosen: list[tuple[Session, Group | None]], exporter: Exporter, by_id: dict[str, Session]) -> None:
    if len(chosen) > 1 and exporter.suffix != ".jsonl":
        raise click.UsageError(f"{len(chosen)} sessions do not fit into one {exporter.suffix} stream; give -o FOLDER.")
    for one in chosen:
        output.write(exporter.render(*_opened(one), by_id))


def _to_folder(
    folder: Path, chosen: list[tuple[Session, Group | None]], exporter: Exporter, by_id: dict[str, Session]
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with progress("exporting") as tell:
        for number, one in enumerate(chosen, 1):
            _write(folder / _name(one[0], exporter), exporter.render(*_opened(one), by_id))
            tell(number, len(chosen))
    output.words(f"{len(chosen)} session(s) written to {folder}")


def _name(session: Session, exporter: Exporter) -> str:
    """Name a file by when the session began and its id: the same session always gets the same name."""
    began = stamp(session.started)[:16].replace(":", "-") + "_" if session.started else ""
    safe = "".join(char if char.isalnum() or char in "-_" else "_" for char in session.id)
    return f"{began}{safe}{exporter.suffix}"


def _write(path: Path, pieces: Iterable[bytes]) -> None:
    """Write beside the place and move into it, so that nobody ever sees half a file."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        try:
            file.writelines(pieces)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise
    Path(file.name).replace(path)


def _status(chosen: list[tuple[Session, Group | None]]) -> int:
    if not chosen:
        output.words("No session fits; `pollux ls` lists what there is.")
        return 1
    return output.say_problems(problem for session, _ in chosen for problem in session.problems)
