"""What a recorded text really is: the client files much under `user` that nobody typed (`docs/formats.md`)."""

from __future__ import annotations

import re

from pollux.model import Kind, Origin

_BLOCKS = (
    ("session_context", Origin.SESSION_CONTEXT),
    ("hook_context", Origin.HOOK_CONTEXT),
    ("state_snapshot", Origin.STATE_SNAPSHOT),
    ("loaded_context", Origin.SESSION_CONTEXT),
)

_HOOK_START, _HOOK_END = "<hook_context>", "</hook_context>"

_USER_PREFIXES = (
    ("I ran the following shell command:", Origin.SHELL_MODE),
    ("Here is the user's editor context as a JSON object", Origin.IDE_CONTEXT),
    ("Here is a summary of changes in the user's editor context", Origin.IDE_CONTEXT),
    ("System: Potential loop detected", Origin.CONTINUE),
    ("System: Please continue.", Origin.CONTINUE),
    ("[System: You successfully executed a tool but returned an empty response", Origin.CONTINUE),
    ("This is the Gemini CLI. We are setting up the context for our chat.", Origin.SESSION_CONTEXT),
    ("- **Workspace Directories:**", Origin.SESSION_CONTEXT),
    ("First, reason in your scratchpad. Then, generate the <state_snapshot>", Origin.STATE_SNAPSHOT),
)

_INVESTIGATION = "Your task is to do a deep investigation of the codebase to find all relevant files"
_OBJECTIVE_END = "</objective>"

_REFERENCED = "\n--- Content from referenced files ---"
"""Behind this, old releases put the files that a prompt names with @."""

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


def user_origin(text: str, *, n_responses: int = 0, has_media: bool = False) -> tuple[Origin, str]:
    """Tell what a `user` message is, and the words in it that a human typed (for all others: what it says)."""
    if n_responses:
        return Origin.TOOL_RESPONSE, text
    typed, found = _without_blocks(text.strip())
    if found is not None and not typed:
        return found, text
    if typed == _CONTINUE:
        return Origin.CONTINUE, typed
    for prefix, origin in _USER_PREFIXES:
        if typed.startswith(prefix):
            return origin, typed
    if typed.startswith(_INVESTIGATION) and typed.endswith(_OBJECTIVE_END):
        return Origin.AGENT_PROMPT, typed
    if not typed and not has_media:
        return Origin.SYNTHETIC, text
    return Origin.HUMAN, typed.partition(_REFERENCED)[0].rstrip()


def _without_blocks(text: str) -> tuple[str, Origin | None]:
    """Take off what the client puts before and hooks put behind a prompt; tell what the first of it was."""
    found: Origin | None = None
    for tag, origin in _BLOCKS:
        if text.startswith(f"<{tag}>"):
            _, end, rest = text.partition(f"</{tag}>")
            found = found or origin
            text = rest.strip() if end else ""
    while text.endswith(_HOOK_END) and (start := text.rfind(_HOOK_START)) >= 0:
        found = found or Origin.HOOK_CONTEXT
        text = text[:start].strip()
    return text, found


def origin_of(kind: str, text: str, *, n_responses: int = 0, has_media: bool = False) -> Origin:
    """Tell what a message of any kind is."""
    if kind == Kind.USER:
        return user_origin(text, n_responses=n_responses, has_media=has_media)[0]
    if kind in _NOTICES:
        return Origin.NOTICE
    return Origin.SYNTHETIC if text.strip() in _SYNTHETIC_ANSWERS else Origin.MODEL


def one_line(text: str) -> str:
    """Fold all white space: a title keeps every character that the client would throw away."""
    return re.sub(r"\s+", " ", text).strip()
