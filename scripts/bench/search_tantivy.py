"""Index the texts of a home with tantivy, and search them; run by an interpreter with tantivy and without Pollux.

    search_tantivy.py build HOME INDEX        index every part of every message
    search_tantivy.py search INDEX QUERIES    print the seconds of each query as JSON

A part is a document. Queries are tantivy's own: words with AND, phrases, and what `QUERIES` calls prefixes is left out.
"""

from __future__ import annotations

import importlib
import json
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_HEAP = 128_000_000
_SHOWN = 20


def main() -> None:
    """Run one of the two."""
    if sys.argv[1] == "build":
        build(Path(sys.argv[2]), Path(sys.argv[3]))
    else:
        queries = json.loads(Path(sys.argv[3]).read_bytes())
        print(json.dumps([seconds_of(query) for query in opened(Path(sys.argv[2]), queries)]))


def build(home: Path, place: Path) -> None:
    """Write the index."""
    tantivy: Any = importlib.import_module("tantivy")
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    index = tantivy.Index(_schema(tantivy), path=str(place))
    writer = index.writer(_HEAP, 1)
    for path in session_files(home):
        for text in file_texts(path):
            writer.add_document(tantivy.Document(text=text))
    writer.commit()
    writer.wait_merging_threads()


def opened(place: Path, queries: list[str]) -> Iterator[tuple[Any, Any]]:
    """Yield a searcher and each query that tantivy can parse."""
    tantivy: Any = importlib.import_module("tantivy")
    index = tantivy.Index(_schema(tantivy), path=str(place))
    index.reload()
    searcher = index.searcher()
    for text in queries:
        yield searcher, index.parse_query(text, ["text"])


def seconds_of(opened_query: tuple[Any, Any]) -> float:
    """Return how long the best twenty documents take."""
    searcher, query = opened_query
    start = time.perf_counter()
    searcher.search(query, _SHOWN)
    return time.perf_counter() - start


def session_files(home: Path) -> list[Path]:
    """Return the session files of a home, oldest first."""
    return sorted(home.rglob("chats/*.json*"), key=lambda path: path.name)


def file_texts(path: Path) -> Iterator[str]:
    """Yield the text of every part of every message of a file."""
    data = path.read_bytes()
    if path.suffix == ".json":
        messages = json.loads(data)["messages"]
    else:
        messages = [json.loads(line) for line in data.split(b"\n")[1:] if line]
    for message in messages:
        yield from (text for text in message_texts(message) if text)


def message_texts(message: dict[str, Any]) -> Iterator[str]:
    """Yield the texts of one message, as the generator of the home wrote it; some may be empty."""
    content = message.get("content")
    yield content if isinstance(content, str) else " ".join(part.get("text", "") for part in content or ())
    yield " ".join(f"{thought['subject']} {thought['description']}" for thought in message.get("thoughts", ()))
    for call in message.get("toolCalls", ()):
        yield " ".join(str(value) for value in call["args"].values())
        yield call["result"][0]["functionResponse"]["response"]["output"]


def _schema(tantivy: Any) -> Any:  # noqa: ANN401  a module without types
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("text", stored=False, index_option="position")
    return builder.build()


if __name__ == "__main__":
    main()
