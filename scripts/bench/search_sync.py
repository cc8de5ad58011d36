"""Run `sync` without the search index: `search_sync.py HOME ARCHIVE`."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from unittest import mock

from pollux.__main__ import GC_THRESHOLDS
from pollux.library import indexing
from pollux.library.config import configure
from pollux.library.library import Library


def main() -> None:
    """Copy the files of a home into an archive and derive the facts."""
    home, archive = map(Path, sys.argv[1:3])
    gc.set_threshold(*GC_THRESHOLDS)  # as a command does
    with (
        mock.patch.object(indexing, "update_index", return_value=("", ())),
        Library(configure(named_homes=[home], archive=archive)) as library,
    ):
        library.sync()


if __name__ == "__main__":
    main()
