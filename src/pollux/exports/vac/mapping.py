"""What becomes of each field of a session in a record; the page `docs/vac.md` shows this table."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """A field of the client's files, the member of a record that holds it, and what to know about it; in Markdown."""

    field: str
    member: str
    remark: str = ""


MAPPING: tuple[Row, ...] = (
    Row("`sessionId`", "`id`, `session.session-id`", "to 0.36 a subagent's is `<parent id>:<file stem>`"),
    Row(
        "`startTime`",
        "`session.session-start`",
        "the earliest evidence, where the field is missing or was written over",
    ),
    Row(
        "`lastUpdated`",
        "`session.lastUpdated`",
        "`session-end` is the newest message: the client also touches old files",
    ),
    Row("`projectHash`", "`session.projectHash`"),
    Row("`kind`", "`session.kind`"),
    Row("`summary`", "`session.summary`"),
    Row("`directories`", "`session.directories`"),
    Row("`memoryScratchpad`", "`session.memoryScratchpad`"),
    Row("any other metadata", "`session.native`"),
    Row(
        "the project's path",
        "`session.environment.working-dir`",
        "only when its hash proves it; else `session.project`",
    ),
    Row("`messages[].id`", "`id`"),
    Row("`messages[].timestamp`", "`timestamp`", "of the first recording"),
    Row("`messages[].type: user`", "`type: user`", "typed, or told to a subagent; `origin` says which"),
    Row(
        "`messages[].type: user`, by the client",
        "`type: system-event`",
        "`event-type` is the origin, such as `session-context`",
    ),
    Row(
        "`messages[].type: user`, tool responses",
        "`type: system-event`, `data.call-ids`",
        "what the call's result already says is not repeated",
    ),
    Row("`messages[].type: gemini`", "`type: assistant`"),
    Row(
        "`messages[].type: info`, `warning`, `error`",
        "`type: system-event`",
        "`event-type` is the type, the words are in `data.content`",
    ),
    Row("`messages[].type`, any other", "`type: system-event`", "`human`, as other tools write it, is a `user`"),
    Row("`messages[].content`", "`content`", "one text as text, everything else as the client's parts"),
    Row("`messages[].displayContent`", "`displayContent`", "what was typed, where more was sent"),
    Row("`messages[].model`", "`model-id`", "all of them in `session.agent-meta.models`"),
    Row("`messages[].tokens.input`", "`token-usage.input`", "contains `cached`"),
    Row("`messages[].tokens.output`", "`token-usage.output`", "without the thoughts"),
    Row("`messages[].tokens.cached`", "`token-usage.cached`"),
    Row("`messages[].tokens.thoughts`", "`token-usage.reasoning`, `token-usage.thoughts`"),
    Row("`messages[].tokens.tool`", "`token-usage.tool`"),
    Row("`messages[].tokens.total`", "`token-usage.total`", "`repeated` where another session paid for it"),
    Row("`messages[].thoughts[].description`", "`children[].content`", "`type: reasoning`; so are the next two"),
    Row("`messages[].thoughts[].subject`", "`children[].subject`"),
    Row("`messages[].thoughts[].timestamp`", "`children[].timestamp`"),
    Row("`messages[].toolCalls[].name`", "`children[].name`", "`type: tool-call`; so are those up to `agentId`"),
    Row("`messages[].toolCalls[].args`", "`children[].input`"),
    Row("`messages[].toolCalls[].id`", "`children[].call-id`", "of the call and of its result"),
    Row("`messages[].toolCalls[].timestamp`", "`children[].timestamp`", "else that of the message"),
    Row("`messages[].toolCalls[].displayName`", "`children[].displayName`"),
    Row("`messages[].toolCalls[].description`", "`children[].description`"),
    Row(
        "`messages[].toolCalls[].agentId`",
        "`children[].agentId`",
        "the subagent's session is in `agent-session`, its entries are `children` of the call",
    ),
    Row(
        "`messages[].toolCalls[].result`",
        "`children[].output`",
        "`type: tool-result`; so are the next three; only the call's own response of those of its siblings",
    ),
    Row(
        "`messages[].toolCalls[].status`",
        "`children[].status`, `children[].is-error`",
        "on the call too; an error is also a response with `error`",
    ),
    Row(
        "`messages[].toolCalls[].resultDisplay`", "`children[].display`", "in the words of [our JSON](json.md#displays)"
    ),
    Row("`messages[].toolCalls[].renderOutputAsMarkdown`", "`children[].renderOutputAsMarkdown`"),
    Row("any other field of a message or a call", "`native`"),
    Row(
        "`$rewindTo`, messages no longer in the list",
        "`type: system-event`",
        "`rewind`, `compression`, `rollback` or `replacement`; the messages are its `children` with `--branches all`",
    ),
    Row("edits and their diffs", "`file-attribution`", "the lines that are still as the model wrote them"),
    Row("the file itself", "`sources[]`", "path, role and SHA-256 of each; `source` of an entry names file and line"),
    Row("what could not be read", "`problems[]`"),
)
