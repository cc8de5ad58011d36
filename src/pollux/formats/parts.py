"""Convert the client's content to parts: a string, a part, or a list of both, in the form of any release."""

from __future__ import annotations

from typing import Any

from pollux.formats.short import ElidedText
from pollux.model import (
    Attachment,
    Code,
    CodeResult,
    FunctionCall,
    FunctionResponse,
    Part,
    Text,
    Thought,
    Unknown,
)
from pollux.text.times import parse_time

_KNOWN = frozenset({"text", "thought", "thoughtSignature", "callIndex"})
_JS_SPACE = "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"  # noqa: E501  what JavaScript's trim() takes off


def parts(content: Any) -> tuple[Part, ...]:  # noqa: ANN401  the decoding edge
    """Convert the content of a message."""
    if content is None or content == "":
        return ()
    if isinstance(content, list):
        return tuple(part for value in content for part in _parts(value))
    return _parts(content)


def attachments(values: list[Any]) -> tuple[Attachment, ...]:
    """Return only the attachments among some parts."""
    return tuple(part for part in parts(values) if isinstance(part, Attachment))


def thoughts(values: Any) -> tuple[Thought, ...]:  # noqa: ANN401
    """Convert the list of thoughts that is recorded next to the content."""
    converted = []
    for value in values if isinstance(values, list) else [values] if values else []:
        if isinstance(value, dict):
            subject, text = value.get("subject"), value.get("description")
            converted.append(Thought(_text(text), _text(subject), parse_time(value.get("timestamp"))))
        else:
            converted.append(Thought(_text(value)))
    return tuple(converted)


def verbose_text(content: Any) -> str:  # noqa: ANN401
    """Return a content as the client renders it to decide whether a session can be resumed."""
    texts: list[str] = []
    waiting = [content]
    while waiting:  # lists may be nested deeper than functions may call each other
        value = waiting.pop()
        if isinstance(value, list):
            waiting += reversed(value)
        elif isinstance(value, dict):
            texts.append(_verbose_part(value))
        elif isinstance(value, str):
            texts.append(value)
    return "".join(texts)


def _verbose_part(part: dict[str, Any]) -> str:
    for key, shown in _SHOWN.items():
        if key in part:
            return shown
    return _text(part.get("text"))


def is_ignored(text: str) -> bool:
    """Return whether the client ignores a user's text."""
    trimmed = text.strip(_JS_SPACE)
    return not trimmed or trimmed.startswith(("/", "?", "<session_context>", "<hook_context>"))


def is_resumable(message: dict[str, Any]) -> bool:
    """Return whether the client considers a message part of a conversation."""
    text = verbose_text(message.get("content"))
    if message.get("type") == "user":
        return not is_ignored(text)
    if message.get("type") == "gemini":
        return bool(text.strip(_JS_SPACE)) or any(_length(message.get(key)) for key in ("toolCalls", "thoughts"))
    return False


def _length(value: object) -> int:
    return len(value) if isinstance(value, list | str) else 0


def title_words(message: dict[str, Any]) -> str | None:
    """Return the title that the client would take from a user's message; None if it would ignore the message."""
    content = message.get("content")
    if not content or not is_resumable(message):
        return None
    if isinstance(content, list):
        texts = (part.get("text") for part in content if isinstance(part, dict))
        return "".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else None


_SHOWN = {
    "videoMetadata": "[Video Metadata]",
    "thought": "[Thought]",
    "codeExecutionResult": "[Code Execution Result]",
    "executableCode": "[Executable Code]",
    "fileData": "[File Data]",
    "functionCall": "[Function Call]",
    "functionResponse": "[Function Response]",
    "inlineData": "[Media]",
}


def _parts(value: Any) -> tuple[Part, ...]:  # noqa: ANN401
    """Convert one part; a part with several kinds of content becomes several parts."""
    if isinstance(value, str):
        return (Text(value),) if value else ()
    if not isinstance(value, dict):
        return (Unknown(value),)
    converted: list[Part] = []
    text = value.get("text")
    if isinstance(text, str) and (text or len(value) == 1):
        converted.append(Thought(text) if value.get("thought") else Text(text))
    for key, inner in value.items():
        if key in _KNOWN:
            continue
        convert = _CONVERT.get(key)
        converted.append(convert(inner) if convert and isinstance(inner, dict) else Unknown({key: inner}))
    if not converted and not isinstance(text, str):
        converted.append(Unknown(value))
    return tuple(converted)


def _function_call(value: dict[str, Any]) -> Part:
    return FunctionCall(_text_or_none(value.get("id")), _text(value.get("name")), value.get("args", {}))


def _function_response(value: dict[str, Any]) -> Part:
    return FunctionResponse(_text_or_none(value.get("id")), _text(value.get("name")), value.get("response"))


def _inline(value: dict[str, Any]) -> Part:
    data = _text(value.get("data"))
    n_chars = data.length if isinstance(data, ElidedText) else len(data)
    size = n_chars * 3 // 4 - data[-2:].count("=")
    complete = None if isinstance(data, ElidedText) else data
    return Attachment(_text(value.get("mimeType")) or "application/octet-stream", size, data=complete)


def _file(value: dict[str, Any]) -> Part:
    return Attachment(_text(value.get("mimeType")) or "application/octet-stream", uri=_text(value.get("fileUri")))


def _code(value: dict[str, Any]) -> Part:
    return Code(_text(value.get("language")).lower(), _text(value.get("code")))


def _code_result(value: dict[str, Any]) -> Part:
    return CodeResult(_text(value.get("outcome")), _text(value.get("output")))


_CONVERT = {
    "functionCall": _function_call,
    "functionResponse": _function_response,
    "inlineData": _inline,
    "fileData": _file,
    "executableCode": _code,
    "codeExecutionResult": _code_result,
}


def _text(value: Any) -> str:  # noqa: ANN401
    return value if isinstance(value, str) else "" if value is None else str(value)


def _text_or_none(value: Any) -> str | None:  # noqa: ANN401
    return value if isinstance(value, str) else None
