"""Times of all pages are in one zone, that of `--timezone`, which the footer names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from starlette.testclient import TestClient
from tests.web.viewing import LABEL, NOW

from pollux.library.config import DEMO_HOME, configure
from pollux.library.library import Library
from pollux.web.app import create_app
from pollux.web.routing import Viewer
from pollux.web.times import day_and_clock, short_day

PAGES = ("", "sessions", "search?q=alerts", "projects", "files", "health", "usage?last=all")


@pytest.fixture(scope="module")
def tokyo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    archive = tmp_path_factory.mktemp("tokyo") / "archive.db"
    with Library(configure(named_homes=[DEMO_HOME], archive=archive, zone="Asia/Tokyo", clock=lambda: NOW)) as library:
        library.sync()
        yield TestClient(create_app(Viewer(library, LABEL, lambda: NOW)), base_url="http://127.0.0.1:2990")


@pytest.mark.parametrize("path", PAGES)
def test_pages_name_the_zone_and_write_its_times(tokyo: TestClient, path: str) -> None:
    text = tokyo.get(f"/{LABEL}/{path}").text
    assert "<span>Times in Asia/Tokyo</span>" in text
    assert 'data-zone="Asia/Tokyo"' in text
    times = re.findall(r'<time datetime="([^"]+)">([^<]+)</time>', text)
    assert times or path in {"health", "usage?last=all"}
    for stamp, words in times:
        assert stamp.endswith("+09:00")
        assert words.endswith(stamp[11:16])


def test_the_same_session_has_the_same_time_on_every_page(tokyo: TestClient) -> None:
    """It was last used on 14 November at 08:42 UTC."""
    for path in ("", "sessions", "search?q=id:0363a0b0", "projects"):
        assert "17:42" in tokyo.get(f"/{LABEL}/{path}").text, path


def test_words_of_a_time() -> None:
    now = datetime(2026, 11, 18, 12, tzinfo=UTC)
    assert day_and_clock(datetime(2026, 11, 18, 8, 42, tzinfo=UTC), now) == "Today, 08:42"
    assert day_and_clock(datetime(2026, 11, 17, 8, 42, tzinfo=UTC), now) == "Yesterday, 08:42"
    assert day_and_clock(datetime(2026, 11, 14, 8, 42, tzinfo=UTC), now) == "Saturday, 08:42"
    assert day_and_clock(datetime(2026, 11, 9, 6, 5, tzinfo=UTC), now) == "9 November, 06:05"
    assert day_and_clock(datetime(2025, 9, 18, 20, 14, tzinfo=UTC), now) == "18 September 2025, 20:14"
    assert short_day(datetime(2026, 11, 14, tzinfo=UTC), now) == "14 Nov"
    assert short_day(datetime(2025, 9, 18, tzinfo=UTC), now) == "18 Sep 2025"
