"""On a terminal, `export` without `-o` writes a file named after the session; binary data never goes to a terminal."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests import builders
from tests.cli.running import Runner

NAME = "skywatch-2026-11-12-0363a0b0"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    targets: list[str] = []

    def launch(target: str) -> int:
        targets.append(target)
        return 0

    monkeypatch.setattr("click.launch", launch)
    monkeypatch.setattr("webbrowser.open", lambda target: launch(target) == 0)
    return targets


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.iterdir())


@pytest.mark.parametrize(("form", "suffix"), [("markdown", ".md"), ("html", ".html"), ("json", ".json")])
def test_terminal_gets_a_file_named_after_the_session(run: Runner, folder: Path, form: str, suffix: str) -> None:
    result = run("export", "0363a0b0", "-f", form, columns=80)
    assert (result.status, result.out) == (0, "")
    assert f"1 session written to {NAME}{suffix}" in result.err
    assert names(folder) == [f"{NAME}{suffix}"]


def test_pipe_gets_the_session(run: Runner, folder: Path) -> None:
    assert run("export", "0363a0b0", "-f", "markdown").out.startswith("# ")
    assert names(folder) == []


def test_dash_prints_to_the_terminal(run: Runner, folder: Path) -> None:
    assert run("export", "0363a0b0", "-f", "markdown", "-o", "-", columns=80).out.startswith("# ")
    assert names(folder) == []


def test_existing_file_is_not_replaced(run: Runner, folder: Path) -> None:
    (folder / f"{NAME}.md").write_text("my notes")
    assert f"{NAME}-2.md" in run("export", "0363a0b0", "-f", "md", columns=80).err
    assert (folder / f"{NAME}.md").read_text() == "my notes"


@pytest.mark.parametrize(
    ("args", "name"),
    [
        (("--all", "-f", "html"), "pollux-html"),
        (("@1", "@2", "-f", "json"), "pollux-json"),
        (("--all", "-f", "jsonl"), "pollux-jsonl.jsonl"),
        (("--all", "-f", "calls-csv"), "pollux-calls-csv.csv"),
        (("0363a0b0", "-f", "calls-csv"), f"{NAME}.csv"),
        (("--all", "-f", "parquet"), "pollux-parquet"),
    ],
)
def test_several_sessions_go_into_a_folder_or_one_table(
    run: Runner, folder: Path, args: tuple[str, ...], name: str
) -> None:
    result = run("export", *args, columns=80)
    assert name in result.err
    assert names(folder) == [name]


def test_folder_is_updated(run: Runner, folder: Path) -> None:
    run("export", "@1", "@2", columns=80)
    assert "2 of them unchanged" in run("export", "@1", "@2", columns=80).err
    assert names(folder) == ["pollux-json"]


def test_hostile_project_makes_a_harmless_name(run: Runner, folder: Path, tmp_path: Path) -> None:
    builders.put(
        tmp_path / "home/.gemini/tmp/..;rm -rf [b]~/chats" / f"{builders.NAME}.jsonl",
        builders.log(builders.header(), builders.user()),
    )
    assert run("export", "latest", "-f", "md", columns=80, home=tmp_path / "home").status == 0
    (name,) = names(folder)
    assert set(name) <= {*"abcdefghijklmnopqrstuvwxyz0123456789-_."}
    assert not name.startswith(("-", "."))


def test_split_writes_parts_beside_the_file(run: Runner, folder: Path) -> None:
    result = run("export", "0363a0b0", "-f", "md", "--split", "1", columns=80)
    assert result.status == 0
    assert f"{NAME}.md" in names(folder)
    assert len([*folder.rglob("part-*")]) >= 1


def test_split_into_a_pipe_says_what_to_do(run: Runner, folder: Path) -> None:
    result = run("export", "0363a0b0", "-f", "md", "--split", "1")
    assert (result.status, result.out) == (2, "")
    assert "--split writes several files, which a pipe cannot hold. Name a file or folder with `-o`" in result.err
    assert names(folder) == []


@pytest.mark.parametrize(
    "args",
    [
        ("export", "latest", "-f", "vac-cbor", "-o", "-"),
        ("record", "create", "latest", "-f", "cbor"),
        ("record", "sign", "--raw", "latest", "-o", "-"),
        ("archive", "seal", "-o", "-"),
        ("keys", "show", "--format", "cose"),
    ],
)
def test_binary_data_is_not_printed_on_a_terminal(run: Runner, folder: Path, args: tuple[str, ...]) -> None:
    run("keys", "create")
    result = run(*args, columns=80)
    assert (result.status, result.out) == (2, "")
    assert "is binary and is not printed on a terminal" in result.err
    assert names(folder) == []


@pytest.mark.parametrize("columns", [80, None])
def test_open_shows_the_file(run: Runner, folder: Path, opened: list[str], columns: int | None) -> None:
    run("export", "0363a0b0", "-f", "md", "--open", columns=columns)
    assert opened == [str(folder / f"{NAME}.md")]


def test_open_shows_the_first_page_of_a_site(run: Runner, folder: Path, opened: list[str]) -> None:
    run("export", "--all", "-f", "html", "-o", "site/", "--open")
    assert opened == [(folder / "site" / "index.html").as_uri()]


def test_open_shows_a_folder_without_pages(run: Runner, folder: Path, opened: list[str]) -> None:
    run("export", "@1", "@2", "-f", "json", "-o", "out/", "--open")
    assert opened == [str(folder / "out")]


def test_open_needs_a_file(run: Runner, opened: list[str]) -> None:
    result = run("export", "latest", "-o", "-", "--open")
    assert (result.status, result.out) == (2, "")
    assert "--open needs a file" in result.err
    assert opened == []


def test_failure_to_open_is_reported(run: Runner, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("click.launch", lambda _target: 1)
    result = run("export", "0363a0b0", "-f", "md", "--open", columns=80)
    assert result.status == 0
    assert f"Cannot open {NAME}.md on this system. Open it yourself." in result.err
    assert names(folder) == [f"{NAME}.md"]
