"""Values that several interchange formats take from messages and model calls, by the same rules.

The client's `tool` tokens belong to the prompt, `cached` is part of the prompt, and `thoughts` are not part of
`output`. A message without counts has none, and a call without a price has no cost: neither becomes zero.
"""

from __future__ import annotations

from pollux import prices
from pollux.exports.source import ExportSource
from pollux.model import Json, Message, ModelCall, Origin, Text, Tokens, ToolCall
from pollux.prices import Prices
from pollux.text.encode import encode

TOKEN_RULE = "gemini-usage-v1"  # noqa: S105  not a secret
"""Named in every export, since other tools count `tool` as output or leave out the thoughts."""
NANO = 1_000_000_000
PROMPT_ORIGINS = frozenset({Origin.HUMAN, Origin.AGENT_PROMPT, Origin.LOADED})
"""Origins of messages that a human or an agent wrote to the model."""
FAILED = frozenset({"error", "cancelled"})
"""Statuses of tool calls."""


def message_text(message: Message) -> str:
    """Return the text that was sent or answered; the user may have typed less."""
    return "".join(part.text for part in message.parts if isinstance(part, Text))


def reasoning(message: Message) -> str | None:
    """Return the thoughts as one text."""
    thoughts = ("\n".join(filter(None, (thought.subject, thought.text))) for thought in message.thoughts)
    return "\n\n".join(filter(None, thoughts)) or None


def call_id(message: Message, index: int) -> str:
    """Return the ID of a tool call, or one made from its message."""
    return message.tool_calls[index].id or f"{message.id}#{index}"


def arguments(call: ToolCall) -> dict[str, Json]:
    """Return the arguments of a call as an object."""
    return call.args if isinstance(call.args, dict) else {"value": call.args}


def call_result(call: ToolCall) -> str | None:
    """Return the output or error of a call, as JSON if it is not a text; None for a call without a result."""
    if call.output is None and call.error is None and call.response is not None:
        return encode(call.response).decode()
    return call.error if call.output is None else call.output


def prompt_tokens(tokens: Tokens) -> int:
    """Return the tokens that went in, including cached ones."""
    return tokens.input + tokens.tool


def completion_tokens(tokens: Tokens) -> int:
    """Return the tokens that came out, including thoughts."""
    return tokens.output + tokens.thoughts


def call_cost(call: ModelCall, table: Prices) -> tuple[int, str] | None:
    """Return the estimated cost of a call in nano-dollars and the ID of its price, or None without a price."""
    price = prices.find(table, call.model, call.at)
    return (prices.cost(price, call.tokens), price.id) if price else None


def price_table(source: ExportSource) -> dict[str, Json]:
    """Return the name and the date of the price table that estimates use."""
    return {"estimated_with": source.clean(source.prices.table), "date": source.prices.date}
