"""Print the hits of every judged query as JSON: `python -m tests.search.answers FOLDER [MODULE]`.

A module that behaves like `sqlite3`, such as `pysqlite3`, replaces it before anything of Pollux is imported.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path


def main() -> None:
    """Build a home and an archive below a folder, and ask."""
    folder = Path(sys.argv[1])
    for module in sys.argv[2:]:
        sys.modules["sqlite3"] = importlib.import_module(module)
        sys.modules["sqlite3.dbapi2"] = importlib.import_module(f"{module}.dbapi2")
    sys.stdout.write(json.dumps({"sqlite": importlib.import_module("sqlite3").sqlite_version, "hits": answers(folder)}))


def answers(folder: Path) -> dict[str, list[str]]:
    """Return the hits by query, in order, with their scores and snippets."""
    from tests.search.judged_home import write_home  # noqa: PLC0415  after `sqlite3` was replaced
    from tests.search.judging import JUDGED, opened_library, search_all  # noqa: PLC0415

    hits: dict[str, list[str]] = {}
    with opened_library([write_home(folder / "home")], folder) as library:
        for query in dict.fromkeys(query for queries in JUDGED.values() for query in queries):
            page = search_all(library, query)
            shown = [
                f"{hit.session_id}/{hit.number} {hit.part} {hit.score} {[snippet.text for snippet in hit.snippets]}"
                for session in page.sessions
                for hit in session.hits
            ]
            hits[query] = [*shown, *page.suggestions, str(page.total)]
    return hits


if __name__ == "__main__":
    main()
