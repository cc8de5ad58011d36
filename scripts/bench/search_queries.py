"""Two hundred mixed queries, drawn from the texts of a home and never from an index."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

import msgspec
from scripts.bench.search_tantivy import file_texts, session_files

_SAMPLED_SESSIONS = 250
_COMMON, _MEDIUM = (0.04, 0.5), (0.002, 0.02)
"""Shares of the parts that hold a word."""
_WORD = re.compile(r"[A-Za-z]{3,20}")
_HAN = re.compile(r"[\u4e00-\u9fff\u3040-\u30ff\uac00-\ud7a3]{6,}")
_CAMEL = re.compile(r"\b[a-z]+(?:[A-Z][a-z]+){2,}\b")
_PATH = re.compile(r"\b[a-z_]+/[a-z_]+/[a-z_]+\.[a-z]{1,4}\b")


class BenchQuery(msgspec.Struct, frozen=True):
    """A query, the class that it stands for, and the text that ripgrep looks for instead."""

    kind: str
    text: str
    plain: str
    """Empty if one run of ripgrep cannot answer the query."""


@dataclass(frozen=True)
class Sample:
    """Parts of some sessions, and how many of them hold each word."""

    parts: Sequence[str]
    words: Mapping[str, int]
    sessions: Sequence[str]
    """The files that the parts are from."""

    @cached_property
    def common(self) -> list[str]:
        """Words of many parts."""
        return self._words_between(_COMMON)

    @cached_property
    def medium(self) -> list[str]:
        """Words of some parts."""
        return self._words_between(_MEDIUM)

    @cached_property
    def rare(self) -> list[str]:
        """Words of a single part."""
        return sorted(word for word, n_parts in self.words.items() if n_parts == 1)

    @cached_property
    def runs(self) -> list[str]:
        """Runs of Chinese, Japanese or Korean characters."""
        return self._matches(_HAN) or ["超时错误处理"]

    @cached_property
    def names(self) -> list[str]:
        """Identifiers of at least three humps."""
        return self._matches(_CAMEL)

    @cached_property
    def paths(self) -> list[str]:
        """Paths of files."""
        return self._matches(_PATH)

    def _words_between(self, shares: tuple[float, float]) -> list[str]:
        low, high = (share * len(self.parts) for share in shares)
        return sorted(word for word, n_parts in self.words.items() if low < n_parts <= high)

    def _matches(self, pattern: re.Pattern[str]) -> list[str]:
        return [match for part in self.parts for match in pattern.findall(part)]


Draw: TypeAlias = Callable[[Sample, random.Random], tuple[str, str]]
"""Returns a query, and the text that ripgrep looks for instead."""


def load_queries(home: Path, seed: int = 3) -> list[BenchQuery]:
    """Return the queries of a home; they are written beside it when they are drawn for the first time."""
    place = home / "queries.json"
    if not place.exists():
        queries = draw_queries(read_sample(home), random.Random(seed))  # noqa: S311  repeatable by intention
        place.write_bytes(msgspec.json.format(msgspec.json.encode(queries), indent=1))
    return msgspec.json.decode(place.read_bytes(), type=list[BenchQuery])


def read_sample(home: Path) -> Sample:
    """Read every n-th session of a home."""
    files = session_files(home)
    files = files[:: max(1, len(files) // _SAMPLED_SESSIONS)]
    parts: list[str] = []
    words: Counter[str] = Counter()
    for path in files:
        for text in file_texts(path):
            parts.append(text)
            words.update({word.lower() for word in _WORD.findall(text)})
    return Sample(parts, words, [path.as_posix() for path in files])


def draw_queries(sample: Sample, rng: random.Random) -> list[BenchQuery]:
    """Draw the queries of all classes, in a random order."""
    queries: list[BenchQuery] = []
    for kind, (n_queries, draw) in _CLASSES.items():
        for _ in range(n_queries):
            text, plain = draw(sample, rng)
            queries.append(BenchQuery(kind, text, plain))
    rng.shuffle(queries)
    return queries


def _common(sample: Sample, rng: random.Random) -> tuple[str, str]:
    word = rng.choice(sample.common)
    return word, word


def _medium(sample: Sample, rng: random.Random) -> tuple[str, str]:
    word = rng.choice(sample.medium)
    return word, word


def _rare(sample: Sample, rng: random.Random) -> tuple[str, str]:
    word = rng.choice(sample.rare)
    return word, word


def _two_words(sample: Sample, rng: random.Random) -> tuple[str, str]:
    return f"{rng.choice(sample.medium)} {rng.choice(sample.common)}", ""


def _phrase(sample: Sample, rng: random.Random) -> tuple[str, str]:
    while True:
        line = rng.choice(rng.choice(sample.parts).split("\n"))
        phrases = re.findall(r"[A-Za-z]+(?: [A-Za-z]+){2}", line)
        if phrases:
            phrase = rng.choice(phrases)
            return f'"{phrase}"', phrase


def _prefix_of(n_letters: int) -> Draw:
    def draw(sample: Sample, rng: random.Random) -> tuple[str, str]:
        word = rng.choice([word for word in sample.medium if len(word) > n_letters])
        return f"{word[:n_letters]}*", word[:n_letters]

    return draw


def _run_of(shortest: int, longest: int) -> Draw:
    def draw(sample: Sample, rng: random.Random) -> tuple[str, str]:
        run = rng.choice(sample.runs)
        start = rng.randrange(len(run) - longest)
        text = run[start : start + rng.randint(shortest, longest)]
        return text, text

    return draw


def _camel(sample: Sample, rng: random.Random) -> tuple[str, str]:
    humps = re.findall(r"[A-Z]?[a-z]+", rng.choice(sample.names))
    name = "".join(humps[:2])
    return name, name


def _path(sample: Sample, rng: random.Random) -> tuple[str, str]:
    path = rng.choice(sample.paths).partition("/")[2]
    return path, path


def _field(sample: Sample, rng: random.Random) -> tuple[str, str]:
    word = rng.choice(rng.choice((sample.common, sample.medium)))
    day = re.search(r"session-(\d{4}-\d{2})", rng.choice(sample.sessions))
    fields = [
        *("in:prompt", "in:answer", "in:args", "tool:read_file", "status:error", "model:gemini-2.5-pro", "role:user"),
        *(f"project:project-{rng.randrange(40):02}", f"on:{day[1] if day else '2025-02'}"),
    ]
    return f"{word} {rng.choice(fields)}", ""


def _without(sample: Sample, rng: random.Random) -> tuple[str, str]:
    return f"{rng.choice(sample.medium)} -{rng.choice(sample.common)}", ""


def _either(sample: Sample, rng: random.Random) -> tuple[str, str]:
    words = rng.sample(sample.medium, 2)
    return " OR ".join(words), "|".join(words)


_CLASSES: Mapping[str, tuple[int, Draw]] = {
    "common word": (20, _common),
    "medium word": (20, _medium),
    "rare word": (20, _rare),
    "medium and common word": (25, _two_words),
    "phrase of three words": (20, _phrase),
    "prefix of three letters": (10, _prefix_of(3)),
    "prefix of five letters": (15, _prefix_of(5)),
    "one CJK character": (5, _run_of(1, 1)),
    "two CJK characters": (10, _run_of(2, 2)),
    "three to five CJK characters": (10, _run_of(3, 5)),
    "camelCase": (10, _camel),
    "path": (10, _path),
    "word and field": (15, _field),
    "word without another": (5, _without),
    "either word": (5, _either),
}
