"""The rules, one module for each family; where two match the same text, the one that stands first names it."""

from __future__ import annotations

from pollux.redaction.rule import Kind, Rule
from pollux.redaction.rules import (
    assignments,
    clouds,
    commands,
    context,
    forges,
    keys,
    messaging,
    models,
    names,
    services,
    stores,
)

ENCODED = Rule("encoded", "base64 text in which another rule finds something", Kind.SECRET, (), "")
NAME = Rule("name", "name that you gave", Kind.NAME, (), "")
USER = Rule("user", "user name that is known from a home folder or a prompt, as a word of its own", Kind.NAME, (), "")
HOST = Rule("host", "host name that is known from a prompt, as a word of its own", Kind.NAME, (), "")

RULES: tuple[Rule, ...] = (
    *keys.PRIVATE_KEYS,
    *clouds.ROWS,
    *forges.ROWS,
    *models.ROWS,
    *messaging.ROWS,
    *services.ROWS,
    *stores.ROWS,
    *keys.TOKENS,
    *context.ROWS,
    *commands.ROWS,
    *assignments.ROWS,
    *names.ROWS,
    ENCODED,
    USER,
    HOST,
    NAME,
)
