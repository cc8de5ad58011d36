"""The doctor's examination: what is where, and all that could not be read or is unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pollux.disk.regular_files import PROMPT_LOG, problem_of, read_side_file
from pollux.formats import prompts
from pollux.model import Problem
from pollux.reports.doctor import Diagnosis, Unknowns, look_into, lost
from pollux.sessions.reader import History, in_order
from pollux.sessions.replay.reading import cannot_derive, reason_of

if TYPE_CHECKING:
    from pollux.formats.prompts import LoggedPrompt
    from pollux.library.freshness import Reporter
    from pollux.library.snapshot import Snapshot
    from pollux.sessions.locate import Located


def examine(snapshot: Snapshot, report: Reporter) -> Diagnosis:
    """Return what was found, with everything that could not be read or is unknown."""
    sessions = in_order(snapshot.sessions.load(snapshot.ids))
    located = snapshot.located
    unknowns, failures = _unknowns(located, report)
    logged, log_problems = _logged_prompts(located)
    problems = [*snapshot.freshness.problems, *snapshot.sessions.problems(), *failures, *log_problems]
    for session in sessions:
        problems += session.problems
    problems = [*dict.fromkeys(problems)]
    return Diagnosis(History(located, sessions), unknowns, lost(logged, sessions, located.files), problems)


def _unknowns(located: Located, report: Reporter) -> tuple[Unknowns, list[Problem]]:
    """Return how often each name occurs that no table has, and the files whose reading raises an error."""
    unknowns = Unknowns()
    problems: list[Problem] = []
    files = list(located.files)
    n_bytes, done = sum(file.size for file in files), 0
    with report("examining") as progress:
        for file in files:
            try:
                look_into(file, unknowns)
            except OSError:
                continue  # the sessions report it
            except Exception as error:  # noqa: BLE001  reported; the other files must be examined
                problems.append(cannot_derive(file.path, reason_of(error)))
            finally:
                done += file.size
                progress(done, n_bytes)
    return unknowns, problems


def _logged_prompts(located: Located) -> tuple[list[LoggedPrompt], list[Problem]]:
    """Return what the client's logs say was typed, and what could not be read of them."""
    logged: list[LoggedPrompt] = []
    problems: list[Problem] = []
    for folder in located.folders:
        path = folder.logs
        if path is None:
            continue
        try:
            log = prompts.read(read_side_file(path, within=folder.home.tmp, limit=PROMPT_LOG))
        except OSError as error:
            problems.append(problem_of(error, path))
            continue
        except Exception as error:  # noqa: BLE001  reported; the other logs must be read
            problems.append(cannot_derive(path, reason_of(error)))
            continue
        logged += log.prompts
        problems += [Problem(problem.code, problem.message, str(path), problem.line) for problem in log.problems]
    return logged, problems
