from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.web.client import Site, demo_site


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """Open a viewer of the demo's sessions; its archive is empty until a page reads it."""
    with demo_site(tmp_path / "archive.db") as site:
        yield site
