"""Pollux archives, reads, counts, searches, exports and proves Gemini CLI history.

>>> import pollux
>>> library = pollux.open()
>>> newest = library.session("latest")
>>> newest.title, newest.project.path, newest.usage.calls
>>> for message in library.messages("latest"):  # the timeline: every message once, with its fate
...     print(message.kind, message.fate, message.text)
>>> list(library.state("latest"))  # what the client itself would load
>>> library.usage().billed  # every model call once, with the API's own counts
"""

from __future__ import annotations

TYPE_CHECKING = False  # no import here: Ctrl-C during one would print a traceback before `__main__` can catch it
if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import Any

    from pollux.errors import PolluxError
    from pollux.library.config import Config
    from pollux.library.filters import Filter
    from pollux.library.library import Library
    from pollux.library.outputs import FileSink, FolderSink
    from pollux.library.stats import StatsQuery
    from pollux.library.usage import UsageQuery
    from pollux.model import Fate, Kind, Message, ModelCall, Origin, Problem, Project, Session, Tokens, ToolCall, Usage
    from pollux.reports.sessions import Page, SessionPage, SessionRow
    from pollux.sessions.homes import Home
    from pollux.sessions.reader import History, from_file, history, opened, select

__version__ = "0.1.0"

__all__ = [
    "Config",
    "Fate",
    "FileSink",
    "Filter",
    "FolderSink",
    "History",
    "Kind",
    "Library",
    "Message",
    "ModelCall",
    "Origin",
    "Page",
    "PolluxError",
    "Problem",
    "Project",
    "Session",
    "SessionPage",
    "SessionRow",
    "StatsQuery",
    "Tokens",
    "ToolCall",
    "Usage",
    "UsageQuery",
    "__version__",
    "from_file",
    "history",
    "homes",
    "open",
    "opened",
    "select",
]

_MODULES = {
    "Config": "library.config",
    "FileSink": "library.outputs",
    "Filter": "library.filters",
    "FolderSink": "library.outputs",
    "Library": "library.library",
    "Page": "reports.sessions",
    "PolluxError": "errors",
    "SessionPage": "reports.sessions",
    "SessionRow": "reports.sessions",
    "StatsQuery": "library.stats",
    "UsageQuery": "library.usage",
    **dict.fromkeys(("History", "from_file", "history", "opened", "select"), "sessions.reader"),
}
_USERS_ARCHIVE = ""


def open(  # noqa: A001  read as `pollux.open`
    *,
    homes: Sequence[Path | str] = (),
    archive: Path | str | None = _USERS_ARCHIVE,
    prices: Path | None = None,
    zone: str | None = None,
    config: Config | None = None,
) -> Library:
    """Return a library that reads the history of one or more Gemini homes.

    Args:
        homes: Gemini homes, or the folders that contain them. Default: the environment's, else the user's own.
        archive: path of the archive. Default: the user's own. None: read session files only and store nothing.
        prices: TOML file with prices that override the built-in table.
        zone: time zone of the days in reports, such as `Europe/Berlin`. Default: the system's.
        config: all settings at once, instead of the other arguments.

    """
    from pathlib import Path  # noqa: PLC0415  `pollux --version` needs none of these

    from pollux.library.config import DEFAULT, configure  # noqa: PLC0415
    from pollux.library.library import Library  # noqa: PLC0415

    if config is None:
        if archive == _USERS_ARCHIVE:
            archive = DEFAULT
        config = configure(
            named_homes=[Path(home) for home in homes],
            archive=Path(archive) if isinstance(archive, str) else archive,
            prices=prices,
            zone=zone,
        )
    return Library(config)


def homes(*named: Path | str) -> tuple[Home, ...]:
    """Return the homes at these paths, else those that the environment names, else the user's own."""
    from pathlib import Path  # noqa: PLC0415

    from pollux.library.config import configure  # noqa: PLC0415

    return configure(named_homes=[Path(home) for home in named], archive=None).homes


def __getattr__(name: str) -> Any:  # noqa: ANN401
    """Import a public name on first use; `pollux --version` needs none of them."""
    from importlib import import_module  # noqa: PLC0415

    if name not in __all__:
        raise AttributeError(f"module 'pollux' has no attribute '{name}'")
    return getattr(import_module(f"pollux.{_MODULES.get(name, 'model')}"), name)
