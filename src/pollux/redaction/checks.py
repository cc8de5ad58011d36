"""Check whether a value that looks like a secret is one: placeholders, code and plain words are not."""

from __future__ import annotations

import base64
import binascii
import hashlib
import math
import re
from collections import Counter
from collections.abc import Callable
from itertools import pairwise

Check = Callable[[str, re.Match[str]], bool]
"""Returns whether a value is what it looks like; receives the match, too."""

_is_fake = re.compile(
    r"example|placeholder|change[_-]?me|redacted|dummy|insert[_-]|\.\.\.|…|[$%]\(|[${]\{"
    r"|your(?:[_-]|key|token|pass|secret|api)|[_-]here|goeshere|to_be_|([x*0.#_•-])\1{5}"
).search
"""What no secret contains."""
_LONG, _FEW_CHARACTERS = 200, 12
"""A longer value may contain these by chance; it is a placeholder if it has few different characters."""
_REFERENCE = re.compile(
    r"""
      [$<{%\[(].*[>})%\]] | \$.* | <[^>]*>.* | [x*.#•-]+
    | (?: process\.env | os\.environ | os\.getenv | getenv | env[.\[(] | import\.meta | secrets\.[A-Za-z] ).*
    """,
    re.VERBOSE | re.DOTALL,
)
"""What only refers to a secret."""
_WORDS = frozenset(
    "password passwd pass pwd secret token none null true false undefined string str text bytes required optional"
    " username user user_name foo bar baz foobar test value default empty unset missing disabled enabled".split()
)
_LOCATION = re.compile(
    r"""
      [.~]{1,2}/.* | /[a-z][\w.-]*(?:/[\w.@+-]*)+ | [A-Za-z]:\\.*    # a path
    | [A-Za-z][A-Za-z0-9+.-]*://.*                                   # a URL; other rules apply
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
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_KEY_ID = re.compile(r"key[_-]?id[\s\"'\\]*\Z", re.IGNORECASE)
_PUBLIC_NAME = re.compile(
    r"(?:PUBLIC|PUBLISHABLE|SITE|CACHE|PRIMARY|FOREIGN|SORT|PARTITION|HASH|RANGE|ROUTING|IDEMPOTENCY|OBJECT|REGISTRY|ANON"
    r"|LOOKUP|CONTEXT|INDEX|GROUP)\Z"
)
"""Names before `_KEY` of keys that are not secret."""
_METHOD = re.compile(
    r"(?:sha|md|aes|utf|base|pbkdf|argon|iso|rfc|ipv|oauth|http|rsa|bcrypt|scrypt|totp?)[-_]?\d\S*", re.IGNORECASE
)
"""The name of an encoding or an algorithm, which looks like a password in a sentence."""
_OPTION_NAME = re.compile(r"[A-Za-z0-9-]{0,40}-(?=\Z|[\s\"'`(\[,])")
"""The beginning of an option, reversed."""
_MACHINE = re.compile(r"machine\s{1,16}\S{1,255}\s{1,16}(?:login\s{1,16}\S{1,255}\s{1,16})?\Z")
_RUN = re.compile(r"[A-Za-z0-9+/=]{16,}")
_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_SEED_WORD = re.compile(r"[a-z]{3,8}")


def is_real(value: str, _match: re.Match[str]) -> bool:
    """Return whether a value is not a placeholder."""
    return not is_placeholder(value)


def is_placeholder(value: str) -> bool:
    """Return whether a value takes the place of a secret: EXAMPLE, xxxx, <YOUR_KEY>, ${VAR}, process.env.X."""
    if len(value) > _LONG:
        return len(set(value)) < _FEW_CHARACTERS
    low = value.lower()
    return bool(low.rstrip("=:") in _WORDS or _is_fake(low) or _REFERENCE.fullmatch(low))


def is_code(value: str, *, is_quoted: bool = False) -> bool:
    """Return whether a value is a path, a URL, a date or, unless it is quoted, an expression of a program."""
    return bool(_LOCATION.fullmatch(value)) or (not is_quoted and bool(_CODE.fullmatch(value)))


def entropy(value: str) -> float:
    """Return the Shannon entropy of a value in bits per character."""
    shares = [count / len(value) for count in Counter(value).values()]
    return -sum(share * math.log2(share) for share in shares)


def is_random(value: str, _match: re.Match[str]) -> bool:
    """Return whether a value is long and its letters and digits are in no order."""
    if len(value) < 12 or is_placeholder(value) or is_code(value):
        return False
    return (_has_digit(value) or _has_wild_case(value)) and _has_letter(value) and entropy(value) >= 3


def is_wild(value: str, match: re.Match[str]) -> bool:
    """Return whether a value is not made of words: it has digits, or capitals inside of words."""
    is_words = value.islower() and value.count("_") + value.count("-") >= 4
    return is_real(value, match) and not is_words and (_has_digit(value) or _has_wild_case(value))


def is_machine_made(value: str, match: re.Match[str]) -> bool:
    """Return whether letters, digits and capitals alternate more than in words, names and identifiers."""
    if not is_random(value, match) or _UUID.fullmatch(value):
        return False
    kinds = ["d" if char.isdigit() else "u" if char.isupper() else "l" for char in value if char.isalnum()]
    n_turns = sum(a != b and (a, b) != ("u", "l") for a, b in pairwise(kinds))
    return _has_digit(value) and n_turns * 5 >= len(value)


def is_named_key(value: str, match: re.Match[str]) -> bool:
    """Return whether a value after `_KEY` or `_PAT` is random, and its name is not that of a public key."""
    name = match.string[max(match.start() - 20, 0) : match.start()]
    if _PUBLIC_NAME.search(name) or (match["sep"] == "," and not match["quote"]):
        return False
    return is_machine_made(value, match)


def is_short_key(value: str, match: re.Match[str]) -> bool:
    """Return whether a short value after the name api_key is random."""
    return match["sep"] != "," and is_machine_made(value, match)


def is_spoken_password(value: str, match: re.Match[str]) -> bool:
    """Return whether the word after `the password is` looks like a password, and not like a word of the sentence."""
    if is_placeholder(value) or is_code(value) or _METHOD.fullmatch(value):
        return False
    if not _has_digit(value) or not _has_letter(value):
        return False
    is_compound = value.count("-") > 0 and all(part.isalpha() or part.isdigit() for part in value.split("-"))
    return bool(match["quote"]) or (len(value) >= 8 and not is_compound)


def is_named_random(value: str, match: re.Match[str]) -> bool:
    """Return whether a value after a name is random: quoted if a comma precedes it, and not a UUID after `key_id`."""
    if match["sep"] == "," and not match["quote"]:
        return False
    name = match.string[match.start() : match.start("sep")]
    return is_random(value, match) and not (_UUID.fullmatch(value) and _KEY_ID.search(name))


def is_password(value: str, match: re.Match[str]) -> bool:
    """Return whether a value after the word password may be one, and is not code or a plain word."""
    quote = match["quote"]
    if len(value) < 6 or is_placeholder(value) or is_code(value, is_quoted=bool(quote)):
        return False
    if match["sep"] == "," and not quote:
        return False
    has_more = _has_digit(value) or any(not char.isalnum() and char not in "_-.,:/" for char in value)
    return has_more and (bool(quote) or _has_letter(value) or value.isdigit())


def is_option(value: str, _match: re.Match[str]) -> bool:
    """Return whether the argument after an option may be a password."""
    is_word = value.isalpha() and (value in {value.lower(), value.upper(), value.capitalize()} or "assword" in value)
    return not (value.startswith("-") or is_word or is_placeholder(value) or is_code(value))


def is_password_option(value: str, match: re.Match[str]) -> bool:
    """Return whether a value follows an option such as `--db-password`, and not a word such as `one-password`."""
    before = match.string[max(match.start() - 40, 0) : match.start() + 1][::-1]
    return _OPTION_NAME.match(before) is not None and is_option(value, match)


def is_header(value: str, match: re.Match[str]) -> bool:
    """Return whether the value of a header is random, or a name and a password."""
    return is_random(value, match) or is_login(value, match)


def is_login(value: str, _match: re.Match[str]) -> bool:
    """Return whether a value is the base64 of a name and a password."""
    try:
        plain = base64.b64decode(value + "==").decode()
    except (binascii.Error, ValueError):
        return False
    return ":" in plain and plain.isprintable() and not is_placeholder(plain.partition(":")[2])


def is_user_and_password(value: str, match: re.Match[str]) -> bool:
    """Return whether a value is the password of `name:password`, and not a number."""
    return not value.isdigit() and is_real(value, match)


def preceded_by(word: str, reach: int, check: Check) -> Check:
    """Return a check that also requires a word within so many characters before the match."""

    def is_preceded(value: str, match: re.Match[str]) -> bool:
        return word in match.string[max(match.start() - reach, 0) : match.start()] and check(value, match)

    return is_preceded


def is_key_block(value: str, _match: re.Match[str]) -> bool:
    """Return whether most of a value is base64, and not a text about private keys."""
    n_encoded = sum(len(run) for run in _RUN.findall(value))
    return n_encoded >= 40 and n_encoded * 2 >= len(value) - 120  # the first and last line are not base64


def is_netrc(value: str, match: re.Match[str]) -> bool:
    """Return whether a password follows a machine and a login, as in a .netrc file."""
    return bool(_MACHINE.search(match.string, max(match.start() - 600, 0), match.start())) and is_real(value, match)


def is_jwk_part(value: str, match: re.Match[str]) -> bool:
    """Return whether a value is a private part of a JSON Web Key; names other than `d` must be near `kty`."""
    start, end = match.span()
    is_known = match.string[start + 1 : start + 3] in {'d"', "d\\"}
    return (is_known or "kty" in match.string[max(start - 4000, 0) : end + 4000]) and is_real(value, match)


def is_base58_checked(value: str, _match: re.Match[str]) -> bool:
    """Return whether a value ends in the checksum of base58, as the private keys of Bitcoin do."""
    number = 0
    for char in value:
        number = number * 58 + _BASE58.index(char)
    raw = number.to_bytes(40, "big").lstrip(b"\0")
    return hashlib.sha256(hashlib.sha256(raw[:-4]).digest()).digest()[:4] == raw[-4:]


def is_seed(value: str, _match: re.Match[str]) -> bool:
    """Return whether words may be the seed of a wallet: few are repeated, and not all are short."""
    words = _SEED_WORD.findall(value)
    return len(set(words)) * 4 >= len(words) * 3 and sum(map(len, words)) >= 4.2 * len(words)


def _has_digit(value: str) -> bool:
    return any(char.isdigit() for char in value)


def _has_wild_case(value: str) -> bool:
    """Return whether capitals are everywhere, and not only where words begin."""
    letters = [char for char in value if char.isalpha()]
    return len(letters) >= 16 and 0.3 < sum(char.isupper() for char in letters) / len(letters) < 0.7


def _has_letter(value: str) -> bool:
    return any(char.isalpha() for char in value)
