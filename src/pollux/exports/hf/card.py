"""The card of a data set of traces: what it holds, in numbers, and what was done to it; nothing of what was said."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pollux import __version__
from pollux.exports import Written
from pollux.prices import Prices, usage_of

_CARD = """\
---
pretty_name: Gemini CLI sessions
tags:
- agent-traces
- gemini-cli
- pollux
configs:
- config_name: default
  data_files: "*.jsonl"
---

# Gemini CLI sessions

{n_sessions:,} sessions of Gemini CLI, a file each, written by Pollux {version} in the shape of Pi's session files.

| What | How many |
| --- | --- |
| sessions | {n_sessions:,} |
| of them subagents | {n_subagents:,} |
| prompts | {n_prompts:,} |
| tool calls | {n_tools:,} |
| model calls | {n_calls:,} |
| tokens | {n_tokens:,} |
| models | {models} |

```python
from datasets import load_dataset

traces = load_dataset("json", data_files="*.jsonl", split="train")
```

`teich` must be installed beside `datasets`; it turns each file into `messages` and `tools`.
It takes these files for Pi's own and adds Pi's tools to `tools`; `harness` in the header says whose they are.

## Before you publish

Names, addresses, keys and paths were taken out by rules, pictures and files altogether.
Rules do not understand what they read: look through the files yourself, and ask everybody whose words they hold.
This card names no licence; choose one.
"""


def pages(written: Sequence[Written], prices: Prices) -> Iterator[tuple[str, bytes]]:
    """Write the card."""
    sessions = [one.session for one in written]
    usage = usage_of((call for session in sessions for call in session.calls), prices)
    card = _CARD.format(
        version=__version__,
        n_sessions=len(sessions),
        n_subagents=sum(one.kind == "subagent" for one in sessions),
        n_prompts=sum(one.counts.get("user", 0) for one in sessions),
        n_tools=sum(one.tool_calls for one in sessions),
        n_calls=usage.calls,
        n_tokens=usage.tokens.total,
        models=", ".join(f"`{name}`" for name in sorted({name for one in sessions for name in one.models})) or "–",
    )
    yield "README.md", card.encode("utf-8", "replace")
