"""Documents of search results. Highlights are offsets of characters; messages are numbered from 1, as on screens."""

from __future__ import annotations

from pollux.model import Json
from pollux.search.values import CommandPage, CommandRun, FilePage, Hit, HitPage, SessionHits, Snippet, TouchedFile
from pollux.views.contracts import problem_row, project_row, rfc3339


def hits_json(page: HitPage) -> dict[str, Json]:
    """Return the keys of `pollux search --json`."""
    hits = []
    for session in page.sessions:
        hits += [_hit_row(hit, session) for hit in session.hits]
    return {
        "query": page.query,
        "hits": hits,
        "sessions": [_session_row(session) for session in page.sessions],
        "more": page.next is not None,
        "cursor": page.next,
        "total": {"hits": page.total, "sessions": page.n_sessions},
        "suggestions": page.suggestions,
        "coverage": {
            "sessions": page.coverage.n_sessions,
            "indexed": page.coverage.n_indexed,
            "cut_parts": page.coverage.n_cut_parts,
        },
        "notes": page.notes,
        "problems": [problem_row(problem) for problem in page.problems],
    }


def files_json(page: FilePage) -> dict[str, Json]:
    """Return the keys of `pollux search --files --json`."""
    return {"files": [_file_row(row) for row in page.rows], **_end_of_list(page)}


def commands_json(page: CommandPage) -> dict[str, Json]:
    """Return the keys of `pollux search --commands --json`."""
    return {"commands": [_command_row(row) for row in page.rows], **_end_of_list(page)}


def _hit_row(hit: Hit, session: SessionHits) -> dict[str, Json]:
    row = session.row
    return {
        "session": hit.session_id,
        "parent": row.parent_id,
        "message": hit.message_id,
        "number": hit.number + 1,
        "part": hit.part,
        "role": hit.role,
        "at": rfc3339(hit.at),
        "project": project_row(row.project),
        "title": row.title,
        "fate": hit.fate,
        "scope": session.scope,
        "snippet": hit.snippets[0].text if hit.snippets else "",
        "snippets": [_snippet_row(snippet) for snippet in hit.snippets],
        "score": hit.score,
    }


def _snippet_row(snippet: Snippet) -> dict[str, Json]:
    return {
        "text": snippet.text,
        "highlights": [[span.start, span.end] for span in snippet.spans],
        "before": snippet.has_before,
        "after": snippet.has_after,
    }


def _session_row(session: SessionHits) -> dict[str, Json]:
    row = session.row
    return {
        "id": row.id,
        "kind": row.kind,
        "parent": row.parent_id,
        "title": row.title,
        "project": project_row(row.project),
        "last_used": rfc3339(row.last_used),
        "cost_nanousd": row.usage.cost_nanousd,
        "deleted": row.deleted,
        "hits": session.n_hits,
        "scope": session.scope,
        "score": session.score,
    }


def _file_row(row: TouchedFile) -> dict[str, Json]:
    return {
        "path": row.path,
        "op": row.op,
        **_place(row),
        "lines_added": row.lines_added,
        "lines_removed": row.lines_removed,
    }


def _command_row(row: CommandRun) -> dict[str, Json]:
    return {
        "command": row.command,
        "program": row.program,
        **_place(row),
        "exit_code": row.exit_code,
        "status": row.status,
    }


def _place(row: TouchedFile | CommandRun) -> dict[str, Json]:
    return {
        "at": rfc3339(row.at),
        "session": row.session_id,
        "message": row.message_id,
        "number": row.number + 1,
        "project": project_row(row.project),
        "title": row.title,
        "fate": row.fate,
    }


def _end_of_list(page: FilePage | CommandPage) -> dict[str, Json]:
    return {
        "more": page.next is not None,
        "cursor": page.next,
        "total": page.total,
        "notes": page.notes,
        "problems": [problem_row(problem) for problem in page.problems],
    }
