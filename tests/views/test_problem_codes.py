from __future__ import annotations

import re

from tests.conftest import ROOT

from pollux.views.problem_codes import SAVED

_ROW = re.compile(r'^\| <a id="[\w-]+"></a>`([\w-]+)` \| .* \| (.*) \| .* \|$', re.MULTILINE)


def test_docs_say_the_same_about_each_code() -> None:
    documented: dict[str, set[str]] = {}
    for code, saved in _ROW.findall((ROOT / "docs" / "problems.md").read_text("utf-8")):
        documented.setdefault(code, set()).add(saved)
    assert SAVED.keys() == documented.keys()
    for code, saved in SAVED.items():
        assert saved in documented[code]
