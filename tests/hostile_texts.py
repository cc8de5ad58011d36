"""Pass hostile texts to all functions that read or render texts, in a child process with limited CPU time."""

from __future__ import annotations

import io
import resource
import sys
from collections.abc import Callable

from rich.console import Console

from pollux.exports.markdown import escape
from pollux.formats.origins import user_origin
from pollux.model import Fate
from pollux.render.html import colours, markdown
from pollux.render.terminal.transcript import render_transcript
from pollux.text.escape import make_visible
from pollux.text.shell import commands
from pollux.views import diffs
from pollux.views import transcript as blocks
from pollux.views.tool_results import strip_shell_fields

UNITS = (
    "(",
    "[",
    "![",
    "[](",
    "[a](",
    "*",
    "**",
    "_",
    "`",
    "~~",
    "<",
    "&",
    "|",
    "> ",
    "- ",
    "1. ",
    "\\",
    "\n",
    "\t",
    "é",
)
SHAPES: dict[str, Callable[[int], str]] = {
    "hooks": lambda n: "hi\n" + "<hook_context></hook_context> \n" * (n // 31),
    "layout": lambda n: "Output: x" + "\nError: (none)" * (n // 14),
    "quotes": lambda n: "> " * (n // 2) + "a",
    "brackets": lambda n: "[" * (n // 2) + "]" * (n // 2),
    "emphasis": lambda n: "*a **a " * (n // 7),
    "ticks": lambda n: "".join("`" * length + " " for length in range(1, int((2 * n) ** 0.5))),
    "lists": lambda n: "\n".join(" " * 2 * depth + "- a" for depth in range(int(n**0.5))),
    "table": lambda n: "|a|b|\n|-|-|\n" + "|x|y|\n" * (n // 6),
    "fences": lambda n: "```\na\n```\n" * (n // 10),
    "colours": lambda n: "\x1b[31ma" * (n // 6),
    "one line": lambda n: "a" * n,
    "words": lambda n: "lorem ipsum " * (n // 12),
} | {unit: lambda n, unit=unit: (unit * n)[:n] for unit in UNITS}


def on_a_terminal(words: str) -> None:
    console = Console(file=io.StringIO(), width=100, force_terminal=True)
    for part in render_transcript([blocks.AnswerBlock("a", None, Fate.ACTIVE, None, words)]):
        console.print(part)


SURFACES: dict[str, tuple[Callable[[str], object], int]] = {
    "origin": (user_origin, 20_000_000),
    "layout of output": (strip_shell_fields, 20_000_000),
    "commands": (commands, 200_000),
    "make_visible": (make_visible, 1_000_000),
    "colours": (colours.coloured, 200_000),
    "Markdown on a page": (markdown.answer, 100_000),
    "Markdown in Markdown": (escape.inert, 50_000),
    "terminal": (on_a_terminal, 40_000),
    "long text on a terminal": (on_a_terminal, 150_000),
    "diff": (lambda words: diffs.diff_from_texts("a", words, words[::-1], None), 1_900),
}
"""Functions, and the length of their texts: the longest that they render, or more."""


def main() -> None:
    """Pass each text to each function; the last line printed names both."""
    seconds = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    for name, (surface, length) in SURFACES.items():
        for shape, make in SHAPES.items():
            print(name, "/", shape, flush=True)  # noqa: T201  for the parent process
            surface(make(length))
