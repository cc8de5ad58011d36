"""Which names, hosts and addresses belong to nobody in particular."""

from __future__ import annotations

import re

ACCOUNTS = frozenset(
    "root user users username user_name user-name youruser yourname your-username myuser me you name account"
    " runner runneradmin node ubuntu debian fedora centos alpine arch opc ec2-user azureuser admin administrator"
    " containeradministrator vagrant docker jenkins circleci travis gitlab-runner buildkite-agent vsts"
    " vssadministrator gitpod codespace vscode coder sandbox builder build deploy deployer app apps appuser"
    " nonroot nobody www www-data git pi guest public shared default all linuxbrew jovyan airflow spark hadoop"
    " postgres mysql redis mongodb oracle test tester testing demo example sample foo bar baz xxx dev devel"
    " developer work workspace project projects home data service server worker agent bot system daemon nginx"
    " tomcat kali parallels lab student".split()
)
WORDS = frozenset(
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
"""Words that are names too: as a word of its own, such a name tells nothing and would tear holes into any text."""
HOSTS = frozenset(
    "localhost host hostname server client box docker container ubuntu debian raspberrypi desktop laptop macbook"
    " imac mac pc build ci dev prod production staging test web api db database master slave node worker github"
    " gitlab bitbucket penguin archlinux fedora kali vagrant codespaces".split()
)
_RESERVED = re.compile(r"(?:^|\.)(?:example(?:\.(?:com|org|net|edu))?|test|invalid|localhost)$", re.IGNORECASE)
_NOBODY = frozenset(
    "git noreply no-reply no_reply donotreply do-not-reply user username you your-email youremail".split()
)
_FILES = frozenset(
    "png jpg jpeg gif svg webp ico js mjs cjs ts tsx jsx py go rs css scss html json md txt so dll".split()
)
_COMMON = ACCOUNTS | WORDS | HOSTS
_LETTERS = 4
_CONTAINER = re.compile(r"[0-9a-f]{12}")


def is_account(value: str, _match: re.Match[str]) -> bool:
    """Tell whether an account belongs to a person."""
    return value.lower() not in ACCOUNTS


def is_host(value: str, _match: re.Match[str]) -> bool:
    """Tell whether a machine has a name of its own."""
    return value.lower() not in HOSTS and not _CONTAINER.fullmatch(value)


def is_address(value: str, _match: re.Match[str]) -> bool:
    """Tell whether an address is somebody's: not reserved for examples, not a remote of git, not a file's name."""
    local, _, domain = value.lower().rpartition("@")
    return (
        local not in _NOBODY
        and not _RESERVED.search(domain)
        and domain.rpartition(".")[2] not in _FILES
        and "noreply" not in local
    )


def is_distinct(name: str) -> bool:
    """Tell whether a name can be looked for as a word of its own."""
    plain = name.lower()
    return plain not in _COMMON and sum(map(str.isalpha, name)) >= _LETTERS
