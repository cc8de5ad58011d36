"""Schemas of the documents of the API, for the OpenAPI document. `docs/json.md` says what each key means.

A test compares them with answers, so that a new key of a contract must be added here. Readers must accept keys that
they do not know, so no schema forbids them.
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
COUNT: Schema = {"type": "integer", "minimum": 0}
FLAG: Schema = {"type": "boolean"}
_COUNTS: Schema = {"type": "object", "additionalProperties": COUNT}
ANY_OBJECT: Schema = {"type": "object", "additionalProperties": True}
_NUMBER: Schema = {"type": "number"}
_INTEGER: Schema = {"type": "integer"}
_PLACE: Schema = {"type": "integer", "minimum": 1}
_CURSOR: Schema = {"type": ["string", "null"], "description": "Pass it as `after` to get the next page."}
_MONEY: Schema = {"type": ["integer", "null"], "description": "Billionths of a US dollar; null if it has no price."}


def _maybe(schema: Schema) -> Schema:
    """Return a schema that also allows null, for what is unknown."""
    return {**schema, "type": [schema["type"], "null"]}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _of(name: str) -> Schema:
    """Return a reference to another schema."""
    return {"$ref": f"#/components/schemas/{name}"}


def _row(**properties: Schema) -> Schema:
    """Return the schema of an object that always has these keys; write `from_` for a key that is a Python word."""
    named = {name.rstrip("_"): schema for name, schema in properties.items()}
    return {"type": "object", "required": list(named), "properties": named}


def _document(schema: str, **properties: Schema) -> Schema:
    """Return the schema of a whole answer."""
    return _row(schema={"type": "string", "const": schema}, **properties)


_TIME = _maybe({"type": "string", "format": "date-time"})
_TOUCH: dict[str, Schema] = {
    "at": _TIME,
    "session": TEXT,
    "message": _maybe(TEXT),
    "number": _PLACE,
    "project": _of("Project"),
    "title": TEXT,
    "fate": TEXT,
}
_COUNTED: dict[str, Schema] = {"calls": COUNT, "tokens": _of("Tokens")}

_ROWS: dict[str, Schema] = {
    "Tokens": _row(input=_INTEGER, cached=_INTEGER, output=_INTEGER, thoughts=_INTEGER, tool=_INTEGER, total=_INTEGER),
    "Project": _row(path=_maybe(TEXT), hash=_maybe(TEXT), slug=_maybe(TEXT), source=_maybe(TEXT), proven=FLAG),
    "Problem": _row(code=TEXT, message=TEXT, file=_maybe(TEXT), line=_maybe(COUNT)),
    "SessionRow": _row(
        id=TEXT,
        kind=TEXT,
        parent=_maybe(TEXT),
        title=TEXT,
        project=_of("Project"),
        started=_TIME,
        ended=_TIME,
        updated=_TIME,
        messages=_COUNTS,
        tool_calls=COUNT,
        models=_list(TEXT),
        **_COUNTED,
        active=_row(**_COUNTED),
        cost_nanousd=_MONEY,
        files=_list(_row(path=TEXT, role=TEXT, format=TEXT)),
        deleted=FLAG,
        problems=COUNT,
    ),
    "MessageRow": _row(
        id=_maybe(TEXT),
        kind=TEXT,
        origin=TEXT,
        fate=TEXT,
        at=_TIME,
        model=_maybe(TEXT),
        text=TEXT,
        thoughts=_list(_row(subject=TEXT, text=TEXT, at=_TIME)),
        tool_calls=_list(
            _row(
                id=_maybe(TEXT),
                name=TEXT,
                canonical=TEXT,
                category=TEXT,
                mcp_server=_maybe(TEXT),
                status=TEXT,
                exit_code=_maybe(_INTEGER),
                args=ANY_OBJECT,
                output=_maybe(TEXT),
                error=_maybe(TEXT),
                at=_TIME,
                agent=_maybe(TEXT),
            )
        ),
        tokens={"anyOf": [_of("Tokens"), {"type": "null"}]},
        attachments=_list(_row(media_type=TEXT, size=_maybe(COUNT), uri=_maybe(TEXT))),
    ),
    "Hit": _row(
        **_TOUCH,
        parent=_maybe(TEXT),
        part=TEXT,
        role=TEXT,
        scope=TEXT,
        snippet=TEXT,
        snippets=_list(_row(text=TEXT, highlights=_list(_list(COUNT)), before=FLAG, after=FLAG)),
        score=_NUMBER,
    ),
    "SessionHits": _row(
        id=TEXT,
        kind=TEXT,
        parent=_maybe(TEXT),
        title=TEXT,
        project=_of("Project"),
        last_used=_TIME,
        cost_nanousd=_MONEY,
        deleted=FLAG,
        hits=COUNT,
        scope=TEXT,
        score=_NUMBER,
    ),
    "UsageSums": _row(
        **_COUNTED,
        cost_nanousd=_MONEY,
        unpriced=_row(**_COUNTED),
        inconsistent=COUNT,
    ),
}
_FACETS = ("in", "project", "model", "tool", "fate", "month")
_FACET = _list(_row(key=TEXT, name=TEXT, count=_maybe(COUNT)))
_PROBLEMS = _list(_of("Problem"))
_NOTES = _list(TEXT)
_MORE: dict[str, Schema] = {"more": FLAG, "cursor": _CURSOR}
_TOOL_CALLS = {**_row(calls=COUNT, success=COUNT, error=COUNT, cancelled=COUNT, no_result=COUNT)}
_TOOL_CALLS["description"] = "Only in rows by tool."
_USAGE_ROW = _row(key=_maybe(TEXT), name=_maybe(TEXT), **_ROWS["UsageSums"]["properties"], active=_of("UsageSums"))
_USAGE_ROW["properties"]["tool_calls"] = _TOOL_CALLS
_STATUS_ROW = _row(
    id=TEXT,
    kind=TEXT,
    title=TEXT,
    project=_row(path=_maybe(TEXT), hash=_maybe(TEXT), slug=_maybe(TEXT)),
    updated=_TIME,
    deletion=TEXT,
    reason=_maybe(TEXT),
    caused_by=_maybe(TEXT),
    due=_TIME,
    days_left=_maybe(_INTEGER),
    stub=FLAG,
    archived=FLAG,
    at_risk=FLAG,
    deleted_files=_list(TEXT),
    remaining_files=_list(TEXT),
)
_POLICY_ROW = _row(
    folder=TEXT,
    project=_maybe(TEXT),
    deletes=FLAG,
    off=_maybe(TEXT),
    is_fault=FLAG,
    settings=ANY_OBJECT,
    sources=_list(TEXT),
    notes=_NOTES,
)

SCHEMAS: dict[str, Schema] = {
    **_ROWS,
    "Sessions": _document(
        "pollux.sessions/1", sessions=_list(_of("SessionRow")), problems=_PROBLEMS, next=_CURSOR, total=COUNT
    ),
    "Session": _document(
        "pollux.session/1",
        session=_of("SessionRow"),
        timeline=_list(_of("MessageRow")),
        children=_list(TEXT),
        from_=_PLACE,
        to=COUNT,
        total=COUNT,
    ),
    "Message": _document("pollux.message/1", session=TEXT, number=_PLACE, **_ROWS["MessageRow"]["properties"]),
    "Resume": _document("pollux.resume/1", id=TEXT, project=_maybe(TEXT), there=FLAG, command=TEXT),
    "Found": _document("pollux.found/1", messages=COUNT, at={**_list(_PLACE), "maxItems": 5000}, more=FLAG),
    "Hits": _document(
        "pollux.hits/1",
        query=TEXT,
        hits=_list(_of("Hit")),
        sessions=_list(_of("SessionHits")),
        **_MORE,
        total=_row(hits=_maybe(COUNT), sessions=_maybe(COUNT)),
        suggestions=_list(TEXT),
        coverage=_row(sessions=COUNT, indexed=COUNT, cut_parts=COUNT),
        notes=_NOTES,
        problems=_PROBLEMS,
        next=_CURSOR,
        facets=_maybe(_row(sessions=COUNT, complete=FLAG, **dict.fromkeys(_FACETS, _FACET))),
    ),
    "Files": _document(
        "pollux.files/1",
        files=_list(_row(path=TEXT, op=TEXT, **_TOUCH, lines_added=_maybe(COUNT), lines_removed=_maybe(COUNT))),
        **_MORE,
        total=COUNT,
        notes=_NOTES,
        problems=_PROBLEMS,
        next=_CURSOR,
    ),
    "UsedFiles": _document(
        "pollux.used_files/1",
        files=_list(
            _row(
                path=TEXT,
                project=_of("Project"),
                reads=COUNT,
                changes=COUNT,
                lines_added=_maybe(COUNT),
                lines_removed=_maybe(COUNT),
                sessions=COUNT,
                last=_TIME,
            )
        ),
        total=COUNT,
        next=_CURSOR,
    ),
    "Usage": _document(
        "pollux.usage/1",
        by=TEXT,
        timezone=TEXT,
        prices=_row(table=TEXT, date=TEXT),
        rows=_list(_USAGE_ROW),
        billed=_of("UsageSums"),
        active=_of("UsageSums"),
        unpriced_models=_list(_row(model=_maybe(TEXT), **_COUNTED)),
        problems=_PROBLEMS,
    ),
    "Status": _document(
        "pollux.status/1",
        client=TEXT,
        now=_TIME,
        archive=_maybe(TEXT),
        policies=_list(_POLICY_ROW),
        sessions=_list(_STATUS_ROW),
        counts=_COUNTS,
        at_risk=COUNT,
        problems=_PROBLEMS,
    ),
    "Projects": _document(
        "pollux.projects/1",
        projects=_list(
            _row(**_ROWS["Project"]["properties"], sessions=COUNT, prompts=COUNT, tokens=_INTEGER, last=_TIME)
        ),
    ),
    "Doctor": _document(
        "pollux.doctor/1",
        homes=_list(_row(root=TEXT, tmp=TEXT, source=TEXT)),
        folders=COUNT,
        files=_row(count=COUNT, bytes=COUNT),
        sessions=_row(main=COUNT, all=COUNT, by_generation=_COUNTS),
        unknown=_row(operators=_COUNTS, fields=_COUNTS, kinds=_COUNTS, tools=_COUNTS),
        lost=_list(_row(id=TEXT, prompts=COUNT)),
        problems=_PROBLEMS,
    ),
    "Error": _document("pollux.error/1", code=TEXT, message=TEXT, hint=TEXT),
}
