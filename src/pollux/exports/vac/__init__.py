"""Verifiable agent records: a session in the format of `draft-birkholz-verifiable-agent-conversations-00`.

A record is made in two passes over the session. The first opens every subagent once, reads only what it needs, and
returns a plan, the sources and the lines that the model wrote. The second writes the entries one by one, so that
neither the session nor a subagent is ever completely in memory.
"""

from __future__ import annotations

PROFILE = "vac-00"
"""The revision of the draft; its successor, a vCon extension, would be another one."""
VERSION = "3.0.0-draft"
"""The schema version of that revision."""
