"""Pollux keeps, reads, counts, finds, exports and proves Gemini CLI history.

>>> import pollux
>>> found = pollux.history(pollux.homes())
>>> newest = found.main[0]
>>> newest.title, newest.project.path, len(newest.calls)
>>> group = pollux.opened(newest)
>>> for message in group.messages():  # the timeline: every message once, with its fate
...     print(message.kind, message.fate, message.text)
>>> list(group.state())  # what the client itself would load
>>> group.usage()  # every model call once, with the API's own counts
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pollux.errors import PolluxError
    from pollux.model import Fate, Kind, Message, ModelCall, Origin, Problem, Project, Session, Tokens, ToolCall
    from pollux.sessions.grouping import Group
    from pollux.sessions.reader import History, from_file, history, homes, opened, select

__version__ = "0.1.0"

__all__ = [
    "Fate",
    "Group",
    "History",
    "Kind",
    "Message",
    "ModelCall",
    "Origin",
    "PolluxError",
    "Problem",
    "Project",
    "Session",
    "Tokens",
    "ToolCall",
    "__version__",
    "from_file",
    "history",
    "homes",
    "opened",
    "select",
]

_PLACES = {"PolluxError": "errors", "Group": "sessions.grouping"} | dict.fromkeys(
    ("History", "from_file", "history", "homes", "opened", "select"), "sessions.reader"
)


def __getattr__(name: str) -> Any:  # noqa: ANN401
    """Import a public name when it is first asked for: `pollux --version` needs none of them."""
    if name not in __all__:
        raise AttributeError(f"module 'pollux' has no attribute '{name}'")
    return getattr(import_module(f"pollux.{_PLACES.get(name, 'model')}"), name)
