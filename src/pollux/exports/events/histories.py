"""An entry of a saved history → its events, part by part, as their first reader gave them.

Such a file holds contents and nothing else. The times are that reader's, too: a second an entry, a millisecond a part.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime, timedelta

from pollux.exports.events import draft as of
from pollux.exports.events.draft import ASKED, Draft
from pollux.formats.origins import user_origin
from pollux.formats.tools import tool
from pollux.model import FunctionCall, FunctionResponse, Message, Origin, Text

_LAST_PART = 999  # its time stays within the second of its entry


def history_drafts(message: Message, include: Collection[str]) -> Iterator[Draft]:
    """Give the events of an entry, in the order of its parts."""
    origin = of.known_origin(message)
    if "thoughts" in include:
        yield from of.thoughts(message)
    parts = message.display if origin in ASKED and message.display else message.parts
    for place, part in enumerate(parts, len(message.thoughts)):
        at, own, slot = _part_time(message.at, place), f"{message.id}.{place}", str(place)
        match part:
            case Text(text=text) if origin in ASKED or _is_typed_beside_responses(origin, text):
                yield of.prompt(message, text, own, at, slot)
            case Text(text=text) if origin is Origin.MODEL and "text" in include:
                yield Draft("text", own, at, slot, {"message": text}, of.by_model(message))
            case FunctionCall(id=id_, name=name, args=args):
                known = tool(name)
                fields, metadata = of.use_fields(known, args), of.tool_metadata(known, name, id_)
                yield Draft("tool_use", id_ or own, at, slot, fields, metadata)
            case FunctionResponse():
                yield of.result(part, own, at, slot)
            case _:
                pass
    if origin not in {*ASKED, Origin.MODEL, Origin.TOOL_RESPONSE}:
        yield from of.asides(message, include)


def _is_typed_beside_responses(origin: Origin | None, text: str) -> bool:
    return origin is Origin.TOOL_RESPONSE and user_origin(text)[0] is Origin.HUMAN


def _part_time(at: datetime | None, place: int) -> datetime | None:
    """Put a part after its entry, and all entries after the beginning, as the first reader of histories did."""
    try:
        return at + timedelta(seconds=1, milliseconds=min(place + 1, _LAST_PART)) if at else None
    except OverflowError:  # a clock at the end of time
        return at
