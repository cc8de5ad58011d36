"""Write the pages that the code itself can tell: the command reference and the table of tools.

`python scripts/docs.py` writes them anew; `--check` writes nothing and ends with status 1 when one of them is stale.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path

import click

from pollux.cli import COMMANDS, pollux
from pollux.formats.tools import ALIASES, ROWS, Tool
from pollux.redaction import table

DOCS = Path(__file__).resolve().parents[1] / "docs"
WIDTH = 80

_MADE = "<!-- Written by scripts/docs.py: run `make docs` instead of changing it here. -->"

_REFERENCE = f"""\
# Command reference

{_MADE}

Every command tells the same with `--help`.
How to put them to use is in the [how-to](how-to.md), what `--json` prints in the [JSON contracts](json.md).

Standard output is data and standard error is words, so a pipe gets nothing but data.
The exit status is 0 when all is well, 1 when there were problems or nothing was found, and 2 for wrong usage.
"""

_TOOLS = f"""\
# Tools

{_MADE}

A session file names the tools that the model called, and the names have changed from release to release.
This table gives each name its meaning, wherever Pollux shows or exports a tool call.

- **Canonical** and **category** are words for statistics: they stay the same when the client renames a tool.
- **Kind** is the word that the client itself uses towards editors (ACP).
- **Label** is the short word that usage reports have for the tool, or the name itself.
- **Shown as** is the display name of the newest client; it is recognised as a name too.
- **Paths** and **commands** are the arguments that hold a path or a shell command, the newest spelling first.

A name that is not in the table passes through: it is its own label, and its category is `Other`.
"""

_AGENTS = """\
## Tools that start a subagent

A call of one of these may have a session of its own, which `pollux tree` shows below the one that made the call.
"""

_BROWSER = """\
## Tools of the browser agent

They are found in the sessions of that agent only, without the name of their server.
All have the canonical name `browser`, the category `Fetch` and the kind `other`.
"""

_ALIASES = """\
## Other spellings

Older names of the client, and names that other programs give to its tools.
"""

_MCP = """\
## Tools of MCP servers

The server is known from the display name `<tool> (<server> MCP Server)` where the file has one.
Else a name of the form `mcp_<server>_<tool>` (0.33 and later) or `<server>__<tool>` (before) gives it away.
A name that begins with `discovered_tool_` comes from the user's own discovery command.
"""


_RULES = """# Rules of redaction

<!-- Written by `make docs` from `pollux.redaction`. -->

What [redaction](redaction.md) looks for, in the order in which a rule wins over another that finds the same.
"""


def pages() -> dict[str, str]:
    """Return each page by its name."""
    return {
        "reference.md": "\n".join(_reference()),
        "tools.md": "\n".join(_tools()),
        "redaction-rules.md": "\n".join(_rules()),
    }


def stale(folder: Path = DOCS) -> list[str]:
    """Name the pages that are not what the code says now."""
    return [name for name, text in pages().items() if _text(folder / name) != text]


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the pages, or only look at them; return the exit status."""
    parser = argparse.ArgumentParser(description="Write the pages that are made of the code anew.")
    parser.add_argument("--check", action="store_true", help="only say whether they are up to date")
    names = stale()
    if parser.parse_args(arguments).check:
        for name in names:
            print(f"docs/{name} is stale: run `make docs`", file=sys.stderr)
        return 1 if names else 0
    for name in names:
        (DOCS / name).write_text(pages()[name], "utf-8", newline="\n")
        print(f"docs/{name} written")
    return 0


def _text(path: Path) -> str | None:
    return path.read_text("utf-8") if path.exists() else None


def _reference() -> Iterator[str]:
    yield _REFERENCE
    yield from (f"- [`pollux {name}`](#pollux-{name}): {command.summary}" for name, command in COMMANDS.items())
    root = _context(pollux, "pollux")
    yield from _help(root)
    for name, found in COMMANDS.items():
        yield from _help(_context(import_module(found.module).command, name, root))
    yield ""


def _context(command: click.Command, name: str, parent: click.Context | None = None) -> click.Context:
    return command.make_context(name, [], parent, resilient_parsing=True, terminal_width=WIDTH)


def _help(context: click.Context) -> Iterator[str]:
    # click 8.1 does not say of a group that its command may be left out
    text = context.get_help().replace("[OPTIONS] COMMAND [ARGS]", "[OPTIONS] [COMMAND] [ARGS]")
    lines = (line.rstrip() for line in text.splitlines())
    yield from ("", f"## {context.command_path}", "", "```text", *lines, "```")


def _tools() -> Iterator[str]:
    yield _TOOLS
    plain = [row for row in ROWS if not row.is_agent and row.canonical != "browser"]
    yield from _table(
        ("Name", "Canonical", "Category", "Kind", "Label", "Shown as", "Paths", "Commands"), map(_row, plain)
    )
    yield from ("", _AGENTS)
    agents = ([f"`{row.name}`", f"`{row.canonical}`", row.category, row.display] for row in ROWS if row.is_agent)
    yield from _table(("Name", "Canonical", "Category", "Shown as"), agents)
    yield from ("", _BROWSER)
    yield ", ".join(f"`{row.name}`" for row in ROWS if row.canonical == "browser") + "."
    yield from ("", _ALIASES)
    yield from _table(("Spelling", "Means"), ([f"`{alias}`", f"`{name}`"] for alias, name in ALIASES.items()))
    yield from ("", _MCP.rstrip(), "")


def _rules() -> Iterator[str]:
    yield _RULES
    yield from _table(("Rule", "Finds", "Kind"), ([f"`{rule}`", finds, kind] for rule, finds, kind in table()))
    yield ""


def _row(row: Tool) -> list[str]:
    paths, commands = (", ".join(f"`{one}`" for one in names) for names in (row.paths, row.commands))
    return [f"`{row.name}`", f"`{row.canonical}`", row.category, row.kind, row.label, row.display, paths, commands]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{' --- |' * len(head)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)


if __name__ == "__main__":
    sys.exit(main())
