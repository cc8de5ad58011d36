"""Our values in the client's own words: what a trajectory has no field for stands under `extra.gemini`."""

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
    Json,
    Match,
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
from pollux.text.times import stamp


def part(one: Part) -> Json:
    """Write a part, without the bytes of an attachment."""
    match one:
        case Text(text):
            return {"text": text}
        case Thought(text):
            return {"text": text, "thought": True}
        case FunctionCall(id_, name, args):
            return {"functionCall": filled(id=id_, name=name, args=args)}
        case FunctionResponse(id_, name, response):
            return {"functionResponse": filled(id=id_, name=name, response=response)}
        case Attachment(media_type, _, uri):
            return {"fileData": {"mimeType": media_type, "fileUri": uri}} if uri else _inline(media_type)
        case Code(language, code):
            return {"executableCode": {"language": language, "code": code}}
        case CodeResult(outcome, output):
            return {"codeExecutionResult": {"outcome": outcome, "output": output}}
        case Unknown(value):
            return value
        case _:
            assert_never(one)


def _inline(media_type: str) -> Json:
    return {"inlineData": {"mimeType": media_type}}


def thought(one: Thought) -> Json:
    """Write a thought."""
    return filled(subject=one.subject, description=one.text, timestamp=stamp(one.at) if one.at else None)


def tokens(counts: Tokens) -> dict[str, Json]:
    """Write the six counts as the API gave them."""
    return {
        "input": counts.input,
        "output": counts.output,
        "cached": counts.cached,
        "thoughts": counts.thoughts,
        "tool": counts.tool,
        "total": counts.total,
    }


def call(one: ToolCall) -> dict[str, Json]:
    """Write all that a call has besides its id, name, arguments and result."""
    return {
        **one.extra,
        **filled(
            status=one.status,
            timestamp=stamp(one.at) if one.at else None,
            displayName=one.display_name,
            description=one.description,
            renderOutputAsMarkdown=one.markdown or None,
            agentId=one.agent_id,
            resultDisplay=display(one.display) if one.display else None,
        ),
    }


def display(shown: Display) -> Json:
    """Write what the client showed of a result."""
    match shown:
        case TextDisplay(text):
            return text
        case DiffDisplay():
            return _diff(shown)
        case ScreenDisplay(lines):
            return [[_cell(cell) for cell in line] for line in lines]
        case TodoDisplay(todos):
            return {"todos": [{"description": one.description, "status": one.status} for one in todos]}
        case AgentDisplay(name, state, result, reason, activity):
            told = [_activity(one) for one in activity]
            more = filled(state=state, result=result, terminateReason=reason)
            return {"isSubagentProgress": True, "agentName": name, **more, "recentActivity": told}
        case MatchDisplay(summary, matches):
            return {"summary": summary, "matches": [_match(one) for one in matches]}
        case FileDisplay(summary, files):
            return {"summary": summary, "files": list(files)}
        case UnknownDisplay(value):
            return value
        case _:
            assert_never(shown)


def _diff(shown: DiffDisplay) -> Json:
    stat = filled(model_added_lines=shown.lines_added, model_removed_lines=shown.lines_removed)
    return {
        "fileDiff": shown.diff,
        "fileName": shown.file_name,
        **filled(
            filePath=shown.file_path,
            originalContent=shown.before,
            newContent=shown.after,
            isNewFile=shown.is_new,
            diffStat=stat or None,
        ),
    }


def _cell(cell: Cell) -> Json:
    styles = {name: True for name in ("bold", "italic", "underline", "dim", "inverse") if getattr(cell, name)}
    return {"text": cell.text, **filled(fg=cell.fg or None, bg=cell.bg or None), **styles}


def _activity(one: Activity) -> Json:
    return filled(type=one.type, content=one.content, status=one.status or None, description=one.description or None)


def _match(one: Match) -> Json:
    found = filled(filePath=one.path, lineNumber=one.line, line=one.text)
    return {**found, "isContext": True} if one.is_context else found


def filled(**fields: Json) -> dict[str, Json]:
    """Leave out what is not there."""
    return {name: value for name, value in fields.items() if value is not None}
