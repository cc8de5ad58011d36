"""Results that a long-running process computes once and keeps until the archive changes."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, TypeVar, cast

from pollux.archive import schema

if TYPE_CHECKING:
    from pollux.library.snapshot import Snapshot
    from pollux.prices import Prices

_Result = TypeVar("_Result")
_MOST = 64
"""Results that are kept; the oldest goes first."""


class RememberedResults:
    """Keeps the newest results of an archive; those of an earlier state of it are dropped."""

    def __init__(self) -> None:
        """Start without results."""
        self._kept: tuple[Hashable, dict[Hashable, object]] = (None, {})

    def get(self, snapshot: Snapshot, prices: Prices, key: Hashable, make: Callable[[], _Result]) -> _Result:
        """Return the result with this key, computed now unless the archive is as it was; never kept for files alone."""
        if not snapshot.is_archived:
            return make()
        if snapshot.state is None:
            snapshot.state = _state(snapshot, prices)
        state = snapshot.state
        known_state, results = self._kept  # one value, so that threads never see results of another state
        if state != known_state:
            results = {}
            self._kept = (state, results)
        remembered = results.get(key)
        if remembered is not None:
            return cast("_Result", remembered)
        result = make()
        for oldest in [*results][: max(len(results) - _MOST + 1, 0)]:
            results.pop(oldest, None)
        results[key] = result
        return result


def _state(snapshot: Snapshot, prices: Prices) -> Hashable:
    ids = None if snapshot.ids is None else frozenset(snapshot.ids)
    paths = frozenset(snapshot.memory.items())
    database = snapshot.database
    return schema.generation(database), schema.last_change(database), prices.version, ids, paths
