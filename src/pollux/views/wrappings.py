"""What the client puts around the output of a tool, and how to take it off."""

from __future__ import annotations

import re

_FULL_OUTPUT = re.compile(r"(?:For full output see|Full output available at|Full string saved to): *([^\n\]]+)")
_NOTE = 2000
"""Characters at either end of a masked output among which the name of its file must be."""
_LAYOUT_HEAD = re.compile(r"(?:Command: .*\n(?:Directory: .*\n)?)?(?:Output|Stdout): ")
_LAYOUT_FOOT = re.compile(
    r"\n(?:Error|Exit Code|Signal|Background PIDs|Process Group PGID|Stderr): (?:\(none\)|\(empty\)|[^\n]*)\Z"
)


def unwrapped(text: str, notes: list[str]) -> str:
    """Take the client's wrappers off an output, and note what it did to it."""
    text = _without_tag(text.strip(), "untrusted_context")
    inner = _without_tag(text, "tool_output_masked")
    if inner is not text:
        text = inner
        place = _FULL_OUTPUT.search(text[-_NOTE:]) or _FULL_OUTPUT.search(text[:_NOTE])
        _note(notes, "masked by Gemini CLI to save context", place)
    if text.startswith("Output too large"):
        first, _, text = text.partition("\n")
        _note(notes, "shortened by Gemini CLI", _FULL_OUTPUT.search(first))
    return text


def without_layout(output: str) -> str:
    """Take the field names off what the shell tool tells the model."""
    head = _LAYOUT_HEAD.match(output)
    if head is None:
        return output
    start, end = head.end(), len(output)  # an output may end with thousands of such lines: it is cut once
    while foot := _LAYOUT_FOOT.search(output, max(start, output.rfind("\n", start, end)), end):
        end = foot.start()
    body = output[start:end]
    return "" if body.strip() in {"(empty)", "(none)"} else body


def _note(notes: list[str], words: str, place: re.Match[str] | None) -> None:
    notes.append(f"{words}; the whole output: {place[1].strip()}" if place else words)


def _without_tag(text: str, tag: str) -> str:
    if text.startswith(f"<{tag}>") and text.endswith(f"</{tag}>"):
        return text[len(tag) + 2 : -len(tag) - 3].strip("\n")
    return text
