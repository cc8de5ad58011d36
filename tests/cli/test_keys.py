"""`pollux keys` creates keys, prints their public half, and never overwrites one."""

from __future__ import annotations

import os
import sys
from io import StringIO
from pathlib import Path

import pytest
from tests.cli.running import Runner

from pollux.library.config import keys_folder
from pollux.proofs import keys, public


class _Person(StringIO):
    def isatty(self) -> bool:
        return True


def test_created_key_is_listed_and_shown(run: Runner) -> None:
    nothing = run("keys")
    assert (nothing.status, nothing.out) == (0, "")
    assert "Run `pollux keys create`" in nothing.err
    made = run("keys", "create")
    assert made.status == 0
    assert "is private" in made.err
    id_ = made.out.strip()
    assert run("keys", "list").out == f"default  yours              {id_}\n"
    assert run("keys", "show", "--format", "id").out == f"{id_}\n"
    folder = keys_folder()
    assert run("keys", "show").out.encode() == (folder / "default.pub").read_bytes()
    row = {"name": "default", "id": id_, "own": True, "passphrase": False, "error": None}
    assert run("keys", "--help").status == 0
    assert run("keys", "list", "--json").json == {"schema": "pollux.keys/1", "folder": str(folder), "keys": [row]}
    if os.name == "posix":
        assert ((folder / "default.pem").stat().st_mode & 0o777, folder.stat().st_mode & 0o777) == (0o600, 0o700)


def test_key_folder_can_be_changed(run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLLUX_KEYS", str(tmp_path / "k"))
    assert run("keys", "create", "work").status == 0
    assert sorted(one.name for one in (tmp_path / "k").iterdir()) == ["work.pem", "work.pub"]


def test_existing_key_is_not_overwritten(run: Runner) -> None:
    run("keys", "create")
    before = (keys_folder() / "default.pem").read_bytes()
    again = run("keys", "create")
    assert (again.status, "is not overwritten" in again.err) == (1, True)
    assert (keys_folder() / "default.pem").read_bytes() == before


def test_key_must_be_named_if_there_are_several(run: Runner) -> None:
    assert "No key 'default'" in run("keys", "show").err
    run("keys", "create", "one")
    assert run("keys", "show").status == 0, "the only one"
    run("keys", "create", "two")
    several = run("keys", "show")
    assert (several.status, "You have several keys: name one of one, two" in several.err) == (2, True)
    assert run("keys", "show", "two").status == 0
    assert run("keys", "show", str(keys_folder() / "two.pub")).status == 0
    run("keys", "create")
    assert run("keys", "show").status == 0, "the default one"
    assert "No key 'three'" in run("keys", "show", "three").err


def test_a_passphrase_is_asked_for_twice(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    said = iter(["open", "shut", "open sesame", "open sesame"])
    monkeypatch.setattr("click.termui.hidden_prompt_func", lambda _: next(said))
    monkeypatch.setattr(sys, "stdin", _Person())
    assert run("keys", "create", "--passphrase").status == 0
    assert keys.load_private_key(keys_folder() / "default.pem", lambda: b"open sesame")  # type: ignore[truthy-bool]
    assert "yours, passphrase" in run("keys").out


def test_passphrase_needs_a_terminal_or_variable(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", StringIO())
    refused = run("keys", "create", "--passphrase")
    assert (refused.status, "POLLUX_PASSPHRASE" in refused.err) == (2, True)
    monkeypatch.setenv("POLLUX_PASSPHRASE", "")
    assert "The passphrase is empty" in run("keys", "create", "--passphrase").err
    monkeypatch.setenv("POLLUX_PASSPHRASE", "open sesame")
    assert run("keys", "create", "--passphrase").status == 0


@pytest.mark.skipif(os.name != "posix", reason="modes of files are not the same here")
def test_readable_private_key_is_reported(run: Runner) -> None:
    run("keys", "create")
    (keys_folder() / "default.pem").chmod(0o644)
    listed = run("keys", "list")
    assert listed.status == 1
    assert "cannot be used" in listed.out
    assert "chmod 600" in listed.out


def test_invalid_key_file_is_reported(run: Runner) -> None:
    keys_folder().mkdir(parents=True)
    (keys_folder() / "odd.pub").write_text("hello")
    assert run("keys", "list").status == 1
    (keys_folder() / "bob.pub").write_bytes(public.PublicKey(bytes(32)).pem)
    assert "bob  someone else's" in run("keys", "list").out
    assert "holds no Ed25519 public key" in run("keys", "show", "odd").err
    assert [one["id"] is None for one in run("keys", "list", "--json").json["keys"]] == [False, True]


@pytest.mark.parametrize("name", ["../x", "a b", ""])
def test_unsafe_names_are_refused(run: Runner, name: str) -> None:
    assert (run("keys", "create", name).status, "cannot be the name" in run("keys", "create", name).err) == (1, True)


def test_a_cose_key_is_written_as_it_is(
    capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    from pollux.__main__ import main  # noqa: PLC0415  the fixture wants bytes

    for args in (["keys", "create"], ["keys", "show", "-f", "cose"]):
        monkeypatch.setattr(sys, "argv", ["pollux", *args])
        with pytest.raises(SystemExit):
            main()
        out = capfdbinary.readouterr().out
    assert out == public.read_public_key(keys_folder() / "default.pub").cose
