"""Each row of the table of export formats is complete and writes its media type."""

from __future__ import annotations

import csv
import io
import json

import cbor2
import pytest
from tests import builders

from pollux.cli.demo import HOME
from pollux.exports import EXPORTERS

FILE = next((HOME / ".gemini" / "tmp" / "skywatch" / "chats").glob("*f688da5c.jsonl"))
RENDERED = [name for name, row in EXPORTERS.items() if not row.reads_archive]


@pytest.mark.parametrize("name", RENDERED)
def test_row_is_complete_and_works(name: str) -> None:
    exporter = EXPORTERS[name]
    assert exporter.suffix.startswith(".")
    media_types = ("application/json", "application/cbor", "text/csv", "text/markdown", "text/html")
    assert exporter.media_type.startswith(media_types)
    assert exporter.summary
    data = b"".join(exporter.render(builders.subject(FILE)))
    if exporter.suffix == ".cbor":
        assert cbor2.loads(data)
        return
    assert data.endswith(b"\n") or name == "vac"  # whose bytes are signed
    if exporter.suffix == ".csv":
        assert len(list(csv.DictReader(io.StringIO(data.decode())))) == 2
        return
    if exporter.suffix in {".md", ".html"}:
        assert data.startswith((b"# ", b"<!doctype html>\n"))
        return
    for text in data.splitlines() if exporter.suffix == ".jsonl" else [data]:
        assert json.loads(text)


@pytest.mark.parametrize("name", RENDERED)
def test_same_session_gives_same_bytes(name: str) -> None:
    first, second = (b"".join(EXPORTERS[name].render(builders.subject(FILE))) for _ in range(2))
    assert first == second
