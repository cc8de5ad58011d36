"""Rules for keys and hashes of no particular service: private keys, wallets, signed tokens, password hashes."""

from __future__ import annotations

from pollux.redaction.checks import is_base58_checked, is_jwk_part, is_key_block, is_real, is_seed, preceded_by
from pollux.redaction.rule import ALNUM, BASE64, HEX, WORD, after, some, token

_BEGIN = r"(?:[A-Z0-9]{2,16} ){0,3}PRIVATE KEY(?: BLOCK)? ?-{4,5}"
_PROBE = r"(?:[a-z0-9]{2,16} ){0,3}private key"
_NOISE = r"(?:\\[nrt]|[\s\"'+>|:\\,-]|\d(?=[\d:|\t ])){0,24}+"
"""Between the lines of a key: escapes, quotation marks, the signs of a diff, line numbers."""
_LAST = r"(?:(?:\\[nr]|\n)[\t +>|-]{0,8}+[A-Za-z0-9+/=]{1,15}+(?=[\s\"'\\]*+(?:\n|\Z|\\)))?+"
_ESION = r"(?:[nrt]\\|[\s\"'+>|:\\,-]|(?<=[\d:|\t ])\d){0,24}+"
"""The same, reversed."""
_HEADERS = r"(?:(?:\\[nr]|[\s+>|-]){1,8}+[A-Z][A-Za-z-]{2,20}: [^\n\\]{0,120}+){0,4}+"

_BEGINS = ("-----BEGIN ", "---- BEGIN ")
_BASE58 = "[1-9A-HJ-NP-Za-km-z]"
_NO_SEED_WORDS = (
    "the|and|for|with|from|your|are|was|not|but|these|their|them|were|been|which|has|had|our|its|words|mnemonic"
)
"""Words of sentences that no list of seed words contains."""
_SEED_SIGN = (
    r"(?:[ _]?(?:words|phrase))?(?: is\b| are\b)?[ \t\"'`\\*\])]{0,8}"
    r"(?:[:=]|(?<= is)|(?<= are)|(?<= is [\"'`])|(?=(?:\\{1,8}n|\s){1,8}1[.)]))"
)
"""Between a name and its seed words: a sign, a verb, or the number of the first word on the next line."""
_SEED_WORD = rf"(?!(?:{_NO_SEED_WORDS})\b)[a-z]{{3,8}}\b"
_SEED_GAP = (
    r"(?:\\{0,8}[\"']?[ \t]{0,4},(?:\\{1,8}n|\s){0,8}+\\{0,8}[\"']?|(?:\\{1,8}[nrt]|[\s;|]){1,12}+)"
    r"(?:\d{1,2}[.):]?\s{1,4}+)?"
)

PRIVATE_KEYS = (
    token(
        "private-key",
        "private key: RSA, EC, DSA, OpenSSH, SSH2, PGP, PKCS #8",
        _BEGINS,
        rf"{_BEGIN}[^-]*+(?:-(?!---)[^-]*+)*+-{{4,8}} ?END [A-Z0-9 ]{{0,40}}-{{4,5}}",
        check=is_key_block,
        probe=_PROBE,
        in_run=False,
    ),
    token(
        "private-key-head",
        "private key whose end is missing",
        _BEGINS,
        rf"{_BEGIN}{_HEADERS}(?:{_NOISE}[A-Za-z0-9+/=]{{16,}}+)++{_LAST}",
        probe=_PROBE,
        in_run=False,
    ),
    token(
        "private-key-tail",
        "private key whose beginning is missing",
        ("-----END ", "---- END "),
        _BEGIN,
        left=rf"-{{0,3}}+{_ESION}[A-Za-z0-9+/=]{{1,200}}+(?:{_ESION}[A-Za-z0-9+/=]{{40,200}}+){{0,400}}+",
        check=is_key_block,
        left_reach=12_000,
        probe=_PROBE,
        in_run=False,
    ),
    after(
        "putty-key",
        "private part of a PuTTY key",
        "private-lines:",
        r"[ \t]{0,4}\d{1,4}(?:\\{1,8}[nr]|[\s\"'>|,-]){1,16}+(?:\d{1,5}[:|\t ][|\t ]{0,3})?+\+?"
        rf"(?P<secret>{BASE64}{{16,}}=*(?:{_NOISE}{BASE64}{{16,}}=*)*)",
        in_run=True,
    ),
    token("age-key", "age secret key", "AGE-SECRET-KEY-1", r"[A-Z0-9]{50,}"),
    after(
        "wireguard-key",
        "WireGuard key",
        ("privatekey", "presharedkey"),
        rf"[ \t]{{0,4}}=[ \t]{{0,4}}(?P<secret>{BASE64}{{43}}=)",
        in_run=True,
    ),
    after(
        "jwk",
        "private part of a JSON Web Key",
        ('"d', '"p', '"q', '"dp', '"dq', '"qi', '"k'),
        rf"\\{{0,15}}\"[ \t]{{0,4}}:[ \t]{{0,4}}\\{{0,15}}\"(?P<secret>{WORD}{{40,}})",
        check=is_jwk_part,
        probe=r"\\{0,15}\"",
        in_run=True,
    ),
    token(
        "extended-key",
        "extended private key of a wallet",
        ("xprv", "yprv", "zprv", "tprv"),
        some(ALNUM, 100),
        is_word=True,
    ),
    token("nostr-key", "Nostr private key", "nsec1", r"[a-z0-9]{58}", is_word=True),
    token(
        "wif-key",
        "private key of a Bitcoin wallet, with a valid checksum",
        ("5H", "5J", "5K", "Kw", "Kx", "Ky", "Kz", "L1", "L2", "L3", "L4", "L5"),
        rf"{_BASE58}{{49,50}}(?!{ALNUM})",
        is_word=True,
        probe=rf"{_BASE58}{{16}}",
        check=is_base58_checked,
    ),
    after(
        "seed-phrase",
        "seed words of a wallet, after a name such as seed phrase",
        ("seed phrase", "seed_phrase", "seedphrase", "recovery phrase", "recovery_phrase", "mnemonic"),
        rf"{_SEED_SIGN}(?:\\{{1,8}}[nr]|[\s\"'`*>(\[\\]){{0,16}}+"
        rf"(?:1[.):]?\s{{1,4}}+)?(?P<secret>{_SEED_WORD}(?:{_SEED_GAP}{_SEED_WORD}){{11}}"
        rf"(?:(?:{_SEED_GAP}{_SEED_WORD}){{3}}){{0,4}})",
        check=is_seed,
        probe=_SEED_SIGN,
    ),
)

TOKENS = (
    token(
        "jwt",
        "JSON Web Token",
        ".eyJ",
        rf"{WORD}{{8,}}\.{WORD}{{8,}}",
        left=rf"{WORD}{{8,4000}}?Jye(?:(?![A-Za-z0-9])|(?=[nrt]\\))",
        left_reach=4100,
        check=None,
    ),
    token(
        "jwe",
        "encrypted JSON Web Token",
        "eyJ",
        rf"{WORD}{{10,2000}}\.{WORD}{{0,1000}}\.{WORD}{{16,22}}\.{WORD}+\.{WORD}{{22,43}}(?!{WORD})",
        guard=r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrtbf])|(?<=%[0-9A-Fa-f]{2})|(?<=[\[;\d]m))",
        check=None,
    ),
    token(
        "bcrypt-hash",
        "bcrypt password hash",
        ("$2a$", "$2b$", "$2y$"),
        r"\d\d\$[./A-Za-z0-9]{53}",
        check=None,
        in_run=False,
    ),
    token(
        "crypt-hash",
        "crypt password hash, as in /etc/shadow",
        ("$1$", "$5$", "$6$", "$7$", "$y$"),
        r"[^\s:$]{1,64}\$(?:[^\s:$]{1,64}\$)?[./A-Za-z0-9]{20,}",
        check=None,
        probe=r"[^\s:$]{1,64}\$(?:[^\s:$]{1,64}\$)?[./a-z0-9]{20}",
        in_run=False,
    ),
    token(
        "argon2-hash",
        "Argon2 password hash",
        ("$argon2id$", "$argon2i$", "$argon2d$"),
        r"v=\d+\$[^\s$]{5,40}\$[A-Za-z0-9+/]{8,}\$[A-Za-z0-9+/]{16,}",
        check=None,
        probe=r"v=\d",
        in_run=False,
    ),
    after(
        "otp-secret",
        "secret of one-time passwords",
        "secret=",
        "(?P<secret>[A-Za-z2-7]{16,})",
        check=preceded_by("otpauth://", 400, is_real),
    ),
    after(
        "presigned-url",
        "signature of a presigned URL",
        ("x-amz-signature=", "x-goog-signature="),
        rf"(?P<secret>{HEX}{{40,}})",
        in_run=True,
    ),
)
