"""A JSON value taken apart into fields: its leaves, each with the way to it, in the order of the canonical form."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

from pollux.model import Json
from pollux.proofs.canonical import units

_SCALARS = (str, int, float)

Path: TypeAlias = tuple[str | int, ...]


class Field(NamedTuple):
    """A part of a JSON value, most often a leaf, and the way to it."""

    path: Path
    value: Json

    @property
    def pointer(self) -> str:
        """The way to it as a JSON pointer (RFC 6901)."""
        return "".join(f"/{str(one).replace('~', '~0').replace('/', '~1')}" for one in self.path)


@runtime_checkable
class Late(Protocol):
    """An array whose values are made one by one when they are asked for."""

    count: int
    each: Callable[[], Iterator[Any]]


def fields(value: Json) -> Iterator[Field]:
    """Yield the leaves of a value, in the order of its canonical form; what comes late is never held whole."""
    levels = [iter([Field((), value)])]
    while levels:
        one = next(levels[-1], None)
        if one is None:
            levels.pop()
        elif one.value is None or isinstance(one.value, _SCALARS):
            yield one
        elif inner := _inner(*one):
            levels.append(inner)
        else:
            yield Field(one.path, {} if isinstance(one.value, dict) else [])


def _inner(path: Path, value: Any) -> Iterator[Field] | None:  # noqa: ANN401  any JSON but scalars, or late
    """Go into a value that has others in it; an empty one has none."""
    if isinstance(value, dict):
        return (Field((*path, name), value[name]) for name in sorted(value, key=units)) if value else None
    if isinstance(value, list | tuple):
        return (Field((*path, place), one) for place, one in enumerate(value)) if value else None
    assert isinstance(value, Late)
    return (Field((*path, place), one) for place, one in enumerate(value.each())) if value.count else None
