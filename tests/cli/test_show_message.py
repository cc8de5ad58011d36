"""`show SESSION#MESSAGE` opens a session at a message."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests import builders
from tests.cli.running import Runner
from tests.cli.terminal import COLOURS, on_terminal

from pollux.cli.demo import HOME as DEMO

SESSION = "602c50c2"
FILE = next((DEMO / ".gemini" / "tmp" / "skywatch" / "chats").glob(f"session-*-{SESSION}.jsonl"))


def timeline(run: Runner, session: str = SESSION) -> list[dict[str, str]]:
    messages: list[dict[str, str]] = run("show", session, "--json").json["timeline"]
    return messages


def test_number_id_and_beginning_of_an_id_name_the_same_message(run: Runner) -> None:
    message = timeline(run)[6]
    expected = run("show", f"{SESSION}#7")
    assert expected.status == 0
    assert "message 7 of " in expected.out
    assert message["id"] in expected.out
    for name in (message["id"], message["id"][:13], message["id"][:13].upper(), "m7"):
        assert run("show", f"{SESSION}#{name}").out == expected.out


def test_transcript_begins_a_few_messages_before(run: Runner) -> None:
    n_messages = len(timeline(run))
    whole, late = run("show", SESSION).out, run("show", f"{SESSION}#{n_messages}").out
    assert f"▶ message {n_messages} of {n_messages}" in late
    assert "earlier messages: `pollux show 602c50c2` prints all." in late
    assert "Two false alarms last night" in whole
    assert "Two false alarms last night" not in late.partition("─\n")[2]
    before = late.partition("▶")[0].partition("prints all.")[2]
    assert before.strip(), "the messages before give the context"


def test_first_message_has_nothing_before_it(run: Runner) -> None:
    shown = run("show", f"{SESSION}#1").out
    assert "earlier message" not in shown
    assert "▶ message 1 of" in shown


def test_message_is_printed_in_full_even_if_it_was_dropped(run: Runner) -> None:
    texts = [message["text"] for message in timeline(run)]
    number = 1 + texts.index("Can we just make QUIET two hours?")
    plain = run("show", SESSION).out
    assert "Can we just make QUIET" not in plain
    shown = run("show", f"{SESSION}#{number}")
    assert shown.status == 0
    assert "rewound" in shown.out.partition("▶")[2].partition("\n")[0]
    assert "Can we just make QUIET" in shown.out.partition("▶")[2]


def test_thoughts_and_output_of_the_message_are_not_folded(run: Runner, tmp_path: Path) -> None:
    output = "\n".join(f"line {number}" for number in range(300))
    call = builders.call(result=[builders.answers(output=output)])
    thoughts = [{"subject": "Plan", "description": "read the file first", "timestamp": builders.at(2)}]
    answer = builders.gemini("answer-1", "done", toolCalls=[call], thoughts=thoughts)
    lines = [builders.header(), builders.user(), answer]
    builders.put(builders.chats(tmp_path) / f"{builders.NAME}.jsonl", builders.log(*lines))
    short, full = run("show", "latest", home=tmp_path).out, run("show", "latest#answer-1").out
    assert ["line 150" in text for text in (short, full)] == [False, True]
    assert ["read the file first" in text for text in (short, full)] == [False, True]


def test_json_begins_with_the_message(run: Runner) -> None:
    messages = timeline(run)
    found = run("show", f"{SESSION}#4", "--json").json
    assert found["timeline"] == messages[3:]
    assert found["session"]["id"].startswith(SESSION)


@pytest.mark.parametrize("command", ["show", "show --json"])
def test_file_has_messages_too(run: Runner, command: str, tmp_path: Path) -> None:
    words = command.split()
    third = run("show", SESSION, "--json").json["timeline"][2]["id"]
    for name in (f"{FILE}#3", f"{FILE.name}#3", f"{FILE.stem}#3"):
        ended = run(*words, name)
        assert (ended.status, third in ended.out) == (0, True)
    odd = Path(shutil.copy(FILE, tmp_path / "odd#3.jsonl"))
    assert "▶" not in run("show", str(odd)).out
    assert "▶ message 3 of" in run("show", f"{odd}#3").out


def test_newest_session_is_meant_without_a_session(run: Runner) -> None:
    assert run("show", "#2").out == run("show", "latest#2").out


def test_unknown_message_is_named_with_what_can_be_used(run: Runner) -> None:
    n_messages = len(timeline(run))
    for name in ("0", str(n_messages + 1), "none-such", "", "-1", "9" * 400):
        ended = run("show", f"{SESSION}#{name}")
        assert (ended.status, ended.out) == (1, "")
        usable = f"use a number from 1 to {n_messages}, a message ID or the beginning of one"
        assert ended.err == f"Session {SESSION} has no message '{name}': {usable}.\n"
    assert run("show", "none-such#1").err.startswith("No session matches 'none-such'")


def test_ambiguous_beginning_asks_for_more(run: Runner, tmp_path: Path) -> None:
    lines = [builders.header(), builders.user("abc-1"), builders.user("abc-2", second=3)]
    builders.put(builders.chats(tmp_path) / f"{builders.NAME}.jsonl", builders.log(*lines))
    ended = run("show", "latest#abc", home=tmp_path)
    assert ended.status == 2
    assert "'abc' matches 2 messages of session" in ended.err
    assert "(abc-1, abc-2). Give more characters of the message ID." in ended.err


def test_tag_of_a_saved_conversation_may_contain_the_sign(run: Runner, tmp_path: Path) -> None:
    chat = '[{"role":"user","parts":[{"text":"saved words"}]},{"role":"model","parts":[{"text":"ok"}]}]'
    builders.put(builders.chats(tmp_path).parent / "checkpoint-fix%2312.json", chat.encode())
    tag = run("ls", "--saved", "--no-header", home=tmp_path).out.split("\t")[0]
    assert tag == "fix#12"
    assert "saved words" in run("show", tag).out


@pytest.mark.parametrize("command", ["export", "audit", "tree"])
def test_other_commands_say_that_they_take_a_session(run: Runner, command: str) -> None:
    ended = run(command, f"{SESSION}#3")
    assert ended.status == 1
    assert "Only `pollux show` takes a message after `#`." in ended.err


def test_pager_begins_at_the_message_and_has_everything_before_it(tmp_path: Path) -> None:
    home = Path(shutil.copytree(DEMO, tmp_path / "home"))
    pager = tmp_path / "less"
    pager.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "less 608" && exit\necho "PAGED $@"\nexec cat\n')
    pager.chmod(0o755)
    _, shown = on_terminal(home, "show", f"{SESSION}#9", lines=10, PAGER=str(pager))
    text = COLOURS.sub("", shown)
    assert "PAGED +/message\\ 9\\ of" in text
    assert "Two false alarms last night" in text.partition("▶ message 9 of")[0].partition("─\n")[2]
    other = tmp_path / "more"
    other.write_text('#!/bin/sh\necho "PAGED $@"\nexec cat\n')
    other.chmod(0o755)
    _, shown = on_terminal(home, "show", f"{SESSION}#9", lines=10, PAGER=str(other))
    assert "PAGED \n" in shown
    assert "earlier messages" in shown


def test_place_is_readable_without_unicode_and_fits(run: Runner) -> None:
    for columns in (30, 40, 80):
        lines = run("show", f"{SESSION}#5", columns=columns).out.splitlines()
        assert max(map(len, lines)) <= columns
