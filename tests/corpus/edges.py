"""Hand-made session files, each with one detail that a reader may get wrong (`gemini-format.md` §5 and later)."""

from __future__ import annotations

import json

BOM = b"\xef\xbb\xbf"
HEADER = {
    "sessionId": "6ece72aa-5955-4bdb-8380-88eda48ac048",
    "projectHash": "8d46cd8ee49a82f63b11dc3dd3d68d5ba59f6ab5cf0bbc4eceedd1954c23904e",
    "startTime": "2026-11-15T19:30:00.000Z",
    "lastUpdated": "2026-11-15T19:30:00.000Z",
    "kind": "main",
}
AT = "2026-11-15T19:30:01.000Z"


def user(id_: object, content: object = "hello", **more: object) -> dict[str, object]:
    return {"id": id_, "timestamp": AT, "type": "user", "content": content, **more}


def gemini(id_: object, content: object = "hi there", **more: object) -> dict[str, object]:
    return {"id": id_, "timestamp": AT, "type": "gemini", "content": content, **more}


def line(value: object) -> bytes:
    return value if isinstance(value, bytes) else json.dumps(value, separators=(",", ":")).encode()


def log(*records: object, end: bytes = b"\n") -> bytes:
    return b"".join(line(record) + end for record in records)


def document(*messages: object, **more: object) -> bytes:
    return json.dumps({**HEADER, "messages": messages, **more}, indent=2).encode()


def without(*keys: str) -> dict[str, str]:
    return {key: value for key, value in HEADER.items() if key not in keys}


def checkpoint(*messages: object, **more: object) -> dict[str, object]:
    return {"$set": {"messages": messages, **more}}


def nested(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


TOKENS = {"input": 10, "output": 2, "cached": 0, "thoughts": 1, "tool": 0, "total": 13}
CALL: dict[str, object] = {
    "id": "c1",
    "name": "read_file",
    "args": {},
    "status": "success",
    "timestamp": AT,
    "result": None,
}
USER, GEMINI = user("u1"), gemini("g1", tokens=TOKENS, model="m", thoughts=[])
TURN = (HEADER, USER, GEMINI)
TORN = line(user("u9", "never finished"))[:40]
COMPACT = {**HEADER, "messages": [USER, GEMINI]}

LOGS = {
    "plain": log(*TURN),
    "no newline at the end": log(*TURN).rstrip(b"\n"),
    "byte order mark": BOM + log(*TURN),
    "byte order mark, second header": BOM + log(*TURN, {**HEADER, "kind": "subagent"}),
    "crlf": log(*TURN, end=b"\r\n"),
    "lone cr": log(*TURN, end=b"\r"),
    "cr and lf mixed": line(HEADER) + b"\r\r\n\n\r" + log(USER, GEMINI),
    "blank lines": log(HEADER, b"", b"  \t ", USER, b"\x0b", GEMINI),
    "blanks before and after": b"\n  " + log(HEADER, b"\t" + line(USER) + b"  ", b" " + line(GEMINI)),
    "no-break space around a record": log(HEADER, b"\xc2\xa0" + line(USER), GEMINI),
    "line of no-break spaces": log(HEADER, b"\xc2\xa0\xe2\x80\xa8\xef\xbb\xbf", USER),
    "two headers": log(*TURN, {**HEADER, "startTime": "2026-11-15T19:31:00.000Z", "summary": "s"}, user("u2")),
    "header at the end": log(USER, GEMINI, HEADER),
    "header in the middle": log(USER, HEADER, GEMINI),
    "header only": log(HEADER),
    "header-less": log(USER, GEMINI, {"$set": {"lastUpdated": AT}}),
    "header by $set": log({"$set": without("kind")}, USER),
    "$set.sessionId only": log({"$set": {"sessionId": "x"}}, USER),
    "empty": b"",
    "only blanks": b" \n\n",
    "known rewind": log(*TURN, user("u2"), gemini("g2"), {"$rewindTo": "u2"}, user("u3")),
    "rewind and the same id again": log(*TURN, {"$rewindTo": "u1"}, GEMINI, USER),
    "unknown rewind": log(*TURN, {"$rewindTo": "nobody"}, user("u2")),
    "empty rewind": log(*TURN, {"$rewindTo": ""}, user("u2")),
    "rewind that is no string": log(*TURN, {"$rewindTo": 1}, user("u2")),
    "rewind with an id": log(*TURN, {"$rewindTo": "g1", "id": "u5", "type": "user", "content": "x"}),
    "message recorded again": log(*TURN, user("u1", "changed"), {**GEMINI, "toolCalls": [CALL]}),
    "checkpoint": log(*TURN, checkpoint(user("c1"), gemini("c2"), lastUpdated=AT), user("u2")),
    "checkpoint of nothing": log(*TURN, checkpoint()),
    "checkpoint with odd elements": log(*TURN, checkpoint(None, 1, "x", [], {}, {"id": 1}, user("u2"), {"id": "bare"})),
    "checkpoint with the same id twice": log(*TURN, checkpoint(user("u2"), gemini("g2"), user("u2", "again"))),
    "checkpoint that is a string": log(*TURN, {"$set": {"messages": "x", "summary": "s"}}),
    "checkpoint that is null": log(*TURN, {"$set": {"messages": None}}),
    "checkpoint that is an object": log(*TURN, {"$set": {"messages": {"id": "x"}}}),
    "$set null": log(*TURN, {"$set": None}),
    "$set list": log(*TURN, {"$set": []}),
    "$set list of things": log(*TURN, {"$set": [{"messages": []}, "x"]}),
    "$set string": log(*TURN, {"$set": "x"}),
    "$set null in a header": log({**HEADER, "$set": None}, USER),
    "$set and id": log(*TURN, {"$set": {"messages": []}, "id": "both", "type": "user", "content": "x"}),
    "$set and header": log({**HEADER, "$set": {"summary": "s"}}, USER),
    "$set empties the id": log(*TURN, {"$set": {"sessionId": ""}}),
    "$set numeric id": log(*TURN, {"$set": {"sessionId": 7}}),
    "unknown operator": log(*TURN, {"$push": {"messages": USER}}, user("u2")),
    "id and sessionId": log(HEADER, {**HEADER, **user("u1")}, GEMINI),
    "id and sessionId only": log({**HEADER, **user("u1")}, GEMINI),
    "numeric id": log(HEADER, user(1), GEMINI),
    "null id": log(HEADER, user(None), GEMINI),
    "empty id": log(HEADER, user(""), GEMINI),
    "numeric id in a header": log({**HEADER, "id": 5}, USER),
    "id like a builtin": log(HEADER, user("__proto__"), gemini("constructor")),
    "glued line": log(HEADER, USER, TORN + line(GEMINI), user("u2")),
    "torn last line": log(*TURN) + TORN,
    "torn header": line(HEADER)[:60] + b"\n" + log(USER, GEMINI),
    "garbage in the middle": log(HEADER, b"\x00\xff garbage {", USER, b"}", GEMINI),
    "no objects": log(HEADER, {}, None, 1, 2.5, "text", [], [USER], b"true", USER),
    "empty sessionId": log({**HEADER, "sessionId": ""}, USER),
    "empty projectHash": log({**HEADER, "projectHash": ""}, USER),
    "header without projectHash": log(without("projectHash"), USER),
    "header with a numeric projectHash": log({**HEADER, "projectHash": 1}, USER),
    "header with unknown keys": log({**HEADER, "colour": "red", "messageCount": 99, "summary": None}, USER),
    "header with null metadata": log({**HEADER, "directories": None, "memoryScratchpad": None}, USER),
    "metadata of odd types": log({**HEADER, "summary": 5, "directories": "x", "kind": []}, USER),
    "scratchpad": log(*TURN, {"$set": {"memoryScratchpad": {"version": 1}}}),
    "stale scratchpad": log(*TURN, {"$set": {"memoryScratchpad": {"version": 1}}}, user("u2")),
    "scratchpad, then a rewind": log(*TURN, {"$set": {"memoryScratchpad": {"version": 1}}}, {"$rewindTo": "g1"}),
    "scratchpad, then a checkpoint": log(*TURN, {"$set": {"memoryScratchpad": {}}}, checkpoint(USER)),
    "scratchpad taken back": log(
        *TURN, {"$set": {"memoryScratchpad": {"version": 1}}}, {"$set": {"memoryScratchpad": 0}}
    ),
    "scratchpad in the header": log({**HEADER, "memoryScratchpad": {"version": 1}}, USER),
    "lone surrogates": log(HEADER, user("u1", "a\ud800b\udc00c"), gemini("\ud83d", "\ud83d\ude00 \ude00")),
    "lone surrogate in the metadata": log({**HEADER, "summary": "x\ud83d"}, USER),
    "surrogate escapes in capitals": log(HEADER, line(USER).replace(b"hello", rb"\uD83D\uDE00 \uDBFF \\ud800")),
    "invalid utf-8": log(HEADER, line(USER).replace(b"hello", b"a\xff\xfe b\xe4\xb8 c\xc0\x80"), GEMINI),
    "invalid utf-8 in a key": log(HEADER, line(USER).replace(b'"timestamp"', b'"time\xe9"'), GEMINI),
    "surrogates in utf-8": log(HEADER, line(USER).replace(b"hello", b"x\xed\xa0\x80y"), GEMINI),
    "line separators in text": log(HEADER, json.dumps(user("u1", "a\u2028b\u2029c\x85d"), ensure_ascii=False).encode()),
    "escaped controls": log(HEADER, user("u1", "a\x00b\x1bc\r\nd\x7f"), GEMINI),
    "raw controls": log(HEADER, line(USER).replace(b"hello", b"a\tb"), GEMINI),
    "deep nesting": log(HEADER, line(user("u1", "x", deep=0)).replace(b'"deep":0', b'"deep":' + nested(2000)), GEMINI),
    "deep nesting in content": log(HEADER, line(user("u1", 0)).replace(b'"content":0', b'"content":' + nested(2000))),
    "deep nesting in a checkpoint": log(
        *TURN, line(checkpoint(user("u2", "x", deep=0))).replace(b'"deep":0', b'"deep":' + nested(2000))
    ),
    "huge integers": log(HEADER, line(user("u1", "x", n=0)).replace(b'"n":0', b'"n":' + b"9" * 400), GEMINI),
    "integers beyond 2^53": log(HEADER, user("u1", "x", n=[2**53 + 1, -(2**63), 2**64, 10**25]), GEMINI),
    "huge integer in tokens": log(HEADER, gemini("g1", tokens={**TOKENS, "input": 10**30})),
    "infinity": log(HEADER, line(gemini("g1", tokens=TOKENS)).replace(b":10,", b":1e999,"), GEMINI),
    "infinity in the metadata": log(line(HEADER).replace(b'"main"', b"1e999"), USER),
    "nan": log(HEADER, line(gemini("g1", tokens=TOKENS)).replace(b":10,", b":NaN,"), USER),
    "floats": log(HEADER, gemini("g1", tokens={**TOKENS, "input": 1.5, "total": -0.0, "cached": 1e-400})),
    "numbers json forbids": log(
        HEADER, b'{"id":"a","n":01}', b'{"id":"b","n":+1}', b'{"id":"c","n":.5}', b'{"id":"d","n":1.}'
    ),
    "duplicate keys": log(HEADER, b'{"id":"a","type":"user","content":"1","content":"2","id":"b"}', GEMINI),
    "duplicate keys in a header": log(line(HEADER)[:-1] + b',"sessionId":"second"}', USER),
    "duplicate id, the last is a number": log(HEADER, b'{"id":"a","type":"user","content":"1","id":5}', GEMINI),
    "trailing comma": log(HEADER, b'{"id":"a","type":"user",}', b"{'id':'a'}", b'{"id":"b"} // note', USER),
    "two records in one line": log(HEADER, line(USER) + line(GEMINI), user("u2")),
    "null content": log(HEADER, user("u1", None), gemini("g1", None)),
    "missing content and type": log(HEADER, {"id": "a"}, {"id": "b", "type": "user"}, {"id": "c", "type": "gemini"}),
    "odd content": log(
        HEADER,
        user("u1", 5),
        user("u2", content=True),
        user("u3", {}),
        user("u4", [None, 1, [], "text", {"text": 7}, {"text": None}]),
        gemini("g1", {"odd": 1}),
        gemini("g2", [{"functionCall": {"name": "f"}}]),
    ),
    "content of one part": log(HEADER, user("u1", {"text": "just one"}), GEMINI),
    "content of strings": log(HEADER, user("u1", ["one", {"text": "two"}, "three"]), GEMINI),
    "nested lists": log(HEADER, user("u1", [["a", [{"text": "b"}]], {"text": "c"}]), GEMINI),
    "number as text": log(HEADER, user("u1", {"text": 5}), GEMINI),
    "number as text of an answer": log(HEADER, USER, gemini("g1", {"text": 5})),
    "number as text in a checkpoint": log(
        *TURN, checkpoint(user("u2"), user("u3", {"text": 5}), user("u4"), summary="s")
    ),
    "null function call": log(HEADER, user("u1", {"functionCall": None, "text": "x"}), GEMINI),
    "null function response in a list": log(HEADER, user("u1", [{"functionResponse": None}, {"text": "x"}]), GEMINI),
    "null media": log(HEADER, user("u1", [{"inlineData": None}]), GEMINI),
    "media": log(HEADER, user("u1", [{"inlineData": {"mimeType": "image/png", "data": "AAAA"}}, {"text": "see"}])),
    "thought null": log(HEADER, user("u1", [{"thought": None, "text": "/x"}]), GEMINI),
    "unknown type": log(
        HEADER, {**USER, "type": "tool"}, {**USER, "id": "u2", "type": 5}, {**USER, "id": "u3", "type": None}
    ),
    "notices": log(
        HEADER, *({"id": t, "type": t, "content": "note", "timestamp": AT} for t in ("info", "warning", "error"))
    ),
    "odd timestamps": log(HEADER, {**USER, "timestamp": 5}, {**GEMINI, "timestamp": "yesterday"}),
    "odd values beside the content": log(
        HEADER, gemini("g1", "", toolCalls="abc", thoughts={"a": 1}, tokens="x", model=[])
    ),
    "calls as an object": log(HEADER, gemini("g1", "", toolCalls={"a": 1})),
    "thoughts as an object": log(HEADER, gemini("g1", "", thoughts={"subject": "s"})),
    "thoughts as text": log(HEADER, gemini("g1", "", thoughts="hm")),
    "thoughts true": log(HEADER, gemini("g1", "", thoughts=True)),
    "calls with odd elements": log(HEADER, gemini("g1", "", toolCalls=[None, 1, {"name": 3}, {"id": 4, "name": "x"}])),
    "slash first": log(HEADER, user("u1", "/help"), gemini("g1"), user("u2", "then words")),
    "question mark first": log(HEADER, user("u1", [{"text": "  ?what"}]), user("u2", "then words")),
    "slash only": log(HEADER, user("u1", "/help"), user("u2", "?")),
    "context first": log(HEADER, checkpoint(user("p", [{"text": "<session_context>\nx\n</session_context>"}])), USER),
    "hook context first": log(HEADER, user("u1", "<hook_context>x</hook_context>\n\nprompt"), user("u2", "second")),
    "blank first": log(HEADER, user("u1", " \u00a0\u2003\ufeff"), user("u2", "\x1f"), user("u3", "\x85")),
    "first words rewound": log(HEADER, user("u1", "gone"), {"$rewindTo": "u1"}, user("u2", "kept")),
    "first words without text": log(HEADER, user("u1", [{"functionResponse": {"name": "f"}}]), user("u2", "second")),
    "first words in a header": log(COMPACT, user("u2")),
    "answer without words": log(HEADER, gemini("g1", "  "), {**USER, "content": ""}),
    "answer of calls only": log(HEADER, gemini("g1", "", toolCalls=[CALL])),
    "answer of thoughts only": log(HEADER, gemini("g1", "", thoughts=[{"subject": "s", "description": "d"}])),
    "indented records": json.dumps(HEADER, indent=1).encode() + b"\n" + log(USER, GEMINI),
    "log in a list": b"[" + b",".join(line(record) for record in TURN) + b"]",
}

DOCUMENTS = {
    "document": document(USER, GEMINI, summary="s"),
    "document without messages": json.dumps(HEADER, indent=2).encode(),
    "document with null messages": document().replace(b'"messages": []', b'"messages": null'),
    "document with messages of text": document().replace(b'"messages": []', b'"messages": "x"'),
    "document without projectHash": json.dumps({**without("projectHash"), "messages": [USER]}, indent=2).encode(),
    "document without sessionId": json.dumps({**without("sessionId"), "messages": [USER]}, indent=2).encode(),
    "document with an empty sessionId": document(USER, sessionId=""),
    "document with a null sessionId": document(USER, sessionId=None),
    "document with a numeric sessionId": document(USER, sessionId=5),
    "document without times": json.dumps(
        {**without("startTime", "lastUpdated"), "messages": [USER]}, indent=2
    ).encode(),
    "document with unknown keys": document(USER, colour="red", userMessageCount=9, hasResumableContent=False),
    "document with the client's own counts": document(USER, messageCount=7, firstUserMessage="x"),
    "document with duplicate ids": document(USER, user("u1", "again"), GEMINI, user("u1", "and again")),
    "document with odd elements": document(USER, {"id": 5, "type": "user", "content": "n"}, {"type": "gemini"}, {}),
    "document with a number in the list": document(USER, 5),
    "document with null in the list": document(USER, None),
    "document with no text in a part": document(user("u1", {"text": 5})),
    "document with surrogates": document(user("u1", "a\ud800b"), summary="\udfff"),
    "document with broken utf-8": document(USER).replace(b"hello", b"a\xff\xc3("),
    "document with a byte order mark": BOM + document(USER),
    "document with crlf": document(USER, GEMINI).replace(b"\n", b"\r\n"),
    "document with duplicate keys": document(USER)[:-2] + b',\n  "messages": [],\n  "kind": "second"\n}',
    "document with huge numbers": document({**GEMINI, "tokens": {**TOKENS, "input": 10**30}}),
    "document with infinity": document(GEMINI).replace(b'"input": 10', b'"input": 1e999'),
    "document with nan": document(GEMINI).replace(b'"input": 10', b'"input": NaN'),
    "document with deep nesting": document(user("u1", "x", deep=0)).replace(b'"deep": 0', b'"deep": ' + nested(2000)),
    "document, cut": document(USER, GEMINI)[:-30],
    "document, cut in the first line": document(USER)[:2],
    "document with a record behind": document(USER) + b"\n" + line(user("u2")),
    "document with a header behind": document(USER) + b"\n" + log(HEADER, user("u2")),
    "document of tabs": json.dumps({**HEADER, "messages": [USER]}, indent="\t").encode(),
    "document in a list": json.dumps([{**HEADER, "messages": [USER]}], indent=2).encode(),
    "document with messages first": json.dumps({"messages": [USER, GEMINI], **HEADER}, indent=2).encode(),
    "document, empty object": b"{\n}",
    "compact document": line(COMPACT),
    "compact document without projectHash": line({**without("projectHash"), "messages": [USER, GEMINI]}),
    "compact document, messages first": line({"messages": [USER], **HEADER}),
    "compact document without messages": line(without("projectHash")),
    "compact document with duplicate ids": line({**HEADER, "messages": [USER, user("u1", "again")]}),
    "compact document with odd elements": line({**HEADER, "messages": [None, 1, {"id": 1}, USER]}),
    "compact document, then records": log(COMPACT, user("u2"), {"$set": {"summary": "s"}}),
    "compact document, byte order mark": BOM + line(COMPACT),
    "compact document, other key first": line({"colour": "red", **COMPACT}),
    "one message a line": b'{"sessionId":"s","messages":[\n' + line(USER) + b"\n]}",
    "logged prompts": line([{"sessionId": "s", "messageId": 0, "type": "user", "message": "x", "timestamp": AT}]),
    "saved history with a session id": line(
        {"sessionId": "s", "history": [{"role": "user", "parts": [{"text": "x"}]}]}
    ),
    "text": b"not a session at all\n",
    "a number": b"5",
    "null": b"null",
    "a string with a sessionId": b'"sessionId"',
    "zeros": b"\x00" * 64,
}

EDGES = {**LOGS, **DOCUMENTS}
