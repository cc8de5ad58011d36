"""A limit on the processor time of hostile input: generous for linear work, out of reach for quadratic work."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def cpu_seconds(limit: float) -> Iterator[None]:
    """Fail if the block uses more processor time than `limit`, however long other processes delay it."""
    start = time.process_time()
    yield
    used = time.process_time() - start
    assert used < limit, f"used {used:.1f} s of processor time, limit {limit} s"
