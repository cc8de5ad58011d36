"""Rules for values after a name such as password: in assignments, settings, environments and sentences."""

from __future__ import annotations

from pollux.redaction.checks import (
    is_machine_made,
    is_named_key,
    is_named_random,
    is_password,
    is_short_key,
    is_spoken_password,
)
from pollux.redaction.rule import LEFT, Rule, RuleKind, after

_SIGN = r"""[ \t"'`\\\])*]{0,16}(?:=>|:=|==?|[:>|,])"""
_BEFORE_VALUE = r"""[ \t"'`\\\])*]{0,16}(?P<sep>=>|:=|==?|[:>|,])[ \t(\[*]{0,8}(?P<quote>\\{0,8}["'`])?"""
_NAMED = rf"""{_BEFORE_VALUE}(?P<secret>(?(quote)[^"'`\s\\]{{1,256}}|[^\s"'`\\<>,;&)|\]}}]{{1,256}}))"""
_SUFFIX = r"(?:[_-]?(?:key|token|value|id|base|string|Key|Token|Value|Id|KEY|TOKEN|VALUE|ID|BASE)){0,2}s?\d{0,2}"
_OF_WHAT = r"(?: (?:for|of|on|to|in)(?: [\w.@/-]{1,40}){1,4}?)?"
"""What a password is for, in a sentence."""

ROWS = (
    after(
        "generic-password",
        "value after a name such as password or pwd",
        (
            *("password", "passwd", "passwort", "passphrase", "pwd", "_pass", "/pass", "sshpass"),
            *("_pw", "-pw", "bindpw", "rootpw"),
        ),
        rf"[_-]?\d{{0,2}}{_NAMED}",
        check=is_password,
        probe=rf"[_-]?\d{{0,2}}{_SIGN}",
    ),
    after(
        "pw-password",
        "value after the name pw or psk",
        ("pw", "psk"),
        r"""\\{0,8}["']?[ \t]{0,2}(?P<sep>[:=])(?!=)[ \t]{0,4}(?P<quote>\\{0,8}["'`])?"""
        r"""(?P<secret>[^\s"'`\\<>,;&)|\]}]{6,128})""",
        check=is_password,
        guard=LEFT,
        probe=r"\\{0,8}[\"']?[ \t]{0,2}[:=]",
    ),
    after(
        "generic-secret",
        "random value after a name such as secret or client_secret",
        "secret",
        rf"{_SUFFIX}{_NAMED}",
        check=is_named_random,
        probe=_SUFFIX.lower() + _SIGN,
    ),
    after(
        "generic-token",
        "long random value after a name such as token or api_key",
        (
            *("token", "credential", "api_key", "apikey", "api-key", "api key", "access_key", "accesskey"),
            *(
                "access-key",
                "private_key",
                "privatekey",
                "private key",
                "secret key",
                "encryption_key",
                "encryptionkey",
            ),
            *("signing_key", "signingkey", "auth_key", "auth-key", "authkey", "app_key", "appkey", "subscription-key"),
            *("master_key", "masterkey", "master-key", "admin_key", "adminkey", "admin-key", "write_key", "writekey"),
        ),
        rf"{_SUFFIX}{_NAMED}",
        check=is_named_random,
        probe=_SUFFIX + _SIGN,
        in_run=True,
    ),
    Rule(
        "named-key",
        "random value after a name in capitals that ends in _KEY or _PAT",
        RuleKind.SECRET,
        ("_KEY", "_PAT"),
        rf"{_BEFORE_VALUE}(?P<secret>[A-Za-z0-9+/_.=-]{{20,256}})",
        is_named_key,
        probe=_SIGN,
        in_run=True,
    ),
    after(
        "short-key",
        "short random value after the name api_key",
        "api_key",
        rf"{_BEFORE_VALUE}(?P<secret>[A-Za-z0-9]{{14,19}})(?![\w.(-])",
        check=is_short_key,
        probe=_SIGN,
    ),
    after(
        "spoken-password",
        "password in a sentence such as the password is …",
        ("password", "passphrase", "passcode", " pw", "passwort"),
        rf"{_OF_WHAT} (?:is|was|ist|lautet)(?: now| still)?:?[ \t]{{1,4}}(?P<quote>[\"'`*]{{1,3}})?"
        r"(?P<secret>[^\s\"'`<>\\]{5,128}[^\s\"'`<>\\.,;:!?)*])",
        check=is_spoken_password,
        probe=rf"{_OF_WHAT} (?:is|was|ist|lautet)",
    ),
    after(
        "spoken-key",
        "key or token in a sentence such as the API key is …",
        ("api key is", "access key is", "secret key is", "private key is", "auth key is", "token is", "secret is"),
        r"(?: now| still)?:?[ \t]{1,4}[\"'`*]{0,3}(?P<secret>[A-Za-z0-9._~+/=-]{19,500}[A-Za-z0-9_~+/=-])",
        check=is_machine_made,
        in_run=True,
    ),
)
