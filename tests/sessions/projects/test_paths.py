from __future__ import annotations

import pytest

from pollux.sessions.projects.paths import project_hash, slug

WEBAPP = "/home/alice/dev/webapp"
WINDOWS = "C:\\Users\\Alice\\Dev\\WebApp"


def test_project_hash_equals_that_of_the_client() -> None:
    path = "/tmp/corpus/home/carol/dev/webapp"  # noqa: S108  # where the corpus was made
    assert project_hash(path) == "8d46cd8ee49a82f63b11dc3dd3d68d5ba59f6ab5cf0bbc4eceedd1954c23904e"
    assert project_hash("/caf\udce9") == project_hash("/caf\ufffd")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (WEBAPP, "webapp"),
        (f"{WEBAPP}/", "webapp"),
        ("/home/alice/Büro Notizen", "b-ro-notizen"),
        ("/home/alice/--My__App--", "my-app"),
        ("/home/alice/日本語", "project"),
        ("/", "project"),
        (WINDOWS, "webapp"),
        ("C:\\", "project"),
    ],
)
def test_slug(path: str, expected: str) -> None:
    assert slug(path) == expected
