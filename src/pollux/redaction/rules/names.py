"""What tells who somebody is: e-mail addresses, home folders, shell prompts."""

from __future__ import annotations

from pollux.redaction.people import is_account, is_address, is_host
from pollux.redaction.rule import Kind, Rule

_ESCAPE = r"(?<=\\[nrtbf])|(?<=\\u00[01][0-9A-Fa-f])"
"""What stands for a character that is none of a word, as JSON writes it."""
_PATH = rf"(?<!#\d\])(?<!#\d\d\])(?:(?<![\w.~/\\-])|(?<=://)|{_ESCAPE}|(?<=-[ILFilf])|(?<=/var)|(?<=/usr)|(?<=/export))"
"""Where an absolute path begins, or a folder that may hold homes ends; behind a pseudonym, a path only goes on."""
_DRIVE = rf"(?:{_PATH}|(?<=/mnt/[a-z])|(?<=^/[a-z])|(?<=[^\w/]/[a-z]))"
_NAME = r"[^\W_](?:[\w.-]{0,62}\w)?"
_WINDOWS_NAME = r"(?:[^\W_][\w.-]{0,40}(?: [\w.-]{1,40}){1,3}(?=[\\/])|[^\W_](?:[\w.-]{0,62}\w)?)"
_SURE = (
    r"(?P<sure>[\\/]{1,8}(?:\.\w|(?:Desktop|Documents|Downloads|Library|AppData|OneDrive|Pictures|Projects|projects"
    r"|repos|src|code|dev|work|workspace|git|go|bin|snap)\b))?"
)
"""What hardly stands below anything but a home."""
_HOST = r"[A-Za-z0-9][A-Za-z0-9-]{0,62}"
_PROMPT = (
    r"(?:\.[A-Za-z0-9.-]{1,200})?"
    r"(?::[~/][^\s$#%>]{0,200}+[$#%]|[ ][^\s\]]{1,60}+\][$#]|[ ][~/]\S{0,100}+[ ][%$#])(?=\s|$)"
)
_PROBE = (
    r"[a-z0-9][a-z0-9.-]{0,262}"
    r"(?::[~/][^ \t-\r$#%>]{0,200}+[$#%]|[ ][^\s\]]{1,60}+\][$#]|[ ][~/]\S{0,100}+[ ][%$#])"
)


def _home(
    id_: str, finds: str, anchors: str | tuple[str, ...], name: str, *, guard: str = "", any_case: bool = False
) -> Rule:
    """Make a rule for the name of a home folder."""
    return Rule(
        id_,
        finds,
        Kind.PATH,
        (anchors,) if isinstance(anchors, str) else anchors,
        rf"[\\/]{{0,16}}(?P<secret>{name}){_SURE}",
        is_account,
        any_case=any_case,
        guard=guard,
        probe=r"[\\/]{0,16}[^\x00-/:->@[-`{-~]",
        label="user",
    )


ROWS = (
    Rule(
        "email",
        "e-mail address",
        Kind.EMAIL,
        ("@",),
        r"(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.){1,8}[A-Za-z]{2,24}(?![\w@-])",
        is_address,
        left=r"(?>[\w.%+-]{0,63}\w)(?!:[^\s/:@]{0,100}//:)",
        probe=r"(?:[^\x00-,/:->@]{1,63}\.){1,8}[a-z]{2,24}(?![\w@-])",
    ),
    _home("home-path", "name of a home folder on Linux", "/home/", _NAME, guard=_PATH),
    _home(
        "mac-home-path",
        "name of a home folder on macOS, or on Windows as other systems see it",
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
        Kind.NAME,
        ("@",),
        rf"(?P<secret>){_HOST}{_PROMPT}(?P<sure>)",
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
        rf"(?P<secret>{_HOST}){_PROMPT}(?P<sure>)",
        is_host,
        guard=r"(?<=\w)",
        probe=_PROBE,
        label="host",
    ),
)
