"""No secret gets past `--redact`, in any format."""

from __future__ import annotations

import json
import random
import string
from pathlib import Path

import pytest
from tests import builders
from tests.cli.running import Runner

from pollux.exports import EXPORTERS

FORMS = [name for name, row in EXPORTERS.items() if not row.reads_archive]
_CHOOSE = random.Random(7)  # noqa: S311  made up, so that nothing here looks like a real one


def _made(prefix: str, length: int = 36) -> str:
    return prefix + "".join(_CHOOSE.choices(string.ascii_letters + string.digits, k=length))


SECRETS = {
    place: _made("ghp" + "_")
    for place in ("prompt", "answer", "thought", "argument", "output", "display", "summary", "notice", "agent")
}
MAIL = "ada.lovelace@" + "analytical-engines.net"
USER = "wilhelmina"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a home with secrets in every field."""
    root = tmp_path / "home" / USER
    chats = builders.chats(root)
    call = builders.call(
        args={"file_path": f"/home/{USER}/a.txt", "content": {"deep": [SECRETS["argument"]]}},
        result=[builders.answers(output=f"token={SECRETS['output']} by {MAIL}")],
        resultDisplay=f"shown {SECRETS['display']}",
        agentId="a1b2c3",
    )
    thought = {"subject": "Secrets", "description": SECRETS["thought"], "timestamp": builders.at(2)}
    half = len(SECRETS["prompt"]) // 2
    split = [{"text": "my key is " + SECRETS["prompt"][:half]}, {"text": SECRETS["prompt"][half:] + " keep it"}]
    lines = (
        builders.header(directories=[f"/home/{USER}/src"]),
        builders.user("u1", split),
        builders.gemini(
            "g1", f"I see {SECRETS['answer']}", thoughts=[thought], toolCalls=[call], tokens=builders.tokens()
        ),
        builders.notice("i1", f"login as {MAIL} with {SECRETS['notice']}", second=3),
        builders.updates(summary=f"About {SECRETS['summary']} of {USER}"),
    )
    builders.put(chats / f"{builders.NAME}.jsonl", builders.log(*lines))
    agent = (
        builders.header("a1b2c3", kind="subagent"),
        builders.user("s1", f"use {SECRETS['agent']}"),
        builders.gemini("s2"),
    )
    builders.put(chats / builders.SESSION / "a1b2c3.jsonl", builders.log(*agent))
    return root


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("archive", [True, False], ids=["archive", "files"])
def test_no_format_contains_a_secret(run: Runner, home: Path, tmp_path: Path, name: str, *, archive: bool) -> None:
    more = () if archive else ("--no-archive",)
    ended = run("export", "--all", "-f", name, "--redact", "-o", f"{tmp_path / 'out'}/", *more, home=home)
    assert ended.status == 0, ended.err
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert len(files) >= 2
    for path in files:
        text = path.read_bytes().decode("utf-8", "replace")
        for place, secret in SECRETS.items():
            assert secret not in text, f"{place} in {path.name}"
            assert secret[: len(secret) // 2] not in text, f"half of {place} in {path.name}"
        assert MAIL not in text, path.name
        assert USER not in text, path.name
    assert "GitHub" in ended.err or " secrets" in ended.err or name in ("calls", "calls-csv", "otlp", "devlog-index")


def test_export_without_redaction_contains_everything(run: Runner, home: Path) -> None:
    text = run("export", "latest", "-f", "json", home=home).out
    assert all(secret in text for place, secret in SECRETS.items() if place not in ("agent", "prompt"))


def test_pseudonyms_and_report(run: Runner, home: Path) -> None:
    ended = run("export", "latest", "-f", "jsonl", "--redact", home=home)
    assert "[redacted:github-token#1]" in ended.out
    assert "[redacted:github-token#2]" in ended.out
    assert "[redacted:email#1]" in ended.out
    assert "Redacted: " in ended.err
    assert run("export", "latest", "-f", "jsonl", "--redact").out == ended.out


def test_dry_run_writes_nothing_and_masks_values(run: Runner, home: Path, tmp_path: Path) -> None:
    ended = run("export", "latest", "--redact-dry-run", "-o", str(tmp_path / "out.json"), home=home)
    assert ended.status == 0
    assert not (tmp_path / "out.json").exists()
    assert not any(secret in ended.out for secret in SECRETS.values())
    assert any("argument" in line for line in ended.out.splitlines())
    assert "None" not in ended.out
    assert "; nothing was written.\nWould be redacted: " in ended.err
    assert any("agent" not in line and line.split("\t")[2] == "s1" for line in ended.out.splitlines())


def test_shared_copy_is_redacted_and_has_no_pictures(run: Runner, home: Path) -> None:
    picture = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo" * 40}}
    path = next(builders.chats(home).glob("*.jsonl"))
    path.write_bytes(path.read_bytes() + builders.log(builders.user("u2", [picture, {"text": "look"}], second=9)))
    shared = run("export", "latest", "--share", home=home)
    assert "iVBORw0KGgo" not in shared.out
    assert SECRETS["prompt"] not in shared.out
    assert "left out" in shared.err
    redacted = run("export", "latest", "--redact")
    assert "iVBORw0KGgo" in redacted.out
    assert "look at them yourself" in redacted.err
    assert json.loads(redacted.out)["session"]["id"] == builders.SESSION


@pytest.mark.parametrize(
    "options", [("--share", "--no-redact"), ("-f", "hf", "--no-redact"), ("-f", "events", "--follow", "--redact")]
)
def test_contradicting_options_are_refused(run: Runner, home: Path, options: tuple[str, ...]) -> None:
    ended = run("export", "latest", *options, home=home)
    assert (ended.status, ended.out) == (2, "")


WORDY = {
    "word": "Project FALCON",
    "phone-number": "+1 415 555 2671",
    "card-number": "4111 1111 1111 1111",
    "ip-address": "10.20.30.40",
    "host-name": "db7.acme.internal",
}


@pytest.fixture
def wordy_home(tmp_path: Path) -> Path:
    """Return a home whose messages contain a word and a value for each optional rule, in several places."""
    text = "; ".join(WORDY.values())
    call = builders.call(
        name="mcp_falcon_search",
        args={"query": {"deep": [text]}, "falcon": 1},
        result=[builders.answers(output=json.dumps({"output": text}))],
        resultDisplay=f"shown {text}",
    )
    lines = (
        builders.header(directories=["/srv/project-falcon"]),
        builders.user("u1", f"about {text}"),
        builders.gemini("g1", f"I see {text}", toolCalls=[call], tokens=builders.tokens()),
        builders.updates(summary=f"Summary of {text}"),
    )
    root = tmp_path / "home" / USER
    builders.put(builders.chats(root) / f"{builders.NAME}.jsonl", builders.log(*lines))
    return root


@pytest.mark.parametrize("name", FORMS)
def test_words_and_optional_rules_work_in_every_format(
    run: Runner, wordy_home: Path, tmp_path: Path, name: str
) -> None:
    file = tmp_path / "words.txt"
    file.write_text("# names of projects\n\n  project falcon  \n", "utf-8")
    options = ("--redact-word", "falcon", "--redact-words", str(file), "--redact-rule", "all")
    ended = run("export", "--all", "-f", name, *options, "-o", f"{tmp_path / 'out'}/", home=wordy_home)
    assert ended.status == 0, ended.err
    for path in (tmp_path / "out").rglob("*"):
        text = path.read_bytes().decode("utf-8", "replace").casefold() if path.is_file() else ""
        assert not [kind for kind, value in WORDY.items() if value.casefold() in text], path
        assert "falcon" not in text
    written = run("export", "latest", "-f", name, "--redact", "-o", str(tmp_path / "other/"), home=wordy_home)
    assert written.status == 0, written.err


def test_words_alone_switch_redaction_on(run: Runner, home: Path) -> None:
    ended = run("export", "latest", "--redact-word", "secrets", home=home)
    assert "[redacted:word#1]" in ended.out
    assert SECRETS["answer"] not in ended.out


def test_dry_run_lists_words_and_optional_rules(run: Runner, wordy_home: Path) -> None:
    words = ("--redact-word", "project falcon", "--redact-word", "falcon")
    options = (*words, "--redact-rule", "phone-number", "--redact-rule", "ip-address")
    ended = run("export", "latest", "--redact-dry-run", *options, home=wordy_home)
    rules = {line.split("\t")[0] for line in ended.out.splitlines()}
    assert rules >= {"word", "phone-number", "ip-address"}
    assert not rules & {"card-number", "host-name"}
    assert WORDY["phone-number"] not in ended.out
    assert "falcon" not in ended.out.casefold()
    assert "phone number (phone-number)" in ended.err


def test_share_says_what_was_replaced_and_what_was_not_looked_for(run: Runner, home: Path) -> None:
    note = run("export", "latest", "--share", "-f", "markdown", home=home).err.splitlines()[-1]
    assert note.startswith("Replaced: ")
    assert " secrets, " in note
    assert "phone-number, card-number, ip-address, host-name (--redact-rule)" in note
    assert note.endswith("Read the result before you send it.")
    note = run("export", "latest", "--share", "--redact-rule", "all", "--redact-word", "secrets", home=home).err
    assert "--redact-rule" not in note
    assert "1 word of yours" in note


def test_changed_words_rewrite_a_folder(run: Runner, wordy_home: Path, tmp_path: Path) -> None:
    target = f"{tmp_path / 'out'}/"
    run("export", "--all", "-f", "markdown", "--redact", "-o", target, home=wordy_home)
    run("export", "--all", "-f", "markdown", "--redact-word", "falcon", "-o", target, home=wordy_home)
    texts = [path.read_text("utf-8") for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert not any("falcon" in text.casefold() for text in texts)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (("--redact-rule", "phone"), "There is no redaction rule 'phone'. Did you mean phone-number?"),
        (("--redact-rule", "host-nam"), "Did you mean host-name?"),
        (("--redact-rule", "host"), "The redaction rule 'host' is always on. Did you mean host-name?"),
        (("--redact-rule", "github-token"), "The redaction rule 'github-token' is always on. Rules to switch on: "),
        (("--redact-rule", "zzz"), "Rules to switch on: phone-number, card-number, ip-address, host-name, all"),
        (("--redact-word", "-"), "Cannot redact the word '-': it has no letters or digits"),
        (("--redact-word", " "), "Cannot redact the word ' ': it has no letters or digits"),
        (("--redact-words", "missing.txt"), "Cannot read the words in missing.txt: No such file or directory"),
        (("--redact-words", "bad.txt"), "bad.txt, line 2: cannot redact the word 'a': it needs at least two"),
        (("--redact-words", "binary.txt"), "Cannot read the words in binary.txt: the file is not UTF-8 text"),
        (("--redact-words", "."), "Cannot read the words in .: Is a directory"),
        (("--redact-word", "acme", "--no-redact"), "--no-redact contradicts --redact-word"),
        (("--redact-word", "acme", "-f", "parquet", "-o", "x/"), "parquet"),
        (("--redact-word", "acme", "-f", "events", "--follow"), "--follow"),
    ],
)
def test_bad_words_and_rules_are_explained(
    run: Runner, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], error: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.txt").write_text("fine\na\n", "utf-8")
    Path("binary.txt").write_bytes(b"\xff\xfe\x00")
    ended = run("export", "latest", *options, home=home)
    assert (ended.status, ended.out) == (2, "")
    assert error in ended.err
