"""Documents of `usage`, `stats` and `audit`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pollux.model import Json, Usage
from pollux.views.contracts import problem_row, rfc3339, tokens_row

if TYPE_CHECKING:  # each document needs only the module of its own values
    from pollux.prices import Price, Tier
    from pollux.reports.audit import AuditedCall, AuditReport
    from pollux.reports.stats import Statistics, StatsTable, StatsTotals
    from pollux.reports.usage import UsageReport, UsageRow


def usage_json(report: UsageReport) -> dict[str, Json]:
    """Return the keys of `pollux usage --json`."""
    return {
        "by": report.by,
        "timezone": report.timezone,
        "prices": {"table": report.table, "date": report.date},
        "rows": [_usage_row(row) for row in report.rows],
        "billed": _sums(report.billed),
        "active": _sums(report.active),
        "unpriced_models": [
            {"model": model, "calls": sums.calls, "tokens": tokens_row(sums.tokens)}
            for model, sums in report.unpriced.items()
        ],
        "problems": [problem_row(problem) for problem in report.problems],
    }


def stats_json(statistics: Statistics) -> dict[str, Json]:
    """Return the keys of `pollux stats --json`."""
    from pollux.reports.stats import SECTIONS  # noqa: PLC0415  as above

    return {
        "timezone": statistics.timezone,
        **(_summary(statistics.summary) if statistics.summary else {}),
        **{SECTIONS[section.by].plural: _section_rows(section) for section in statistics.sections},
        "problems": [problem_row(problem) for problem in statistics.problems],
    }


def audit_json(report: AuditReport) -> dict[str, Json]:
    """Return the keys of `pollux audit --json`."""
    session = report.audits[0].session
    return {
        "session": session.id,
        "title": session.title,
        "prices": {"table": report.table, "date": report.date},
        "calls": [call_row(call) for call in report.calls],
        "counted": len(report.counted),
        "not_counted": report.n_not_counted,
        "unpriced_calls": report.n_unpriced,
        "cost_nanousd": report.cost_nanousd,
        "problems": [problem_row(problem) for problem in report.problems],
    }


def call_row(audited: AuditedCall) -> dict[str, Json]:
    """Return the keys of a model call in an audit."""
    call = audited.call
    return {
        "session": call.session_id,
        "message": call.message_id,
        "at": rfc3339(call.at),
        "model": call.model,
        "fate": call.fate,
        "file": call.file,
        "line": call.line,
        "recorded": audited.recorded,
        "tokens": tokens_row(call.tokens),
        "consistent": call.tokens.is_consistent,
        "total_computed": audited.is_total_computed,
        "price": _price(audited.price, audited.tier),
        "buckets": [
            {
                "name": bucket.name,
                "tokens": bucket.tokens,
                "picousd_per_token": bucket.picousd,
                "picousd": bucket.amount,
            }
            for bucket in audited.buckets
        ],
        "cost_nanousd": audited.cost_nanousd,
        "counted_in": audited.owner or call.session_id,
        "not_counted": [
            {
                "file": duplicate.file,
                "line": duplicate.line,
                "reason": duplicate.reason,
                "session": duplicate.session_id,
                "tokens": tokens_row(duplicate.tokens),
            }
            for duplicate in audited.duplicates
        ],
    }


def _price(price: Price | None, tier: Tier | None) -> dict[str, Json] | None:
    if price is None or tier is None:
        return None
    return {
        "id": price.id,
        "since": price.since.isoformat() if price.since else None,
        "until": price.until.isoformat() if price.until else None,
        "prompt_above": tier.above,
    }


def _usage_row(row: UsageRow) -> dict[str, Json]:
    document: dict[str, Json] = {"key": row.key, "name": row.name, **_sums(row.billed), "active": _sums(row.active)}
    if row.outcomes:
        document["tool_calls"] = {
            "calls": row.outcomes.calls,
            "success": row.outcomes.success,
            "error": row.outcomes.error,
            "cancelled": row.outcomes.cancelled,
            "no_result": row.outcomes.no_result,
        }
    return document


def _sums(sums: Usage) -> dict[str, Json]:
    return {
        "calls": sums.calls,
        "tokens": tokens_row(sums.tokens),
        "cost_nanousd": sums.cost_nanousd,
        "unpriced": {"calls": sums.cost.unpriced_calls, "tokens": tokens_row(sums.cost.unpriced_tokens)},
        "inconsistent": sums.inconsistent,
    }


def _summary(summary: StatsTotals) -> dict[str, Json]:
    hours = sorted(summary.hours.items())
    return {
        "first": rfc3339(summary.first),
        "last": rfc3339(summary.last),
        "totals": dict(summary.totals),
        "hours": [{"weekday": day, "hour": hour, "prompts": count} for (day, hour), count in hours],
    }


def _section_rows(section: StatsTable) -> list[Json]:
    rows: list[Json] = []
    for row in section.rows:
        numbers = zip(section.columns, row.numbers, strict=True)
        rows.append({"key": row.key, "name": row.name, **dict(numbers)})
    return rows
