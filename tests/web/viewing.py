"""A viewer on the demo or on invented sessions, and its pages read as HTML."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from starlette.testclient import TestClient
from tests.exports.reader import Page

from pollux.library.config import DEMO_HOME, configure
from pollux.library.library import Library
from pollux.web.app import create_app
from pollux.web.routing import Viewer

LABEL = "abcdefghij"
NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)
SESSION = "602c50c2"
"""A session of the demo with a rewound and a rolled back branch, a diff and a failed call."""


def now() -> datetime:
    return NOW


@contextmanager
def viewing(folder: Path, homes: Sequence[Path] = (DEMO_HOME,)) -> Iterator[Viewed]:
    """Yield a client of a viewer whose archive is in a folder."""
    config = configure(named_homes=homes, archive=folder / "archive.db", clock=now)
    with Library(config) as library:
        library.sync()
        app = create_app(Viewer(library, LABEL, now))
        client = TestClient(app, base_url="http://127.0.0.1:2990", follow_redirects=False)
        viewed = Viewed(client, library, app)
        try:
            yield viewed
        finally:
            if hasattr(app.state, "open_sessions"):
                app.state.open_sessions.close()
            client.close()


class Viewed:
    """A client of a viewer."""

    def __init__(self, client: TestClient, library: Library, app: Any) -> None:  # noqa: ANN401  Starlette's
        self.client, self.library, self.app = client, library, app

    def get(self, path: str, status: int = 200, **query: str | int) -> str:
        """Return the body of an answer, which must have a status."""
        answer = self.answer(path, **query)
        assert answer.status_code == status, f"{path}: {answer.status_code}\n{answer.text[:2000]}"
        return str(answer.text)

    def answer(self, path: str, **query: str | int) -> Any:  # noqa: ANN401  httpx's
        """Return an answer."""
        return self.client.get(f"/{LABEL}/{path}", params=query or None)

    def page(self, path: str, status: int = 200, **query: str | int) -> Page:
        """Return an answer as HTML."""
        return Page(self.get(path, status, **query))

    def json(self, path: str, status: int = 200, **query: str | int) -> dict[str, Any]:
        """Return an answer as JSON."""
        value = msgspec.json.decode(self.get(path, status, **query))
        assert isinstance(value, dict)
        return value


def links(page: Page) -> list[str]:
    """Return the targets of the links of a page, without the label."""
    found = []
    for tag in page.named("a"):
        target = tag.attributes.get("href") or ""
        found.append(re.sub(f"^/{LABEL}/", "", target))
    return found
