"""Our folders are those that the library knows, also where it is not asked."""

from __future__ import annotations

import sys
from pathlib import Path

import platformdirs
import pytest

from pollux.library import config


@pytest.mark.parametrize("home", ["/home/someone", "/home/jemand ü", ""])
@pytest.mark.parametrize("said", [None, "", "  ", "/srv/data", "/srv/data/", "not/absolute", "~/mine", "/a b", "./x"])
def test_it_is_where_the_library_says(monkeypatch: pytest.MonkeyPatch, said: str | None, home: str) -> None:
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
        if said is not None:
            monkeypatch.setenv(name, said)
    monkeypatch.setenv("HOME", home)
    assert config.data_folder() == platformdirs.user_data_path("pollux", appauthor=False)
    assert config.config_folder() == platformdirs.user_config_path("pollux", appauthor=False)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems always ask the library")
def test_library_is_not_loaded_where_there_is_no_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "/srv/data")
    monkeypatch.setitem(sys.modules, "platformdirs", None)
    assert config.data_folder() == Path("/srv/data/pollux")


def test_tilde_in_the_archive_is_the_users_home() -> None:
    assert config.configure(archive=Path("~/x.db")).archive == Path.home() / "x.db"
    assert config.configure(environ={"POLLUX_ARCHIVE": "~/x.db"}).archive == Path.home() / "x.db"
