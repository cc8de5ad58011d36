"""Time searches inside one process: `search_inside.py hits|snippets|turns|hostile HOME ARCHIVE QUERIES`.

Prints `Times` as JSON. The archive has to be complete; `turns` lets sessions of the home grow, and restores them.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from unittest import mock

import msgspec
from scripts.bench.search_numbers import Times
from scripts.bench.search_queries import BenchQuery
from scripts.bench.trees import Tree
from tests.search.hostile import HOSTILE

from pollux.__main__ import GC_THRESHOLDS
from pollux.errors import PolluxError
from pollux.library.config import configure
from pollux.library.library import Library
from pollux.search.build import IndexBuilder
from pollux.search.candidates import Entry
from pollux.search.find import Finder, SessionMatch

_N_TURNS = 60


def main() -> None:
    """Open the library and run one of the measurements."""
    how, home, archive, queries = sys.argv[1], *map(Path, sys.argv[2:5])
    gc.set_threshold(*GC_THRESHOLDS)  # as a command does
    with Library(configure(named_homes=[home], archive=archive)) as library:
        library.search("warm")
        wanted = msgspec.json.decode(queries.read_bytes(), type=list[BenchQuery])
        times = MEASUREMENTS[how](library, wanted)
    sys.stdout.buffer.write(msgspec.json.encode(times))


def _snippets(library: Library, queries: list[BenchQuery]) -> Times:
    return _timed(library, [(query.kind, query.text) for query in queries])


def _hits(library: Library, queries: list[BenchQuery]) -> Times:
    """Leave out what reads texts: the best twenty sessions with their places."""
    with mock.patch.object(Finder, "_match", _unread), mock.patch.object(Finder, "_prepared"):
        return _snippets(library, queries)


def _unread(_finder: Finder, entry: Entry, *_deadline: object) -> SessionMatch:
    return SessionMatch(entry.session_id, (), len(entry.candidates), entry.scope, 0.0)


def _hostile(library: Library, _queries: list[BenchQuery]) -> Times:
    return _timed(library, [*HOSTILE.items()])


def _timed(library: Library, queries: Sequence[tuple[str, str]]) -> Times:
    seconds: list[float] = []
    cpu: list[float] = []
    n_failed = 0
    for _, query in queries:
        start, cpu_start = time.perf_counter(), time.process_time()
        try:
            library.search(query)
        except PolluxError:
            n_failed += 1
        seconds.append(time.perf_counter() - start)
        cpu.append(time.process_time() - cpu_start)
        if seconds[-1] > 1:
            print(f"{seconds[-1]:.2f} s: {query[:80]!r}", file=sys.stderr)
    return Times(seconds, [kind for kind, _ in queries], n_failed, cpu)


def _turns(library: Library, _queries: list[BenchQuery]) -> Times:
    """Let a session grow by a turn, derive its facts, and time the index alone; each time another session."""
    assert library.config.archive is not None
    tree = Tree(library.config.homes[0].root.resolve().parent)
    logs = [*_untouched(library, [path for path in tree.files if path.suffix == ".jsonl"])]
    seconds: list[float] = []
    cpu: list[float] = []
    with ExitStack() as until_the_end:
        builder = until_the_end.enter_context(closing(IndexBuilder(library.config.archive)))  # as `watch` does
        for log in logs[:: max(1, len(logs) // _N_TURNS)]:
            until_the_end.enter_context(_grown(log))
            library.refresh(quiet=True)
            with library.snapshot() as snapshot:
                start, cpu_start = time.perf_counter(), time.process_time()
                result = builder.build(snapshot.database)
                seconds.append(time.perf_counter() - start)
                cpu.append(time.process_time() - cpu_start)
                assert result.n_sessions == 1, result.reason
    library.sync()
    return Times(seconds, cpu=cpu)


def _untouched(library: Library, logs: Sequence[Path]) -> Iterator[Path]:
    """Yield the logs of which the archive has one version, as of every log that only grew.

    An earlier measurement that shortened its logs again has left a version of each, and opening a session reads all.
    """
    with library.snapshot() as snapshot:
        rows = snapshot.database.execute(
            "SELECT path FROM files JOIN versions ON versions.file_id = files.id GROUP BY files.id HAVING count(*) = 1"
        )
        single = {path for (path,) in rows}
    home = library.config.homes[0].root.resolve()
    for log in logs:
        if str(log.resolve().relative_to(home)) in single:
            yield log


@contextmanager
def _grown(log: Path) -> Iterator[None]:
    size = log.stat().st_size
    number = time.time_ns()
    question = {"id": f"u{number}", "timestamp": "2026-11-18T10:00:00.000Z", "type": "user", "content": "One more?"}
    answer = {"id": f"g{number}", "timestamp": "2026-11-18T10:00:01.000Z", "type": "gemini", "content": "Yes. " * 700}
    with log.open("a", encoding="utf-8") as out:
        out.writelines(json.dumps(record) + "\n" for record in (question, answer))
    try:
        yield
    finally:
        os.truncate(log, size)


MEASUREMENTS: Mapping[str, Callable[[Library, list[BenchQuery]], Times]] = {
    "hits": _hits,
    "snippets": _snippets,
    "turns": _turns,
    "hostile": _hostile,
}


if __name__ == "__main__":
    main()
