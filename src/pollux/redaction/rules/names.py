"""What tells who somebody is: e-mail addresses, home folders, shell prompts."""

from __future__ import annotations

from pollux.redaction.people import is_account, is_address, is_host
from pollux.redaction.rule import Kind, Rule

_PATH = r"(?:(?<![\w.~/\\-])|(?<=://)|(?<=\\[nrt])|(?<=-[ILF])|(?<=/var)|(?<=/usr)|(?<=/export)|(?<=/mnt/[a-z])|(?<=/[a-z]))"
"""Where an absolute path begins, or a folder that may hold homes ends."""
_NAME = r"[^\W_](?:[\w.-]{0,62}\w)?"
_WINDOWS_NAME = r"(?:[^\W_][\w.-]{0,40}(?: [\w.-]{1,40}){1,3}(?=[\\/])|[^\W_](?:[\w.-]{0,62}\w)?)"
_SURE = (
    r"(?P<sure>[\\/]{1,8}(?:\.\w|(?:Desktop|Documents|Downloads|Library|AppData|OneDrive|Pictures|Projects|projects"
    r"|repos|src|code|dev|work|workspace|git|go|bin|snap)\b))?"
)
"""What hardly stands below anything but a home."""
_HOST = r"[A-Za-z0-9][A-Za-z0-9-]{0,62}"
_PROMPT = (
    r"(?:\.[A-Za-z0-9.-]{1,200})?(?::[~/][^\s$#%>]{0,200}[$#%]|[ ][^\s\]]{1,60}\][$#]|[ ][~/]\S{0,100}[ ][%$#])(?=\s|$)"
)
_PROBE = r"[a-z0-9][a-z0-9.-]{0,262}(?::[~/]|[ ][^\s\]]{1,60}\]|[ ][~/])"

ROWS = (
    Rule(
        "email",
        "e-mail address",
        Kind.EMAIL,
        ("@",),
        r"(?P<secret>@(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.){1,8}[A-Za-z]{2,24})(?![\w@-])",
        is_address,
        left=r"(?>[\w.%+-]{0,63}\w)(?!:[^\s/:@]{0,100}//:)",
        probe=r"(?:[^\x00-,/:-@]{1,63}\.){1,8}[a-z]{2,24}(?![\w@-])",
    ),
    Rule(
        "home-path",
        "name of a home folder on Linux",
        Kind.PATH,
        ("/home/",),
        rf"{_PATH}/home/(?P<secret>{_NAME}){_SURE}",
        is_account,
        label="user",
    ),
    Rule(
        "mac-home-path",
        "name of a home folder on macOS, or on Windows as other systems see it",
        Kind.PATH,
        ("/Users/",),
        rf"{_PATH}/Users/(?P<secret>{_NAME}){_SURE}",
        is_account,
        label="user",
    ),
    Rule(
        "windows-home-path",
        "name of a home folder on Windows",
        Kind.PATH,
        ("users\\", ":/users/"),
        rf"(?:(?<=[\\/])(?i:users)|:/(?i:users))[\\/]{{1,8}}(?P<secret>{_WINDOWS_NAME}){_SURE}",
        is_account,
        any_case=True,
        label="user",
    ),
    Rule(
        "home-slug",
        "name of a home folder in a path with dashes",
        Kind.PATH,
        ("-home-", "-Users-"),
        r"(?<![\w-])-(?:home|Users)-(?P<secret>[^\W_][\w.]{0,62})(?=-)",
        is_account,
        label="user",
    ),
    Rule(
        "prompt-user",
        "user of a shell prompt",
        Kind.NAME,
        ("@",),
        rf"(?P<secret>)@{_HOST}{_PROMPT}(?P<sure>)",
        is_account,
        left=r"[\w.-]{0,31}[^\W\d]",
        probe=_PROBE,
        label="user",
    ),
    Rule(
        "prompt-host",
        "host of a shell prompt",
        Kind.NAME,
        ("@",),
        rf"(?<=\w)@(?P<secret>{_HOST}){_PROMPT}(?P<sure>)",
        is_host,
        probe=_PROBE,
        label="host",
    ),
)
