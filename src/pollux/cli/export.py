"""`pollux export`: hand sessions over."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from pollux import __version__
from pollux.cli import export_lake, output
from pollux.cli.complete import session_ids
from pollux.cli.redacting import Asked, Redaction, print_findings, redaction, redaction_options
from pollux.cli.scope import Scope, options, progress
from pollux.cli.transcript_options import transcript_options
from pollux.exports import EXPORTERS, Exporter, Written
from pollux.library.select import in_file, in_history, named_file

if TYPE_CHECKING:
    from pollux.exports.source import Subject, Wanted
    from pollux.library.export_folder import Kept, Place
    from pollux.model import Message, Problem, Session
    from pollux.sessions.grouping import Group

_HELP = """Write sessions in another form; several go into a folder, a file each, with stable names.

What is in the folder already and has not changed is not written again.

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


@dataclass(slots=True)
class _Job:
    """What to hand over, and in which form."""

    name: str
    exporter: Exporter
    wanted: Wanted
    scope: Scope
    redaction: Redaction
    chosen: list[_Chosen] = field(default_factory=list)
    by_id: dict[str, Session] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    failed: list[Problem] = field(default_factory=list)
    """Of sessions that could not be written."""
    losses: Counter[str] = field(default_factory=Counter)
    empty: list[Session] = field(default_factory=list)
    """Sessions that had nothing to give in this form."""
    last: Subject | None = None
    """What was rendered last."""

    def subject(self, one: _Chosen, place: Place | None = None) -> Subject:
        """Open one session to be handed over."""
        from pollux.exports.source import subject

        group = one.group or self.scope.opened(one.session)
        redactor = self.redaction.redactor(one.session, self._messages(one.session, group))
        there: dict[str, Any] = (
            {"beside": place.put, "name": place.name, "index_page": place.index_page} if place else {}
        )
        return subject(
            one.session, group, self.by_id, self.scope.opened, wanted=self.wanted, redactor=redactor, **there
        )

    def _messages(self, session: Session, group: Group) -> Iterator[Message]:
        """Yield all that was said in a session and in its subagents."""
        yield from group.messages()
        for child in _descendants(session, self.by_id):
            yield from self.scope.opened(child).messages()

    def rendered(self, one: _Chosen, place: Place | None = None) -> Iterator[bytes]:
        """Write one session in the form wanted."""
        self.last = made = self.subject(one, place)
        n_pieces = 0
        for piece in self.exporter.render(made):
            n_pieces += 1
            yield piece
        if n_pieces <= self.exporter.n_heads:
            self.empty.append(one.session)
        self.losses += made.losses

    def told(self, one: _Chosen, family: Iterable[Session]) -> list[Session]:
        """Return what may be said of a session and its subagents in a list of all."""
        if not self.redaction.is_wanted:
            return [*family]
        subject = self.last if self.last and self.last.session.id == one.session.id else self.subject(one)
        assert subject.redactor is not None
        return [subject.redactor.session(session) for session in family]

    @property
    def made_by(self) -> str:
        """All that an export depends on besides the sessions."""
        return f"{__version__} {self.name} {self.wanted} {self.redaction.made_by}"


@click.command(help=_HELP.format(formats="\n".join(f"  {name:<12} {one.summary}" for name, one in EXPORTERS.items())))
@click.argument("wanted", metavar="[ID|FILE]...", nargs=-1, shell_complete=session_ids)
@options(json=False)
@click.option(
    "--format",
    "-f",
    "name",
    type=click.Choice(list(EXPORTERS)),
    default="json",
    show_default=True,
    metavar="FORMAT",
    help="One of the forms above.",
)
@click.option("--all", "everything", is_flag=True, help="All sessions that fit the other options.")
@click.option("--output", "-o", "target", default="-", show_default=True, help="A file, a folder, or - for stdout.")
@transcript_options
@click.option("--include", metavar="WHAT,…", help="What a form leaves out unless asked.")
@click.option("--split", type=click.IntRange(1), metavar="N", help="A file for every N prompts.")
@click.option("--semconv", type=click.Choice(["1.41", "dev"]), help="The version of OpenTelemetry's conventions.")
@redaction_options
@click.option("--follow", is_flag=True, help="Go on with what a running session adds, until Ctrl-C; for events.")
@click.option("--losses", "says_losses", is_flag=True, help="Say what the form could not hold.")
def command(
    scope: Scope,
    wanted: tuple[str, ...],
    *,
    name: str,
    everything: bool,
    target: str,
    follow: bool,
    says_losses: bool,
    asked: Asked,
    **given: Any,  # noqa: ANN401  the options that only some forms heed
) -> None:
    """Choose the sessions, and hand them over."""
    if not wanted and not everything:
        raise click.UsageError("Say which sessions: some ids, files, `latest`, or --all.")
    exporter = EXPORTERS[name]
    hidden = redaction(asked, is_for_others=exporter.is_for_others)
    job = _Job(name, exporter, _wanted(name, given), scope, hidden)
    if hidden.is_wanted and (follow or exporter.is_of_archive):
        raise click.UsageError(
            f"{'--follow' if follow else name} hands over all there is: leave --redact and --share out."
        )
    if exporter.is_of_archive:
        export_lake.check(scope, target)
    if follow:
        from pollux.cli.export_follow import follow_one

        follow_one(scope, wanted, name, target, lambda *one: job.subject(_Chosen(*one)), job.by_id)
        return
    job.chosen += _chosen(job, wanted, everything=everything)
    if not job.chosen:
        raise click.ClickException("No session fits; `pollux ls` lists what there is.")
    if asked.only_tries:
        _try_redaction(job)
        click.get_current_context().exit(output.say_problems(job.failed))
    job.problems += (problem for one in job.chosen for problem in one.session.problems)
    if exporter.is_of_archive:
        export_lake.write(scope, {one.session.id for one in job.chosen}, target)
    else:
        _hand_over(job, target, everything=everything)
    if job.empty:
        _say_empty(job)
    if says_losses:
        _say_losses(job)
    hidden.say()
    click.get_current_context().exit(output.say_problems([*job.failed, *job.problems]))


def _wanted(name: str, given: dict[str, Any]) -> Wanted:
    """Put the options together; one that means nothing for the form is a mistake."""
    from pollux.exports.source import Wanted
    from pollux.views.transcript import Branches, Detail

    said = {key: value for key, value in given.items() if value not in (None, ())}
    if ignored := [key for key in said if key not in EXPORTERS[name].heeds]:
        fitting = ", ".join(other for other, row in EXPORTERS.items() if ignored[0] in row.heeds)
        raise click.UsageError(f"--{ignored[0].replace('_', '-')} means nothing for {name}; it is for {fitting}.")
    for key, made in (("detail", Detail), ("branches", Branches), ("include", _words)):
        if key in said:
            said[key] = made(said[key])
    return Wanted(**said)


def _words(text: str) -> frozenset[str]:
    return frozenset(filter(None, map(str.strip, text.split(","))))


def _chosen(job: _Job, wanted: tuple[str, ...], *, everything: bool) -> Iterator[_Chosen]:
    """Yield the sessions meant, in the order asked for, and each once."""
    from pollux.sessions.locate import Located
    from pollux.sessions.reader import History

    scope, with_subagents = job.scope, job.exporter.with_subagents
    files = {one: named_file(one) for one in wanted}
    needs_history = everything or not all(files.values())
    found = scope.history() if needs_history else History(Located((), ()))
    job.by_id.update((one.id, one) for one in found.sessions)
    taken: set[str] = set()
    for one, file in files.items():
        chosen = _Chosen(*in_file(file)) if file else _Chosen(in_history(scope, found, one))
        if file or chosen.session.id not in taken:
            yield chosen
        taken.add(chosen.session.id)
        for child in _descendants(chosen.session, job.by_id) if with_subagents else ():
            if child.id not in taken:
                taken.add(child.id)
                yield _Chosen(child)
    if everything:
        job.problems += found.problems  # of files that may hold further ones
        yield from (_Chosen(one) for one in scope.sessions(found, everything=with_subagents) if one.id not in taken)


def _descendants(session: Session, by_id: dict[str, Session]) -> Iterator[Session]:
    """Yield the subagents of a session, and theirs."""
    for child in (by_id[id_] for id_ in session.children if id_ in by_id):
        yield child
        yield from _descendants(child, by_id)


def _hand_over(job: _Job, target: str, *, everything: bool) -> None:
    """Write to stdout, into one file, or into a folder, whichever is meant."""
    from pollux.library.export_folder import Place, write

    exporter = job.exporter
    if job.wanted.split and target == "-":
        raise click.UsageError("--split writes further files beside the first one: say where with `-o`.")
    if target == "-" and (len(job.chosen) == 1 or exporter.is_stream):
        output.write(_one_after_another(job))
        return
    path = Path(target)
    is_folder = (
        path.is_dir() or target.endswith(("/", os.sep)) or ((everything or len(job.chosen) > 1) and not path.suffix)
    )
    if is_folder and path.is_file():
        raise click.UsageError(f"{target} is a file: give a folder, as in `-o exports/`.")
    try:
        if target != "-" and is_folder:
            _to_folder(job, path)
        elif len(job.chosen) == 1:
            has_room = path.is_file() or not path.exists()  # beside a device or a pipe there is none
            place = Place(path.parent, path.name, []) if has_room else None
            with _reported(job, job.chosen[0].session, _ALL_ERRORS):
                write(path, job.rendered(job.chosen[0], place))
        elif exporter.is_stream and target != "-":
            write(path, _one_after_another(job))
        else:
            agents = sum(one.session.kind == "subagent" for one in job.chosen)
            whose = f" ({agents} of them {'subagents' if agents > 1 else 'a subagent'})" if agents else ""
            raise click.UsageError(
                f"{len(job.chosen)} sessions{whose} do not fit into one {exporter.suffix} file; "
                "give a folder: `-o exports/`."
            )
    except OSError as error:
        raise click.ClickException(
            f"{target} cannot be written: {error.strerror}; give another place with `-o`."
        ) from None
    n_given = len(job.chosen) - len(job.empty) - len(job.failed)
    if n_given and not is_folder and path.is_file():
        output.words(f"{_counted(n_given)} written to {target}")


def _one_after_another(job: _Job) -> Iterator[bytes]:
    """Yield all sessions; the piece that names the columns of a table comes once."""
    has_begun = False
    for one in job.chosen:
        with _reported(job, one.session, _ALL_ERRORS):
            for piece in islice(job.rendered(one), job.exporter.n_heads if has_begun else 0, None):
                has_begun = True
                yield piece


_ALL_ERRORS: frozenset[int] = frozenset(errno.errorcode)
_OF_THE_DISK = frozenset(
    {errno.ENOSPC, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE, getattr(errno, "EDQUOT", errno.ENOSPC)}
)
"""Errors that the next file of the same folder would meet too."""


@contextmanager
def _reported(job: _Job, session: Session | None, raised: frozenset[int]) -> Iterator[None]:
    """Turn an error that concerns one session alone into a problem, so that the others are written.

    Args:
        job: gets the problem.
        session: what is written; without one, a page that lists all.
        raised: the numbers of system errors that concern more than this.

    """
    from pollux.archive.failures import concerns_everybody
    from pollux.errors import PolluxError, UnreadableFileError
    from pollux.model import Problem
    from pollux.sessions.replay.reading import reason_of

    try:
        yield
    except (click.ClickException, click.Abort):
        raise
    except UnreadableFileError as error:  # gone since it was listed
        job.failed.append(Problem("unreadable-file", str(error)))
    except Exception as error:
        is_of_all = error.errno in raised if isinstance(error, OSError) else concerns_everybody(error)
        if is_of_all or (isinstance(error, PolluxError) and error.status != 1):
            raise
        reason = str(error) if isinstance(error, PolluxError) else reason_of(error)
        what = f"session {session.id}" if session else "the list of all sessions"
        file = str(session.files[0].path) if session and session.files else None
        job.failed.append(Problem("cannot-export", f"{what} could not be written as {job.name}: {reason}", file))


def _to_folder(job: _Job, folder: Path) -> None:
    from pollux.cli.output_guard import check_output
    from pollux.disk.private_files import make_private_folder
    from pollux.library import export_folder as folders

    check_output(folder)
    make_private_folder(folder)
    before = folders.remembered(folder)
    after, written, taken, n_same = dict(before), list[Written](), set[str](), 0
    contents = job.scope.contents()
    try:
        with progress("exporting") as tell:
            for number, one in enumerate(job.chosen, 1):
                name = folders.name_of(one.session, job.exporter.suffix, taken)
                family = (one.session, *_descendants(one.session, job.by_id))
                with _reported(job, one.session, _OF_THE_DISK):
                    mark = folders.fingerprint(job.made_by, family, contents)
                    if folders.is_unchanged(folder, name, before.get(name), mark):
                        n_same += 1
                    else:
                        after.pop(name, None)
                        place = folders.Place(folder, name, [], job.exporter.index_page)
                        folders.write(place.path, job.rendered(one, place))
                        after[name] = folders.Kept(mark, tuple(place.beside))
                        folders.tidy(place, before.get(name))
                    told, *agents = job.told(one, family)
                    written.append(Written(told, name, tuple(agents)))
                tell(number, len(job.chosen))
        with _reported(job, None, _OF_THE_DISK):
            _write_pages(job, folder, written, before, after)
    finally:
        same = f", {n_same} of them unchanged since" if n_same else ""
        output.words(f"{_counted(len(written))} written to {folder}{same}")
        folders.remember(folder, after)


def _write_pages(
    job: _Job, folder: Path, written: list[Written], before: Mapping[str, Kept], after: dict[str, Kept]
) -> None:
    """Write the pages that tell of all sessions in a folder."""
    from pollux.library import export_folder as folders

    for name, data in job.exporter.pages(written):
        if name not in before and (folder / name).exists():
            output.words(f"{folder / name} was not written by Pollux and stays as it is.")
            continue
        folders.write(folder / name, [data])
        after[name] = folders.Kept("page")


def _counted(number: int) -> str:
    return f"{number} session{'s' * (number != 1)}"


def _try_redaction(job: _Job) -> None:
    """Look for what would be replaced, and write nothing."""
    for one in job.chosen:
        with _reported(job, one.session, _ALL_ERRORS):
            waiting = [job.subject(one)]
            while waiting:
                subject = waiting.pop()
                for _ in subject.messages():
                    pass
                waiting += subject.children()
    print_findings(job.redaction.findings())
    job.redaction.say()


def _say_empty(job: _Job) -> None:
    """Say why there is nothing where something was wanted."""
    n_empty, n_all = len(job.empty), len(job.chosen)
    if n_all == 1:
        who = f"Session {job.empty[0].id} has"
    else:
        who = f"{n_empty} of {n_all} sessions {'have' if n_empty > 1 else 'has'}"
    output.words(f"{who} nothing for {job.name}: {job.exporter.lacks}.")


def _say_losses(job: _Job) -> None:
    if not job.losses:
        output.words(f"Nothing is lost in {job.name}.")
    for words, count in sorted(job.losses.items()):
        output.words(f"lost in {job.name}: {words}, {count:,} ×")
