"""Whether something that looks like a secret is one: placeholders, code and plain words are not."""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections import Counter

_is_fake = re.compile(
    r"example|placeholder|change[_-]?me|redacted|dummy|insert[_-]|\.\.\.|…|[$%]\(|[${]\{"
    r"|your(?:[_-]|key|token|pass|secret|api)|[_-]here|goeshere|to_be_|([x*0.#_•-])\1{5}"
).search
"""What no secret contains."""
_LONG, _FEW = 200, 12
"""In a value so long, the words above may stand by chance; a placeholder has few different characters."""
_REFERENCE = re.compile(
    r"""
      [$<{%\[(].*[>})%\]] | \$.* | <[^>]*>.* | [x*.#•-]+
    | (?: process\.env | os\.environ | os\.getenv | getenv | env[.\[(] | import\.meta | secrets\.[A-Za-z] ).*
    """,
    re.VERBOSE | re.DOTALL,
)
"""What only says where a secret is."""
_WORDS = frozenset(
    "password passwd pass pwd secret token none null true false undefined string str text bytes required optional"
    " username user user_name foo bar baz foobar test value default empty unset missing disabled enabled".split()
)
_PLACE = re.compile(
    r"""
      [.~]{1,2}/.* | /[a-z][\w.-]*(?:/[\w.@+-]*)+ | [A-Za-z]:\\.*    # a path
    | [A-Za-z][A-Za-z0-9+.-]*://.*                                   # a URL has rules of its own
    | \d{4}-\d\d-\d\d(?:[T ].*)?                                    # a date
    """,
    re.VERBOSE,
)
_CODE = re.compile(
    r"""
      [A-Za-z_$][\w$]*(?:\.[A-Za-z_$]+)+        # a.b.c
    | [A-Za-z_$][\w$.]*(?:\(|\[|::|->).*       # f(…), a.b(…), a[…], a::b
    | f?["'`{(\[].*
    """,
    re.VERBOSE,
)
_MACHINE = re.compile(r"machine\s{1,16}\S{1,255}\s{1,16}(?:login\s{1,16}\S{1,255}\s{1,16})?\Z")
_RUN = re.compile(r"[A-Za-z0-9+/=]{16,}")


def is_real(value: str, _match: re.Match[str]) -> bool:
    """Tell whether a value is not just the picture of a secret."""
    return not is_placeholder(value)


def is_placeholder(value: str) -> bool:
    """Tell whether a value only stands for another: EXAMPLE, xxxx, <YOUR_KEY>, ${VAR}, process.env.X."""
    if len(value) > _LONG:
        return len(set(value)) < _FEW
    low = value.lower()
    return bool(low.rstrip("=:") in _WORDS or _is_fake(low) or _REFERENCE.fullmatch(low))


def is_code(value: str, *, is_quoted: bool = False) -> bool:
    """Tell whether a value is a piece of a program, a path, a URL or a date; in quotation marks stands no program."""
    return bool(_PLACE.fullmatch(value)) or (not is_quoted and bool(_CODE.fullmatch(value)))


def entropy(value: str) -> float:
    """Count the bits a character carries, going by how often each one occurs in the value."""
    shares = [count / len(value) for count in Counter(value).values()]
    return -sum(share * math.log2(share) for share in shares)


def is_random(value: str, _match: re.Match[str]) -> bool:
    """Tell whether a value was made by a machine: long, of letters and digits, in no order."""
    if len(value) < 12 or is_placeholder(value) or is_code(value):
        return False
    return (_has_digit(value) or _has_wild_case(value)) and _has_letter(value) and entropy(value) >= 3


def is_wild(value: str, match: re.Match[str]) -> bool:
    """Tell whether a value is not made of words: it has digits, or capitals where no words begin."""
    is_words = value.islower() and value.count("_") + value.count("-") >= 4
    return is_real(value, match) and not is_words and (_has_digit(value) or _has_wild_case(value))


def is_named_random(value: str, match: re.Match[str]) -> bool:
    """Tell the same of a value with a name before it; after a comma it must stand in quotation marks."""
    return is_random(value, match) and (match["sep"] != "," or bool(match["quote"]))


def is_password(value: str, match: re.Match[str]) -> bool:
    """Tell whether a value behind the word password may be one, and not code or a plain word."""
    quote = match["quote"]
    if len(value) < 6 or is_placeholder(value) or is_code(value, is_quoted=bool(quote)):
        return False
    if match["sep"] == "," and not quote:
        return False
    has_more = _has_digit(value) or any(not char.isalnum() and char not in "_-.,:/" for char in value)
    return has_more and (bool(quote) or _has_letter(value) or value.isdigit())


def is_option(value: str, _match: re.Match[str]) -> bool:
    """Tell whether what follows an option of a command may be a password."""
    is_word = value.isalpha() and value in {value.lower(), value.upper(), value.capitalize()}
    return not (value.startswith("-") or is_word or is_placeholder(value) or is_code(value))


def is_header(value: str, match: re.Match[str]) -> bool:
    """Tell whether the value of a header lets somebody in: something random, or a name and a password."""
    return is_random(value, match) or is_login(value, match)


def is_login(value: str, _match: re.Match[str]) -> bool:
    """Tell whether a value is the base64 of a name and a password."""
    try:
        plain = base64.b64decode(value + "==").decode()
    except (binascii.Error, ValueError):
        return False
    return ":" in plain and plain.isprintable() and not is_placeholder(plain.partition(":")[2])


def is_user_and_password(value: str, match: re.Match[str]) -> bool:
    """Tell `name:password` from two numbers."""
    return not value.isdigit() and is_real(value, match)


def is_curl(value: str, match: re.Match[str]) -> bool:
    """Tell whether a name and a password are given to curl."""
    return match.string.rfind("curl", max(match.start() - 400, 0), match.start()) >= 0 and is_user_and_password(
        value, match
    )


def is_mysql(value: str, match: re.Match[str]) -> bool:
    """Tell whether an option is one of a MySQL client."""
    return match.string.rfind("mysql", max(match.start() - 200, 0), match.start()) >= 0 and is_real(value, match)


def is_key_block(value: str, _match: re.Match[str]) -> bool:
    """Tell a private key from a text that only speaks of one: most of it is base64."""
    n_encoded = sum(len(run) for run in _RUN.findall(value))
    return n_encoded >= 40 and n_encoded * 2 >= len(value) - 120  # the two lines around it are no base64


def is_netrc(value: str, match: re.Match[str]) -> bool:
    """Tell whether a password follows a machine and a login, as in a .netrc file."""
    return bool(_MACHINE.search(match.string, max(match.start() - 600, 0), match.start())) and is_real(value, match)


def is_otp(value: str, match: re.Match[str]) -> bool:
    """Tell whether a secret stands in a URL for one-time passwords."""
    return "otpauth://" in match.string[max(match.start() - 400, 0) : match.start()] and is_real(value, match)


def _has_digit(value: str) -> bool:
    return any(char.isdigit() for char in value)


def _has_wild_case(value: str) -> bool:
    """Tell whether capitals stand everywhere, and not only where words begin."""
    letters = [char for char in value if char.isalpha()]
    return len(letters) >= 16 and 0.3 < sum(char.isupper() for char in letters) / len(letters) < 0.7


def _has_letter(value: str) -> bool:
    return any(char.isalpha() for char in value)
