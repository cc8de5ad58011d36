"""The homes that are measured, and the truth about what was billed in them.

The large ones come from `../shared/gen_tree.py`, which says what it wrote; the small ones are those of our own tests.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from scripts.bench.billed import Billed

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "bench"
GENERATOR = ROOT.parent / "shared" / "gen_tree.py"
MB = 1_000_000
_AT = "2026-11-01T10:00:00.000Z"


@dataclass(frozen=True, slots=True)
class Tree:
    """A home: the folder in which `.gemini` is."""

    root: Path

    @property
    def files(self) -> list[Path]:
        """All session files."""
        return sorted(path for path in self.root.rglob("chats/**/*") if path.is_file())

    @property
    def bytes(self) -> int:
        """Return the size of the session files."""
        return sum(path.stat().st_size for path in self.files)

    @property
    def facts(self) -> str:
        """Say how large it is."""
        files = self.files
        return f"{len(files):,} file{'s' * (len(files) > 1)}, {sum(one.stat().st_size for one in files) / MB:,.0f} MB"

    def home_of(self, program: str) -> Path:
        """Return a program a home of its own with these files in it: what it stores never gets among them."""
        home = BUILD / "homes" / self.root.name / program
        home.mkdir(parents=True, exist_ok=True)
        link = home / ".gemini"
        if not link.is_symlink():
            link.symlink_to(self.root / ".gemini")
        return home


def generated(name: str, *options: str) -> Tree:
    """Build a tree, unless it is there as it was written."""
    root = BUILD / name
    if not GENERATOR.exists():
        sys.exit(f"{GENERATOR} is missing: the benchmark needs the folder beside the repository")
    if not (root / "truth.json").exists():
        print(f"building {name} …", file=sys.stderr)
        shutil.rmtree(root, ignore_errors=True)  # what was left unfinished
        command = [sys.executable, str(GENERATOR), "--out", str(root), "--seed", "7", *options]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return Tree(root)


def one_session(megabytes: int) -> Tree:
    """Write one very long session: prompts, answers and tool results, each with its own id."""
    root = BUILD / f"home-one-{megabytes}"
    file = root / ".gemini" / "tmp" / "big" / "chats" / "session-2026-11-01T10-00-b1900000.jsonl"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        unfinished = BUILD / "unfinished"
        with unfinished.open("w", encoding="utf-8") as out:
            head = {"sessionId": "b1900000-0000-4000-8000-000000000000", "projectHash": "0" * 64, "startTime": _AT}
            out.write(json.dumps({**head, "lastUpdated": _AT, "kind": "main"}) + "\n")
            number = 0
            while out.tell() < megabytes * MB:
                number += 1
                out.writelines(json.dumps(record) + "\n" for record in _turn(number))
        unfinished.rename(file)
    return Tree(root)


def _turn(number: int) -> list[dict[str, object]]:
    text = "the quick brown fox reads line after line of a very long log file\n" * 300
    call_id = f"read_file-{number}"
    part = {"functionResponse": {"id": call_id, "name": "read_file", "response": {"output": text}}}
    call = {"id": call_id, "name": "read_file", "args": {"file_path": "a.log"}, "result": [part], "status": "success"}
    return [
        {"id": f"u{number}", "timestamp": _AT, "type": "user", "content": [{"text": f"Question {number}"}]},
        _answer(f"g{number}"),
        _answer(f"g{number}") | {"toolCalls": [call]},
        {"id": f"r{number}", "timestamp": _AT, "type": "user", "content": [part]},
    ]


def _answer(id_: str) -> dict[str, object]:
    tokens = {"input": 9000, "output": 20, "cached": 0, "thoughts": 0, "tool": 0, "total": 9020}
    return {"id": id_, "timestamp": _AT, "type": "gemini", "content": "", "model": "gemini-2.5-pro", "tokens": tokens}


class Growing:
    """The largest log of a tree, which grows by a turn again and again, and is what it was in the end."""

    def __init__(self, tree: Tree) -> None:
        """Keep in mind how long it is."""
        logs = [path for path in tree.files if path.name.startswith("session-") and path.suffix == ".jsonl"]
        self.log = max(logs, key=lambda path: path.stat().st_size)
        self.size = self.log.stat().st_size
        self._place = BUILD / f"{tree.root.name}.grown"
        if self._place.exists():  # the last run was ended before it could put things right
            self.size = int(self._place.read_text("ascii"))
            self.restore()

    def grow(self) -> None:
        """Add a question and its answer."""
        self._place.write_text(str(self.size), "ascii")
        number = time.time_ns()
        question = {"id": f"u{number}", "timestamp": _AT, "type": "user", "content": "more"}
        with self.log.open("a", encoding="utf-8") as out:
            out.writelines(json.dumps(one) + "\n" for one in (question, _answer(f"g{number}")))

    def restore(self) -> None:
        """Cut off what was added."""
        os.truncate(self.log, self.size)
        self._place.unlink(missing_ok=True)


def truth(tree: Tree) -> Billed:
    """Say what was billed: tokens as the generator wrote them, dollars as genai-prices makes of each call."""
    told = json.loads((tree.root / "truth.json").read_bytes())["billed"]
    stored = BUILD / f"{tree.root.name}.dollars"
    if not stored.exists():
        stored.write_text(str(_dollars(tree.files)), "ascii")
    return Billed.of_counts(told, float(stored.read_text("ascii")))


def _dollars(files: Sequence[Path]) -> Decimal:
    """Price every message once, read in the simplest way."""
    genai_prices = importlib.import_module("genai_prices")
    found = {message["id"]: message for path in files for message in _messages(path) if message.get("tokens")}
    return sum((_price(genai_prices, message) for message in found.values()), Decimal(0))


def _messages(path: Path) -> Iterator[dict[str, Any]]:
    if path.suffix == ".json":
        yield from json.loads(path.read_bytes())["messages"]
        return
    for line in path.read_bytes().splitlines():
        if b'"tokens":{' in line and line.endswith(b"}"):
            record = json.loads(line)
            yield from record.get("$set", {}).get("messages", [record])


def _price(genai_prices: Any, message: dict[str, Any]) -> Decimal:  # noqa: ANN401  a module without types
    one = message["tokens"]
    usage = genai_prices.Usage(
        input_tokens=one["input"] + one["tool"],
        cache_read_tokens=one["cached"],
        output_tokens=one["output"] + one["thoughts"],
    )
    at = datetime.fromisoformat(message["timestamp"])
    priced = genai_prices.calc_price(usage, message["model"], provider_id="google", genai_request_timestamp=at)
    assert isinstance(priced.total_price, Decimal)
    return priced.total_price
