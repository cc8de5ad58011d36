"""Limits low enough that a few hundred bytes are a long line."""

from __future__ import annotations

import pytest

from pollux.formats import document as document_module
from pollux.formats import short as module
from pollux.formats import source as source_module
from pollux.sessions.replay import reading


def lower_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower all limits so that more than a few hundred bytes count as long."""
    limits = (module._Limit(200, 60, 30), module._Limit(100, 60, 30), module._Limit(80, 40, 20))
    monkeypatch.setattr(module, "_LIMITS", limits)
    monkeypatch.setattr(module, "_PIECE", 64)
    monkeypatch.setattr(source_module, "_BLOCK", 100)
    for owner in (source_module, module, document_module, reading):
        monkeypatch.setattr(owner, "LONG", 500)
