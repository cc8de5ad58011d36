"""Rules for what identifies a person: e-mail addresses, home folders, shell prompts."""

from __future__ import annotations

import re

from pollux.redaction.rule import Rule, RuleKind

_ACCOUNTS = frozenset(
    "root user users username user_name user-name youruser yourname your-username myuser me you name account"
    " runner runneradmin node ubuntu debian fedora centos alpine arch opc ec2-user azureuser admin administrator"
    " containeradministrator vagrant docker jenkins circleci travis gitlab-runner buildkite-agent vsts"
    " vssadministrator gitpod codespace vscode coder sandbox builder build deploy deployer app apps appuser"
    " nonroot nobody www www-data git pi guest public shared default all linuxbrew jovyan airflow spark hadoop"
    " postgres mysql redis mongodb oracle test tester testing demo example sample foo bar baz xxx dev devel"
    " developer work workspace project projects home data service server worker agent bot system daemon nginx"
    " tomcat kali parallels lab student".split()
)
_WORDS = frozenset(
    "angel april august autumn basil bill blake brook buck carol chance chase chip christian clay cliff colt cook"
    " dale daisy dawn dean dick dolly drew duke earl eden faith fern flora ford forest frank gene ginger glen"
    " grace grant gray green guy hank harmony hazel heath holly hope hunter iris jack jade jasmine jean jerry"
    " jewel john josh joy june king lance lane lily link love luke major march marina mark marsh mason matt max"
    " may melody mercy merit miles mission nick noble norm olive page paris patience pearl penny peter pierce"
    " piper poppy price prudence queen rand ray read rich river rob robin rocky rose ruby rusty sage sandy scarlet"
    " scout shell sky sonny stone storm sunny summer terry trace trinity violet wade ward west will willow winter"
    " wolf wood young code main core base file files index docs tools settings dashboard profile components pages"
    " assets images static login search about contact products".split()
)
"""Words that are names, too: replacing them as words would tear holes into any text."""
HOSTS = frozenset(
    "localhost host hostname server client box docker container ubuntu debian raspberrypi desktop laptop macbook"
    " imac mac pc build ci dev prod production staging test web api db database master slave node worker github"
    " gitlab bitbucket penguin archlinux fedora kali vagrant codespaces".split()
)
_RESERVED = re.compile(r"(?:^|\.)(?:example(?:\.(?:com|org|net|edu))?|test|invalid|localhost)$", re.IGNORECASE)
_NO_PERSON = frozenset(
    "git noreply no-reply no_reply donotreply do-not-reply user username you your-email youremail".split()
)
_FILE_SUFFIXES = frozenset(
    "png jpg jpeg gif svg webp ico js mjs cjs ts tsx jsx py go rs css scss html json md txt so dll".split()
)
_COMMON = _ACCOUNTS | _WORDS | HOSTS
_MIN_LETTERS = 4
_CONTAINER_ID = re.compile(r"[0-9a-f]{12}")
_ESCAPE = r"(?<=\\[nrtbf])|(?<=\\u00[01][0-9A-Fa-f])"
"""After the JSON escape of a character that is not part of a word."""
_PATH = rf"(?<!#\d\])(?<!#\d\d\])(?:(?<![\w.~/\\-])|(?<=://)|{_ESCAPE}|(?<=-[ILFilf])|(?<=/var)|(?<=/usr)|(?<=/export))"
"""Where an absolute path begins, or a folder that may contain homes ends; after a pseudonym a path only continues."""
_DRIVE = rf"(?:{_PATH}|(?<=/mnt/[a-z])|(?<=^/[a-z])|(?<=[^\w/]/[a-z]))"
_NAME = r"[^\W_](?:[\w.-]{0,62}\w)?"
_WINDOWS_NAME = r"(?:[^\W_][\w.-]{0,40}(?: [\w.-]{1,40}){1,3}(?=[\\/])|[^\W_](?:[\w.-]{0,62}\w)?)"
_SURE = (
    r"(?P<sure>[\\/]{1,8}(?:\.\w|(?:Desktop|Documents|Downloads|Library|AppData|OneDrive|Pictures|Projects|projects"
    r"|repos|src|code|dev|work|workspace|git|go|bin|snap)\b))?"
)
"""Folders that hardly exist outside of a home."""
_HOST = r"[A-Za-z0-9][A-Za-z0-9-]{0,62}"
_PROMPT = (
    r"(?:\.[A-Za-z0-9.-]{1,200})?"
    r"(?::[~/][^\s$#%>]{0,200}+[$#%]|[ ][^\s\]]{1,60}+\][$#]|[ ][~/]\S{0,100}+[ ][%$#])(?=\s|$)"
)
_PROBE = (
    r"[a-z0-9][a-z0-9.-]{0,262}"
    r"(?::[~/][^ \t-\r$#%>]{0,200}+[$#%]|[ ][^\s\]]{1,60}+\][$#]|[ ][~/]\S{0,100}+[ ][%$#])"
)


def is_account(value: str, _match: re.Match[str]) -> bool:
    """Return whether an account is that of a person."""
    return value.lower() not in _ACCOUNTS


def is_host(value: str, _match: re.Match[str]) -> bool:
    """Return whether a host has a name that identifies it."""
    return value.lower() not in HOSTS and not _CONTAINER_ID.fullmatch(value)


def is_address(value: str, _match: re.Match[str]) -> bool:
    """Return whether an e-mail address is that of a person: not an example, a git remote or a file name."""
    local, _, domain = value.lower().rpartition("@")
    if local in _NO_PERSON or "noreply" in local:
        return False
    return not _RESERVED.search(domain) and domain.rpartition(".")[2] not in _FILE_SUFFIXES


def is_distinct(name: str) -> bool:
    """Return whether a name can be replaced wherever it is a word."""
    plain = name.lower()
    return plain not in _COMMON and sum(map(str.isalpha, name)) >= _MIN_LETTERS


def _home(
    id_: str, finds: str, anchors: str | tuple[str, ...], name: str, *, guard: str = "", any_case: bool = False
) -> Rule:
    """Return a rule for the name of a home folder."""
    return Rule(
        id_,
        finds,
        RuleKind.PATH,
        (anchors,) if isinstance(anchors, str) else anchors,
        rf"[\\/]{{0,16}}(?P<secret>{name}){_SURE}",
        is_account,
        any_case=any_case,
        guard=guard,
        probe=r"[\\/]{0,16}[^\x00-/:->@[-`{-~]",
        pseudonym_label="user",
    )


ROWS = (
    Rule(
        "email",
        "e-mail address",
        RuleKind.EMAIL,
        ("@",),
        r"(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.){1,8}[A-Za-z]{2,24}(?![\w@-])",
        is_address,
        left=r"(?>[\w.%+-]{0,63}\w)(?!:[^\s/:@]{0,100}//:)",
        probe=r"(?:[^\x00-,/:->@]{1,63}\.){1,8}[a-z]{2,24}(?![\w@-])",
    ),
    _home("home-path", "name of a home folder on Linux", "/home/", _NAME, guard=_PATH),
    _home(
        "mac-home-path",
        "name of a home folder on macOS, or on Windows seen from another system",
        "/Users/",
        _NAME,
        guard=_DRIVE,
    ),
    _home(
        "windows-home-path", "name of a home folder on Windows", ("\\users\\", ":/users/"), _WINDOWS_NAME, any_case=True
    ),
    _home(
        "home-slug",
        "name of a home folder in a path with dashes",
        ("-home-", "-Users-"),
        r"[^\W_][\w.]{0,62}(?=-)",
        guard=rf"(?:(?<![\w-])|{_ESCAPE})",
    ),
    Rule(
        "prompt-user",
        "user of a shell prompt",
        RuleKind.NAME,
        ("@",),
        rf"(?P<secret>){_HOST}{_PROMPT}(?P<sure>)",
        is_account,
        left=r"[\w.-]{0,31}[^\W\d]",
        probe=_PROBE,
        pseudonym_label="user",
    ),
    Rule(
        "prompt-host",
        "host of a shell prompt",
        RuleKind.NAME,
        ("@",),
        rf"(?P<secret>{_HOST}){_PROMPT}(?P<sure>)",
        is_host,
        guard=r"(?<=\w)",
        probe=_PROBE,
        pseudonym_label="host",
    ),
)
