"""Runs commands on a home of mutants in this process, under limits of time and memory that the system enforces."""

from __future__ import annotations

import io
import json
import resource
import signal
import sys
from pathlib import Path
from typing import Any

from tests import builders
from tests.fuzz.mutants import GOOD, GOOD_NAME, Mutant, good_session, mutant

from pollux.__main__ import main as pollux

SECONDS_A_COMMAND = 20
SECONDS = 120
MEMORY = 1500 << 20
FAILURES = ("cannot-derive", "cannot-archive", "cannot-export")
"""Problems that say that Pollux itself failed."""


class TooSlowError(BaseException):
    """A command takes too long; no `except Exception` may hold it."""


def _too_slow(*_: object) -> None:
    raise TooSlowError


def main() -> None:
    """Test the mutants of some seeds; each fault is one line of JSON on stdout, with the seed if it is known."""
    folder, form, seeds = Path(sys.argv[1]), sys.argv[2], [int(one) for one in sys.argv[3:]]
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGVTALRM, _too_slow)
    mutants = [mutant(seed) for seed in seeds]
    for one in mutants:
        builders.put(builders.chats(folder) / one.name, one.data)
    good = builders.put(builders.chats(folder) / GOOD_NAME, builders.log(*good_session()))
    stdout = sys.stdout
    for fault in _faults(folder, form, mutants, good):
        stdout.write(json.dumps(fault) + "\n")
    stdout.write(json.dumps("done") + "\n")
    stdout.flush()


def _faults(folder: Path, form: str, mutants: list[Mutant], good: Path) -> list[tuple[int | None, str]]:
    found: list[tuple[int | None, str]] = []
    by_name = {one.name: one.seed for one in mutants}

    def run(*args: str, seed: int | None = None) -> str:
        out, failure = _run(*args)
        if failure:
            found.append((seed, f"pollux {' '.join(args)}: {failure}"))
        return out

    run("sync")
    for source in ((), ("--no-archive",)):
        listed = _json(run("ls", "--all", "--json", *source))
        failures = [problem for problem in listed.get("problems", ()) if problem["code"] in FAILURES]
        found += [(by_name.get(Path(one["file"] or "").name), one["message"]) for one in failures]
        session: dict[str, Any] = next((one for one in listed.get("sessions", ()) if one["id"] == GOOD), {})
        shown = _json(run("show", GOOD, "--json", *source))
        counted = _json(run("usage", "--by", "session", "--json", *source))
        row: dict[str, Any] = next((one for one in counted.get("rows", ()) if one["key"] == GOOD), {})
        said = (
            (session.get("title"), session.get("calls"), session.get("tokens", {}).get("total")),
            [message["text"] for message in shown.get("timeline", ())],
            (row.get("calls"), row.get("tokens", {}).get("total")),
        )
        if said != (("What is the answer?", 2, 310), ["What is the answer?", "It is 42.", "Really."], (2, 310)):
            found.append((None, f"the good session is told wrongly: {said}"))
    for one in mutants:
        run("show", str(builders.chats(folder) / one.name), "--detail", "full", seed=one.seed)
    exported = folder / "out"
    errors = run("export", "--all", "--format", form, "-o", str(exported))
    if "could not be written" in errors or not [*exported.glob(f"*{GOOD}*")]:
        found.append((None, f"export --format {form}: {errors[-300:]}"))
    run("stats")
    if good.read_bytes() != builders.log(*good_session()):
        found.append((None, "the good file has changed"))
    return found


def _run(*args: str) -> tuple[str, str]:
    """Run a command; return what it wrote, and why it failed."""
    sys.argv = ["pollux", *args]
    out = io.BytesIO()
    sys.stdout = io.TextIOWrapper(out, "utf-8", errors="replace", write_through=True)
    sys.stderr = io.TextIOWrapper(io.BytesIO() if "--json" in args else out, "utf-8", write_through=True)
    failure = "it did not end"
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS_A_COMMAND)
    try:
        pollux()
    except SystemExit as end:
        failure = "" if end.code in (0, 1) else f"status {end.code}"
    except TooSlowError:
        failure = f"longer than {SECONDS_A_COMMAND} seconds"
    except Exception as error:  # noqa: BLE001  which a user would see as a traceback
        failure = f"{type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        sys.stdout.flush()
        sys.stderr.flush()
    return out.getvalue().decode("utf-8", "replace"), failure


def _json(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


if __name__ == "__main__":
    main()
