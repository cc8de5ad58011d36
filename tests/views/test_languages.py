"""Which code is coloured. `POLLUX_LONG=1` runs the lexers on more hostile texts."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from pygments.lexers import get_lexer_by_name
from pygments.token import Token
from tests.conftest import ROOT

from pollux.views import languages
from pollux.views.languages import LANGUAGES, LONGEST, LONGEST_LINE, WINDOW, lexer_for, windows

IS_LONG = bool(os.environ.get("POLLUX_LONG"))
SECONDS = 1200 if IS_LONG else 90
SCRIPT = "from tests.views.hostile_code import main; main()"


@pytest.mark.parametrize("language", ["py", " Python ", "C++", "ts", "dockerfile"])
def test_known_languages_have_a_lexer(language: str) -> None:
    assert lexer_for(language, "x = 1") is not None


@pytest.mark.parametrize(
    "language", ["", "text", "klingon", "apacheconf", "adl", "arduino", "ng2", "amdgpu", "basemake"]
)
def test_all_other_languages_are_plain(language: str) -> None:
    assert lexer_for(language, "x = 1") is None


def test_lexers_outside_the_table_are_never_used(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def get(name: str, **options: bool) -> object:
        asked.append(name)
        return get_lexer_by_name(name, **options)

    monkeypatch.setattr(languages, "get_lexer_by_name", get)
    languages._lexer.cache_clear()
    for language in ("apacheconf", "rb", "adl", "yml", "ruby"):
        lexer_for(language, "x")
    assert asked == ["ruby", "yaml"]


def test_code_within_markdown_is_not_lexed() -> None:
    code = "# x\n\n```apacheconf\n<Directory /x>\n</Directory>\n```\n"
    lexer = lexer_for("md", code)
    assert lexer is not None
    inside = [kind for kind, value in lexer.get_tokens(code) if "Directory" in value]
    assert inside == [Token.Literal.String]


def test_no_language_has_two_lexers() -> None:
    names = [alias for name, aliases in LANGUAGES.items() for alias in (name, *aliases)]
    assert len(names) == len(set(names))


def test_blocks_and_lines_beyond_the_limits_are_plain() -> None:
    line = "x" * LONGEST_LINE
    assert lexer_for("python", line) is not None
    assert lexer_for("python", f"y\n{line}x\ny") is None
    block = "x\n" * (LONGEST // 2)
    assert lexer_for("python", block) is not None
    assert lexer_for("python", f"{block}x") is None


def test_lexer_receives_one_window_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    class Inner:
        def get_tokens(self, text: str, _unfiltered: object) -> list[tuple[object, str]]:
            seen.append(text)
            return [(None, text)]

    monkeypatch.setattr(languages, "get_lexer_by_name", lambda _name, **_options: Inner())
    languages._lexer.cache_clear()
    code = "def a():\n    return 1\n\n\n" * 500
    lexer = lexer_for("python", code)
    assert lexer is not None
    assert "".join(value for _, value in lexer.get_tokens(code)) == code
    assert max(map(len, seen)) <= WINDOW
    assert all(window.endswith("\n\n") for window in seen)
    languages._lexer.cache_clear()


@pytest.mark.parametrize("code", ["", "x", "x\n" * WINDOW, "\n" * 2 * WINDOW, "x" * 3 * WINDOW, "a\n\nb" * WINDOW])
def test_windows_lose_nothing(code: str) -> None:
    parts = [*windows(code)]
    assert "".join(parts) == code
    assert all(window.isspace() or 0 < len(window) <= WINDOW for window in parts)


def test_long_gaps_are_kept_from_lexers() -> None:
    code = "a\n" + " \n" * WINDOW + "b\n\n\nc"
    assert [*windows(code)] == ["a\n", " \n" * WINDOW, "b\n\n\nc"]


def test_hostile_texts_take_little_time() -> None:
    command = [sys.executable, "-c", SCRIPT, str(SECONDS), *["long"] * IS_LONG]
    child = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert child.returncode == 0, f"{child.stdout[-60:]} {child.stderr[-500:]}"
