"""Variables of the environment that would crash a library, corrected before anything reads them.

A module of its own, because every start needs it and `config` takes longer to load.
"""

from __future__ import annotations

import os
import time

_DAY = 86_400
_MAX_DIGITS = 4


def correct_environment() -> str | None:
    """Remove or replace variables that would crash Rich or `datetime`; return a note about an impossible time zone.

    Python refuses zones that are a day or more away from UTC, and Rich takes any number for the size of a screen.
    """
    for name in ("COLUMNS", "LINES"):
        value = os.environ.get(name, "")
        if not (value.isascii() and value.isdigit() and len(value) <= _MAX_DIGITS):
            os.environ.pop(name, None)
    offsets = (time.timezone, time.altzone, time.localtime().tm_gmtoff)
    if not hasattr(time, "tzset") or all(abs(offset) < _DAY for offset in offsets):
        return None
    note = f"TZ={os.environ.get('TZ', '')} is a day or more away from UTC; times are shown in UTC."
    os.environ["TZ"] = "UTC"
    time.tzset()
    return note
