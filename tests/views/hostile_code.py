"""Run the lexers in use on hostile texts, in a child process with limited CPU time."""

from __future__ import annotations

import resource
import string
import sys
from collections.abc import Iterator

from pollux.views.languages import LANGUAGES, LONGEST_LINE, WINDOW, lexer_for

UNITS = (
    *(
        "a",
        "0",
        " ",
        "\t",
        "\n",
        " \n",
        '"',
        "'",
        "`",
        "\\",
        '\\"',
        "\\'",
        "<",
        "(",
        "[",
        "{",
        "$",
        "#",
        "=",
        "-",
        "/*",
    ),
    *("<!--", '"""', "${", "<a ", "a: "),
)
MARKS = "\"'\\/*<([{$#-"
MORE_UNITS = (*string.printable, *(first + second for first in MARKS for second in MARKS))


def main() -> None:
    """Lex hostile texts of one window, or of three; the last line printed names the text."""
    seconds, is_long = int(sys.argv[1]), "long" in sys.argv
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    for language in LANGUAGES:
        for text in texts((*UNITS, *MORE_UNITS) if is_long else UNITS, 3 * WINDOW if is_long else WINDOW):
            lexer = lexer_for(language, text)
            assert lexer is not None, language
            print(f"{language} {text[:9]!r}", flush=True)  # noqa: T201  for the parent process
            for _ in lexer.get_tokens(text):
                pass


def texts(units: tuple[str, ...], length: int) -> Iterator[str]:
    for unit in units:
        line = (unit * LONGEST_LINE)[:LONGEST_LINE] + "\n"
        yield (line * (length // len(line) + 1))[:length]
        yield f"{unit}\n" * (length // (len(unit) + 1))
