"""`pollux search` and `pollux ls QUERY` on the demo: on a terminal, in a pipe and as JSON."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from rich.cells import cell_len
from tests import builders
from tests.cli.running import Runner
from tests.cli.terminal import COLOURS, on_terminal

COLUMNS = ["session", "message", "number", "part", "at", "fate", "project", "title", "cost_usd", "snippet"]


def hits(run: Runner, *args: str) -> list[dict[str, str]]:
    """Run a search in a pipe and return its lines as dictionaries."""
    ended = run("search", *args)
    assert ended.status in (0, 1), ended.err
    return [dict(zip(COLUMNS, line.split("\t"), strict=True)) for line in ended.out.splitlines()[1:]]


def sessions(run: Runner, *args: str) -> list[str]:
    """Return the short IDs of the sessions with hits, in their order."""
    return list(dict.fromkeys(hit["session"][:8] for hit in hits(run, *args)))


def test_terminal_has_sessions_with_highlighted_hits_below(tmp_path: Path) -> None:
    home = _home(tmp_path, "where is the [red]needle[/red] \x1b[2Jnow", "in the haystack")
    status, shown = on_terminal(home, "search", "needle")
    assert status == 0
    assert "\x1b[1;91mneedle\x1b[0m" in shown
    plain = COLOURS.sub("", shown)
    assert "6ece72aa" in plain
    assert "[red]needle[/red] ␛[2Jnow" in plain or "[red]needle[/red] now" in plain
    assert "#1  prompt" in plain
    assert "haystack" not in plain.partition("prompt")[2]
    assert "`pollux show 6ece72aa#1` opens the first hit." in plain


@pytest.mark.parametrize("columns", [30, 40, 60, 80, 160])
@pytest.mark.parametrize("query", ["alarms", "Kakao", "SKY-118 mail", "re:/v0\\.\\d/"])
def test_screen_fits(run: Runner, columns: int, query: str) -> None:
    ended = run("search", query, columns=columns)
    assert ended.status == 0
    assert max(map(cell_len, ended.out.splitlines())) <= columns


def test_pipe_has_a_line_per_hit_that_show_opens(run: Runner) -> None:
    ended = run("search", "greylisted")
    header, *lines = ended.out.splitlines()
    assert header.split("\t") == COLUMNS
    assert lines
    assert "\x1b" not in ended.out
    assert run("search", "greylisted", "--no-header").out.splitlines() == lines
    hit = hits(run, "greylisted")[0]
    by_id = run("show", f"{hit['session']}#{hit['message']}")
    by_number = run("show", f"{hit['session']}#{hit['number']}")
    assert by_id.out == by_number.out
    assert "greylisted" in by_id.out.partition("▶")[2].partition("\n\n")[0]


def test_words_of_several_arguments_are_one_query(run: Runner) -> None:
    expected = hits(run, "false alarms")
    assert expected
    assert hits(run, "false", "alarms") == expected
    expected = hits(run, "false alarms", "-n", "5", "-p", "skywatch")
    assert hits(run, "false", "-n5", "alarms", "-p", "skywatch") == expected


def test_word_after_a_dash_is_not_an_option(run: Runner) -> None:
    with_mail, without_mail = hits(run, "alarms"), hits(run, "alarms", "-mail")
    assert without_mail
    assert len(without_mail) < len(with_mail)
    assert without_mail == hits(run, "alarms -mail") == hits(run, "--", "alarms", "-mail")
    # `-p` and `-n` begin these words, and are options only by themselves.
    assert run("search", "alarms", "-postgres", "-nothing").status == 0
    # The value of an option may begin with a dash.
    assert "'-qqqqqq'" in run("search", "alarms", "-p", "-qqqqqq").err
    assert run("search", "alarms", "--after", "-AAAA").err.startswith("The cursor ")


def test_unknown_option_is_told_from_a_word(run: Runner) -> None:
    ended = run("search", "--no-verify")
    assert ended.status == 2
    assert "To search for it, write `pollux search -- --no-verify`." in ended.err
    assert run("search", "--", "--no-verify").status in (0, 1)


def test_nothing_found_is_status_1_with_what_to_try(run: Runner) -> None:
    ended = run("search", "xyzzyplugh")
    assert (ended.status, ended.out) == (1, "")
    assert "Nothing matches 'xyzzyplugh'. Try " in ended.err
    assert run("search", "xyzzyplugh", columns=80).out == ""
    assert "fewer options" in run("search", "xyzzyplugh", "--last", "99y").err


@pytest.mark.parametrize(
    ("query", "advice"),
    [
        ("xyzzyplugh", " Try the beginning of a word with a star, such as time*."),
        ("xyzzyplugh alarms", " Try fewer words or the beginning of a word with a star, such as time*."),
        ("re:/xyzzy plugh/", " Try an i after the last slash, which ignores upper and lower case."),
        ("re:/xyzzy/mi", ""),
        ("cost:>900", ""),
    ],
)
def test_advice_fits_the_query(run: Runner, query: str, advice: str) -> None:
    assert run("search", query).err.splitlines()[-1] == f"Nothing matches '{query}'.{advice}"


def test_home_without_sessions_is_told_from_a_query_without_hits(run: Runner, tmp_path: Path) -> None:
    for args in (("x",), (), ("x", "--count"), ("--files", "x"), ("--commands",), ("x", "--no-archive")):
        ended = run("search", *args, home=tmp_path)
        assert ended.status == 1
        assert ended.err.startswith("No sessions found. `pollux doctor` lists the homes that were read")


def test_misspelt_word_gets_a_suggestion(run: Runner) -> None:
    ended = run("search", "greylistd")
    assert "Did you mean `pollux search greylisted`?" in ended.err


@pytest.mark.parametrize(
    ("query", "position", "word"),
    [
        ("alarms projct:sky", 7, "project:"),
        ('alarms "two', 7, "quot"),
        ("last:never", 0, "7d"),
        ("re:/(/", 0, "regular expression"),
        ("超时 in:promt", 3, "in:prompt"),
    ],
)
@pytest.mark.parametrize("command", [["search"], ["search", "--files"], ["search", "--commands"], ["ls"]])
def test_mistake_is_shown_below_the_query(
    run: Runner, command: list[str], query: str, position: int, word: str
) -> None:
    ended = run(*command, query)
    assert (ended.status, ended.out) == (2, "")
    shown, caret, *sentence = ended.err.splitlines()
    assert shown == f"  {query}"
    assert len(caret) - 1 >= 2 + cell_len(query[:position])
    assert caret.strip() == "^"
    assert word in " ".join(sentence)


def test_json_has_hits_and_a_cursor(run: Runner) -> None:
    found = run("search", "skywatch", "--json").json
    assert found["schema"] == "pollux.hits/1"
    assert found["query"] == "skywatch"
    assert found["hits"]
    assert run("search", "xyzzyplugh", "--json").status == 1


def test_cursor_leads_through_all_sessions_once(run: Runner) -> None:
    everything = sessions(run, "skywatch", "--sort", "newest", "-n", "100")
    assert len(everything) > 4
    seen: list[str] = []
    cursor: list[str] = []
    while True:
        found = run("search", "skywatch", "--sort", "newest", "-n", "2", "--json", *cursor).json
        seen += dict.fromkeys(hit["session"][:8] for hit in found["hits"])
        if not found["more"]:
            break
        cursor = ["--after", found["cursor"]]
    assert seen == everything
    assert run("search", "skywatch", "--after", "nonsense").status == 2


def test_more_sessions_than_shown_are_named(run: Runner) -> None:
    ended = run("search", "skywatch", "-n", "2")
    assert re.search(r"(More|2 of \d+) sessions (match|are shown): add -n 10 to print more\.", ended.err)


def test_order_of_sessions(run: Runner) -> None:
    newest = sessions(run, "skywatch", "--sort", "newest", "-n", "100")
    assert sessions(run, "skywatch", "--sort", "oldest", "-n", "100") == newest[::-1]
    listed = [line.split("\t")[0][:8] for line in run("ls", "--all", "--no-header").out.splitlines()]
    assert newest == [session for session in listed if session in newest]
    costs = [float(hit["cost_usd"]) for hit in hits(run, "skywatch", "--sort", "cost", "-n", "100")]
    assert costs == sorted(costs, reverse=True)
    assert sorted(sessions(run, "skywatch", "-n", "100")) == sorted(newest)


def test_hits_per_session(run: Runner) -> None:
    few, many = hits(run, "skywatch", "--hits", "1"), hits(run, "skywatch", "--hits", "50")
    assert len(few) == len({hit["session"] for hit in few}) < len(many)
    screen = run("search", "skywatch", "--hits", "1", columns=80).out
    assert re.search(r"… and \d+ more in this session", screen)


def test_count(run: Runner) -> None:
    ended = run("search", "greylisted", "--count")
    header, line = ended.out.splitlines()
    assert header == "hits\tsessions"
    n_hits, n_sessions = map(int, line.split("\t"))
    found = hits(run, "greylisted", "-n", "100", "--hits", "100")
    assert (n_hits, n_sessions) == (len(found), len({hit["session"] for hit in found}))
    assert run("search", "greylisted", "--count", columns=80).out.split()[0] == str(n_hits)
    assert run("search", "greylisted", "--count", "--no-header").out == f"{line}\n"
    assert run("search", "xyzzyplugh", "--count").status == 1
    ended = run("search", "has:subagent", "--count", columns=80)
    assert (ended.status, ended.out, ended.err) == (0, "3 sessions\n", "")


def test_filters_are_those_of_other_commands(run: Runner) -> None:
    everywhere, tides = sessions(run, "the", "-n", "100"), sessions(run, "the", "-n", "100", "--project", "tide")
    assert 0 < len(tides) < len(everywhere)
    assert tides == sessions(run, "the project:tide", "-n", "100")
    assert {hit["project"] for hit in hits(run, "the", "--project", "tide")} == {"/home/mara/src/tide-tables"}
    old = hits(run, "the", "--until", "2026-01-01", "-n", "100")
    assert old
    assert run("search", "the", "--project", "nonsuch").status == 1


@pytest.mark.parametrize("query", ["greylisted", "Kakao", '"false alarms"', "re:/v0\\.\\d/", "alarms -mail", "超时"])
def test_scan_and_files_only_find_the_same(run: Runner, query: str) -> None:
    def places(*options: str) -> list[tuple[str, ...]]:
        found = hits(run, query, "--hits", "99", *options)
        return sorted((hit["session"], hit["message"], hit["part"]) for hit in found)

    assert places("--scan") == places("--no-archive") == places()


def test_reading_without_an_archive_is_said(run: Runner) -> None:
    assert "files" in run("search", "greylisted", "--no-archive").err


def test_without_a_query_the_newest_sessions_are_listed(run: Runner) -> None:
    newest = run("ls", "-n", "5", "--no-header").out.splitlines()
    ended = run("search", "-n", "5", "--no-header")
    assert ended.status == 0
    assert [line.split("\t")[0] for line in ended.out.splitlines()] == [line.split("\t")[0] for line in newest]
    assert run("search", "", "-n", "5", "--no-header").out == ended.out


def test_dropped_messages_are_found_and_marked(run: Runner) -> None:
    (hit,) = hits(run, "make QUIET two hours", "in:prompt")
    assert hit["fate"] == "rewound"
    assert "rewound · " in run("search", "make QUIET two hours", "in:prompt", columns=80).out


def test_files_are_listed_with_time_and_session(run: Runner) -> None:
    names = ["session", "message", "number", "at", "access", "file", "added", "removed", "fate", "project"]
    header, *lines = run("search", "--files", "file:alerts.py").out.splitlines()
    assert header.split("\t") == names
    rows = [dict(zip(names, line.split("\t"), strict=True)) for line in lines]
    assert rows
    assert all("alerts.py" in row["file"] for row in rows)
    assert [row["at"] for row in rows] == sorted((row["at"] for row in rows), reverse=True)
    shown = run("search", "--files", "file:alerts.py", columns=80)
    assert shown.status == 0
    assert f"{rows[0]['session'][:8]}#{rows[0]['number']}" in shown.out
    assert "opens the first one" in shown.err
    assert run("search", "--files", "file:nonsuch.xyz").status == 1
    assert run("search", "--files", "--json").json["schema"] == "pollux.files/1"


def test_commands_are_listed_with_how_they_ended(run: Runner) -> None:
    names = ["session", "message", "number", "at", "status", "exit_code", "program", "command", "fate", "project"]
    header, *lines = run("search", "--commands", "cmd:pytest").out.splitlines()
    assert header.split("\t") == names
    rows = [dict(zip(names, line.split("\t"), strict=True)) for line in lines]
    assert rows
    assert all("pytest" in row["command"] for row in rows)
    assert "pytest" in run("search", "--commands", "cmd:pytest", columns=80).out
    assert run("search", "--commands", "--json").json["schema"] == "pollux.commands/1"
    assert len(run("search", "--commands", "-n", "3", "--no-header").out.splitlines()) == 3


@pytest.mark.parametrize(
    "args",
    [("--files", "--commands"), ("--files", "--count"), ("--commands", "--count"), ("--files", "--scan")],
    ids=" ".join,
)
def test_options_that_contradict_each_other(run: Runner, args: tuple[str, ...]) -> None:
    ended = run("search", *args)
    assert (ended.status, ended.out) == (2, "")
    assert args[0] in ended.err


def test_list_takes_the_same_language(run: Runner) -> None:
    def listed(*args: str) -> list[str]:
        return [line.split("\t")[0][:8] for line in run("ls", "--no-header", *args).out.splitlines()]

    found = listed("greylisted")
    assert found
    assert set(found) >= {session for session in sessions(run, "greylisted") if session in listed()}
    assert listed("greylisted", "mail") == listed("greylisted mail")
    assert listed("project:tide") == listed("--project", "tide")
    assert listed("project:tide", "--project", "skywatch") == []
    assert listed("cost:>0.03", "-Kakao")
    assert listed("  ") == listed()
    ended = run("ls", "xyzzyplugh")
    assert (ended.status, ended.out) == (1, "")
    assert "No session matches" in ended.err
    assert run("ls", "greylisted", "--json").json["schema"] == "pollux.sessions/1"
    assert run("ls", "--saved", "greylisted").status == 2


def test_session_of_a_subagent_is_listed_by_its_root(run: Runner) -> None:
    (agent,) = {hit["session"][:8] for hit in hits(run, "id:7ffa9413", "--hits", "1")} & {"7ffa9413"}
    assert agent in sessions(run, "kind:subagent")
    assert "e92f6bc2" in run("ls", "kind:subagent").out


def test_demo_searches_its_own_sessions(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POLLUX_HOME")
    ended = run("demo", "search", "greylisted", columns=80)
    assert ended.status == 0
    assert "greylisted" in ended.out
    assert "`pollux demo show " in ended.err
    assert "Did you mean `pollux demo search greylisted`?" in run("demo", "search", "greylistd").err


def _home(folder: Path, *prompts: str) -> Path:
    messages = [builders.user(f"u{number}", text, second=number) for number, text in enumerate(prompts, 1)]
    builders.put(builders.chats(folder) / f"{builders.NAME}.jsonl", builders.log(builders.header(), *messages))
    return folder


def test_wide_characters_are_found_and_aligned(run: Runner, tmp_path: Path) -> None:
    home = _home(tmp_path, "连接超时错误 in the log", "接続が拒否されました")
    for query in ("超", "超时", "超时错", "拒否"):
        ended = run("search", query, columns=40, home=home)
        assert ended.status == 0
        assert query in ended.out
        assert max(map(cell_len, ended.out.splitlines())) <= 40
