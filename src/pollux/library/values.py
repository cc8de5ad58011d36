"""The types of results, for annotations in front ends; each is imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pollux.archive.watch import SyncReport
    from pollux.exports.source import ExportOptions
    from pollux.library.archive_tools import ForgetPlan
    from pollux.library.status import OverviewReport
    from pollux.reports.projects import ProjectList
    from pollux.reports.sessions import Page, SavedPage, SessionPage, SessionRow
    from pollux.reports.stats import Statistics
    from pollux.reports.status import StatusReport, StatusRow
    from pollux.reports.usage import UsageReport
    from pollux.search.values import HitPage

_MODULES = {
    "ForgetPlan": "library.archive_tools",
    "HitPage": "search.values",
    "OverviewReport": "library.status",
    "Page": "reports.sessions",
    "ProjectList": "reports.projects",
    "SavedPage": "reports.sessions",
    "SessionPage": "reports.sessions",
    "SessionRow": "reports.sessions",
    "Statistics": "reports.stats",
    "StatusReport": "reports.status",
    "StatusRow": "reports.status",
    "SyncReport": "archive.watch",
    "UsageReport": "reports.usage",
    "ExportOptions": "exports.source",
}
__all__ = [
    "ExportOptions",
    "ForgetPlan",
    "HitPage",
    "OverviewReport",
    "Page",
    "ProjectList",
    "SavedPage",
    "SessionPage",
    "SessionRow",
    "Statistics",
    "StatusReport",
    "StatusRow",
    "SyncReport",
    "UsageReport",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401
    """Return a type from the module that defines it."""
    if name not in _MODULES:
        raise AttributeError(f"module 'pollux.library.values' has no attribute '{name}'")
    return getattr(import_module(f"pollux.{_MODULES[name]}"), name)
