"""The types of results, for annotations in front ends; each is imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pollux.archive.schema import ChangeMark
    from pollux.archive.watch import SyncReport
    from pollux.exports.source import ExportOptions
    from pollux.library.archive_tools import ForgetPlan
    from pollux.library.status import OverviewReport
    from pollux.reports.freshness import FreshnessState
    from pollux.reports.projects import ProjectList
    from pollux.reports.recent_calls import ActiveDay, CallTokens, DailyUse
    from pollux.reports.sessions import Page, SavedPage, SessionPage, SessionRow
    from pollux.reports.stats import Statistics
    from pollux.reports.status import StatusReport, StatusRow
    from pollux.reports.usage import UsageReport, UsageRow
    from pollux.reports.usage_split import PeriodUsage
    from pollux.search.values import (
        CommandPage,
        Facets,
        FacetValue,
        FilePage,
        Hit,
        HitPage,
        SessionHits,
        Snippet,
        TouchedFile,
    )

_MODULES = {
    "ActiveDay": "reports.recent_calls",
    "DailyUse": "reports.recent_calls",
    "CallTokens": "reports.recent_calls",
    "ChangeMark": "archive.schema",
    "CommandPage": "search.values",
    "FacetValue": "search.values",
    "Facets": "search.values",
    "FilePage": "search.values",
    "FreshnessState": "reports.freshness",
    "ForgetPlan": "library.archive_tools",
    "Hit": "search.values",
    "HitPage": "search.values",
    "OverviewReport": "library.status",
    "Page": "reports.sessions",
    "PeriodUsage": "reports.usage_split",
    "ProjectList": "reports.projects",
    "SavedPage": "reports.sessions",
    "SessionHits": "search.values",
    "SessionPage": "reports.sessions",
    "SessionRow": "reports.sessions",
    "Snippet": "search.values",
    "Statistics": "reports.stats",
    "StatusReport": "reports.status",
    "StatusRow": "reports.status",
    "SyncReport": "archive.watch",
    "TouchedFile": "search.values",
    "UsageReport": "reports.usage",
    "UsageRow": "reports.usage",
    "ExportOptions": "exports.source",
}
__all__ = [
    "ActiveDay",
    "CallTokens",
    "ChangeMark",
    "CommandPage",
    "DailyUse",
    "ExportOptions",
    "FacetValue",
    "Facets",
    "FilePage",
    "ForgetPlan",
    "FreshnessState",
    "Hit",
    "HitPage",
    "OverviewReport",
    "Page",
    "PeriodUsage",
    "ProjectList",
    "SavedPage",
    "SessionHits",
    "SessionPage",
    "SessionRow",
    "Snippet",
    "Statistics",
    "StatusReport",
    "StatusRow",
    "SyncReport",
    "TouchedFile",
    "UsageReport",
    "UsageRow",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401
    """Return a type from the module that defines it."""
    if name not in _MODULES:
        raise AttributeError(f"module 'pollux.library.values' has no attribute '{name}'")
    return getattr(import_module(f"pollux.{_MODULES[name]}"), name)
