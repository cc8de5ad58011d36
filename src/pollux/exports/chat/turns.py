"""A session as turns of a chat: a prompt, what the model answered, what its calls came to.

What the client tells the model in the user's name goes before the next prompt, and before the first one it becomes the
system's message. Left out are turns that were taken back, cancelled or never answered, summaries of what stands there
in full, and what the client tells the model between the result of a call and the next answer: only the model may speak
then.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pollux.exports.message_text import call_id, reasoning, result, words
from pollux.exports.source import Subject
from pollux.model import Attachment, Fate, Json, Kind, Message, Origin, ToolCall
from pollux.text.encode import text

_ASKED = frozenset({Origin.HUMAN, Origin.AGENT_PROMPT, Origin.LOADED})
_TAKEN_BACK = frozenset({Fate.REWOUND, Fate.ROLLED_BACK, Fate.REPLACED})
_NOT_SAID = frozenset({Origin.STATE_SNAPSHOT, Origin.TOOL_RESPONSE, Origin.SYNTHETIC})


@dataclass(slots=True)
class Turn:
    """A prompt and all that followed."""

    messages: list[dict[str, Json]] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    has_answer: bool = False
    is_cancelled: bool = False

    @property
    def last_role(self) -> Json:
        """Who spoke last."""
        return self.messages[-1]["role"] if self.messages else None

    def ask(self, said: str) -> None:
        """Add words of the user's; what follows other words of theirs goes on with them."""
        if self.last_role == "user":
            said = f"{self.messages.pop()['content']}\n\n{said}"
        self.messages.append({"role": "user", "content": said})


def turns(subject: Subject, *, as_objects: bool) -> Iterator[Turn]:
    """Yield the turns that one can learn from, and count those that one cannot."""
    context: list[str] = []
    for turn in _turns(subject, context, as_objects=as_objects):
        if turn.is_cancelled:
            subject.losses["a turn that was cancelled or cut short"] += 1
        elif not turn.has_answer:
            subject.losses["a prompt without an answer"] += 1
        elif turn.messages[0]["role"] != "user":
            subject.losses["answers without a prompt"] += 1
        else:
            if turn.last_role == "user":  # the model was told to go on, and did not
                turn.messages.pop()
            if context:
                turn.messages.insert(0, {"role": "system", "content": "\n\n".join(context)})
                context.clear()
            yield turn


def _turns(subject: Subject, context: list[str], *, as_objects: bool) -> Iterator[Turn]:
    turn: Turn | None = None
    before: list[str] = []
    for message in subject.messages():
        if message.fate in _TAKEN_BACK:
            subject.losses["a message that was taken back"] += 1
        elif message.kind is Kind.GEMINI and message.origin is Origin.MODEL:
            turn = turn or Turn()
            _answer(turn, message, subject, as_objects=as_objects)
        elif message.kind is not Kind.USER:
            subject.losses["a notice"] += 1
        elif message.origin in _ASKED:
            if turn:
                turn.is_cancelled = turn.is_cancelled or turn.last_role == "tool"  # nobody waited for the answer
                yield turn
            turn = Turn()
            turn.ask("\n\n".join([*before, words(message)]))
            _count_files(message.attachments, subject)
            before = []
        elif message.origin is Origin.CONTINUE and turn:
            if turn.last_role == "tool":
                subject.losses["words of the client after the result of a call"] += 1
            else:
                turn.ask(words(message))
        elif message.origin not in _NOT_SAID:
            (before if turn else context).append(words(message))
    if turn:
        yield turn


def _answer(turn: Turn, message: Message, subject: Subject, *, as_objects: bool) -> None:
    """Add an answer to a turn: to the one before it, if nothing came between."""
    if not words(message) and not message.tool_calls:
        subject.losses["an answer without words"] += 1
        return
    results = [*_results(message, subject)]
    turn.has_answer = True
    turn.calls += message.tool_calls
    turn.is_cancelled = turn.is_cancelled or any(one.status == "cancelled" for one in message.tool_calls)
    turn.is_cancelled = turn.is_cancelled or len(results) < len(message.tool_calls)
    told: dict[str, Json] = {"role": "assistant", "content": words(message)}
    if thoughts := reasoning(message):
        told["reasoning_content"] = thoughts
    if message.tool_calls:
        told["tool_calls"] = [
            _call(message, index, subject, as_object=as_objects) for index in range(len(message.tool_calls))
        ]
    if turn.last_role == "assistant":
        told = _merged(turn.messages.pop(), told)
    turn.messages.append(told)
    turn.messages += results


def _count_files(files: tuple[Attachment, ...], subject: Subject) -> None:
    if files:
        subject.losses["a picture or file"] += len(files)


def _merged(one: dict[str, Json], other: dict[str, Json]) -> dict[str, Json]:
    merged = {**one, **other}
    for name in ("content", "reasoning_content"):
        texts = [str(told[name]) for told in (one, other) if told.get(name)]
        if name in merged:
            merged[name] = "\n\n".join(texts)
    return merged


def _call(message: Message, index: int, subject: Subject, *, as_object: bool) -> Json:
    call = message.tool_calls[index]
    arguments = call.args if isinstance(call.args, dict) else {"value": call.args}
    return {
        "id": call_id(message, index),
        "type": "function",
        "function": {"name": call.name, "arguments": arguments if as_object else text(arguments, subject.losses)},
    }


def _results(message: Message, subject: Subject) -> Iterator[dict[str, Json]]:
    """Yield what came of the calls; one that never came back has nothing."""
    for index, call in enumerate(message.tool_calls):
        came = result(call)
        _count_files(call.attachments, subject)
        if came is not None:
            yield {"role": "tool", "tool_call_id": call_id(message, index), "name": call.name, "content": came}
