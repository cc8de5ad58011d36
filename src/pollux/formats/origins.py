"""Determine the origin of a message: the client records many messages as `user` that no human typed."""

from __future__ import annotations

import re
from typing import NamedTuple

from pollux.model import Kind, Origin

_BLOCKS = (
    ("session_context", Origin.SESSION_CONTEXT),
    ("hook_context", Origin.HOOK_CONTEXT),
    ("state_snapshot", Origin.STATE_SNAPSHOT),
    ("loaded_context", Origin.SESSION_CONTEXT),
)

_HOOK_START, _HOOK_END = "<hook_context>", "</hook_context>"

_USER_TEXTS = (
    (re.compile(r"I ran the following shell command:\n"), Origin.SHELL_MODE),
    (re.compile(r"Here is the user's editor context as a JSON object.*\{", re.DOTALL), Origin.IDE_CONTEXT),
    (re.compile(r"Here is a summary of changes in the user's editor context.*\{", re.DOTALL), Origin.IDE_CONTEXT),
    (re.compile(r"System: Potential loop detected"), Origin.CONTINUE),
    (re.compile(r"System: Please continue\.\Z"), Origin.CONTINUE),
    (
        re.compile(r"\[System: You successfully executed a tool but returned an empty response"),
        Origin.CONTINUE,
    ),
    (
        re.compile(r"This is the Gemini CLI\. We are setting up the context for our chat\."),
        Origin.SESSION_CONTEXT,
    ),
    (re.compile(r"- \*\*Workspace Directories:\*\*\n"), Origin.SESSION_CONTEXT),
    (
        re.compile(r"First, reason in your scratchpad\. Then, generate the <state_snapshot>"),
        Origin.STATE_SNAPSHOT,
    ),
    (
        re.compile(r"Your task is to do a deep investigation of the codebase .*</objective>\Z", re.DOTALL),
        Origin.AGENT_PROMPT,
    ),
    (re.compile(r"\[Function Response: [^\]\n]+\]"), Origin.TOOL_RESPONSE),
)
"""Texts of the client. Each pattern includes more than the first words, because users quote those."""
_BEGINNINGS = (
    *("I ran the ", "Here is ", "System: ", "[System: ", "[Function Response: ", "This is the Gemini CLI."),
    *("- **Workspace ", "First, reason in ", "Your task is "),
)
"""The first words of all these texts, to skip the patterns for most prompts."""

_REFERENCED = "\n--- Content from referenced files ---"
"""Precedes the files that a prompt names with @."""
_FILE = "\nContent from @"
_FILES_END = "--- End of content ---"

_STEERING = re.compile(r"User steering update:\n<user_input>\n(.*?)\n</user_input>", re.DOTALL)
"""A hint that was typed while tools ran, and was sent to the model with their results."""

_CONTINUE = "Please continue."

_SYNTHETIC_ANSWERS = frozenset(
    {
        "Got it. Thanks for the context!",
        "Got it. Thanks for the additional context!",
        "Binary content received. Proceeding with analysis.",
        "[The previous response was interrupted before it completed.]",
    }
)

_NOTICES = frozenset({Kind.INFO, Kind.WARNING, Kind.ERROR})


class Words(NamedTuple):
    """The origin and the text of a `user` message."""

    origin: Origin
    prompt: str
    """What was typed; for other messages their text."""
    sent: str = ""
    """What was sent to the model, if it differs from what was typed."""


def user_words(
    text: str, display: str | None, *, n_responses: int = 0, has_media: bool = False, is_string: bool = False
) -> Words:
    """Return the origin and text of a `user` message, from its content and from what the client displayed instead.

    Since 0.28, when contents ceased to be strings, the client also records what it displays for a typed prompt if it
    sends something else.
    """
    if n_responses and not text:
        return Words(Origin.TOOL_RESPONSE, text)
    origin, sent = user_origin(text, n_responses=n_responses, has_media=has_media)
    if is_string:
        return Words(origin, sent)
    if origin == Origin.CONTINUE and sent == _CONTINUE and display is None:
        return Words(Origin.HUMAN, sent)  # the client displays its own request to continue as the last prompt
    if origin != Origin.HUMAN:
        return Words(origin, sent)
    if display is None:
        is_from_hook = text.rstrip().endswith(_HOOK_END)  # a typed prompt would have a display without this block
        return Words(Origin.HOOK_CONTEXT if is_from_hook else origin, sent)
    typed = user_origin(display)[1].strip() or sent
    return Words(origin, typed, "" if typed == sent else sent)


def user_origin(text: str, *, n_responses: int = 0, has_media: bool = False) -> tuple[Origin, str]:
    """Return the origin of a `user` message, and the text that a human typed; for other origins its whole text."""
    hint = _STEERING.match(text)
    if hint:
        return Origin.HUMAN, hint[1]
    if n_responses:
        return Origin.TOOL_RESPONSE, text
    typed, block = _without_blocks(text.strip())
    if block is not None and not typed:
        return block, text
    if typed == _CONTINUE:
        return Origin.CONTINUE, typed
    for pattern, origin in _USER_TEXTS if typed.startswith(_BEGINNINGS) else ():
        if pattern.match(typed):
            return origin, typed
    if not typed and not has_media:
        return Origin.SYNTHETIC, text
    return Origin.HUMAN, _without_files(typed)


def _without_files(typed: str) -> str:
    prompt, marker, files = typed.partition(_REFERENCED)
    is_added = not files or files.startswith(_FILE) or files.endswith(_FILES_END)
    return prompt.rstrip() if marker and is_added else typed


def _without_blocks(text: str) -> tuple[str, Origin | None]:
    """Return a prompt without the blocks that the client and hooks added, and the origin of the first block."""
    first: Origin | None = None
    for tag, origin in _BLOCKS:
        if text.startswith(f"<{tag}>"):
            block, end, after = text.partition(f"</{tag}>")
            if _is_typed_block(origin, block, after):
                break
            first = first or origin
            text = after.strip() if end else ""
    stop = len(text)  # a text may end with thousands of blocks, so it is sliced only once
    while text.endswith(_HOOK_END, 0, stop) and (start := text.rfind(_HOOK_START, 0, stop)) > 0:
        first = first or Origin.HOOK_CONTEXT
        stop = _skip_space_before(text, start)
    return text[:stop], first


def _skip_space_before(text: str, end: int) -> int:
    while end and text[end - 1].isspace():
        end -= 1
    return end


def _is_typed_block(origin: Origin, block: str, after: str) -> bool:
    """Return whether a human typed the tags of a block: a preamble has several lines, and nothing follows a summary."""
    if origin == Origin.SESSION_CONTEXT:
        return "\n" not in block
    return after.startswith(" ") or (origin == Origin.STATE_SNAPSHOT and bool(after.strip()))


def origin_of(
    kind: str, text: str, *, n_responses: int = 0, has_media: bool = False, is_counted: bool = False
) -> Origin:
    """Return the origin of a message of any kind; an answer with token counts is always the model's."""
    if kind == Kind.USER:
        return user_origin(text, n_responses=n_responses, has_media=has_media)[0]
    if kind in _NOTICES:
        return Origin.NOTICE
    return Origin.SYNTHETIC if not is_counted and text.strip() in _SYNTHETIC_ANSWERS else Origin.MODEL


def one_line(text: str) -> str:
    """Return a text with each run of white space replaced by one space."""
    return re.sub(r"\s+", " ", text).strip()
