"""Texts for the home of a million messages: source code, docs and translations of this machine, and invented logs.

Which texts there are depends on what is installed; which of them a session gets depends on the seed alone.
"""

from __future__ import annotations

import base64
import gettext
import gzip
import random
import re
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

MB = 1_000_000
_CODE_LIMIT, _PROSE_LIMIT, _MINIFIED_LIMIT = 400 * MB, 90 * MB, 20 * MB
_FILE_SIZES = range(400, 400_000)
_CODE_SUFFIXES = frozenset({".c", ".css", ".h", ".hpp", ".html", ".java", ".js", ".json", ".mjs", ".pl", ".pm", ".py"})
_MORE_CODE_SUFFIXES = frozenset({".pyi", ".rs", ".sh", ".sql", ".toml", ".ts", ".tsx", ".xml", ".yaml", ".yml"})
_PROSE_SUFFIXES = frozenset({".md", ".rst", ".txt"})
_SHARED = Path("/usr/share")
_LANGUAGES: Mapping[str, Sequence[str]] = {
    "chinese": ("zh_CN", "zh_TW"),
    "japanese": ("ja",),
    "korean": ("ko",),
    "other": ("th", "ru", "el", "ar", "he", "hi", "vi", "tr", "km", "my"),
}
_ROFF = re.compile(r'^[.\'].*$|\\f.|\\[&|/,]|\\s[-+]?\d|\\"[^\n]*', re.MULTILINE)
_PRINTABLE = range(32, 127)
_MINIFIED_LINE = 5_000
"""A file with a line of this many characters counts as minified."""


@dataclass(frozen=True, slots=True)
class Texts:
    """Pools of texts; a text is one file, or the translations of one program."""

    code: Sequence[str]
    prose: Sequence[str]
    minified: Sequence[str]
    languages: Mapping[str, Sequence[str]]
    """Texts that are not English, by language."""
    paths: Sequence[str]
    """Paths of the source files, relative to the folder that they were found in."""


def load_texts(build: Path) -> Texts:
    """Read the texts of this machine; `build` is a folder in which npm packages are installed."""
    roots = [path for path in (_stdlib(), build / "clients", build / "oracle", Path("/usr/include")) if path.is_dir()]
    pools: dict[str, list[str]] = {"code": [], "prose": [], "minified": []}
    limits = {"code": _CODE_LIMIT, "prose": _PROSE_LIMIT, "minified": _MINIFIED_LIMIT}
    paths: list[str] = []
    sizes = dict.fromkeys(pools, 0)
    for root, path in _unique_files(roots):
        text = _read(path)
        pool = _pool_of(path, text)
        if not text or sizes[pool] >= limits[pool]:
            continue
        pools[pool].append(text)
        sizes[pool] += len(text)
        if pool == "code":
            paths.append(path.relative_to(root).as_posix())
    pools["prose"] += _docs()
    languages = {name: _translations(codes) for name, codes in _LANGUAGES.items()}
    return Texts(pools["code"], pools["prose"], pools["minified"], languages, paths)


def chance(rng: random.Random, share: float) -> bool:
    """Return True in this share of all cases."""
    return rng.random() < share


def passage(rng: random.Random, texts: Sequence[str], n_chars: int) -> str:
    """Return about `n_chars` characters of one or more texts, from the start of a line."""
    pieces: list[str] = []
    missing = n_chars
    while missing > 0:
        text = texts[rng.randrange(len(texts))]
        start = text.rfind("\n", 0, rng.randrange(len(text))) + 1
        piece = text[start : start + missing]
        pieces.append(piece)
        missing -= len(piece) + 1
    return "\n".join(pieces)


def server_log(rng: random.Random, texts: Texts, n_chars: int) -> str:
    """Invent lines of a server's log."""
    hosts = [f"10.{rng.randrange(256)}.{rng.randrange(256)}.{rng.randrange(256)}" for _ in range(6)]
    seconds = rng.randrange(86_400)

    def line() -> str:
        nonlocal seconds
        seconds = (seconds + rng.randrange(40)) % 86_400
        clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{rng.randrange(1000):03}"
        level = rng.choice(("INFO", "INFO", "INFO", "DEBUG", "WARN", "ERROR"))
        module = Path(rng.choice(texts.paths)).stem
        event = rng.choice(_EVENTS)
        return (
            f"2026-{rng.randint(1, 11):02}-{rng.randint(1, 28):02}T{clock}Z {level} {module}: {event} "
            f"host={rng.choice(hosts)}:{rng.choice((80, 443, 5432, 6379, 8080))} request_id={rng.getrandbits(64):016x} "
            f"duration_ms={rng.randrange(9000)} status={rng.choice((200, 200, 201, 301, 404, 499, 500, 503))}"
        )

    return _filled(line, n_chars)


def traceback(rng: random.Random, texts: Texts, n_chars: int) -> str:
    """Invent tracebacks whose lines of code are real ones."""

    def block() -> str:
        lines = ["Traceback (most recent call last):"]
        for _ in range(rng.randint(2, 9)):
            path = rng.choice(texts.paths)
            source = passage(rng, texts.code, 90).split("\n", 1)[0].strip() or "pass"
            name = re.sub(r"\W+", "_", Path(path).stem)
            lines += [f'  File "/srv/app/{path}", line {rng.randint(1, 2000)}, in {name}', f"    {source}"]
        error, reason = rng.choice(_ERRORS)
        return "\n".join([*lines, f"{error}: {reason}", ""])

    return _filled(block, n_chars)


def lock_file(rng: random.Random, texts: Texts, n_chars: int) -> str:
    """Invent a lock file: names, versions, hashes."""

    def entry() -> str:
        name = re.sub(r"[^a-z0-9]+", "-", Path(rng.choice(texts.paths)).stem.lower()).strip("-") or "package"
        version = f"{rng.randrange(20)}.{rng.randrange(40)}.{rng.randrange(30)}"
        digest = base64.b64encode(rng.randbytes(64)).decode()
        return (
            f'    "node_modules/{name}": {{\n      "version": "{version}",\n'
            f'      "integrity": "sha512-{digest}",\n      "license": "MIT"\n    }},'
        )

    return _filled(entry, n_chars)


def base64_text(rng: random.Random, _texts: Texts, n_chars: int) -> str:
    """Encode random bytes, in one line or in lines of 76 characters."""
    data = rng.randbytes(n_chars * 3 // 4)
    return base64.encodebytes(data).decode() if chance(rng, 0.5) else base64.b64encode(data).decode()


def hex_dump(rng: random.Random, _texts: Texts, n_chars: int) -> str:
    """Write random bytes as `xxd` does."""
    offset = 0

    def line() -> str:
        nonlocal offset
        data = rng.randbytes(16)
        pairs = " ".join(data[n : n + 2].hex() for n in range(0, 16, 2))
        shown = "".join(chr(byte) if byte in _PRINTABLE else "." for byte in data)
        offset += 16
        return f"{offset - 16:08x}: {pairs}  {shown}"

    return _filled(line, n_chars)


def minified(rng: random.Random, texts: Texts, n_chars: int) -> str:
    """Cut a piece out of a minified file."""
    pool = texts.minified or texts.code
    text = pool[rng.randrange(len(pool))]
    start = rng.randrange(max(1, len(text) - n_chars))
    return text[start : start + n_chars]


_EVENTS = (
    *("connection accepted", "connection timed out", "retrying after backoff", "cache miss", "cache hit"),
    *("token expired", "query finished", "upstream closed the stream", "worker restarted", "job queued"),
    *("migration applied", "lock acquired", "lock released", "rate limit exceeded", "health check passed"),
)
_ERRORS = (
    ("ConnectionRefusedError", "[Errno 111] Connection refused"),
    ("KeyError", "'session_id'"),
    ("TypeError", "unsupported operand type(s) for +: 'int' and 'NoneType'"),
    ("sqlite3.OperationalError", "database is locked"),
    ("TimeoutError", "The read operation timed out"),
    ("UnicodeDecodeError", "'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"),
    ("AssertionError", "assert 503 == 200"),
    ("ModuleNotFoundError", "No module named 'yaml'"),
)


def _filled(line: Callable[[], str], n_chars: int) -> str:
    lines: list[str] = []
    n_written = 0
    while n_written < n_chars:
        lines.append(line())
        n_written += len(lines[-1]) + 1
    return "\n".join(lines)


def _stdlib() -> Path:
    """Return the interpreter's library; its site-packages are below it."""
    return Path(sysconfig.get_path("stdlib", vars={"installed_base": sys.base_prefix}))


def _unique_files(roots: Iterable[Path]) -> Iterator[tuple[Path, Path]]:
    """Yield root and path of each text file; of files with the same name and size only the first."""
    seen: set[tuple[str, int]] = set()
    suffixes = _CODE_SUFFIXES | _MORE_CODE_SUFFIXES | _PROSE_SUFFIXES
    for root in roots:
        for path in sorted(path for path in root.rglob("*") if path.suffix in suffixes):
            size = path.stat().st_size if path.is_file() else 0
            if size in _FILE_SIZES and (path.name, size) not in seen:
                seen.add((path.name, size))
                yield root, path


def _pool_of(path: Path, text: str) -> str:
    if path.suffix in _PROSE_SUFFIXES:
        return "prose"
    is_minified = path.suffix in {".css", ".js", ".mjs"} and len(max(text.splitlines(), key=len, default="")) > (
        _MINIFIED_LINE
    )
    return "minified" if is_minified else "code"


def _read(path: Path) -> str:
    """Return the text of a file; an empty one if it is not UTF-8."""
    try:
        return path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _docs() -> Iterator[str]:
    """Yield man pages in English, and what packages say about themselves."""
    paths = [*_SHARED.glob("man/man*/*.gz"), *_SHARED.glob("doc/*/*"), *_SHARED.glob("doc/*/*/*.txt*")]
    for path in sorted(paths):
        if path.is_file() and path.stat().st_size in _FILE_SIZES:
            yield from _plain(path)


def _plain(path: Path) -> Iterator[str]:
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        text = data.decode()
    except (OSError, EOFError, UnicodeDecodeError):
        return
    text = _ROFF.sub("", text).replace("\\-", "-")
    text = re.sub(r"\n{2,}", "\n\n", text).strip()
    if len(text) >= _FILE_SIZES.start:
        yield text


def _translations(codes: Iterable[str]) -> list[str]:
    """Return man pages and the messages of programs in some languages."""
    texts: list[str] = []
    for code in codes:
        for path in sorted(_SHARED.glob(f"man/{code}/man*/*.gz")):
            texts += _plain(path)
        for path in sorted(_SHARED.glob(f"locale/{code}/LC_MESSAGES/*.mo")):
            texts += _messages(path)
    return texts


def _messages(path: Path) -> Iterator[str]:
    try:
        with path.open("rb") as file:
            catalog: dict[object, str] = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]  # noqa: SLF001
    except (OSError, ValueError):
        return
    text = "\n".join(message for key, message in catalog.items() if key and message)
    if len(text) >= _FILE_SIZES.start:
        yield text
