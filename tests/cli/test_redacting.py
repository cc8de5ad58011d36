"""Nothing secret gets past `--redact`, in whatever form a session is handed over."""

from __future__ import annotations

import json
import random
import string
from pathlib import Path

import pytest
from tests import builders
from tests.cli.running import Runner

from pollux.exports import EXPORTERS

FORMS = [name for name, row in EXPORTERS.items() if not row.is_of_archive]
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
    """Put a home with secrets in every place."""
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
def test_no_form_gives_a_secret_away(run: Runner, home: Path, tmp_path: Path, name: str, *, archive: bool) -> None:
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
    assert "GitHub" in ended.err or name in ("calls", "calls-csv", "otlp", "devlog-index")


def test_without_it_all_is_handed_over(run: Runner, home: Path) -> None:
    text = run("export", "latest", "-f", "json", home=home).out
    assert all(secret in text for place, secret in SECRETS.items() if place not in ("agent", "prompt"))


def test_pseudonyms_tell_values_apart_and_report_says_what(run: Runner, home: Path) -> None:
    ended = run("export", "latest", "-f", "jsonl", "--redact", home=home)
    assert "[redacted:github-token#1]" in ended.out
    assert "[redacted:github-token#2]" in ended.out
    assert "[redacted:email#1]" in ended.out
    assert "Redacted: " in ended.err
    assert run("export", "latest", "-f", "jsonl", "--redact").out == ended.out


def test_dry_run_writes_nothing_and_gives_nothing_away(run: Runner, home: Path, tmp_path: Path) -> None:
    ended = run("export", "latest", "--redact-dry-run", "-o", str(tmp_path / "out.json"), home=home)
    assert ended.status == 0
    assert not (tmp_path / "out.json").exists()
    assert not any(secret in ended.out for secret in SECRETS.values())
    assert any("argument" in line for line in ended.out.splitlines())
    assert "None" not in ended.out
    assert "; nothing was written.\nWould be redacted: " in ended.err
    assert any("agent" not in line and line.split("\t")[2] == "s1" for line in ended.out.splitlines())


def test_what_is_shared_is_redacted_and_has_no_pictures(run: Runner, home: Path) -> None:
    picture = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo" * 40}}
    path = next(builders.chats(home).glob("*.jsonl"))
    path.write_bytes(path.read_bytes() + builders.log(builders.user("u2", [picture, {"text": "look"}], second=9)))
    shared = run("export", "latest", "--share", home=home)
    assert "iVBORw0KGgo" not in shared.out
    assert SECRETS["prompt"] not in shared.out
    assert "left out" in shared.err
    redacted = run("export", "latest", "--redact")
    assert "iVBORw0KGgo" in redacted.out
    assert "check them yourself" in redacted.err
    assert json.loads(redacted.out)["session"]["id"] == builders.SESSION


@pytest.mark.parametrize(
    "options", [("--share", "--no-redact"), ("-f", "hf", "--no-redact"), ("-f", "events", "--follow", "--redact")]
)
def test_what_cannot_be_is_refused(run: Runner, home: Path, options: tuple[str, ...]) -> None:
    ended = run("export", "latest", *options, home=home)
    assert (ended.status, ended.out) == (2, "")
