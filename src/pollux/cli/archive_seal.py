"""`pollux archive seal`: a signed root over all that is kept."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pollux.cli import output
from pollux.cli.complete import session_ids
from pollux.cli.scope import Scope, options, progress
from pollux.library import keys, project_memory
from pollux.library.records import record_of

if TYPE_CHECKING:
    from pollux.archive.store import Archive
    from pollux.model import Session
    from pollux.proofs.seal import Sealed

SCHEMA = "pollux.sealed/1"
_SHOWN = 10


@click.command("seal", short_help="Seal it.")
@click.argument("wanted", metavar="[ID]...", nargs=-1, shell_complete=session_ids)
@keys.signing_key
@click.option(
    "--issuer", metavar="NAME", help="A name to seal under, which is only your claim; without it, the key's thumbprint."
)
@click.option("--output", "-o", "target", help="Also write the newest seal into a file; - is stdout.")
@click.option("--entries", is_flag=True, help="Write all sealed entries with it: they name every file.")
@options(filters=False, all_homes=False)
def command(
    scope: Scope, wanted: tuple[str, ...], *, key: str | None, issuer: str | None, target: str | None, entries: bool
) -> None:
    """Take in what is new, and sign a Merkle root over all that is kept, chained to the seal before.

    From then on `pollux verify --seal` shows that nothing of it was changed or removed. A copy of the seal in another
    place also shows if the newest seals were taken away; it holds no names and no text. What the sessions say is sealed
    field by field, so that redacted records can be proven; an ID does that again for one.

    \b
      pollux archive seal
      pollux archive seal -o /mnt/safe/seal.cbor
    """
    from pollux.cli.output_guard import check_output
    from pollux.proofs.seal import seal

    if entries and not target:
        raise click.UsageError("--entries says what goes into a file; name it with -o.")
    if target and target != "-":
        check_output(Path(target))  # before anything is sealed
    private, name = keys.own_key(key)
    archive, by_id = _taken_in(scope)
    again = [scope_session(scope, by_id, one) for one in wanted]
    with progress("sealing") as tell:
        found = seal(
            archive,
            private,
            at=output.now(),
            record_of=record_of(scope, by_id),
            again=again,
            issuer=issuer,
            progress=tell,
        )
    if target:
        _write(archive, found, target, with_entries=entries)
    if scope.as_json and target != "-":
        output.print_json(_row(found))
    elif target != "-":
        _say(found, name, is_kept_elsewhere=bool(target))
    click.get_current_context().exit(output.say_problems(found.new.problems, hint="--json lists them all."))


def scope_session(scope: Scope, by_id: dict[str, Session], wanted: str) -> str:
    """Return the id of the session that an argument names."""
    from pollux.sessions.locate import Located
    from pollux.sessions.reader import History, in_order

    return scope.session(History(Located((), ()), in_order([*by_id.values()])), wanted).id


def _taken_in(scope: Scope) -> tuple[Archive, dict[str, Session]]:
    """Open the archive to write to it, take in what is new, and return all its sessions."""
    from pollux.archive import open_session, store
    from pollux.archive.refresh import refresh
    from pollux.cli.archive import place
    from pollux.errors import PolluxError

    path, known = place(scope), project_memory.recalled()
    archive = scope.using(store.opened(path))
    if not archive.is_writable:
        raise PolluxError(f"The archive {path} cannot be sealed now: {archive.why_not}.")
    with progress("reading") as tell:
        result = refresh(archive, scope.places(), memory=known, progress=tell)
    scope.archive = archive
    return archive, {
        one.id: one for one in open_session.history(archive.database, result.located, memory=known).sessions
    }


def _write(archive: Archive, found: Sealed, target: str, *, with_entries: bool) -> None:
    from pollux.archive import seals
    from pollux.library.export_folder import write
    from pollux.proofs.chain import Given

    if found.seal is None:
        return
    bodies = tuple(body for _, body in seals.entries(archive.database)) if with_entries else None
    data = Given(found.data, bodies).file_bytes
    if target == "-":
        output.write([data])
        return
    try:
        write(Path(target), [data])
    except OSError as error:
        raise click.ClickException(f"{target} cannot be written: {error.strerror}; the archive is sealed.") from None
    output.words(f"{target}: {len(data)} bytes.")


def _say(found: Sealed, name: str, *, is_kept_elsewhere: bool) -> None:
    from pollux.render.terminal.tables import counted
    from pollux.text.amounts import size
    from pollux.text.escape import clean

    if found.seal is None:
        output.words("There is nothing to seal yet; `pollux sync` takes in what there is.")
        return
    seal = found.seal
    for label, text in (("seal", seal.number), ("at", seal.at), ("entries", seal.size), ("root", seal.root)):
        click.echo(f"{label:<8} {text}")
    for one in found.new.forgotten[:_SHOWN]:
        output.words(clean(f"{output.short(one)} was forgotten since the last seal."))
    if len(found.new.forgotten) > _SHOWN:
        output.words(f"… and {len(found.new.forgotten) - _SHOWN} more files; --json lists them all.")
    if not found.is_new:
        output.words(f"Nothing is new since seal {seal.number}, so it still speaks for everything.")
        return
    new = found.new
    files = f"{counted(new.n_files, 'file')} ({size(new.n_bytes)})"
    output.words(f"Sealed with the key {name}: {files} and {counted(new.n_sessions, 'session')} new.")
    if not is_kept_elsewhere:
        output.words("Keep a copy elsewhere with -o FILE: only that shows if the newest seals are taken away.")


def _row(found: Sealed) -> dict[str, Any]:
    from pollux.views.contracts import problem_row

    seal = found.seal
    return {
        "schema": SCHEMA,
        "number": seal.number if seal else None,
        "at": seal.at if seal else None,
        "entries": seal.size if seal else None,
        "root": seal.root if seal else None,
        "new": found.is_new,
        "files": found.new.n_files,
        "bytes": found.new.n_bytes,
        "sessions": found.new.n_sessions,
        "forgotten": found.new.forgotten,
        "problems": [problem_row(one) for one in found.new.problems],
    }
