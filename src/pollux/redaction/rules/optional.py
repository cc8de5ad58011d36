"""Rules that are off unless the user switches them on: phone and card numbers, IP addresses and host names.

They look like the ordinary numbers and words that most transcripts are about, so replacing them by default would do
more harm than good. They have no anchors: their patterns are searched for in the whole text.
"""

from __future__ import annotations

import re
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import NamedTuple

from pollux.redaction.checks import Check
from pollux.redaction.rule import Rule, RuleKind
from pollux.redaction.rules.names import HOSTS

_SEPARATORS = re.compile(r"\D+")

# Phone numbers

_NORTH_AMERICAN = r"(?:\(\d{3}\)[ -]?|[2-9]\d{2}(?P<dot>\.)|[2-9]\d{2}-)[2-9]\d{2}(?(dot)\.|-)\d{4}"
_LABEL = (
    r"(?i:(?:(?:tele|cell|smart)?phone|telefon|tel|mobile|mobil|cell|fax|handy|whatsapp|sms)"
    r"(?:[ _-]?(?:number|nummer|no|nr|phone))?)"
)
_LABELLED_PHONE = (
    rf"(?<![A-Za-z]){_LABEL}(?:[\"'\\]{{0,8}}[ \t]{{0,4}}[:=][ \t\"'\\]{{0,8}}|\.:?[ \t]{{0,4}}|[ \t]{{1,4}}(?=0))"
    r"(?P<secret>\(?\d(?:[ ()/.-]{0,2}\d){5,13})(?![\w:])"
)
_PHONE = (
    r"(?<![\w.+*=/-])"
    r"(?P<secret>\+1[ .-]?\(?[2-9]\d{2}\)?[ .-]?[2-9]\d{2}[ .-]?\d{4}(?![\w-])"
    r"|\+[2-9](?:[ ()./-]{0,2}\d){7,14}(?!\d)"
    r"|00[1-9]\d{0,2}[ /-](?:[ ()/-]{0,2}\d){6,12}(?!\d)"
    rf"|(?:1[-. ])?{_NORTH_AMERICAN}(?![\w-]))"
)
_DATE = re.compile(r"\+?(?:19|20)\d\d[-./ ](?:0[1-9]|1[0-2])(?!\d)")


def is_phone(value: str, _match: re.Match[str]) -> bool:
    """Return whether digits are grouped as in a phone number, and not as in a date or a decimal number."""
    if _DATE.match(value):
        return False
    if not value.startswith("+") or value.startswith("+1"):
        return True
    groups = [group for group in _SEPARATORS.split(value) if group]
    if len(groups) == 1:
        return 10 <= len(groups[0]) <= 13
    if "." in value:  # +3.14159265 is a number, +49.30.1234567 is not
        return len(groups) > 2 and all(len(group) > 1 for group in groups)
    return len(groups[0]) <= 6 and max(map(len, groups)) <= 10 and len(groups[-1]) > 1


# Card numbers

_CARD = (
    r"(?<![\w.+-])(?P<secret>"
    r"[2-6]\d{3}(?P<gap>[ -])\d{4}(?P=gap)\d{4}(?P=gap)\d{4}(?:(?P=gap)\d{1,3})?"
    r"|3[04-8]\d{2}(?P<wide_gap>[ -])\d{6}(?P=wide_gap)\d{4,5}"
    r"|[2-6]\d{12,18})(?![\w-]|\.\d)"
)
_ISSUERS = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})"  # Visa
    r"|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}"  # Mastercard
    r"|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|35(?:2[89]|[3-8]\d)\d{12}"  # American Express, Diners Club, JCB
    r"|6(?:011|4[4-9]\d|5\d\d)\d{12}|62\d{14,17}|(?:5[06-8]|6[37])\d{14}"  # Discover, UnionPay, Maestro
)


def is_card(value: str, _match: re.Match[str]) -> bool:
    """Return whether digits have the prefix and length of a card issuer and the right Luhn check digit."""
    digits = _SEPARATORS.sub("", value)
    if not _ISSUERS.fullmatch(digits):
        return False
    total = 0
    for place, digit in enumerate(map(int, reversed(digits))):
        total += digit if place % 2 == 0 else sum(divmod(2 * digit, 10))
    return total % 10 == 0


# IP addresses

_OCTET = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_IPV4 = rf"(?<![\w.])(?P<secret>(?:{_OCTET}\.){{3}}{_OCTET})(?!\w|\.\w|-[A-Za-z])"
_IPV6 = (
    r"(?<![\w:.])(?P<secret>(?:::[Ff]{4}:|[0-9A-Fa-f]{4}:)[0-9A-Fa-f:]{0,36}(?:\d{1,3}(?:\.\d{1,3}){3})?)(?![\w:]|\.\w)"
)
_VERSION_BEFORE = re.compile(
    r"(?:\b(?:version|ver|release|revision|rev|build|v)[\"'\\]{0,4}[ \t]{0,4}[.:=]?[ \t\"'\\]{0,6}"
    r"|[=<>~!]=[ \t]?|[~^])\Z",
    re.IGNORECASE,
)
_PRODUCT_BEFORE = re.compile(r"(?:(?:^|[\s(\"'`])[A-Za-z][\w.+-]{0,40}/|[A-Za-z0-9]-)\Z")
"""As in `Chrome/120.0.0.0` and `archive-1.2.3.44`."""
_ADDRESS_BEFORE = re.compile(
    r"(?:@|//|\[|\b(?:ips?|ipv4|addr|address|hosts?|server|gateway|dns|ping|ssh|from|inet|peer|client|remote|bind|listen"
    r"|nameserver)[\"'\\]{0,4}[ \t]{0,4}[:=]?[ \t\"'\\]{0,6})\Z",
    re.IGNORECASE,
)
_ADDRESS_BEHIND = re.compile(r":\d{2,5}(?!\d)|/\d{1,2}(?!\d)")
_NUMBERING = re.compile(r"\d\.\d\.\d\.|2\.5\.29\.|1\.3\.101\.")
"""Versions and sections such as 1.2.3.44, and object identifiers."""
_RESOLVERS = frozenset("8.8.8.8 8.8.4.4 1.1.1.1 1.0.0.1 9.9.9.9".split())
"""Public name servers, which everybody uses."""


def is_ip(value: str, match: re.Match[str]) -> bool:
    """Return whether a value is the address of a machine: not a version, a netmask or a loopback address."""
    return _is_ipv6(value) if ":" in value else _is_ipv4(value, match)


def _is_ipv4(value: str, match: re.Match[str]) -> bool:
    address = IPv4Address(value)
    if address.is_loopback or address.is_multicast or value.startswith(("0.", "255.")) or value in _RESOLVERS:
        return False
    start, end = match.span()
    before = match.string[max(start - 48, 0) : start]
    if _VERSION_BEFORE.search(before):
        return False
    if _ADDRESS_BEFORE.search(before) or _ADDRESS_BEHIND.match(match.string, end):
        return True
    if value.endswith(".0.0") or _NUMBERING.match(value):
        return False
    return address.is_private or not _PRODUCT_BEFORE.search(before)


def _is_ipv6(value: str) -> bool:
    try:
        address = IPv6Address(value)
    except AddressValueError:
        return False
    if address.ipv4_mapped is not None:
        return not address.ipv4_mapped.is_loopback
    groups = [group for group in value.split(":") if group]
    first = int(groups[0], 16)
    is_unicast = 0x2000 <= first < 0x4000 or 0xFC00 <= first < 0xFE00 or 0xFE80 <= first < 0xFEC0
    return is_unicast and (len(groups) > 2 or not groups[0].isdigit())  # 2024::2 is a slice


# Host names

_PART = r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9])?"
_INNER_DOMAINS = "internal|intranet|intra|corp|lan|local|localdomain|private"
_DOMAINS = (
    "com|net|org|edu|gov|mil|biz|de|fr|uk|nl|be|ch|eu|us|ca|mx|br|ar|nz|jp|cn|kr|tw|hk|sg|ru|ua|se|dk|fi|es|pt|gr|cz"
    "|sk|hu|ro|bg|za|il|ae"
)
_AMBIGUOUS_DOMAINS = "io|dev|app|ai|cloud|co|me|tech|at|it|ie|no|au|cl|tr"
"""Also names of attributes, modules and files; a host in one of these must have three parts."""
_URL_HOST = rf"://(?:[^\s/@\"'<>]{{1,200}}@)?(?P<secret>{_PART}(?:\.{_PART}){{0,8}})(?![\w%{{$-]|\.\w|://)"
_SHELL_HOST = (
    r"\b(?:ssh|scp|sftp|rsync|mosh)\b[^\n|;&@]{0,80}[ \t\"'][\w.-]{1,64}@"
    rf"(?P<secret>{_PART}(?:\.{_PART}){{0,8}})(?![\w-]|\.\w)"
)
_BARE_HOST = (
    rf"(?<![\w@./\\$%-])(?<!import )(?P<secret>(?:{_PART}\.){{1,8}}(?:{_INNER_DOMAINS}|{_DOMAINS})"
    rf"|(?:{_PART}\.){{2,8}}(?:{_AMBIGUOUS_DOMAINS}))(?![\w(@\[-]|\.\w|[ \t]?=[^=]| import\b)"
)
_PUBLIC_SITES = frozenset(
    "github.com githubusercontent.com gitlab.com bitbucket.org google.com google.dev googleapis.com gstatic.com"
    " youtube.com gnu.org python.org pypi.org pythonhosted.org readthedocs.org npmjs.com npmjs.org nodejs.org"
    " yarnpkg.com unpkg.com jsdelivr.net crates.io rust-lang.org golang.org go.dev maven.org docker.com docker.io"
    " debian.org ubuntu.com kernel.org apache.org microsoft.com mozilla.org w3.org ietf.org rfc-editor.org"
    " wikipedia.org wikimedia.org json-schema.org stackoverflow.com stackexchange.com openai.com anthropic.com"
    " huggingface.co arxiv.org sqlite.org postgresql.org geminicli.com schema.org cloudflare.com reddit.com".split()
)
"""Sites that everybody uses, with subdomains such as `docs.python.org`; no customer has one of these."""
_EXAMPLES = frozenset("example.com example.org example.net www.example.com www.example.org www.example.net".split())
_NOT_HOSTS = frozenset(
    "self this cls args config settings threading thread request response window document model module system os sys np"
    " socket env package org com net java javax".split()
)
"""First parts of names in programs: `self.net`, `threading.local`, `org.apache`."""


def is_host_name(value: str, match: re.Match[str]) -> bool:
    """Return whether a name is that of a machine or a site, but not of a site that everybody uses."""
    name = value.lower()
    parts = name.split(".")
    is_public = len(parts) <= 3 and ".".join(parts[-2:]) in _PUBLIC_SITES
    if is_public or name in _EXAMPLES or name.replace(".", "").isdigit():
        return False
    if len(parts) == 2 and len(parts[1]) == 2 and len(parts[0]) < 4:
        return False  # an attribute, such as `mod.fr`
    if len(parts) == 1:
        return name not in HOSTS and any(char.isalpha() for char in name) and len(name) > 2
    return parts[0] not in _NOT_HOSTS or match.string[match.start()] == ":"  # after `://` it is no program


class OptionalRule(NamedTuple):
    """A rule, and the patterns that are searched for; the group `secret` is replaced.

    Each pattern comes with a gate: a faster pattern, without which a text has no match.
    """

    rule: Rule
    patterns: tuple[tuple[str, str], ...]


def _optional(id_: str, finds: str, kind: RuleKind, check: Check, *patterns: tuple[str, str]) -> OptionalRule:
    return OptionalRule(Rule(id_, finds, kind, (), "", check), patterns)


OPTIONAL = (
    _optional(
        "phone-number",
        "phone number",
        RuleKind.PHONE,
        is_phone,
        (r"\d(?:[ ()./-]{0,2}\d){6}", _PHONE),
        (r"\d(?:[ ()./-]{0,2}\d){5}", _LABELLED_PHONE),
    ),
    _optional("card-number", "number of a credit or debit card", RuleKind.CARD, is_card, (r"\d{4}[ -]?\d{4}", _CARD)),
    _optional(
        "ip-address",
        "IPv4 or IPv6 address",
        RuleKind.IP,
        is_ip,
        (r"\d\.\d{1,3}\.\d{1,3}\.\d", _IPV4),
        (r":[0-9A-Fa-f]{0,4}:", _IPV6),
    ),
    _optional(
        "host-name",
        "host in a URL or a domain",
        RuleKind.HOST,
        is_host_name,
        ("://", _URL_HOST),
        ("@", _SHELL_HOST),
        (rf"\.(?:{_INNER_DOMAINS}|{_DOMAINS}|{_AMBIGUOUS_DOMAINS})(?![\w(@\[-])", _BARE_HOST),
    ),
)
