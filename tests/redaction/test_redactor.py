"""A redactor: pseudonyms, names, values, report and findings."""

from __future__ import annotations

import base64
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import values
from tests.redaction.samples import ROWS, sample, samples
from tests.redaction.test_places import call, message, without

from pollux.model import Attachment, Fate, FileRef, ModelCall, Problem, Project, Role, Session, Text, Tokens
from pollux.redaction import RULES, Redactor, RuleKind, redactor

GITHUB = [sample("github-token", seed).text for seed in range(3)]
DEEP = "\\" * 16
"""A backslash in JSON in JSON in JSON in JSON."""


def session(**fields: Any) -> Session:  # noqa: ANN401  fields of a session
    return Session("s1", "main", fields.pop("project", Project()), **fields)


# Pseudonyms


def test_pseudonyms_follow_values() -> None:
    redaction = redactor()
    first, second, third = GITHUB
    assert redaction.text(f"{second} {first} {second}") == (
        "[redacted:github-token#1] [redacted:github-token#2] [redacted:github-token#1]"
    )
    assert redaction.json({"a": [first, third]}) == {"a": ["[redacted:github-token#2]", "[redacted:github-token#3]"]}


def test_pseudonyms_are_numbered_by_first_appearance() -> None:
    key, token = sample("aws-access-key").text, GITHUB[0]
    texts = [f"{token} {key}", f"{key} {token}"]
    assert [redactor().text(text) for text in texts] == [
        "[redacted:github-token#1] [redacted:aws-access-key#1]",
        "[redacted:aws-access-key#1] [redacted:github-token#1]",
    ]


def test_pseudonyms_are_deterministic() -> None:
    text = " ".join(sample.text for id_ in ROWS for sample in samples(id_))
    assert redactor().text(text) == redactor().text(text)


def test_private_key_has_one_pseudonym_in_file_json_and_diff() -> None:
    text = sample("private-key").text
    forms = (text, json.dumps(text), "\n".join(f"+{line}" for line in text.split("\n")))
    redaction = redactor()
    assert all("[redacted:private-key#1]" in redaction.text(form) for form in forms)


def test_coloured_secret_has_the_pseudonym_of_the_plain_one() -> None:
    redaction = redactor()
    assert redaction.text(GITHUB[0]) == "[redacted:github-token#1]"
    assert (
        redaction.text(f"\x1b[31m{GITHUB[0][:9]}\x1b[32m{GITHUB[0][9:]}\x1b[0m")
        == "\x1b[31m[redacted:github-token#1]\x1b[0m"
    )


_WORDS = st.sampled_from(
    [
        *"abc 012_-/+=.,:;@\"'`\\\n\t$%",
        "see",
        "password=",
        "token: ",
        "/home/",
        "[redacted:",
        "[redacted:user#1]",
        "\x1b[0m",
        "%41",
        "\\n",
        "Ünï",
    ]
)
_SECRETS = st.builds(
    lambda id_, seed: sample(id_, seed).text, st.sampled_from(sorted(ROWS)), st.integers(min_value=0, max_value=99)
)
TEXTS = st.lists(_WORDS | _SECRETS, max_size=12).map("".join)


@given(TEXTS)
def test_redaction_is_idempotent(text: str) -> None:
    redaction = redactor()
    once = redaction.text(text)
    assert redaction.text(once) == once
    assert redactor().text(once) == once


@given(
    st.sampled_from(sorted(ROWS)),
    st.integers(min_value=0, max_value=99),
    st.lists(st.floats(min_value=0, max_value=1), max_size=6),
)
def test_secret_is_found_wherever_a_text_is_cut(id_: str, seed: int, cuts: list[float]) -> None:
    secret_sample = sample(id_, seed)
    full_text = f"see {secret_sample.text} there"
    places = sorted({0, *(int(cut * len(full_text)) for cut in cuts), len(full_text)})
    parts = [Text(full_text[start:end]) for start, end in itertools.pairwise(places)]
    done = redactor().message(message(*parts)).text
    assert secret_sample.secret not in done
    if not id_.startswith("prompt"):  # half of a name may be a name, too
        assert done == f"see {without(secret_sample)} there"


@given(st.text())
def test_text_without_anchors_is_unchanged(text: str) -> None:
    low = text.lower()
    if not any(anchor.lower() in low for rule in RULES for anchor in rule.anchors) and "%" not in text:
        assert redactor().text(text) is text or redactor().text(text) == text


@given(values)
def test_value_keeps_its_structure(value: Any) -> None:  # noqa: ANN401  any JSON
    assert _form(redactor().json(value)) == _form(value)


def _form(value: Any) -> Any:  # noqa: ANN401  any JSON
    match value:
        case dict():
            return [_form(inner) for inner in value.values()]
        case list():
            return [_form(inner) for inner in value]
        case str():
            return "text"
        case _:
            return value


# Values


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"password": "hunter2!x"}, {"password": "[redacted:generic-password#1]"}),
        ({"env": {"API_KEY": "q1w2e3r4t5z6u7i8o9p0a1"}}, {"env": {"API_KEY": "[redacted:generic-token#1]"}}),
        (
            [{"name": "DB_PASSWORD", "value": "hunter2!x"}, {"name": "PORT", "value": "5432"}],
            [{"name": "DB_PASSWORD", "value": "[redacted:generic-password#1]"}, {"name": "PORT", "value": "5432"}],
        ),
        (
            {"args": ["login", "--password", "hunter2!x", "--verbose"]},
            {"args": ["login", "--password", "[redacted:option-password#1]", "--verbose"]},
        ),
        (
            {"headers": {"Authorization": "token q1w2e3r4t5z6u7i8"}},
            {"headers": {"Authorization": "token [redacted:authorization-header#1]"}},
        ),
        (
            {"password": "password", "token": "string", "keys": 3, "secret": None},
            {"password": "password", "token": "string", "keys": 3, "secret": None},
        ),
        ({"ldap_bind_pw": "9xPzEXjA0D"}, {"ldap_bind_pw": "[redacted:generic-password#1]"}),
        ({"psk": "9xPzEXjA0D"}, {"psk": "[redacted:pw-password#1]"}),
        ({"AIRTABLE_API_KEY": "keyaB12cD34eF56gH"}, {"AIRTABLE_API_KEY": "[redacted:short-key#1]"}),
        (
            {"args": ["docker", "login", "-u", "mara", "-p", "hunter2!x"]},
            {"args": ["docker", "login", "-u", "mara", "-p", "[redacted:login-password#1]"]},
        ),
        (
            {"kty": "OKP", "x": "aB3" * 14, "d": "cD4" * 14, "p": "eF5" * 14},
            {"kty": "OKP", "x": "aB3" * 14, "d": "[redacted:jwk#1]", "p": "[redacted:jwk#2]"},
        ),
        ({"x": {"p": "eF5" * 14}}, {"x": {"p": "eF5" * 14}}),
        (
            {"auths": {"ghcr.io": {"auth": "bWFyYTpUcjB1YjRkb3IzeHl6Nzc="}}},
            {"auths": {"ghcr.io": {"auth": "[redacted:docker-auth#1]"}}},
        ),
        (
            {"recovery_codes": ["a1b2c-3d4e5", "f6a7b-8c9d0"], "keys": ["ctrl", "alt"]},
            {"recovery_codes": ["[redacted:recovery-codes#1]", ""], "keys": ["ctrl", "alt"]},
        ),
        ({"MARA@acme.io": 1, "mara@acme.io": 2}, {"[redacted:email#1]": 1, "[redacted:email#1] (2)": 2}),
        ([], []),
        ({}, {}),
        ([[]], [[]]),
        (None, None),
    ],
)
def test_value_is_searched_with_its_key(value: Any, expected: Any) -> None:  # noqa: ANN401  any JSON
    assert redactor().json(value) == expected


def test_screen_on_the_wire() -> None:
    token = GITHUB[0]
    lines: Any = [[{"text": "$ "}, {"text": token[:9], "bold": True}, {"text": token[9:]}], [], [{"text": "ok"}]]
    assert redactor().json({"resultDisplay": lines}) == {
        "resultDisplay": [
            [{"text": "$ "}, {"text": "[redacted:github-token#1]", "bold": True}, {"text": ""}],
            [],
            [{"text": "ok"}],
        ]
    }


def test_text_and_pictures_on_the_wire() -> None:
    secret = base64.b64encode(f"see {GITHUB[0]}".encode()).decode()
    picture = base64.b64encode(bytes(range(256)) * 9).decode()
    value = [
        {"inlineData": {"mimeType": "text/plain", "data": secret}},
        {"inlineData": {"mimeType": "image/png", "data": picture}},
    ]
    redaction = redactor()
    done: Any = redaction.json(value)
    assert base64.b64decode(done[0]["inlineData"]["data"]) == b"see [redacted:github-token#1]"
    assert done[1] == value[1]
    dropped: Any = redactor(drop_binary=True).json(value)
    assert dropped[1] == {"inlineData": {"mimeType": "image/png", "data": ""}}


# Names


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/home/mara", "/home/[redacted:user#1]"),
        ("/home/mara.", "/home/[redacted:user#1]."),
        ("cd /home/mara/webapp && ls", "cd /home/[redacted:user#1]/webapp && ls"),
        ("PATH=/home/mara/bin:/home/jo/bin", "PATH=/home/[redacted:user#1]/bin:/home/[redacted:user#2]/bin"),
        ("-I/home/mara/include", "-I/home/[redacted:user#1]/include"),
        ("/var/home/mara/x", "/var/home/[redacted:user#1]/x"),
        ("/Users/mara/Library", "/Users/[redacted:user#1]/Library"),
        ("/mnt/c/Users/mara/x", "/mnt/c/Users/[redacted:user#1]/x"),
        ("/c/Users/mara/x", "/c/Users/[redacted:user#1]/x"),
        ("C:\\Users\\mara\\x", "C:\\Users\\[redacted:user#1]\\x"),
        ("c:\\users\\mara", "c:\\users\\[redacted:user#1]"),
        ('"C:\\\\\\\\Users\\\\\\\\mara\\\\\\\\x"', '"C:\\\\\\\\Users\\\\\\\\[redacted:user#1]\\\\\\\\x"'),
        ("C:/Users/mara/x", "C:/Users/[redacted:user#1]/x"),
        ("C:\\Users\\Mara Muster\\x", "C:\\Users\\[redacted:user#1]\\x"),
        ("file:///home/mara/x.html", "file:///home/[redacted:user#1]/x.html"),
        ("file:///C:/Users/mara/x", "file:///C:/Users/[redacted:user#1]/x"),
        ("%2Fhome%2Fmara%2Fx", "%2Fhome%2F[redacted:user#1]%2Fx"),
        ("file%3A%2F%2F%2FUsers%2Fmara%2Fx", "file%3A%2F%2F%2FUsers%2F[redacted:user#1]%2Fx"),
        ("\\/home\\/mara\\/x", "\\/home\\/[redacted:user#1]\\/x"),
        ("~/.claude/projects/-home-mara-webapp/", "~/.claude/projects/-home-[redacted:user#1]-webapp/"),
        ("mara@thinkpad:~/src$ make", "[redacted:user#1]@[redacted:host#1]:~/src$ make"),
        ("[mara@thinkpad src]$ make", "[[redacted:user#1]@[redacted:host#1] src]$ make"),
        ("mara@MacBook-Pro ~ % make", "[redacted:user#1]@[redacted:host#1] ~ % make"),
        ("root@0123456789ab:/app# make", "root@0123456789ab:/app# make"),
        ("/home/山田/x", "/home/[redacted:user#1]/x"),
        ("\\u001b/home/mara/x", "\\u001b/home/[redacted:user#1]/x"),
        (f"C:{DEEP}Users{DEEP}mara", f"C:{DEEP}Users{DEEP}[redacted:user#1]"),
    ],
)
def test_homes_and_prompts(text: str, expected: str) -> None:
    assert redactor().text(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Mara Muster <mara@acme.io>", "Mara Muster <[redacted:email#1]>"),
        ("mailto:Mara@Acme.io?x", "mailto:[redacted:email#1]?x"),
        ("a.b+c@mail.acme.co.uk.", "[redacted:email#1]."),
        ("...mara@acme.io...", "...[redacted:email#1]..."),
        ("mara%40acme.io", "[redacted:email#1]"),
        ("mära@bücher.de", "[redacted:email#1]"),
        ("山田@例え.jp", "[redacted:email#1]"),
        ("12345+mara@users.noreply.github.com", "[redacted:email#1]"),
        ("jo@acme.io, jo@acme.io, mo@acme.io", "[redacted:email#1], [redacted:email#1], [redacted:email#2]"),
    ],
)
def test_addresses(text: str, expected: str) -> None:
    assert redactor().text(text) == expected


def test_known_name_is_replaced_as_a_word() -> None:
    redaction = redactor()
    assert redaction.text("Marathon, mara, Mara's") == "Marathon, mara, Mara's"
    assert (
        redaction.text("see /home/mara/.bashrc of Mara") == "see /home/[redacted:user#1]/.bashrc of [redacted:user#1]"
    )
    assert redaction.text("Marathon, mara, Mara's, MARA, mara_x, tamara, mara-laptop") == (
        "Marathon, [redacted:user#1], [redacted:user#1]'s, [redacted:user#1], [redacted:user#1]_x, tamara, "
        "[redacted:user#1]-laptop"
    )


def test_route_of_a_website_teaches_no_name() -> None:
    redaction = redactor()
    redaction.text("<Link to='/home/overview'>")
    assert redaction.text("an overview") == "an overview"


@pytest.mark.parametrize("name", ["root", "will", "dev", "jo", "node", "hunter"])
def test_common_and_short_names_are_replaced_in_paths_only(name: str) -> None:
    redaction = redactor(user_name=name, user_home=f"/home/{name}")
    assert redaction.text(f"{name} {name}") == f"{name} {name}"


def test_user_name_and_words() -> None:
    redaction = redactor(user_home=Path("/srv/people/wilma"), user_name="wilma.stone", words=["Acme", "x-7"])
    assert redaction.text("Wilma at acme (wilma.stone, X-7, acmes)") == (
        "[redacted:user#1] at [redacted:word#1] ([redacted:user#2], [redacted:word#2], acmes)"
    )


def test_user_is_learned_from_the_project_path() -> None:
    redaction = redactor()
    redaction.session(session(project=Project(path="/Users/wilma/x")))
    assert redaction.text("ask Wilma") == "ask [redacted:user#1]"


def test_name_is_learned_before_redaction() -> None:
    first, last = message(Text("Wilma asks")), message(Text("see /home/wilma/.config and wilma@thinkpad:~$ x"))
    redaction = redactor()
    redaction.learn(first)
    redaction.learn(last)
    assert redaction.message(first).text == "[redacted:user#1] asks"
    assert redaction.text("on thinkpad") == "on [redacted:host#1]"
    assert not [finding for finding in redaction.findings() if finding.message != "m1" and finding.message is not None]


def test_number_of_learned_names_is_limited() -> None:
    redaction = redactor()
    redaction.text("\n".join(f"/home/person{chr(97 + n // 26)}{chr(97 + n % 26)}/.bashrc" for n in range(260)))
    assert redaction.text("personaa personjz") == "[redacted:user#1] personjz"
    assert ("names beyond the first 200, as words", 60) in [
        (item.what, item.count) for item in redaction.report().unscanned
    ]


# Sessions


def test_fields_of_a_session() -> None:
    token, path = GITHUB[0], "/home/wilma/webapp"
    done = redactor().session(
        session(
            project=Project("ab12", "wilma-app", path, "marker", proven=True),
            title=f"Use {token}",
            first_prompt=f"{token}?",
            last_prompt="mail mara@acme.io",
            files=(FileRef(Path(path) / "a.jsonl", Role.MAIN, "log"),),
            calls=(ModelCall("s1", "m1", None, "gemini", Fate.ACTIVE, Tokens(1), f"{path}/a.jsonl", 3),),
            problems=(Problem("torn-line", f"a line of {path}", f"{path}/a.jsonl", 3),),
            extra={"directories": [path]},
        )
    )
    plain = "/home/[redacted:user#1]/webapp"
    assert done == session(
        project=Project("ab12", "[redacted:user#1]-app", plain, "marker", proven=True),
        title="Use [redacted:github-token#1]",
        first_prompt="[redacted:github-token#1]?",
        last_prompt="mail [redacted:email#1]",
        files=(FileRef(Path(plain) / "a.jsonl", Role.MAIN, "log"),),
        calls=(ModelCall("s1", "m1", None, "gemini", Fate.ACTIVE, Tokens(1), f"{plain}/a.jsonl", 3),),
        problems=(Problem("torn-line", f"a line of {plain}", f"{plain}/a.jsonl", 3),),
        extra={"directories": [plain]},
    )


# The account


def test_report() -> None:
    first, second, _ = GITHUB
    redaction = redactor()
    redaction.session(session())
    redaction.message(message(Text(f"{first} {second} {first}")))
    redaction.message(call(output=f"{second} mara@acme.io"))
    report = redaction.report()
    rows = [
        (
            replacement.rule,
            replacement.kind,
            replacement.count,
            replacement.distinct,
            replacement.session,
            replacement.message,
        )
        for replacement in report.replaced
    ]
    assert rows == [("github-token", RuleKind.SECRET, 4, 2, "s1", "m1"), ("email", RuleKind.EMAIL, 1, 1, "s1", "m1")]
    assert report.unscanned == ()


def test_findings_mask_values() -> None:
    redaction = redactor()
    redaction.session(session())
    for id_ in ROWS:
        for each in samples(id_):
            redaction.message(call(args={"note": f"take {each.text} now"}))
            redaction.message(message(Text(f"take {each.text} now")))
    for id_ in ROWS:
        for each in samples(id_):
            shown = " ".join(finding.excerpt for finding in redaction.findings())
            assert each.secret not in shown
            assert len(each.secret) < 20 or each.secret[4:16] not in shown, id_


def test_findings_are_counted_by_place() -> None:
    redaction = redactor()
    redaction.session(session())
    redaction.message(message(Text(f"take {GITHUB[0]} and {GITHUB[1]} now")))
    redaction.message(call(args={"x": GITHUB[0]}, output="mara@acme.io"))
    assert [
        (finding.rule, finding.session, finding.message, finding.where, finding.count)
        for finding in redaction.findings()
    ] == [
        ("github-token", "s1", "m1", "text", 2),
        ("github-token", "s1", "m1", "tool: arguments", 1),
        ("email", "s1", "m1", "tool: output", 1),
    ]
    assert [finding.excerpt for finding in redaction.findings()] == [
        "take ghp_…(40) and [redact",
        "ghp_…(40)",
        "m…(12)",
    ]


def test_binary_data_is_reported() -> None:
    picture = base64.b64encode(bytes(range(256)) * 9).decode()
    redaction = redactor()
    attachments = (Attachment("image/png", 2304, None, picture), Attachment("application/pdf", 2304, None, picture))
    done = redaction.message(message(*attachments, Attachment("text/plain", 2304, None, picture)))
    assert done.parts[:2] == attachments
    redaction.text(f"data:image/png;base64,{picture}")
    rows = [
        (item.what, item.media_type, item.count, item.size, item.is_dropped) for item in redaction.report().unscanned
    ]
    assert rows == [
        ("attachment", "application/pdf", 1, 2304, False),
        ("attachment", "image/png", 1, 2304, False),
        ("attachment", "text/plain", 1, 2304, False),
        ("base64 in a text", "", 1, 2304, False),
    ]


def test_binary_data_can_be_dropped() -> None:
    redaction = redactor(drop_binary=True)
    done = redaction.message(message(Attachment("image/png", 9, "file:///home/mara/x.png", "iVBORw0KGgo=")))
    assert done.parts == (Attachment("image/png", 9, "file:///home/[redacted:user#1]/x.png", None),)
    assert [(item.count, item.is_dropped) for item in redaction.report().unscanned] == [(1, True)]


def test_attachment_with_only_a_uri() -> None:
    attachment = Attachment("image/png", None, "https://example.com/x.png")
    assert redactor().message(message(attachment)).parts == (attachment,)


def test_clean_message_is_unchanged() -> None:
    plain = message(Text("nothing to see"), thoughts=(), extra={"a": [1, 2.5, None, {"b": "c"}]})
    assert redactor().message(plain) == plain
    assert Redactor().report().replaced == ()


@pytest.mark.parametrize("depth", [100, 300, 900])
def test_deeply_nested_value(depth: int) -> None:
    for before, behind in (("[", "]"), ('{"a":', "}")):
        value = json.loads(f'{before * depth}"{GITHUB[0]}"{behind * depth}')
        redaction = redactor()
        done = redaction.json(value)
        redaction.learn(message(Text("x"), extra={"deep": value}))
        text = done if isinstance(done, str) else json.dumps(done)
        assert GITHUB[0] not in text


def test_long_chain_of_secrets_is_replaced() -> None:
    for id_ in ("tencent-secret-id", "newrelic-license", "launchdarkly-key"):
        secret = sample(id_).text
        done = redactor().text(f"see {secret * 40} there")
        assert done.startswith("see [redacted:")
        assert done.endswith("] there")
        assert secret[-20:] not in done


def test_key_with_padding_is_found_before_other_letters() -> None:
    text = sample("vault-unseal-key", 0).text + sample("age-key", 0).text
    assert redactor().text(text).count("[redacted:") == 2
