"""Turns as ShareGPT had them: who, and one text; a call and its result are texts, too."""

from __future__ import annotations

from collections.abc import Iterator

from pollux.exports.chat.turns import Turn
from pollux.exports.source import Subject
from pollux.model import Json
from pollux.text.encode import text

_SAME = {"system": "system", "user": "human"}


def said(turn: Turn, subject: Subject) -> Iterator[dict[str, Json]]:
    """Yield what each said; results of calls that were made together become one."""
    results: list[Json] = []
    for message in turn.messages:
        if message["role"] == "tool":
            results.append(message["content"])
            continue
        if results:
            yield _observation(results, subject)
            results = []
        if message["role"] == "assistant":
            yield _answer(message, subject)
        else:
            yield {"from": _SAME[str(message["role"])], "value": message["content"]}
    if results:
        yield _observation(results, subject)


def _answer(message: dict[str, Json], subject: Subject) -> dict[str, Json]:
    """Tell words or calls: there is no place for both, nor for thoughts."""
    if "reasoning_content" in message:
        subject.losses["thoughts"] += 1
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        return {"from": "gpt", "value": message["content"]}
    if message["content"]:
        subject.losses["words before a call"] += 1
    told = [one["function"] for one in calls if isinstance(one, dict)]
    return {"from": "function_call", "value": text(told[0] if len(told) == 1 else told, subject.losses)}


def _observation(results: list[Json], subject: Subject) -> dict[str, Json]:
    return {"from": "observation", "value": results[0] if len(results) == 1 else text(results, subject.losses)}
