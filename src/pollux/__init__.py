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

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pollux.errors import PolluxError
    from pollux.library.config import Config
    from pollux.library.filters import Filter
    from pollux.library.library import Library
    from pollux.library.sinks import FileSink, FolderSink
    from pollux.library.stats import StatsQuery
    from pollux.library.usage import UsageQuery
    from pollux.model import Fate, Kind, Message, ModelCall, Origin, Problem, Project, Session, Tokens, ToolCall, Usage
    from pollux.reports.sessions import Page, SessionPage, SessionRow
    from pollux.sessions.reader import History, from_file, history, homes, opened, select

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
    "FileSink": "library.sinks",
    "Filter": "library.filters",
    "FolderSink": "library.sinks",
    "Library": "library.library",
    "Page": "reports.sessions",
    "PolluxError": "errors",
    "SessionPage": "reports.sessions",
    "SessionRow": "reports.sessions",
    "StatsQuery": "library.stats",
    "UsageQuery": "library.usage",
    **dict.fromkeys(("History", "from_file", "history", "homes", "opened", "select"), "sessions.reader"),
}
_USERS_ARCHIVE = Path()


def open(  # noqa: A001  read as `pollux.open`
    *,
    homes: Sequence[Path | str] = (),
    archive: Path | str | None = _USERS_ARCHIVE,
    prices: Path | None = None,
    zone: str | None = None,
    config: Config | None = None,
) -> Library:
    """Open the history of some homes.

    Args:
        homes: Gemini homes, or the folders that contain them; else those that the environment names, or the user's own.
        archive: the archive's file, by default the user's own; None to read session files only and store nothing.
        prices: a TOML file with prices that override the built-in table.
        zone: whose days reports are about, such as `Europe/Berlin`; else the system's own.
        config: all settings at once, in place of the others.

    """
    from pollux.library.config import DEFAULT, configure  # noqa: PLC0415  `pollux --version` needs none of it
    from pollux.library.library import Library  # noqa: PLC0415

    if config is None:
        place = DEFAULT if archive == _USERS_ARCHIVE else archive
        config = configure(
            named_homes=[Path(home) for home in homes],
            archive=Path(place) if isinstance(place, str) else place,
            prices=prices,
            zone=zone,
        )
    return Library(config)


def __getattr__(name: str) -> Any:  # noqa: ANN401
    """Import a public name when it is first asked for: `pollux --version` needs none of them."""
    if name not in __all__:
        raise AttributeError(f"module 'pollux' has no attribute '{name}'")
    return getattr(import_module(f"pollux.{_MODULES.get(name, 'model')}"), name)
