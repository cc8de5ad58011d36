"""The homes that are measured, and their true usage.

`../shared/gen_tree.py` generates large homes and records their usage; small homes come from our own tests.
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
    """A home: the folder that contains `.gemini`."""

    root: Path

    @property
    def files(self) -> list[Path]:
        """All session files."""
        return sorted(path for path in self.root.rglob("chats/**/*") if path.is_file())

    @property
    def bytes(self) -> int:
        """Return the size of all session files."""
        return sum(path.stat().st_size for path in self.files)

    @property
    def facts(self) -> str:
        """Return the number and size of the session files, in words."""
        files = self.files
        return f"{len(files):,} file{'s' * (len(files) > 1)}, {sum(path.stat().st_size for path in files) / MB:,.0f} MB"

    def home_of(self, program: str) -> Path:
        """Return a home for one program that links to these files, so that it stores its own data elsewhere."""
        home = BUILD / "homes" / self.root.name / program
        home.mkdir(parents=True, exist_ok=True)
        link = home / ".gemini"
        if not link.is_symlink():
            link.symlink_to(self.root / ".gemini")
        return home


def generated(name: str, *options: str) -> Tree:
    """Return a generated home, which is written first if it does not exist."""
    root = BUILD / name
    if not GENERATOR.exists():
        sys.exit(f"{GENERATOR} is missing: the benchmark needs the folder `shared` next to the repository")
    if not (root / "truth.json").exists():
        print(f"building {name} …", file=sys.stderr)
        shutil.rmtree(root, ignore_errors=True)  # an unfinished home
        command = [sys.executable, str(GENERATOR), "--out", str(root), "--seed", "7", *options]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return Tree(root)


def one_session(megabytes: int) -> Tree:
    """Return a home with one very long session of prompts, answers and tool results, each with its own ID."""
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
    """The largest log of a home; it can grow by a turn, and be restored to its first length."""

    def __init__(self, tree: Tree) -> None:
        """Store the length of the log."""
        logs = [path for path in tree.files if path.name.startswith("session-") and path.suffix == ".jsonl"]
        self.log = max(logs, key=lambda path: path.stat().st_size)
        self.size = self.log.stat().st_size
        self._place = BUILD / f"{tree.root.name}.grown"
        if self._place.exists():  # an earlier run ended before it restored the log
            self.size = int(self._place.read_text("ascii"))
            self.restore()

    def grow(self) -> None:
        """Append a question and its answer."""
        self._place.write_text(str(self.size), "ascii")
        number = time.time_ns()
        question = {"id": f"u{number}", "timestamp": _AT, "type": "user", "content": "more"}
        with self.log.open("a", encoding="utf-8") as out:
            out.writelines(json.dumps(record) + "\n" for record in (question, _answer(f"g{number}")))

    def restore(self) -> None:
        """Remove what was appended."""
        os.truncate(self.log, self.size)
        self._place.unlink(missing_ok=True)


def truth(tree: Tree) -> Billed:
    """Return the true usage: tokens from the generator, dollars from the price that genai-prices has for each call."""
    tokens = json.loads((tree.root / "truth.json").read_bytes())["billed"]
    stored = BUILD / f"{tree.root.name}.dollars"
    if not stored.exists():
        stored.write_text(str(_dollars(tree.files)), "ascii")
    return Billed.of_counts(tokens, float(stored.read_text("ascii")))


def _dollars(files: Sequence[Path]) -> Decimal:
    """Return the price of all messages, each of which counts once."""
    genai_prices = importlib.import_module("genai_prices")
    messages = {message["id"]: message for path in files for message in _messages(path) if message.get("tokens")}
    return sum((_price(genai_prices, message) for message in messages.values()), Decimal(0))


def _messages(path: Path) -> Iterator[dict[str, Any]]:
    if path.suffix == ".json":
        yield from json.loads(path.read_bytes())["messages"]
        return
    for line in path.read_bytes().splitlines():
        if b'"tokens":{' in line and line.endswith(b"}"):
            record = json.loads(line)
            yield from record.get("$set", {}).get("messages", [record])


def _price(genai_prices: Any, message: dict[str, Any]) -> Decimal:  # noqa: ANN401  a module without types
    tokens = message["tokens"]
    usage = genai_prices.Usage(
        input_tokens=tokens["input"] + tokens["tool"],
        cache_read_tokens=tokens["cached"],
        output_tokens=tokens["output"] + tokens["thoughts"],
    )
    at = datetime.fromisoformat(message["timestamp"])
    priced = genai_prices.calc_price(usage, message["model"], provider_id="google", genai_request_timestamp=at)
    assert isinstance(priced.total_price, Decimal)
    return priced.total_price
