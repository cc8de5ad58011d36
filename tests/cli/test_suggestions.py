"""Misspelt commands, subcommands, options and formats get a suggestion; common other words are aliases."""

from __future__ import annotations

import pytest
from tests.cli.running import Runner

from pollux import __version__

SUGGESTIONS = [
    (("lss",), "There is no command 'lss'. Did you mean `pollux ls`?"),
    (("usge", "--by", "day"), "Did you mean `pollux usage`?"),
    (("stat",), "Did you mean `pollux stats` or `pollux status`?"),
    (("cost",), "Did you mean `pollux usage`?"),
    (("delete", "a82545c4"), "Did you mean `pollux forget`?"),
    (("find", "x"), "There is no command 'find'. Did you mean `pollux search`?"),
    (("grep", "-i", "x"), "Did you mean `pollux search`?"),
    (("serach", "x"), "Did you mean `pollux search`?"),
    (("search", "x", "--sotr", "cost"), "There is no option --sotr. Did you mean --sort? To search for it, write"),
    (("search", "x", "--sort", "price"), "There is no 'price' for --sort. Use relevance, newest, oldest or cost."),
    (("backup",), "Did you mean `pollux archive backup`?"),
    (("sign", "x.json"), "Did you mean `pollux record sign`?"),
    (("latest",), "Did you mean `pollux show latest`?"),
    (("@2",), "Did you mean `pollux show @2`?"),
    (("a82545c4",), "Did you mean `pollux show a82545c4`?"),
    (("archive", "infos"), "There is no command 'infos'. Did you mean `pollux archive info`?"),
    (("record", "verfy"), "Did you mean `pollux record verify`?"),
    (("keys", "crate"), "Did you mean `pollux keys create`?"),
    (("ls", "--jsn"), "There is no option --jsn. Did you mean --json?"),
    (("ls", "--projct=x"), "Did you mean --project?"),
    (("ls", "--ful"), "There is no option --ful. Did you mean --all?"),
    (("ls", "--from", "yesterday"), "Did you mean --since?"),
    (("show", "latest", "--ful"), "There is no option --ful. Did you mean --detail full?"),
    (("usage", "--weekly"), "Did you mean --by week?"),
    (("export", "latest", "--fromat", "md"), "There is no option --fromat. Did you mean --format?"),
    (("export", "latest", "--out", "x"), "Did you mean --output?"),
    (("export", "latest", "--json"), "There is no option --json. Did you mean --format json?"),
    (("export", "latest", "--html"), "Did you mean --format html?"),
    (("sync", "--keep-only"), "Did you mean --raw-only?"),
    (("statusline", "--everything"), "Did you mean --all-projects?"),
    (("archive", "prove", "--continues", "x"), "Did you mean --consistent-with?"),
    (("usage", "--subagents", "together"), "There is no 'together' for --subagents. Did you mean merged?"),
    (("usage", "--subagents", "apart"), "Did you mean separate?"),
    (("export", "latest", "--format", "markdwn"), "There is no 'markdwn' for --format. Did you mean markdown?"),
    (("export", "latest", "-f", "htm"), "Did you mean html?"),
    (("usage", "--by", "dya"), "There is no 'dya' for --by. Did you mean day?"),
    (("completion", "bsh"), "Did you mean bash?"),
]


@pytest.mark.parametrize(("args", "sentence"), SUGGESTIONS, ids=[" ".join(args) for args, _ in SUGGESTIONS])
def test_misspelt_word_gets_a_suggestion(run: Runner, args: tuple[str, ...], sentence: str) -> None:
    result = run(*args)
    assert (result.status, result.out) == (2, "")
    assert sentence in result.err
    assert result.err.count("\n") == 1


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (("qqqqqq",), "There is no command 'qqqqqq'. The commands are ls, show, search, web"),
        (("keys", "qqqqqq"), "There is no command 'qqqqqq'. The commands are create, show, list."),
        (("ls", "--qqqqqq"), "There is no option --qqqqqq. Run `pollux ls --help` to list the options."),
        (("usage", "--by", "qqqqqq"), "There is no 'qqqqqq' for --by. Use hour, day, week"),
        (("ls", "-Q"), "There is no option -Q. Run `pollux ls --help` to list the options."),
        (("\x1b[2Jls",), "There is no command '␛[2Jls'. The commands are ls"),
    ],
)
def test_unknown_word_gets_a_list_of_the_known_ones(run: Runner, args: tuple[str, ...], sentence: str) -> None:
    result = run(*args)
    assert (result.status, result.out) == (2, "")
    assert sentence in result.err


@pytest.mark.parametrize(
    ("alias", "args"),
    [
        (("help",), ("--help",)),
        (("help", "ls"), ("ls", "--help")),
        (("help", "list"), ("ls", "--help")),
        (("help", "archive", "backup"), ("archive", "backup", "--help")),
        (("archive", "help"), ("archive", "--help")),
        (("archive", "help", "backup"), ("archive", "backup", "--help")),
        (("keys", "help", "create"), ("keys", "create", "--help")),
        (("record", "help"), ("record", "--help")),
        (("version",), ("--version",)),
        (("list",), ("ls",)),
        (("list", "--json"), ("ls", "--json")),
        (("export", "latest", "-f", "md"), ("export", "latest", "-f", "markdown")),
    ],
    ids=" ".join,
)
def test_alias_does_the_same(run: Runner, alias: tuple[str, ...], args: tuple[str, ...]) -> None:
    first, second = run(*alias), run(*args)
    assert first.out == second.out
    assert (first.status, first.err) == (second.status, second.err)
    assert first.out


def test_help_of_an_unknown_command_suggests_one(run: Runner) -> None:
    result = run("help", "lss")
    assert (result.status, result.out) == (2, "")
    assert "Did you mean `pollux ls`?" in result.err


def test_version_is_a_command(run: Runner) -> None:
    assert run("version").out == f"pollux {__version__}\n"
    assert run("version", "--json").status == 2
