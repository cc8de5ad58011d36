"""Examine the homes: which files were found, and everything that is unreadable or unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pollux.disk.read import PROMPT_LOG, problem_of, read_side_file
from pollux.formats import prompts
from pollux.model import Problem
from pollux.reports.doctor import Diagnosis, Unknowns, inspect_file, sessions_only_in_log
from pollux.sessions.reader import History, sort_sessions
from pollux.sessions.replay.reading import cannot_derive, reason_of

if TYPE_CHECKING:
    from pollux.formats.prompts import LoggedPrompt
    from pollux.library.freshness import Reporter
    from pollux.library.snapshot import Snapshot
    from pollux.sessions.locate import HomeScan


def examine(snapshot: Snapshot, report: Reporter) -> Diagnosis:
    """Return the sessions of the homes, with everything that is unreadable or unknown."""
    sessions = sort_sessions(snapshot.sessions.load(snapshot.ids))
    located = snapshot.located
    unknowns, failures = _unknowns(located, report)
    logged, log_problems = logged_prompts(located)
    problems = [*snapshot.freshness.problems, *snapshot.sessions.problems(), *failures, *log_problems]
    for session in sessions:
        problems += session.problems
    problems = [*dict.fromkeys(problems)]
    return Diagnosis(
        History(located, sessions), unknowns, sessions_only_in_log(logged, sessions, located.files), problems
    )


def _unknowns(located: HomeScan, report: Reporter) -> tuple[Unknowns, list[Problem]]:
    """Return how often each unknown name occurs, and the files that Pollux fails to read."""
    unknowns = Unknowns()
    problems: list[Problem] = []
    files = list(located.files)
    n_bytes, done = sum(file.size for file in files), 0
    with report("examining") as progress:
        for file in files:
            try:
                inspect_file(file, unknowns)
            except OSError:
                continue  # the session reports it
            except Exception as error:  # noqa: BLE001  reported; the other files must be examined
                problems.append(cannot_derive(file.path, reason_of(error)))
            finally:
                done += file.size
                progress(done, n_bytes)
    return unknowns, problems


def logged_prompts(located: HomeScan) -> tuple[list[LoggedPrompt], list[Problem]]:
    """Return the prompts in the client's logs, and the problems of the logs."""
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
