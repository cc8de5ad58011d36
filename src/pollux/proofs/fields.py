"""Take a JSON value apart into fields.

A field is a leaf of the value: a text, a number, true, false, null, or an empty array or object, with the path to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

from pollux.model import Json
from pollux.proofs.canonical import units

_SCALARS = (str, int, float)
_PLAIN = (*_SCALARS, dict, list)

Path: TypeAlias = tuple[str | int, ...]


class Field(NamedTuple):
    """A part of a JSON value, most often a leaf, and the path to it."""

    path: Path
    value: Json

    @property
    def pointer(self) -> str:
        """The path as a JSON pointer (RFC 6901)."""
        return "".join(f"/{str(one).replace('~', '~0').replace('/', '~1')}" for one in self.path)


@runtime_checkable
class Late(Protocol):
    """An array whose values are made one by one while it is read."""

    count: int
    each: Callable[[], Iterator[Any]]


def fields(value: Json) -> Iterator[Field]:
    """Yield the leaves of a value in the order of its canonical form, without holding late arrays in memory."""
    levels = [iter([Field((), value)])]
    while levels:
        part = next(levels[-1], None)
        if part is None:
            levels.pop()
        elif children := children_of(part):
            levels.append(children)
        else:
            yield leaf(part)


def leaf(part: Field) -> Field:
    """Return a part without children as a field: a late array without values becomes an ordinary empty one."""
    is_late = not (part.value is None or isinstance(part.value, _PLAIN))
    return Field(part.path, []) if is_late or part.value == () else part


def children_of(part: Field) -> Iterator[Field] | None:
    """Return the members of an object, sorted by name, or the values of an array; None for a leaf."""
    path, value = part
    if value is None or isinstance(value, _SCALARS):
        return None
    if isinstance(value, dict):
        return (Field((*path, name), value[name]) for name in sorted(value, key=units)) if value else None
    values: Any = value
    if isinstance(values, list | tuple):
        return (Field((*path, place), inner) for place, inner in enumerate(values)) if values else None
    assert isinstance(values, Late)
    return (Field((*path, place), inner) for place, inner in enumerate(values.each())) if values.count else None
