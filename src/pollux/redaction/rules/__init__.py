"""The table of rules, a module for each family; of two rules that match the same text the earlier one names it."""

from __future__ import annotations

from pollux.redaction.rule import Rule, RuleKind
from pollux.redaction.rules import assignments, context, keys, names, optional, platforms, services

ENCODED = Rule("encoded", "base64 text in which another rule finds something", RuleKind.SECRET, (), "")
USER = Rule("user", "user name from a home folder or a prompt, wherever it is a word", RuleKind.NAME, (), "")
HOST = Rule("host", "host name from a prompt, wherever it is a word", RuleKind.NAME, (), "")
WORD = Rule("word", "word of your own, from --redact-word or --redact-words", RuleKind.WORD, (), "")

RULES: tuple[Rule, ...] = (
    *keys.PRIVATE_KEYS,
    *platforms.ROWS,
    *services.ROWS,
    *keys.TOKENS,
    *context.ROWS,
    *assignments.ROWS,
    *names.ROWS,
    ENCODED,
    USER,
    HOST,
    WORD,
)
OPTIONAL = optional.OPTIONAL
ALL_RULES = (*RULES, *(row.rule for row in OPTIONAL))
"""With the rules that must be switched on."""
