"""Schemas of tools, inferred from the arguments they were called with: session files do not hold the real ones."""

from __future__ import annotations

from dataclasses import dataclass, field

from pollux.model import Json

DESCRIPTION = "Inferred from the calls of this session."
_TYPES: tuple[tuple[type, str], ...] = (
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (str, "string"),
    (list, "array"),
    (dict, "object"),
)


@dataclass(slots=True)
class Seen:
    """What is known of a tool."""

    n_calls: int = 0
    arguments: dict[str, set[str]] = field(default_factory=dict)
    """Types by name."""
    counts: dict[str, int] = field(default_factory=dict)

    def add(self, args: Json) -> None:
        """Learn from a call."""
        self.n_calls += 1
        for name, value in args.items() if isinstance(args, dict) else ():
            self.arguments.setdefault(name, set()).add(_type(value))
            self.counts[name] = self.counts.get(name, 0) + 1

    def schema(self, name: str) -> dict[str, Json]:
        """Write what is known as a tool of a chat API; what no call lacked is required."""
        parameters: dict[str, Json] = {
            "type": "object",
            "properties": {one: {"type": _types(types)} for one, types in self.arguments.items()},
            "required": [one for one, count in self.counts.items() if count == self.n_calls],
        }
        return {"type": "function", "function": {"name": name, "description": DESCRIPTION, "parameters": parameters}}


def _type(value: Json) -> str:
    return next((name for kind, name in _TYPES if isinstance(value, kind)), "null")


def _types(types: set[str]) -> Json:
    return next(iter(types)) if len(types) == 1 else sorted(types)
