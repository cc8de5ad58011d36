"""Values with the names that the client uses, for `extra.gemini`: what a trajectory has no field for."""

from __future__ import annotations

from typing import assert_never

from pollux.model import (
    Activity,
    AgentDisplay,
    Attachment,
    Cell,
    Code,
    CodeResult,
    DiffDisplay,
    Display,
    FileDisplay,
    FunctionCall,
    FunctionResponse,
    GrepMatch,
    Json,
    MatchDisplay,
    Part,
    ScreenDisplay,
    Text,
    TextDisplay,
    Thought,
    TodoDisplay,
    Tokens,
    ToolCall,
    Unknown,
    UnknownDisplay,
)
from pollux.text.times import client_timestamp


def part_json(part: Part) -> Json:
    """Return a part, without the bytes of an attachment."""
    match part:
        case Text(text):
            return {"text": text}
        case Thought(text):
            return {"text": text, "thought": True}
        case FunctionCall(id_, name, args):
            return {"functionCall": without_none(id=id_, name=name, args=args)}
        case FunctionResponse(id_, name, response):
            return {"functionResponse": without_none(id=id_, name=name, response=response)}
        case Attachment(media_type, _, uri):
            if uri:
                return {"fileData": {"mimeType": media_type, "fileUri": uri}}
            return {"inlineData": {"mimeType": media_type}}
        case Code(language, code):
            return {"executableCode": {"language": language, "code": code}}
        case CodeResult(outcome, output):
            return {"codeExecutionResult": {"outcome": outcome, "output": output}}
        case Unknown(value):
            return value
        case _:
            assert_never(part)


def thought_json(thought: Thought) -> Json:
    """Return a thought."""
    at = client_timestamp(thought.at) if thought.at else None
    return without_none(subject=thought.subject, description=thought.text, timestamp=at)


def tokens_json(tokens: Tokens) -> dict[str, Json]:
    """Return the six counts as the API reported them."""
    return {
        "input": tokens.input,
        "output": tokens.output,
        "cached": tokens.cached,
        "thoughts": tokens.thoughts,
        "tool": tokens.tool,
        "total": tokens.total,
    }


def call_json(call: ToolCall) -> dict[str, Json]:
    """Return everything about a call but its ID, name, arguments and result."""
    return {
        **call.extra,
        **without_none(
            status=call.status,
            timestamp=client_timestamp(call.at) if call.at else None,
            displayName=call.display_name,
            description=call.description,
            renderOutputAsMarkdown=call.markdown or None,
            agentId=call.agent_id,
            resultDisplay=display_json(call.display) if call.display else None,
        ),
    }


def display_json(display: Display) -> Json:
    """Return what the client displayed of a result."""
    match display:
        case TextDisplay(text):
            return text
        case DiffDisplay():
            return _diff_json(display)
        case ScreenDisplay(lines):
            return [[_cell_json(cell) for cell in line] for line in lines]
        case TodoDisplay(todos):
            return {"todos": [{"description": todo.description, "status": todo.status} for todo in todos]}
        case AgentDisplay(name, state, result, reason, activity):
            more = without_none(state=state, result=result, terminateReason=reason)
            recent = [_activity_json(item) for item in activity]
            return {"isSubagentProgress": True, "agentName": name, **more, "recentActivity": recent}
        case MatchDisplay(summary, matches):
            return {"summary": summary, "matches": [_match_json(match) for match in matches]}
        case FileDisplay(summary, files):
            return {"summary": summary, "files": list(files)}
        case UnknownDisplay(value):
            return value
        case _:
            assert_never(display)


def _diff_json(display: DiffDisplay) -> Json:
    stat = without_none(model_added_lines=display.lines_added, model_removed_lines=display.lines_removed)
    return {
        "fileDiff": display.diff,
        "fileName": display.file_name,
        **without_none(
            filePath=display.file_path,
            originalContent=display.before,
            newContent=display.after,
            isNewFile=display.is_new,
            diffStat=stat or None,
        ),
    }


def _cell_json(cell: Cell) -> Json:
    styles = {name: True for name in ("bold", "italic", "underline", "dim", "inverse") if getattr(cell, name)}
    return {"text": cell.text, **without_none(fg=cell.fg or None, bg=cell.bg or None), **styles}


def _activity_json(activity: Activity) -> Json:
    return without_none(
        type=activity.type,
        content=activity.content,
        status=activity.status or None,
        description=activity.description or None,
    )


def _match_json(match: GrepMatch) -> Json:
    fields = without_none(filePath=match.path, lineNumber=match.line, line=match.text)
    return {**fields, "isContext": True} if match.is_context else fields


def without_none(**fields: Json) -> dict[str, Json]:
    """Return the fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}
