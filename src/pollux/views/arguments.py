"""What a tool call was given: its arguments by any of the names they had, and paths as seen from the project."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from pollux.model import Json
from pollux.sessions.projects.paths import from_root
from pollux.views.bodies import Question
from pollux.views.excerpts import compact

Args: TypeAlias = Mapping[str, Json]


def argument(args: Args, *names: str) -> str:
    """Give the first of these arguments that says something."""
    for name in names:
        value = args.get(name)
        if value not in (None, "", [], {}):
            return compact(value)
    return ""


def path_argument(args: Args, root: str | None) -> str:
    """Give the file or folder that a call is about, as seen from the project."""
    return from_root(argument(args, "file_path", "absolute_path", "dir_path", "path", "directory", "target_file"), root)


def questions_asked(args: Args) -> Iterator[Question]:
    """Give what the model asked the human, not yet answered."""
    questions = args.get("questions")
    if not isinstance(questions, Sequence) or isinstance(questions, str):
        return
    for question in questions:
        if isinstance(question, Mapping):
            options = question.get("options")
            choices = options if isinstance(options, Sequence) and not isinstance(options, str) else ()
            yield Question(argument(question, "question", "header"), tuple(map(_label, choices)))
        else:
            yield Question(compact(question))


def _label(choice: Json) -> str:
    return argument(choice, "label") if isinstance(choice, Mapping) else compact(choice)
