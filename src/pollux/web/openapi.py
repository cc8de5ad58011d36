"""The OpenAPI document of the JSON API, as data; tests compare it with the routes, their parameters and answers."""

from __future__ import annotations

from pollux import __version__
from pollux.model import Fate
from pollux.web.api_schemas import SCHEMAS, TEXT, Schema

FATES = tuple(str(fate) for fate in Fate)
SESSION_TRAITS = ("error", "dropped", "image", "diff", "subagent", "problem", "gone")
SESSION_SORTS = ("newest", "oldest", "begun", "prompts", "tokens", "cost")


def _query(name: str, description: str, schema: Schema | None = None) -> Schema:
    return {"name": name, "in": "query", "description": description, "schema": schema or TEXT}


def _one_of(*words: str) -> Schema:
    return {"type": "string", "enum": list(words)}


_LIMIT = _query("limit", "Rows of a page.", {"type": "integer", "minimum": 1, "maximum": 500})
_AFTER = _query("after", "The `next` of the previous page.")
_FILTERS = [
    _query("project", "Name, path or hash of a project."),
    _query("model", "Part of a model's name."),
    _query("since", "Sessions active since then: 2026-11-01, yesterday, 7d."),
    _query("until", "Sessions that began before then."),
    _query("last", "The same as since, for an age: 7d, 12h, 2w."),
    _query("on", "Sessions of one day: 2026-11-01."),
]
_FORMAT = _query("format", "JSON, or a table as CSV.", _one_of("json", "csv"))
_SESSION = {
    "name": "session",
    "in": "path",
    "required": True,
    "description": "The ID of a session, the beginning of one, `latest` or `@2`.",
    "schema": TEXT,
    "example": "latest",
}
_NUMBER = {
    "name": "number",
    "in": "path",
    "required": True,
    "description": "The number of a message in the timeline, from 1.",
    "schema": {"type": "integer", "minimum": 1},
    "example": 1,
}
_ERRORS = {
    "default": {
        "description": "What is wrong, and what to do next.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
    }
}


def _get(summary: str, schema: str, *parameters: Schema, csv: bool = False) -> Schema:
    content: Schema = {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
    if csv:
        content["text/csv"] = {"schema": TEXT}
    answer = {"description": summary, "content": content}
    return {"get": {"summary": summary, "parameters": list(parameters), "responses": {"200": answer, **_ERRORS}}}


_WORDS = _query("q", "A query of `pollux search`.")
PATHS: dict[str, Schema] = {
    "/api/sessions": _get(
        "Sessions, last used first.",
        "Sessions",
        _WORDS,
        *_FILTERS,
        _query("tool", "A tool that the model called."),
        _query("has", "What a session has.", _one_of(*SESSION_TRAITS)),
        _query("sort", "Order; the default is newest.", _one_of(*SESSION_SORTS)),
        _query("all", "Also subagents and sessions without messages.", _one_of("0", "1")),
        _LIMIT,
        _AFTER,
        _FORMAT,
        csv=True,
    ),
    "/api/sessions/{session}": _get(
        "A session and a stretch of at most 500 of its messages.",
        "Session",
        _SESSION,
        _query("from", "Number of the first message.", {"type": "integer", "minimum": 1}),
        _query("to", "Number of the last message.", {"type": "integer", "minimum": 0}),
    ),
    "/api/sessions/{session}/messages/{number}": _get("One message.", "Message", _SESSION, _NUMBER),
    "/api/sessions/{session}/resume": _get("The command that continues a session.", "Resume", _SESSION),
    "/api/sessions/{session}/find": _get(
        "The messages of a session that contain some words.", "Found", _SESSION, _query("q", "Words, in any case.")
    ),
    "/api/search": _get(
        "Sessions that match a query, with their best hits.",
        "Hits",
        {**_WORDS, "required": True},
        _query("in", "A part of messages.", _one_of("prompt", "answer", "thoughts", "args", "output", "notice")),
        _query("tool", "A tool that the session called."),
        _query("fate", "What became of the message.", _one_of(*FATES)),
        _query("typing", "Whether the last word of q may be the start of one.", _one_of("0", "1")),
        _query("sort", "Order of the sessions.", _one_of("relevance", "newest", "oldest", "cost")),
        *_FILTERS,
        _LIMIT,
        _AFTER,
    ),
    "/api/files": _get(
        "Files that tool calls read or changed, newest first.",
        "Files",
        _query("q", "Words of the path."),
        _query("path", "One file."),
        *_FILTERS,
        _LIMIT,
        _AFTER,
    ),
    "/api/files/used": _get(
        "Files that sessions read or changed, each once, last touched first.",
        "UsedFiles",
        _query("q", "Words that the path contains; `*` and `?` stand for other characters."),
        *_FILTERS,
        _LIMIT,
        _AFTER,
    ),
    "/api/usage": _get(
        "Tokens and cost; every model call counts once.",
        "Usage",
        _query("by", "Rows.", _one_of("hour", "day", "week", "month", "session", "project", "model", "tool")),
        _query("sort", "Order.", _one_of("cost", "tokens", "input", "output", "calls", "name")),
        _query("top", "How many rows.", {"type": "integer", "minimum": 0, "maximum": 10_000}),
        *_FILTERS,
        _FORMAT,
        csv=True,
    ),
    "/api/status": _get(
        "When and why the client will delete each session.",
        "Status",
        *_FILTERS,
        _query("limit", "How many sessions; 0 for all.", {"type": "integer", "minimum": 0, "maximum": 100_000}),
    ),
    "/api/projects": _get("Projects that have sessions.", "Projects", *_FILTERS),
    "/api/doctor": _get("Homes that were read, and everything unreadable or unknown.", "Doctor"),
}


def openapi_document(label: str, port: int) -> Schema:
    """Return the description of the API of a viewer, with its address and the name of its cookie."""
    cookie = {
        "type": "apiKey",
        "in": "cookie",
        "name": f"pollux-{port}",
        "description": "Set by a ticket: docs/api.md.",
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Pollux",
            "version": __version__,
            "description": "Gemini CLI history on this computer. GET and HEAD only, with the cookie of the viewer.",
        },
        "servers": [{"url": f"/{label}"}],
        "security": [{"cookie": []}],
        "paths": PATHS,
        "components": {"schemas": SCHEMAS, "securitySchemes": {"cookie": cookie}},
    }
