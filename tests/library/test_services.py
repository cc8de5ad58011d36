"""Service files say what they should, whatever the paths are called."""

from __future__ import annotations

import plistlib
import shutil
import subprocess
from pathlib import Path

import pytest

from pollux.library.services import LABEL, NAME, launchd, systemd

COMMAND = ("/opt/my apps/python", "-m", "pollux", "watch", "--home", '/home/a "b" 100%$x\\y')
ENVIRON = {"POLLUX_HOME": "/srv/a b:/srv/50%"}


def test_unit_runs_the_command(tmp_path: Path) -> None:
    service = systemd(COMMAND, ENVIRON, config=tmp_path)
    assert service.path == tmp_path / "systemd" / "user" / NAME
    assert service.links == (tmp_path / "systemd" / "user" / "default.target.wants" / NAME,)
    lines = service.text.splitlines()
    assert r'ExecStart="/opt/my apps/python" "-m" "pollux" "watch" "--home" "/home/a \"b\" 100%%$$x\\y"' in lines
    assert 'Environment="POLLUX_HOME=/srv/a b:/srv/50%%"' in lines
    assert "Restart=on-failure" in lines
    assert service.to_enable[-1] == f"systemctl --user enable --now {NAME}"
    assert service.to_disable[0] == f"systemctl --user stop {NAME}"


def test_unit_without_variables_has_none(tmp_path: Path) -> None:
    assert "Environment" not in systemd(COMMAND, {}, config=tmp_path).text


def test_unit_is_good_to_systemd(tmp_path: Path) -> None:
    checker = shutil.which("systemd-analyze")
    if not checker:
        pytest.skip("no systemd here")
    service = systemd(("/bin/true", "100%"), ENVIRON, config=tmp_path)
    service.path.parent.mkdir(parents=True)
    service.path.write_text(service.text, "utf-8")
    found = subprocess.run([checker, "--user", "verify", service.path], capture_output=True, text=True, check=False)
    assert NAME not in found.stderr


def test_agent_runs_the_command(tmp_path: Path) -> None:
    service = launchd(COMMAND, ENVIRON, user_home=tmp_path)
    assert service.path == tmp_path / "Library" / "LaunchAgents" / f"{LABEL}.plist"
    agent = plistlib.loads(service.text.encode())
    assert agent["ProgramArguments"] == [*COMMAND]
    assert agent["EnvironmentVariables"] == ENVIRON
    assert (agent["Label"], agent["RunAtLoad"], agent["KeepAlive"]) == (LABEL, True, {"SuccessfulExit": False})
    assert LABEL in service.to_disable[0]
    assert str(service.path) in service.to_enable[0]


def test_agent_without_variables_has_none(tmp_path: Path) -> None:
    assert "EnvironmentVariables" not in plistlib.loads(launchd(COMMAND, {}, user_home=tmp_path).text.encode())
