"""Write a Gemini home with any number of messages for the benchmark of `search`.

    python -m scripts.bench.search_home --messages 1000000 build/bench/home-search-1000000

The sessions of a small home are the first ones of a large home. `truth.json` is written last and tells the number of
messages and how many bytes of text each kind of part has.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import random
import shutil
import sys
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from scripts.bench import search_texts
from scripts.bench.search_texts import Texts, chance, load_texts, passage
from scripts.bench.trees import BUILD

Wire: TypeAlias = dict[str, Any]
SEED = 16
TRUTH = "truth.json"
_START = datetime(2025, 1, 1, tzinfo=UTC)
_MEAN_MESSAGES = 95
_MODELS = ("gemini-2.5-pro", "gemini-2.5-flash", "gemini-3-flash-preview", "gemini-3.1-pro-preview")
_PROJECTS = tuple(f"project-{number:02}" for number in range(40))
_SHARE_OF_LANGUAGES = 0.12
_LANGUAGE_WEIGHTS = {"chinese": 5, "japanese": 3, "korean": 2, "other": 2}
_ODD_OUTPUTS: Sequence[Callable[[random.Random, Texts, int], str]] = (
    search_texts.lock_file,
    search_texts.base64_text,
    search_texts.minified,
    search_texts.hex_dump,
)
_COMMANDS = (
    *("pytest -q {path}", "git diff {path}", "git log --oneline -n 20", "ls -la {folder}", "docker compose up -d"),
    *("npm run build", "cargo test --all", "rg -n '{word}' {folder}", "make lint", "sed -n '1,80p' {path}"),
    *("psql -c 'select count(*) from {word}'", "kubectl get pods -n {word}", "curl -s localhost:8080/{word}"),
)


@dataclass(slots=True)
class SessionWriter:
    """The messages of one session while it is written, and the bytes of text by kind of part."""

    rng: random.Random
    texts: Texts
    language: str | None
    at: datetime
    sizes: Counter[str] = field(default_factory=Counter)

    def prose(self, kind: str, shortest: int, longest: int) -> str:
        """Return a text of a human or of the model, in the session's language."""
        rng = self.rng
        n_chars = _log_uniform(rng, shortest, longest)
        if self.language and chance(rng, 0.9):
            text = passage(rng, self.texts.languages[self.language], max(4, n_chars // 2))
        else:
            text = passage(rng, self.texts.code if chance(rng, 0.1) else self.texts.prose, n_chars)
        return self.counted(kind, text)

    def counted(self, kind: str, text: str) -> str:
        """Return the text after adding its bytes to the sum of its kind."""
        self.sizes[kind] += len(text.encode())
        return text

    def head(self, kind: str) -> Wire:
        """Return the fields that every message has, some seconds after the last one."""
        self.at += timedelta(seconds=self.rng.randint(1, 90))
        return {"id": _uuid(self.rng), "timestamp": _written(self.at), "type": kind}


def main() -> None:
    """Parse the arguments and write the home, unless it is complete."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder", type=Path, help="the folder that gets a .gemini")
    options.add_argument("--messages", type=int, default=1_000_000)
    options.add_argument("--seed", type=int, default=SEED)
    options.add_argument("--packages", type=Path, default=BUILD.parent, help="a folder in which npm packages are")
    arguments = options.parse_args()
    write_home(arguments.folder, arguments.messages, seed=arguments.seed, packages=arguments.packages)


def write_home(
    folder: Path, n_messages: int, *, seed: int = SEED, packages: Path = BUILD.parent, texts: Texts | None = None
) -> Path:
    """Write a home with this many messages, unless there is one; return its folder."""
    if (folder / TRUTH).exists():
        return folder
    print(f"writing a home of {n_messages:,} messages …", file=sys.stderr)
    shutil.rmtree(folder, ignore_errors=True)
    temporary = folder / ".gemini" / "tmp"
    for project in _PROJECTS:
        (temporary / project / "chats").mkdir(parents=True)
        (temporary / project / ".project_root").write_text(_root_of(project), "utf-8")
    sizes: Counter[str] = Counter()
    n_sessions, n_missing = 0, n_messages
    texts = texts or load_texts(packages)
    while n_missing > 0:
        n_written = write_session(temporary, texts, n_sessions, seed, sizes, limit=n_missing)
        n_missing -= n_written
        n_sessions += 1
    truth = {"messages": n_messages, "sessions": n_sessions, "seed": seed, "text_bytes": dict(sizes)}
    (folder / TRUTH).write_text(json.dumps(truth, indent=1, sort_keys=True), "utf-8")
    return folder


def write_session(temporary: Path, texts: Texts, number: int, seed: int, sizes: Counter[str], *, limit: int) -> int:
    """Write one session of at most `limit` messages and return how many it has."""
    rng = random.Random(f"{seed}/{number}")  # noqa: S311  repeatable by intention
    n_messages = min(limit, max(2, round(rng.lognormvariate(math.log(_MEAN_MESSAGES) - 0.5, 1.0))))
    language = None
    if chance(rng, _SHARE_OF_LANGUAGES):
        names = [name for name in _LANGUAGE_WEIGHTS if texts.languages[name]]
        language = rng.choices(names, [_LANGUAGE_WEIGHTS[name] for name in names])[0] if names else None
    start = _START + timedelta(minutes=90 * number + rng.randint(0, 60))
    writer = SessionWriter(rng, texts, language, start)
    project, session_id = rng.choice(_PROJECTS), _uuid(rng)
    messages = _messages(writer, n_messages)
    header = {
        "sessionId": session_id,
        "projectHash": hashlib.sha256(_root_of(project).encode()).hexdigest(),
        "startTime": _written(start),
        "lastUpdated": messages[-1]["timestamp"],
    }
    stem = temporary / project / "chats" / f"session-{start:%Y-%m-%dT%H-%M}-{session_id[:8]}"
    if chance(rng, 0.25):
        data = msgspec.json.format(msgspec.json.encode(header | {"messages": messages}), indent=2)
        stem.with_suffix(".json").write_bytes(data)
    else:
        records = [header | {"kind": "main"}, *messages]
        stem.with_suffix(".jsonl").write_bytes(b"".join(msgspec.json.encode(record) + b"\n" for record in records))
    sizes.update(writer.sizes)
    return len(messages)


def _messages(writer: SessionWriter, n_messages: int) -> list[Wire]:
    rng = writer.rng
    messages = [_prompt(writer)]
    while len(messages) < n_messages:
        write = rng.choices((_prompt, _notice, _answer), (11, 1, 88))[0]
        messages.append(write(writer))
    return messages


def _notice(writer: SessionWriter) -> Wire:
    kind = writer.rng.choice(("info", "warning", "error"))
    return writer.head(kind) | {"content": writer.prose("notice", 40, 500)}


def _prompt(writer: SessionWriter) -> Wire:
    return writer.head("user") | {"content": [{"text": writer.prose("prompt", 20, 750)}]}


def _answer(writer: SessionWriter) -> Wire:
    rng = writer.rng
    message = writer.head("gemini")
    message["content"] = writer.prose("answer", 30, 1900) if chance(rng, 0.36) else ""
    message["thoughts"] = [_thought(writer, message["timestamp"]) for _ in range(rng.choice((0, 1, 1, 2)))]
    n_output = rng.randint(20, 2000)
    n_input = rng.randint(9_000, 90_000)
    message["tokens"] = {"input": n_input, "output": n_output, "cached": 0, "thoughts": 0, "tool": 0}
    message["tokens"]["total"] = n_input + n_output
    message["model"] = rng.choice(_MODELS)
    if not message["content"] or chance(rng, 0.6):
        message["toolCalls"] = [_call(writer, message["timestamp"])]
    return message


def _thought(writer: SessionWriter, at: str) -> Wire:
    subject = " ".join(writer.prose("thoughts", 15, 50).split())
    return {"subject": subject, "description": writer.prose("thoughts", 30, 310), "timestamp": at}


def _call(writer: SessionWriter, at: str) -> Wire:
    rng = writer.rng
    name = rng.choices(list(_ARGUMENTS), [5, 4, 3, 2, 1])[0]
    args = _ARGUMENTS[name](writer)
    writer.sizes["args"] += len(" ".join(args.values()).encode())
    call_id = f"{name}-{rng.getrandbits(40):x}"
    status = rng.choices(("success", "error", "cancelled"), (94, 5, 1))[0]
    output = writer.counted("output", _output(writer, name))
    part = {"functionResponse": {"id": call_id, "name": name, "response": {"output": output}}}
    call = {"id": call_id, "name": name, "args": args, "result": [part], "status": status, "timestamp": at}
    return call | {"displayName": name, "description": ""}


def _output(writer: SessionWriter, name: str) -> str:
    rng, texts = writer.rng, writer.texts
    if name in {"replace", "write_file"} and chance(rng, 0.8):
        return f"Successfully modified file: {rng.choice(texts.paths)} (1 replacements)."
    kind = rng.choices(("odd", "giant", "log", "traceback", "code"), (30, 3, 80, 50, 837))[0]
    n_chars = _log_uniform(rng, 30, 4_200)
    if kind == "odd":
        return rng.choice(_ODD_OUTPUTS)(rng, texts, _log_uniform(rng, 500, 20_000))
    if kind == "giant":
        return passage(rng, texts.code, _log_uniform(rng, 20_000, 300_000))
    if kind == "log":
        return search_texts.server_log(rng, texts, n_chars)
    if kind == "traceback":
        return search_texts.traceback(rng, texts, n_chars)
    if writer.language and chance(rng, 0.2):
        return passage(rng, texts.languages[writer.language], n_chars // 2 + 1)
    return passage(rng, texts.code, n_chars)


def _read_file(writer: SessionWriter) -> dict[str, str]:
    return {"file_path": writer.rng.choice(writer.texts.paths)}


def _shell(writer: SessionWriter) -> dict[str, str]:
    path = writer.rng.choice(writer.texts.paths)
    fields = {"path": path, "folder": str(Path(path).parent), "word": Path(path).stem}
    return {"command": writer.rng.choice(_COMMANDS).format(**fields), "description": f"Look at {fields['word']}"}


def _grep(writer: SessionWriter) -> dict[str, str]:
    path = writer.rng.choice(writer.texts.paths)
    return {"pattern": f"def {Path(path).stem}", "dir_path": str(Path(path).parent)}


def _replace(writer: SessionWriter) -> dict[str, str]:
    rng = writer.rng
    texts = [passage(rng, writer.texts.code, _log_uniform(rng, 40, 1_250)) for _ in range(2)]
    return {"file_path": rng.choice(writer.texts.paths), "old_string": texts[0], "new_string": texts[1]}


def _write_file(writer: SessionWriter) -> dict[str, str]:
    content = passage(writer.rng, writer.texts.code, _log_uniform(writer.rng, 100, 3_300))
    return {"file_path": writer.rng.choice(writer.texts.paths), "content": content}


_ARGUMENTS: Mapping[str, Callable[[SessionWriter], dict[str, str]]] = {
    "read_file": _read_file,
    "run_shell_command": _shell,
    "grep_search": _grep,
    "replace": _replace,
    "write_file": _write_file,
}


def _log_uniform(rng: random.Random, shortest: int, longest: int) -> int:
    return round(math.exp(rng.uniform(math.log(shortest), math.log(longest))))


def _uuid(rng: random.Random) -> str:
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))


def _written(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%S}.000Z"


def _root_of(project: str) -> str:
    return f"/home/dev/{project}"


if __name__ == "__main__":
    main()
