"""Optional rules find phone numbers, card numbers, IP addresses and host names, and ignore lookalikes."""

from __future__ import annotations

import pytest

from pollux.redaction import OPTIONAL_RULES, redactor

FOUND = {
    "phone-number": [
        *("+1 415 555 2671", "+1-415-555-2671", "+1 (415) 555-2671", "+14155552671", "(415) 555-2671", "415-555-2671"),
        *("415.555.2671", "1-800-555-0199", "+49 30 1234567", "+49 (0)30 123 456-78", "+33 6 12 34 56 78"),
        *("+44 20 7946 0958", "+91 98765 43210", "+86 138 0013 8000", "+491711234567", "0049 171 1234567"),
        *("+49.30.1234567", "+81-3-1234-5678"),
    ],
    "card-number": [
        *("4111 1111 1111 1111", "4111-1111-1111-1111", "4111111111111111", "5555 5555 5555 4444", "378282246310005"),
        *("3782 822463 10005", "6011111111111117", "3530111333300000", "30569309025904", "2223003122003222"),
        *("6200000000000005", "4222222222222"),
    ],
    "ip-address": [
        *("10.0.0.5", "192.168.178.42", "203.0.113.9", "172.16.254.1", "85.214.132.117", "2001:db8::8a2e:370:7334"),
        *("fe80::1ff:fe23:4567:890a", "2a01:4f8:c2c:123::1", "::ffff:192.0.2.128", "fd12:3456:789a:1::1"),
        "2001:0db8:85a3:0000:0000:8a2e:0370:7334",
    ],
    "host-name": [
        *("db-3.prod.acme.internal", "build7.corp", "mara-macbook.local", "jenkins.acme.com", "intranet.acme.co.uk"),
        *(
            "ip-10-0-3-17.ec2.internal",
            "acme.de",
            "registry.acme.io",
            "git.acme.dev",
            "db1.example.com",
            "acme.storage.googleapis.com",
        ),
    ],
}


@pytest.mark.parametrize(("rule", "value"), [(rule, value) for rule, values in FOUND.items() for value in values])
def test_optional_rule_finds_its_values(rule: str, value: str) -> None:
    for text in (f"see {value} there", f"see {value}.", f'{{"a": "{value}"}}', f"({value})", value):
        pseudonym = f"[redacted:{rule}#1]"
        assert redactor(rules=[rule]).text(text) == text.replace(value, pseudonym)
        assert value in redactor().text(text), "off by default"


@pytest.mark.parametrize(
    ("rule", "text", "value"),
    [
        ("phone-number", '{"phone": "0171 1234567"}', "0171 1234567"),
        ("phone-number", "Tel.: 030/1234567", "030/1234567"),
        ("phone-number", "mobile_number=01711234567", "01711234567"),
        ("phone-number", "phone 030 901820", "030 901820"),
        ("phone-number", '{\\"phone_number\\": \\"4155552671\\"}', "4155552671"),
        ("ip-address", "ssh root@1.2.3.4 -p 22", "1.2.3.4"),
        ("ip-address", "http://5.6.7.8/x", "5.6.7.8"),
        ("ip-address", "10.1.0.0/16", "10.1.0.0"),
        ("ip-address", "http://[2001:db8::1]:8080/", "2001:db8::1"),
        ("ip-address", "fe80::1%eth0", "fe80::1"),
        ("ip-address", "ping 10%2e0.0.5", "10%2e0.0.5"),
        ("host-name", "https://wiki.acme.com/x?y=1", "wiki.acme.com"),
        ("host-name", "http://buildbox7:8080/job", "buildbox7"),
        ("host-name", "ssh -p 22 deploy@build7", "build7"),
        ("host-name", "scp a.txt deploy@build7:/tmp", "build7"),
        ("host-name", "https%3A%2F%2Fwiki.acme.com%2Fx", "wiki.acme.com"),
    ],
)
def test_optional_rule_reads_what_surrounds_a_value(rule: str, text: str, value: str) -> None:
    assert redactor(rules=[rule]).text(text) == text.replace(value, f"[redacted:{rule}#1]")


LEFT_ALONE = {
    "phone-number": [
        *("+2026-11-18 09:35:12", "+3.14159265358", "@@ -120,7 +120,9 @@", "+1731900000", "+1763459876543"),
        *("2026-11-18 09:35", "256 512 1024 2048", "123-45-6789", "6ece72aa-5955-4bdb-8380-88eda48ac048"),
        *("x = a +12345678", "978-0-13-468599-1", "1731900000000", "total: 4155552671", "phones 2", "T+00:00:12345678"),
    ],
    "card-number": [
        *("4111 1111 1111 1112", "1234567890123456", "0.4111111111111111", "4111111111111111.5", "1763459876543"),
        *("a4111111111111111", "41111111111111111111111", "call-4111111111111111"),
    ],
    "ip-address": [
        *("version 10.0.0.5", "v1.2.3.4", "Chrome/120.0.0.0", "pkg==1.2.3.4", "lib-1.2.3.4.jar", "1.3.6.1.4.1.311"),
        *("127.0.0.1", "0.0.0." + "0", "255.255.255.0", "8.8.8.8", "::1", "a[::2]", "x[1::2]", "std::beef", "12:34:56"),
        *("aa:bb:cc:dd:ee:ff", "1.2.3.4", "300.1.1.1", "dead::beef", "f64::abs", "[2024::2]", '"version": "10.1.2.3"'),
        *("1.0.0.0", "section 8.2.4.44", "2.5.29.15", "FileVersion: 6.1.7601.17514", "face::add"),
    ],
    "host-name": [
        *("https://github.com/acme", "os.path", "self.net", "config.yaml", "threading.local()", "https://localhost:80"),
        *("foo.bar.baz", "java.io", "org.apache.commons", "index.js", "https://www.w3.org/2000/svg", "user.id"),
        *("https://${HOST}/x", "https://{host}/x", "file:///etc/passwd", "https://pypi.org/simple", "np.array.at"),
        *(
            "model.net = x",
            "http://server/x",
            "ssh keys",
            "README.de.md",
            "Makefile.pre.in",
            "libx.3.so",
            "node.func.id",
            "from hypothesis.internal import x",
            "mod.fr",
            "https://www.example.com/",
            "https://docs.python.org/3/",
        ),
    ],
}


@pytest.mark.parametrize(("rule", "text"), [(rule, text) for rule, texts in LEFT_ALONE.items() for text in texts])
def test_optional_rule_leaves_lookalikes_alone(rule: str, text: str) -> None:
    assert redactor(rules=[rule]).text(f"see {text} there") == f"see {text} there"


def test_phone_number_under_a_key_is_found() -> None:
    redaction = redactor(rules=["phone-number"])
    assert redaction.json({"phone": "030 1234567", "id": "030 1234567"}) == {
        "phone": "[redacted:phone-number#1]",
        "id": "030 1234567",
    }


def test_numbers_without_quotes_are_searched() -> None:
    redaction = redactor(rules=["card-number"])
    assert redaction.json({"card": 4111111111111111, "n": 12}) == {"card": "[redacted:card-number#1]", "n": 12}
    assert redactor().json({"card": 4111111111111111}) == {"card": 4111111111111111}


def test_same_number_has_the_same_pseudonym_in_every_form() -> None:
    done = redactor(rules=["phone-number"]).text("+1 415 555 2671, +1-415-555-2671, +1 415 555 2672")
    assert done == "[redacted:phone-number#1], [redacted:phone-number#1], [redacted:phone-number#2]"


def test_rules_do_not_spoil_each_other() -> None:
    rules = [rule.id for rule in OPTIONAL_RULES]
    text = "mail ada@engines.net or call +1 415 555 2671; https://wiki.acme.com:8443 is 10.20.30.40"
    assert redactor(rules=rules).text(text) == (
        "mail [redacted:email#1] or call [redacted:phone-number#1]; https://[redacted:host-name#1]:8443 is"
        " [redacted:ip-address#1]"
    )
    once = redactor(rules=rules, words=["mail", "redacted"])
    assert once.text(once.text(text)) == once.text(text)
