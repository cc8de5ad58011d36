"""Each rule replaces its secrets exactly, and nothing that only looks like them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.redaction.samples import NEAR_MISSES, ROWS, samples

from pollux.redaction import RULES, RuleKind, redactor, table
from pollux.redaction.anchors import GROUPED, NEEDLES
from pollux.redaction.rules import ALL_RULES

MADE_WITHOUT_PATTERN = {"encoded", "user", "host", "word"}
PATTERNS = {rule.id: rule for rule in RULES if rule.id not in MADE_WITHOUT_PATTERN}


def test_table_has_at_least_a_hundred_rules_for_secrets() -> None:
    assert sum(rule.kind is RuleKind.SECRET for rule in RULES) >= 100


def test_ids_are_unique_and_fit_into_a_pseudonym() -> None:
    ids = [rule.id for rule in RULES]
    assert len(ids) == len(set(ids))
    assert all(rule.label.replace("-", "").isalnum() and rule.label.islower() for rule in RULES)


def test_every_rule_has_a_sample() -> None:
    assert set(ROWS) == set(PATTERNS)


def test_page_lists_every_rule() -> None:
    assert [row[0] for row in table()] == [rule.id for rule in ALL_RULES]
    assert all(finds and kind.removesuffix(", off by default") in [*RuleKind] for _, finds, kind in table())


def test_anchors_outside_of_runs_contain_a_needle() -> None:
    needles = [needle for several in NEEDLES.values() for needle in several]
    for rule in PATTERNS.values():
        for anchor in rule.anchors if not rule.in_run else ():
            assert any(needle in anchor.lower() for needle in needles), rule.id


def test_grouped_needles_do_not_overlap() -> None:
    needles = {*NEEDLES, *(needle for several in NEEDLES.values() for needle in several)}
    for letter in GROUPED:
        together = [needle for needle in needles if needle.startswith(letter)]
        ends = {needle[at:] for needle in together for at in range(1, len(needle))}
        assert not [end for end in ends for needle in together if needle.startswith(end) or end.startswith(needle)]


@pytest.mark.parametrize("id_", PATTERNS)
def test_all_forms_of_a_secret_are_found_in_one_text(id_: str) -> None:
    several = [sample for seed in range(2) for sample in samples(id_, seed)]
    for ordered in (several, several[::-1]):
        done = redactor().text("\n\n".join(sample_.text for sample_ in ordered))
        assert not [sample_.secret for sample_ in ordered if sample_.secret in done]


AROUND = [("", ""), ("(", ")"), ('"', '"'), ("`", "`"), ("\n", "\n"), ("\t", "\r\n"), ("\\n", "\\n")]


@pytest.mark.parametrize("id_", PATTERNS)
def test_rule_replaces_its_secrets_and_nothing_else(id_: str) -> None:
    for seed in range(5):
        for _, text, secret in samples(id_, seed):
            full_text = f"Look at this: {text} and at nothing else."
            redaction = redactor()
            assert redaction.text(full_text) == full_text.replace(secret, f"[redacted:{PATTERNS[id_].label}#1]")
            assert {PATTERNS[replacement.rule].label for replacement in redaction.report().replaced} == {
                PATTERNS[id_].label
            }


@pytest.mark.parametrize("id_", PATTERNS)
def test_secret_is_found_between_other_characters(id_: str) -> None:
    for before, behind in AROUND:
        for _, text, secret in samples(id_):
            assert secret not in redactor().text(f"{before}{text}{behind}"), (before, behind)


@given(st.sampled_from(sorted(ROWS)), st.integers(min_value=100, max_value=10**9))
def test_no_secret_is_missed(id_: str, seed: int) -> None:
    for _, text, secret in samples(id_, seed):
        assert secret not in redactor().text(f"see {text} here")


@pytest.mark.parametrize("id_", NEAR_MISSES)
def test_near_miss_is_left_alone(id_: str) -> None:
    assert id_ in PATTERNS
    for text in NEAR_MISSES[id_]:
        assert redactor().text(text) == text


SEED_WORDS = ["ripple", "scissors", "kick", "mammal", "hire", "column", "oak", "again", "sun", "offer", "wealth", "zoo"]


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("curl -u me@corp.io:Tz53QNzc0rP6 https://x.atlassian.net/rest", "Tz53QNzc0rP6"),
        ("curl -umara:Tz53QNzc0rP6 https://acme.io", "Tz53QNzc0rP6"),
        (
            "User name,Access key ID,Secret access key\nmara,AKIA{up},{secret}",
            "LCYMAodeOiRjA0IT5nU/SiQauMhdtLh4XnhWXQCE",
        ),
        ("pip install --index-url https://mara:{secret}@acme.io/simple x", "Tz53QNzc0rP6"),
        ("git clone https://mara:{secret}@acme.io/x.git", "Tz53QNzc0rP6"),
        ("psql postgres://mara:{secret}@db/app", "Tz53QNzc0rP6"),
        ("docker login \\\n  -u mara \\\n  -p {secret} acme.io", "Tz53QNzc0rP6"),
        ("MNEMONIC='{secret}'", " ".join(SEED_WORDS)),
        ("Recovery phrase\n\n{secret}\n", "\n".join(f"{at}. {word}" for at, word in enumerate(SEED_WORDS, 1))),
        ('["mnemonic": "{secret}"]', '", "'.join(SEED_WORDS)),
        ("Your GitHub recovery codes\n\n{secret}\n", "a1b2c-3d4e5\nf6a7b-8c9d0\n12345-abcde"),
        ("backup codes:\n1. {secret}", "1234 5678\n2. 2345 6789\n3. 3456 7890"),
    ],
)
def test_pasted_commands_and_files(text: str, secret: str) -> None:
    done = redactor().text(text.format(secret=secret, up="QWERTYUIOPASDFGH"))
    assert not any(len(line) > 6 and line in done for line in secret.split("\n"))


PLACEHOLDERS = [
    "AKIA" + "IOSFODNN7EXAMPLE",
    "aws_secret_access_key = " + "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "export GITHUB_TOKEN=ghp_" + "x" * 36,
    "OPENAI_API_KEY=sk-proj-" + "X" * 40,
    "ANTHROPIC_API_KEY=<YOUR_KEY>",
    "api_key: ${API_KEY}",
    'apiKey: process.env.OPENAI_API_KEY,\n token = os.environ["TOKEN_OF_MINE_2024"]',
    'password = "<password>"',
    'password: "changeme"',
    "password=$DB_PASSWORD",
    "password: string; token: string | null",
    "def login(user: str, password: str = None, token: str = '') -> bool:",
    "postgres://user:password@localhost/db",
    "https://user:${PASSWORD}@example.com",
    "mysql://root:********@localhost",
    "Authorization: Bearer <token>",
    "Authorization: Bearer $TOKEN",
    "secret: your-secret-here-1234567",
    "token: xxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "glpat-" + "." * 20,
    "curl -u $USER:$PASS https://example.com",
    "docker run -u 1000:1000 alpine",
    "-----BEGIN " + "PRIVATE KEY-----\n...\n-----END " + "PRIVATE KEY-----",
    "-----BEGIN " + "CERTIFICATE-----\n" + "MIIB" * 16 + "\n-----END CERTIFICATE-----",
]
HARMLESS = [
    "passwords are hashed; the token count is 12345 tokens",
    "max_output_tokens=8192, totalTokenCount: 123456789012",
    "password = request.form['password']",
    "token = self.config.get_token_from_environment()",
    "secret_name = 'db-credentials-production'",
    "d3b07384d113edec49eaa6238ad5ff00 is an MD5, 2026-11-15T19:30:00.000Z is a time",
    "e83c5163316f89bfbde7d9ab23ca2e25604af290 is a commit",
    "sha512-9/jjdYkCDfQ0TCL4+jpXeMTGmLf7Vm4kDlKRwSMJ0nTYBdKyDQkpbxlxfS2z1iY5vvYyrqFvVEgRWtzEjJvnLg==",
    "6ece72aa-5955-4bdb-8380-88eda48ac048",
    "git clone git@github.com:acme/widgets.git",
    "noreply@github.com, mara@example.com, someone@mail.example.org, me@localhost",
    "import icon from './icon@2x.png'; npm install @types/node@20.1.0",
    "/home/runner/work, /home/node/app, /Users/Shared/x, C:\\Users\\Public\\y, /home/$USER, /home/<you>",
    "https://example.com/home/settings and GET /users/123 and pages/home/index.tsx",
    "root@localhost:/# make; user@host:~$ ls",
    "https://example.com/a?b=c&d=e#f and ssh://git@host.com/x",
    "task-force-2024-report-final-version-two-dash-names, risk-averse-investors-of-1999",
    "live_update_of_the_whole_page_with_2_or_3_things, sk-learnmodelsandpipelines",
    "test_that_a_very_long_name_of_a_function_is_no_secret_1234567890",
    "gemini-2.5-flash-preview-05-20, claude-opus-4-1-20250805",
    "data-testid=submit-button-primary-large-2 aria-describedby=tooltip-content",
    "pypi-upload, npm_config_registry=https://registry.npmjs.org/, hf_hub_download",
    "export PATH=/usr/local/bin:$PATH; pwd; cd /tmp/work-2024",
    "eyJ is how JSON begins in base64",
    "Basic understanding of Bearer authentication is required",
]


@pytest.mark.parametrize("text", PLACEHOLDERS + HARMLESS)
def test_placeholders_and_harmless_text_are_left_alone(text: str) -> None:
    assert redactor().text(text) == text
