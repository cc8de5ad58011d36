"""A session as turns of a chat: a prompt, the model's answers, and the results of its tool calls.

Text that the client sends in the user's name is put in front of the next prompt; before the first prompt, it becomes
the system message. Left out are turns that were retracted, cancelled or never answered, summaries of compressed
messages, which are exported in full, and text of the client between the result of a call and the next answer, where
only the model may speak.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pollux.exports.fields import PROMPT_ORIGINS, arguments, call_id, call_result, message_text, reasoning
from pollux.exports.source import RETRACTED, ExportSource
from pollux.model import Attachment, Json, Kind, Message, Origin, ToolCall
from pollux.text.encode import text

_NOT_CONTEXT = frozenset({Origin.STATE_SNAPSHOT, Origin.TOOL_RESPONSE, Origin.SYNTHETIC})


@dataclass(slots=True)
class ChatTurn:
    """A prompt and everything up to the next prompt."""

    messages: list[dict[str, Json]] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    has_answer: bool = False
    is_cancelled: bool = False

    @property
    def last_role(self) -> Json:
        """The role of the last message."""
        return self.messages[-1]["role"] if self.messages else None

    def add_user_text(self, text: str) -> None:
        """Add text of the user, joined to the last message if that is the user's too."""
        if self.last_role == "user":
            text = f"{self.messages.pop()['content']}\n\n{text}"
        self.messages.append({"role": "user", "content": text})


def turns(source: ExportSource, *, as_objects: bool) -> Iterator[ChatTurn]:
    """Yield the turns with a prompt and a complete answer, and count the others as losses."""
    context: list[str] = []
    for turn in _all_turns(source, context, as_objects=as_objects):
        if turn.is_cancelled:
            source.losses["a turn that was cancelled or has no result"] += 1
        elif not turn.has_answer:
            source.losses["a prompt without an answer"] += 1
        elif turn.messages[0]["role"] != "user":
            source.losses["answers without a prompt"] += 1
        else:
            if turn.last_role == "user":  # the client asked the model to continue, but it did not
                turn.messages.pop()
            if context:
                turn.messages.insert(0, {"role": "system", "content": "\n\n".join(context)})
                context.clear()
            yield turn


def _all_turns(source: ExportSource, context: list[str], *, as_objects: bool) -> Iterator[ChatTurn]:
    turn: ChatTurn | None = None
    prefix: list[str] = []
    for message in source.messages():
        if message.fate in RETRACTED:
            source.losses["a retracted message"] += 1
        elif message.kind is Kind.GEMINI and message.origin is Origin.MODEL:
            turn = turn or ChatTurn()
            _add_answer(turn, message, source, as_objects=as_objects)
        elif message.kind is not Kind.USER:
            source.losses["a notice"] += 1
        elif message.origin in PROMPT_ORIGINS:
            if turn:
                turn.is_cancelled = turn.is_cancelled or turn.last_role == "tool"  # the user did not wait for an answer
                yield turn
            turn = ChatTurn()
            turn.add_user_text("\n\n".join([*prefix, message_text(message)]))
            _count_attachments(message.attachments, source)
            prefix = []
        elif message.origin is Origin.CONTINUE and turn:
            if turn.last_role == "tool":
                source.losses["text of the client after the result of a call"] += 1
            else:
                turn.add_user_text(message_text(message))
        elif message.origin not in _NOT_CONTEXT:
            (prefix if turn else context).append(message_text(message))
    if turn:
        yield turn


def _add_answer(turn: ChatTurn, message: Message, source: ExportSource, *, as_objects: bool) -> None:
    """Add an answer to a turn, joined to the previous answer if nothing is between them."""
    if not message_text(message) and not message.tool_calls:
        source.losses["an answer without text"] += 1
        return
    results = [*_results(message, source)]
    turn.has_answer = True
    turn.calls += message.tool_calls
    if any(call.status == "cancelled" for call in message.tool_calls) or len(results) < len(message.tool_calls):
        turn.is_cancelled = True
    answer: dict[str, Json] = {"role": "assistant", "content": message_text(message)}
    if thoughts := reasoning(message):
        answer["reasoning_content"] = thoughts
    if message.tool_calls:
        answer["tool_calls"] = [
            _tool_call(message, index, source, as_object=as_objects) for index in range(len(message.tool_calls))
        ]
    if turn.last_role == "assistant":
        answer = _join(turn.messages.pop(), answer)
    turn.messages.append(answer)
    turn.messages += results


def _join(first: dict[str, Json], second: dict[str, Json]) -> dict[str, Json]:
    joined = {**first, **second}
    for name in ("content", "reasoning_content"):
        if name in joined:
            joined[name] = "\n\n".join(str(answer[name]) for answer in (first, second) if answer.get(name))
    return joined


def _tool_call(message: Message, index: int, source: ExportSource, *, as_object: bool) -> Json:
    call = message.tool_calls[index]
    args: Json = arguments(call) if as_object else text(arguments(call), source.losses)
    return {"id": call_id(message, index), "type": "function", "function": {"name": call.name, "arguments": args}}


def _results(message: Message, source: ExportSource) -> Iterator[dict[str, Json]]:
    for index, call in enumerate(message.tool_calls):
        result = call_result(call)
        _count_attachments(call.attachments, source)
        if result is not None:
            yield {"role": "tool", "tool_call_id": call_id(message, index), "name": call.name, "content": result}


def _count_attachments(attachments: tuple[Attachment, ...], source: ExportSource) -> None:
    if attachments:
        source.losses["an attachment"] += len(attachments)
