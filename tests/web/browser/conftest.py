from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.web.browser.driving import Browser, BrowserTab, launched, why_not
from tests.web.browser.serving import Served, serving


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Start one Chromium for all tests of a worker."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
    with launched() as browser:
        yield browser


@pytest.fixture(scope="module")
def served(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Serve the demo's sessions."""
    assert browser is not None
    with serving(tmp_path_factory.mktemp("served")) as served:
        yield served


@pytest.fixture
def tab(browser: Browser, served: Served) -> Iterator[BrowserTab]:
    """Open a signed-in tab, in which nothing may go wrong."""
    with served.tab(browser) as tab:
        yield tab
        tab.check_quiet()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return where a download goes."""
    return tmp_path / "download"
