"""Verifiable agent records: a session in the words of `draft-birkholz-verifiable-agent-conversations-00`.

A record is made in two walks over the session. The first opens every subagent once, looks only at what is light, and
comes out with a plan, the sources and the lines that the model wrote. The second writes the entries one by one, so that
neither the session nor a subagent ever stands whole in memory.
"""

from __future__ import annotations

from pollux.exports.vac.mapping import MAPPING

__all__ = ["MAPPING", "PROFILE", "VERSION"]

PROFILE = "vac-00"
"""The revision of the draft; its successor, a vCon extension, would be another one."""
VERSION = "3.0.0-draft"
"""What that revision calls its schema."""
