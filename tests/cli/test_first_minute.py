"""What a new user meets in the first minute, checked from outside: files of the checkout, pipes and terminals.

Every test here failed on the commit before "a good first minute" (4f2486a). To see that again, check that commit out
elsewhere and run `POLLUX_TEST_SOURCE=<checkout> pytest tests/cli/test_first_minute.py`.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from hashlib import sha256
from pathlib import Path

import pytest
from tests import builders
from tests.cli.terminal import COLOURS, TREE, in_pipe, on_terminal

DEMO = TREE / "src" / "pollux" / "demo" / "home"
SESSION = "6ece72aa"
TITLE = "Count the [bold]cranes[/b]"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty folder, where commands may write files."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def write_session(root: Path, number: int, *, path: str = builders.ROOT, title: str = TITLE, n_tokens: int = 10) -> str:
    """Write a session with one model call; return its ID."""
    session_id = f"{number:08x}-5955-4bdb-8380-88eda48ac048"
    project = root / ".gemini" / "tmp" / path.strip("/").replace("/", "-")
    builders.put(project / ".project_root", path.encode())
    counts = {"input": n_tokens, "output": 2, "cached": 1, "thoughts": 3, "tool": 0, "total": n_tokens + 5}
    answer = builders.gemini(f"g{number}", "An answer", tokens=counts, toolCalls=[builders.call()])
    head = builders.header(session_id, projectHash=sha256(path.encode()).hexdigest())
    data = builders.log(head, builders.user(f"u{number}", title), answer)
    builders.put(project / "chats" / f"session-2026-11-15T19-30-{session_id[:8]}.jsonl", data)
    return session_id


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a home with two sessions; the title of each is Rich markup."""
    root = tmp_path / "home"
    write_session(root, 0x6ECE72AA)
    write_session(root, 0x6ECE72AB, n_tokens=123_456)
    return root


def plain(text: str) -> str:
    return COLOURS.sub("", text)


# 1. The name


def test_distribution_is_called_pollux_cli_and_has_two_scripts() -> None:
    project = tomllib.loads((TREE / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["name"] == "pollux-cli"
    assert project["scripts"]["pollux"] == project["scripts"]["pollux-cli"]


def test_install_lines_work_before_a_release() -> None:
    readme = (TREE / "README.md").read_text("utf-8")
    install = readme.partition("## Install")[2].partition("\n## ")[0]
    first_command = install.partition("```sh\n")[2].partition("\n")[0]
    assert first_command == "make run"
    assert "pollux-cli" in install
    for page in (TREE / "README.md", *(TREE / "docs").glob("*.md")):
        assert not re.search(r"(pip|pipx|uvx|uv tool) (install )?['\"]?pollux(?!-cli)\b", page.read_text("utf-8")), page


def test_missing_extra_is_named_with_the_distribution(home: Path, tmp_path: Path) -> None:
    builders.put(tmp_path / "broken" / "pyarrow" / "__init__.py", b"raise ImportError('not installed')\n")
    search_path = f"{tmp_path / 'broken'}:{TREE / 'src'}"
    ended = in_pipe(home, "export", "--all", "-f", "parquet", "-o", "facts/", PYTHONPATH=search_path)
    assert ended.returncode == 1
    assert "pip install 'pollux-cli[lake]'" in ended.stderr


# 2. make run


def dry_run(*targets: str) -> str:
    """Return the commands that make would run if nothing were installed."""
    make = shutil.which("make")
    if make is None:
        pytest.skip("no make")
    words = [make, "-B", "-n", "--no-print-directory", "-C", str(TREE), *targets]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    return ended.stdout + ended.stderr


def test_make_run_installs_what_a_user_needs_and_says_how_to_go_on() -> None:
    commands = dry_run("run")
    installs = [line for line in commands.splitlines() if "-m pip" in line and " -r " in line]
    assert installs
    assert all("constraints-run.txt" in line for line in installs)
    locked = (TREE / "constraints-run.txt").read_text("utf-8")
    assert not re.search(r"^(pytest|mypy|ruff|hypothesis|pyarrow|duckdb)==", locked, re.MULTILINE)
    assert "Call it with" in commands.splitlines()[-1]


def test_daily_loop_runs_the_quick_tests() -> None:
    assert "--quick" in dry_run("test-quick")


# 3. Rich markup


@pytest.mark.parametrize("command", [("stats",), ("usage", "--by", "session"), ("status", "--all")], ids=" ".join)
def test_title_with_markup_is_printed_as_it_is(home: Path, command: tuple[str, ...]) -> None:
    _, shown = on_terminal(home, *command, columns=160)
    assert "Traceback" not in shown
    assert TITLE in plain(shown)


@pytest.mark.parametrize(
    "command",
    [("ls",), ("projects",), ("usage", "--by", "project"), ("stats", "--by", "project"), ("status", "--all")],
    ids=" ".join,
)
def test_project_named_by_a_hash_is_not_blank(tmp_path: Path, command: tuple[str, ...]) -> None:
    hashed = "cae691b6" + "0" * 56
    data = builders.log(builders.header(projectHash=hashed), builders.user(), builders.gemini(tokens=builders.tokens()))
    builders.put(tmp_path / ".gemini" / "tmp" / hashed / "chats" / f"{builders.NAME}.jsonl", data)
    _, shown = on_terminal(tmp_path, *command, columns=160)
    assert "[cae691b6]" in plain(shown)


# 4. Never refuse to read


@pytest.mark.parametrize(
    "command",
    [(), ("ls",), ("show", SESSION), ("usage",), ("status", "--all"), ("doctor",), ("statusline",)],
    ids=" ".join,
)
def test_sessions_are_read_where_no_archive_can_be_created(
    home: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    archive = builders.put(tmp_path / "file", b"") / "deeper" / "archive.db"
    ended = in_pipe(home, *command, POLLUX_ARCHIVE=str(archive))
    assert ended.returncode in (0, 1)
    assert ended.stdout
    assert "Traceback" not in ended.stderr
    assert [line for line in ended.stderr.splitlines() if f"No archive can be created at {archive}" in line]


@pytest.mark.skipif(sys.platform != "linux", reason="makes a file system read-only in a name space of its own")
def test_new_session_is_listed_beside_a_read_only_archive(home: Path, tmp_path: Path) -> None:
    archive = tmp_path / "archive" / "archive.db"
    archive.parent.mkdir()
    assert in_pipe(home, "sync", POLLUX_ARCHIVE=str(archive)).returncode == 0
    next(home.rglob("*6ece72ab.jsonl")).unlink()
    assert in_pipe(home, "sync", POLLUX_ARCHIVE=str(archive)).returncode == 0
    write_session(home, 0x6ECE72AC)
    code = "import sys; from pollux.__main__ import program; sys.argv[0] = 'pollux'; program()"
    mount = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
    isolated = ["unshare", "-rm", "sh", "-c", mount, str(archive.parent), sys.executable, "-c", code, "ls"]
    settings = {"PYTHONPATH": str(TREE / "src"), "POLLUX_HOME": str(home), "POLLUX_ARCHIVE": str(archive)}
    ended = subprocess.run(isolated, env={**os.environ, **settings}, capture_output=True, text=True, check=False)
    if "unshare:" in ended.stderr or "mount:" in ended.stderr:
        pytest.skip("no name spaces here")
    assert ended.returncode == 0
    assert all(session in ended.stdout for session in ("6ece72aa", "6ece72ab", "6ece72ac"))
    assert "cannot be written (Read-only file system)" in ended.stderr


# 5. The demo is the whole product


@pytest.mark.parametrize(
    "command",
    [
        ("sync",),
        ("restore", "602c50c2"),
        ("verify",),
        ("forget", "602c50c2", "--yes"),
        ("archive", "seal"),
        ("export", "--all", "-f", "parquet", "-o", "facts"),
    ],
    ids=" ".join,
)
def test_any_command_works_in_the_demo_and_touches_nothing_else(home: Path, command: tuple[str, ...]) -> None:
    ended = in_pipe(home, "demo", *command)
    assert ended.returncode == 0, ended.stderr
    assert not (home / "archive.db").exists()
    if command[0] == "restore":
        assert "Nothing to restore" not in ended.stderr


def test_hints_in_the_demo_name_the_demo(home: Path) -> None:
    assert "`pollux demo doctor`" in in_pipe(home, "demo", "ls").stderr
    assert "`pollux demo ls --all`" in in_pipe(home, "demo", "show", "nope").stderr


# 6. Exit status


@pytest.fixture
def damaged_home(home: Path) -> Path:
    """Return a home in which a file that nobody asks for cannot be read."""
    (home / ".gemini" / "tmp" / "home-alice-webapp" / "chats" / "session-2026-11-15T19-30-0bad0bad.jsonl").symlink_to(
        "nowhere"
    )
    return home


@pytest.mark.parametrize(
    "command", [("export", "--all", "-f", "html", "-o", "site/"), ("ls",), ("usage",), ("stats",)], ids=" ".join
)
def test_other_damaged_file_is_no_failure_unless_strict(damaged_home: Path, command: tuple[str, ...]) -> None:
    ended = in_pipe(damaged_home, *command)
    assert ended.returncode == 0
    assert "1 file with problems; `pollux doctor` lists them." in ended.stderr
    assert in_pipe(damaged_home, *command, "--strict").returncode == 1
    assert in_pipe(damaged_home, "doctor").returncode == 1


# 7. Cost and safety first


@pytest.mark.parametrize("command", [(), ("ls",), ("show", "6ece72ab")], ids=["overview", "ls", "show"])
def test_first_screens_show_the_cost(home: Path, command: tuple[str, ...]) -> None:
    _, shown = on_terminal(home, *command, columns=120)
    assert "$0.154" in plain(shown)


def test_overview_says_that_all_is_archived(home: Path) -> None:
    assert "2 sessions in 1 project, 2 prompts, all archived" in plain(on_terminal(home)[1])


@pytest.mark.parametrize(
    "section",
    [
        "cost by day and by project",
        "Share a session safely",
        "Resume a session",
        "Audit a bill",
        "pandas and DuckDB",
        "history permanently",
    ],
)
def test_how_to_has_a_section(section: str) -> None:
    headings = re.findall(r"^## (.+)$", (TREE / "docs" / "how-to.md").read_text("utf-8"), re.MULTILINE)
    assert any(section in heading for heading in headings)


# 8. Tables


def fake_pager(folder: Path, name: str, version: str = "") -> str:
    """Write a program that prints its arguments and copies its input."""
    answer = f'[ "$1" = --version ] && echo "{version}" && exit\n' if version else ""
    program = builders.put(folder / name, f'#!/bin/sh\n{answer}echo "PAGED $@"\nexec cat\n'.encode())
    program.chmod(0o755)
    return str(program)


@pytest.mark.parametrize(
    "command",
    [("ls",), ("usage",), ("stats", "--by", "session"), ("status", "--all"), ("projects",), ("doctor",)],
    ids=" ".join,
)
def test_what_is_longer_than_the_screen_is_paged(home: Path, tmp_path: Path, command: tuple[str, ...]) -> None:
    pager = fake_pager(tmp_path / "bin", "page")
    assert "PAGED" in on_terminal(home, *command, lines=2, PAGER=pager)[1]
    assert "PAGED" not in on_terminal(home, *command, PAGER=pager)[1]
    status, shown = on_terminal(home, *command, "--no-pager", lines=2, PAGER=pager)
    assert status in (0, 1)
    assert "PAGED" not in shown


def test_pager_keeps_the_header_in_sight(home: Path, tmp_path: Path) -> None:
    pager = fake_pager(tmp_path / "bin", "less", "less 668 (PCRE2)")
    assert "PAGED -S --header=1\n" in on_terminal(home, "ls", lines=2, PAGER=pager)[1]


@pytest.mark.parametrize(
    "command",
    [("ls",), ("status", "--all"), ("projects",), ("usage", "--by", "session"), ("stats", "--by", "session")],
    ids=" ".join,
)
def test_every_list_can_be_limited_and_has_a_header_in_a_pipe(home: Path, command: tuple[str, ...]) -> None:
    write_session(home, 0x6ECE72AC, path="/src/other")
    header, *rows = in_pipe(home, *command, "-n", "1").stdout.splitlines()
    assert header.islower()
    assert len(rows) == 1
    assert in_pipe(home, *command, "-n", "1", "--no-header").stdout.splitlines() == rows


@pytest.mark.parametrize("command", [("ls",), ("usage", "--by", "session")], ids=" ".join)
def test_money_is_in_dollars_in_a_pipe(home: Path, command: tuple[str, ...]) -> None:
    header, *rows = (line.split("\t") for line in in_pipe(home, *command).stdout.splitlines())
    costs = {dict(zip(header, row, strict=True))["cost_usd"] for row in rows}
    assert costs == {"0.000061375", "0.154368875"}


def test_usage_and_stats_can_be_sorted_and_cut(home: Path) -> None:
    for command in (("usage", "--by", "session"), ("stats", "--by", "session")):
        ids = [line[:8] for line in in_pipe(home, *command, "--sort", "tokens", "--top", "1").stdout.splitlines()]
        assert ids[-1] == "6ece72ab"
        assert len(ids) == 2


def test_force_color_colours_a_pipe(home: Path) -> None:
    assert not COLOURS.search(in_pipe(home).stdout)
    assert COLOURS.search(in_pipe(home, FORCE_COLOR="1").stdout)


def test_amounts_are_aligned_at_the_point(home: Path) -> None:
    shown = plain(on_terminal(home, "usage", "--by", "session", columns=120)[1]).splitlines()
    places = {line.index("$") + line[line.index("$") :].index(".") for line in shown[1:4]}
    assert len({line[line.index("$") :].split()[0] for line in shown[1:4]}) > 1
    assert len(places) == 1


@pytest.mark.parametrize("command", [("ls",), ("usage", "--by", "project")], ids=" ".join)
def test_projects_of_the_same_name_are_told_apart(tmp_path: Path, command: tuple[str, ...]) -> None:
    write_session(tmp_path, 1, path="/src/alpha/api")
    write_session(tmp_path, 2, path="/src/beta/api")
    shown = plain(on_terminal(tmp_path, *command, columns=60)[1])
    assert "alpha/api" in shown
    assert "beta/api" in shown


def test_doctor_counts_formats_by_their_common_names(home: Path) -> None:
    out = in_pipe(home, "demo", "doctor").stdout
    assert re.search(r"^formats +JSON \d+, JSONL \d+", out, re.MULTILINE)
    assert not re.search(r"\b[JL]\d × \d", out)


@pytest.mark.parametrize("command", [("ls",), ("show", "602c50c2", "--branches", "all")], ids=" ".join)
def test_dropped_messages_are_marked_with_common_characters(home: Path, command: tuple[str, ...]) -> None:
    _, shown = on_terminal(home, "demo", *command, columns=160)
    assert "⑂" not in shown
    assert "rewound" in shown


def test_export_on_a_terminal_writes_a_file_and_says_where(home: Path, folder: Path) -> None:
    status, shown = on_terminal(home, "export", SESSION, "-f", "markdown")
    assert status == 0
    assert [path.name for path in folder.iterdir()] == ["webapp-2026-11-15-6ece72aa.md"]
    assert "1 session written to webapp-2026-11-15-6ece72aa.md" in shown


def test_binary_data_is_not_printed_on_a_terminal(home: Path) -> None:
    status, shown = on_terminal(home, "export", SESSION, "-f", "vac-cbor", "-o", "-")
    assert status == 2
    assert "is binary and is not printed on a terminal" in shown


def test_open_shows_what_was_written(home: Path, folder: Path, tmp_path: Path) -> None:
    browser = builders.put(tmp_path / "bin" / "browser", f'#!/bin/sh\necho "$1" > "{tmp_path}/opened"\n'.encode())
    browser.chmod(0o755)
    ended = in_pipe(home, "export", SESSION, "-f", "html", "--open", BROWSER=f"{browser} %s")
    assert ended.returncode == 0
    deadline = time.monotonic() + 20
    while not (tmp_path / "opened").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert (tmp_path / "opened").read_text() == f"{(folder / 'webapp-2026-11-15-6ece72aa.html').as_uri()}\n"


# 9. Finding one's way


@pytest.mark.parametrize(
    ("command", "suggestion"),
    [
        (("usge",), "Did you mean `pollux usage`?"),
        (("archive", "infos"), "Did you mean `pollux archive info`?"),
        (("export", "latest", "-f", "htm"), "Did you mean html?"),
        (("export", "latest", "--json"), "Did you mean --format json?"),
    ],
)
def test_misspelt_word_gets_a_suggestion(home: Path, command: tuple[str, ...], suggestion: str) -> None:
    ended = in_pipe(home, *command)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert suggestion in ended.stderr


@pytest.mark.parametrize(
    ("alias", "command"),
    [
        (("help",), ("--help",)),
        (("help", "ls"), ("ls", "--help")),
        (("version",), ("--version",)),
        (("list",), ("ls",)),
        (("export", SESSION, "-f", "md"), ("export", SESSION, "-f", "markdown")),
    ],
)
def test_alias_does_the_same(home: Path, alias: tuple[str, ...], command: tuple[str, ...]) -> None:
    ended = in_pipe(home, *alias)
    assert ended.returncode == 0
    assert ended.stdout == in_pipe(home, *command).stdout != ""


def test_ambiguous_id_lists_titles_and_dates(home: Path) -> None:
    ended = in_pipe(home, "show", "6ece72")
    assert ended.returncode == 2
    for session in ("6ece72aa", "6ece72ab"):
        assert re.search(rf"{session}.*2026-11-15.*Count the", ended.stderr)


def test_current_folder_without_sessions_is_named(home: Path, folder: Path) -> None:
    ended = in_pipe(home, "ls", "--project", ".")
    assert ended.returncode == 1
    assert re.search(rf"No session.* {re.escape(str(folder))}", ended.stderr)


INTERRUPTED_IMPORT = """
import os, signal, sys

class Interrupt:
    left = int(sys.argv.pop(1))

    def find_spec(self, name, path=None, target=None):
        self.left -= 1
        if not self.left:
            os.kill(os.getpid(), signal.SIGINT)
        return None

sys.meta_path.insert(0, Interrupt())
from pollux.__main__ import program
program()
"""


def test_interrupt_during_start_up_leaves_no_traceback(home: Path) -> None:
    environment = {"PYTHONPATH": str(TREE / "src"), "POLLUX_HOME": str(home), "POLLUX_ARCHIVE": str(home / "a.db")}
    for n_modules in range(4, 260, 16):
        words = [sys.executable, "-c", INTERRUPTED_IMPORT, str(n_modules), "ls"]
        ended = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
        assert "Traceback" not in ended.stderr, n_modules
        assert "Interrupt" not in ended.stderr, n_modules
        assert ended.returncode in (0, 130, -signal.SIGINT)


def test_forget_says_what_stays_and_can_be_undone(home: Path) -> None:
    assert in_pipe(home, "sync").returncode == 0
    forgotten = in_pipe(home, "forget", SESSION, "--yes")
    assert "The client's own files, listed above, stay on the disk" in forgotten.stderr
    assert SESSION not in in_pipe(home, "ls").stdout
    assert in_pipe(home, "forget", "--undo").returncode == 0
    assert SESSION in in_pipe(home, "ls").stdout


def test_redacted_record_says_that_hashes_replace_secrets(home: Path) -> None:
    write_session(home, 0x6ECE72AC, title="my key is ghp_" + "a1B2" * 9)
    for command in (("sync",), ("keys", "create"), ("archive", "seal")):
        assert in_pipe(home, *command).returncode == 0
    ended = in_pipe(home, "record", "redact", "6ece72ac", "--secrets")
    assert ended.returncode == 0, ended.stderr
    assert "that contained secrets by salted hashes" in ended.stderr
    assert "by a salted hash" in " ".join(in_pipe(home, "record", "redact", "--help").stdout.split())


def test_split_needs_no_folder(home: Path, folder: Path) -> None:
    status, _ = on_terminal(home, "export", SESSION, "-f", "markdown", "--split", "1")
    assert status == 0
    assert (folder / "webapp-2026-11-15-6ece72aa.md").exists()
    ended = in_pipe(home, "export", SESSION, "-f", "markdown", "--split", "1")
    assert ended.returncode == 2
    assert "Name a file or folder with `-o`" in ended.stderr


# 10. HTML pages; `tests/browser` opens them in a browser


@pytest.fixture
def page(home: Path) -> str:
    """Return the HTML page of a session with context, a long output, a rewound prompt and a coloured screen."""
    numbers = "\n".join(f"number {number}" for number in range(80))
    screen = [[{"text": "blue", "fg": "#0000af"}]]
    shell = {"args": {"command": "seq 80"}, "result": [builders.answers(name="run_shell_command", output=numbers)]}
    calls = [
        builders.call("c1", "run_shell_command", **shell, resultDisplay=numbers),
        builders.call("c2", "run_shell_command", **shell, resultDisplay=screen),
    ]
    lines = (
        builders.header(builders.OTHER),
        builders.preamble(),
        builders.user("u1", "Count"),
        builders.gemini("g1", "Done", toolCalls=calls),
        builders.user("u2", "A prompt that is rewound", second=5),
        builders.rewind("u2"),
        builders.user("u3", "Go on", second=7),
    )
    project = home / ".gemini" / "tmp" / "home-alice-webapp"
    name = f"session-2026-11-15T19-30-{builders.OTHER[:8]}.jsonl"
    builders.put(project / "chats" / name, builders.log(*lines))
    assert in_pipe(home, "export", builders.OTHER, "-f", "html", "-o", "page.html").returncode == 0
    return Path("page.html").read_text("utf-8")


def test_hidden_parts_of_a_page_open(page: str) -> None:
    folds = re.findall(r"<details[^>]*>.*?</summary>", page)
    labels = " | ".join(re.sub(r"<[^>]+>", "", fold) for fold in folds)
    assert re.search(r"… \d+ more lines", labels)
    assert re.search(r"[Ss]ession context", labels)
    assert "1 message rewound" in labels
    for hidden in ("number 40", "/home/alice/webapp", "A prompt that is rewound"):
        assert hidden in page


def test_icons_of_a_page_have_labels(page: str) -> None:
    icons = re.findall(r"<svg[^>]*>", page)
    assert icons
    assert all('aria-hidden="true"' in icon or "aria-label=" in icon for icon in icons)
    assert re.search(r'class="unseen"[^>]*>[^<]+<|role="img"[^>]*aria-label', page)


def test_dates_do_not_break_and_are_in_the_zone_of_the_reader(page: str) -> None:
    assert re.search(r"[{}\s]time[^{}]*\{[^{}]*white-space:nowrap", page)
    assert re.search(r'<time datetime="2026-11-15T19:30', page)
    assert "Times are in your time zone" in page


def test_blue_of_a_terminal_can_be_read_on_dark(page: str) -> None:
    blue = re.search(r'<span class="(f\d+)">blue</span>', page)
    assert blue
    colour = re.search(rf"\.{blue[1]}\{{color:#([0-9a-f]{{6}}|[0-9a-f]{{3}})\}}", page)
    assert colour
    digits = colour[1] if len(colour[1]) == 6 else "".join(2 * digit for digit in colour[1])
    red, green, blue_part = (int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4))
    luminance = sum(
        share * ((value + 0.055) / 1.055) ** 2.4
        for share, value in ((0.2126, red), (0.7152, green), (0.0722, blue_part))
    )
    assert (luminance + 0.05) / (0.014 + 0.05) >= 4.5


def test_index_of_many_sessions_is_paged(tmp_path: Path) -> None:
    for number in range(120):
        write_session(tmp_path, number + 1)
    assert in_pipe(tmp_path, "export", "--all", "-f", "html", "-o", "site/").returncode == 0
    index = Path("site/index.html").read_text("utf-8")
    assert "Page 1 of 2" in index
    assert 'rel="next"' in index


# 11. Redaction


PRIVATE = {
    "word": "Project Falcon",
    "phone-number": "+1 415 555 2671",
    "card-number": "4111 1111 1111 1111",
    "ip-address": "10.20.30.40",
    "host-name": "db7.acme.internal",
}


@pytest.mark.parametrize("source", ["--redact-word", "--redact-words"])
def test_own_words_are_replaced(home: Path, source: str) -> None:
    write_session(home, 0x6ECE72AC, title=f"about {PRIVATE['word']}")
    Path("words.txt").write_text("# projects\nproject falcon\n", "utf-8")
    value = "project falcon" if source == "--redact-word" else "words.txt"
    ended = in_pipe(home, "export", "6ece72ac", "-f", "markdown", source, value)
    assert ended.returncode == 0
    assert "[redacted:word#1]" in ended.stdout.replace("\\", "")
    assert "falcon" not in ended.stdout.lower()


@pytest.mark.parametrize("rule", ["phone-number", "card-number", "ip-address", "host-name"])
def test_rule_can_be_switched_on(home: Path, rule: str) -> None:
    write_session(home, 0x6ECE72AC, title=f"about {PRIVATE[rule]} and more")
    export = ("export", "6ece72ac", "-f", "json", "--redact")
    assert PRIVATE[rule] in in_pipe(home, *export).stdout
    ended = in_pipe(home, *export, "--redact-rule", rule)
    assert ended.returncode == 0
    assert PRIVATE[rule] not in ended.stdout


def test_shared_copy_says_what_was_replaced_and_what_was_not_looked_for(home: Path) -> None:
    note = in_pipe(home, "export", SESSION, "--share").stderr.splitlines()[-1]
    assert note.startswith("Replaced: ")
    assert "Not looked for: phone-number" in note
    assert note.endswith("Read the result before you send it.")


# 12. README


def test_readme_has_a_picture_and_three_commands_with_output() -> None:
    readme = (TREE / "README.md").read_text("utf-8")
    picture = re.search(r"!\[[^\]]+\]\(([^)]+)\)", readme)
    assert picture
    assert 0 < (TREE / picture[1]).stat().st_size < 300_000
    assert readme.index(picture[0]) < readme.index("## Install")
    blocks = re.findall(r"```console\n\$ pollux .+\n[\s\S]+?```", readme)
    assert len(blocks) == 3


def test_readme_says_why_with_reports_of_users() -> None:
    readme = (TREE / "README.md").read_text("utf-8")
    why = readme.partition("## Why")[2].partition("\n## ")[0]
    for number in (27368, 27721, 27877, 2896, 4446):
        assert f"google-gemini/gemini-cli/issues/{number}" in why
    assert "migration guide" in why
    can_do = readme.partition("## What it can do")[2].partition("\n## ")[0]
    assert len(re.findall(r"^- ", can_do, re.MULTILINE)) == 10


def test_docs_have_a_page_of_each_kind() -> None:
    index = (TREE / "docs" / "README.md").read_text("utf-8")
    for page in ("tutorial.md", "how-to.md", "reference.md", "architecture.md", "glossary.md"):
        assert f"({page})" in index
        assert (TREE / "docs" / page).is_file()
