"""`refresh` with the system's clock, for tests in which the time does not matter."""

from __future__ import annotations

from functools import partial

from pollux.archive import refresh as _refresh
from pollux.library.config import utc_now

refresh = partial(_refresh.refresh, clock=utc_now)
