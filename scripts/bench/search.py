"""Measure `search` on a home of a million messages, next to ripgrep, tantivy and agentsview on the same home.

    python -m scripts.bench.search [--messages N] [STEP …]

A step stores its numbers beside the home, so that a step can be repeated alone; the page is written from all of them.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from scripts.bench.measure import Run, Work, timed, watched
from scripts.bench.peers import AGENTSVIEW, PEERS, POLLUX, Peer, install, offline, surroundings
from scripts.bench.search_home import TRUTH, write_home
from scripts.bench.search_numbers import MILLION, Built, SearchNumbers, Times, load_numbers, numbers_file
from scripts.bench.search_page import RIPGREP_VERSION, TANTIVY_VERSION, section
from scripts.bench.search_queries import BenchQuery, load_queries
from scripts.bench.sections import write_section
from scripts.bench.trees import BUILD, ROOT, Tree

_TANTIVY = f"tantivy=={TANTIVY_VERSION}"
_RIPGREP = Peer(
    name="ripgrep",
    version=RIPGREP_VERSION,
    npm=("@vscode/ripgrep-linux-x64@1.18.0",),
    program="node_modules/@vscode/ripgrep-linux-x64/bin/rg",
    commands=(("--hidden", "--no-ignore", "-j2", "-i", "-F", "-c"),),
    read=lambda _said: sys.exit("ripgrep prints no numbers of tokens"),
)
_INSIDE = "scripts.bench.search_inside"
_N_COMMANDS, _N_SCANS, _N_AGENTSVIEW = 40, 40, 15


class Bench:
    """The home, its queries, and the numbers so far."""

    def __init__(self, n_messages: int) -> None:
        """Write the home unless it is there, and read the numbers of earlier runs."""
        self.root = write_home(BUILD / f"home-search-{n_messages}", n_messages)
        self.tree = Tree(self.root)
        self.queries = load_queries(self.root)
        self.place = numbers_file(n_messages)
        self.numbers = self._stored(n_messages)

    def _stored(self, n_messages: int) -> SearchNumbers:
        if numbers := load_numbers(n_messages):
            return numbers
        truth = msgspec.json.decode((self.root / TRUTH).read_bytes())
        return SearchNumbers(n_messages, truth["sessions"], sum(truth["text_bytes"].values()), self.tree.bytes)

    def store(
        self,
        step: str,
        *,
        built: Mapping[str, Built] | None = None,
        times: Mapping[str, Times] | None = None,
        missing: Mapping[str, str] | None = None,
    ) -> None:
        """Replace the numbers of a step and write them to disk; another step may have stored its own meanwhile."""
        numbers = self._stored(self.numbers.n_messages)
        self.numbers = msgspec.structs.replace(
            numbers,
            built=numbers.built | dict(built or {}),
            times=numbers.times | dict(times or {}),
            missing={name: why for name, why in numbers.missing.items() if name != step} | dict(missing or {}),
            at=numbers.at | {step: f"{datetime.now(UTC):%Y-%m-%d %H:%M}"},
            load=numbers.load | {step: os.getloadavg()[0]},
        )
        self.place.write_bytes(msgspec.json.format(msgspec.json.encode(self.numbers), indent=1))

    def remark(self, sentence: str) -> None:
        """Store a sentence about this run."""
        self.numbers = msgspec.structs.replace(self.numbers, remark=sentence)
        self.place.write_bytes(msgspec.json.format(msgspec.json.encode(self.numbers), indent=1))

    def pollux(self, key: str, line: Sequence[str], before: Callable[[], None] | None = None) -> Work:
        """Return a command of Pollux on the home, with an archive of its own."""
        command = [*offline(), POLLUX.program, *line]
        return Work(key, key, [command], surroundings(self.tree.home_of("pollux")), before)

    @property
    def archive(self) -> Path:
        """The archive that the commands use."""
        return self.tree.home_of("pollux") / POLLUX.cache / "archive.db"


def main() -> None:
    """Run the steps that were named, or all, and print the page."""
    options = argparse.ArgumentParser(
        prog="python -m scripts.bench.search", formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__
    )
    options.add_argument("--messages", type=int, default=MILLION)
    options.add_argument("--page", action="store_true", help="put the section into BENCHMARKS.md")
    options.add_argument("--remark", help="store a sentence about the last run, and measure only the named steps")
    options.add_argument("steps", nargs="*", choices=[[], *STEPS], help="all of them unless some are named")
    arguments = options.parse_args()
    bench = Bench(arguments.messages)
    if arguments.remark is not None:
        bench.remark(arguments.remark)
    for name in arguments.steps or (STEPS if arguments.remark is None else ()):
        print(f"{name} …", file=sys.stderr)
        STEPS[name](bench)
    text = "".join(f"{line}\n" for line in section(bench.numbers))
    place = BUILD / f"search-{arguments.messages}.md"
    place.write_text(text, "utf-8")
    print(text, end="")
    print(f"written to {place.relative_to(ROOT)}", file=sys.stderr)
    if arguments.page:
        write_section(section(bench.numbers))


def _sync(bench: Bench) -> None:
    """Measure `sync` without the index."""
    _forget_archive(bench)
    bench.archive.parent.mkdir(parents=True, exist_ok=True)
    home = bench.tree.home_of("pollux")
    command = [sys.executable, "-m", "scripts.bench.search_sync", str(home), str(bench.archive)]
    environment = surroundings(home, {"PYTHONPATH": str(ROOT)})
    built = _built(Work("sync", "sync without the index", [command], environment))
    bench.store("sync", built={"sync": _sized(built, _files(bench.archive, "archive.db*"))})


def _index(bench: Bench) -> None:
    """Measure the index alone: a `sync` that finds nothing new to archive."""
    for file in bench.archive.parent.glob("archive.search.db*"):
        file.unlink()
    built = _built(bench.pollux("index", ("sync",)))
    bench.store("index", built={"index": _sized(built, _files(bench.archive, "archive.search.db*"))})


def _inside(bench: Bench) -> None:
    """Measure all queries inside one process: hits alone, and with snippets."""
    for how in ("hits", "snippets"):
        bench.store(how, times={how: _timed_inside(bench, how)})


def _hostile(bench: Bench) -> None:
    bench.store("hostile", times={"hostile": _timed_inside(bench, "hostile")})


def _turns(bench: Bench) -> None:
    bench.store("turns", times={"turns": _timed_inside(bench, "turns")})


def _commands(bench: Bench) -> None:
    queries = bench.queries[:_N_COMMANDS]
    runs = [timed(bench.pollux("command", ("search", "--", query.text))) for query in queries]
    kinds = [query.kind for query in queries]
    bench.store("commands", times={"commands": _times(runs, kinds)})


def _ripgrep(bench: Bench) -> None:
    if why := install(_RIPGREP):
        bench.store("ripgrep", missing={"ripgrep": why})
        return
    queries = [query for query in bench.queries if query.plain and "|" not in query.plain][:_N_SCANS]
    program = str(_RIPGREP.folder / _RIPGREP.program)
    runs = []
    for query in queries:
        command = [program, *_RIPGREP.commands[0], "-e", query.plain, str(bench.root / ".gemini")]
        runs.append(timed(Work("rg", "rg", [command], surroundings(bench.tree.home_of("ripgrep")))))
    bench.store("ripgrep", times={"ripgrep": _times(runs, [query.kind for query in queries])})


def _tantivy(bench: Bench) -> None:
    python, why = _interpreter_with(_TANTIVY)
    if why:
        bench.store("tantivy", missing={"tantivy": why})
        return
    script = str(Path(__file__).with_name("search_tantivy.py"))
    place = bench.tree.home_of("tantivy") / "index"
    environment = surroundings(bench.tree.home_of("tantivy"))
    built = _built(Work("tantivy", "tantivy", [[python, script, "build", str(bench.root), str(place)]], environment))
    asked = [query for query in bench.queries if _tantivy_query(query)]
    texts = bench.tree.home_of("tantivy") / "queries.json"
    texts.write_bytes(msgspec.json.encode([_tantivy_query(query) for query in asked]))
    command = [python, script, "search", str(place), str(texts)]
    ended = subprocess.run(command, check=True, capture_output=True, env=environment)
    seconds = msgspec.json.decode(ended.stdout, type=list[float])
    times = Times(seconds, [query.kind for query in asked])
    bench.store("tantivy", built={"tantivy": _sized(built, place.iterdir())}, times={"tantivy": times})


def _agentsview(bench: Bench) -> None:
    if why := install(AGENTSVIEW):
        bench.store("agentsview", missing={"agentsview": why})
        return
    home = bench.tree.home_of("agentsview")
    shutil.rmtree(home / AGENTSVIEW.cache, ignore_errors=True)
    environment = surroundings(home, AGENTSVIEW.environment)
    program = str(AGENTSVIEW.folder / AGENTSVIEW.program)
    built = _built(Work("agentsview", "agentsview", [[*offline(), program, "sync"]], environment))
    stored = [path for path in (home / AGENTSVIEW.cache).rglob("*") if path.is_file()]
    queries = [query for query in bench.queries if query.plain and "|" not in query.plain][:_N_AGENTSVIEW]
    texts = home / "queries.json"
    texts.write_bytes(msgspec.json.encode([query.plain for query in queries]))
    script = str(Path(__file__).with_name("search_agentsview.py"))
    times: dict[str, Times] = {}
    for name, flags in (("agentsview", ()), ("agentsview --fts", ("--fts",))):
        command = [*offline(), sys.executable, script, program, str(texts), *flags]
        ended = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=surroundings(home))
        runs = msgspec.json.decode(ended.stdout, type=list[tuple[float, bool]])
        n_failed = sum(not is_answered for _, is_answered in runs)
        times[name] = Times([seconds for seconds, _ in runs], [query.kind for query in queries], n_failed)
    bench.store("agentsview", built={"agentsview": _sized(built, stored)}, times=times)


STEPS: Mapping[str, Callable[[Bench], None]] = {
    "sync": _sync,
    "index": _index,
    "inside": _inside,
    "commands": _commands,
    "turns": _turns,
    "hostile": _hostile,
    "ripgrep": _ripgrep,
    "tantivy": _tantivy,
    "agentsview": _agentsview,
}


def _times(runs: Sequence[Run], kinds: list[str]) -> Times:
    n_failed = sum(run.is_failed for run in runs)
    return Times([run.wall for run in runs], kinds, n_failed, [run.cpu for run in runs])


def _timed_inside(bench: Bench, how: str) -> Times:
    """Run `search_inside` in a process of its own, so that no other step warms it up."""
    home = bench.tree.home_of("pollux")
    command = [sys.executable, "-m", _INSIDE, how, str(home), str(bench.archive), str(bench.root / "queries.json")]
    environment = surroundings(home, {"PYTHONPATH": str(ROOT)})
    ended = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment, cwd=ROOT)
    return msgspec.json.decode(ended.stdout, type=Times)


def _forget_archive(bench: Bench) -> None:
    for file in bench.archive.parent.glob("archive.*"):
        file.unlink()


def _built(work: Work) -> Built:
    run, peak = watched(work)
    if run.is_failed:
        sys.exit(f"{work.name} failed: {' '.join(work.commands[0])}")
    return Built(run.wall, run.cpu, peak.largest if peak else 0)


def _sized(built: Built, files: Iterable[Path]) -> Built:
    return msgspec.structs.replace(built, size=sum(path.stat().st_size for path in files))


def _files(archive: Path, pattern: str) -> list[Path]:
    return [*archive.parent.glob(pattern)]


def _interpreter_with(spec: str) -> tuple[str, str]:
    """Return an interpreter that has a package, and why there is none."""
    peer = replace(_RIPGREP, name="tantivy", npm=(), pip=(spec,), program="bin/python")
    why = install(peer)
    return str(PEERS / "tantivy" / "bin" / "python"), why


def _tantivy_query(query: BenchQuery) -> str:
    """Return a query in tantivy's language; empty if it has no such query."""
    if query.kind == "medium and common word":
        return " AND ".join(query.text.split())
    if query.kind in {"word and field", "word without another"} or query.kind.startswith("prefix"):
        return ""
    text = query.plain.replace("|", " OR ")
    return text if query.kind == "either word" else f'"{text}"'


if __name__ == "__main__":
    main()
