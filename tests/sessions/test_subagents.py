from __future__ import annotations

from pathlib import Path

from tests.builders import (
    NAME,
    SESSION,
    Wire,
    at,
    call,
    chats,
    document,
    gemini,
    header,
    home,
    log,
    notice,
    put,
    user,
)

from pollux.model import Origin
from pollux.sessions import subagents
from pollux.sessions.grouping import OpenSession, bundles, open_bundle, open_file
from pollux.sessions.locate import locate

FLAT = "session-2026-11-15T19-31-6ece72aa"


def invoke(id_: str, prompt: str = "look around", **more: object) -> Wire:
    return call(id_, "invoke_agent", args={"agent_name": "generalist", "prompt": prompt}, **more)


def linked(root: Path) -> dict[str, OpenSession]:
    (bundle,) = bundles(locate([home(root)]).files)
    found, _ = open_bundle(bundle, lambda _file, _id8: None)
    subagents.link(found)
    for group in found:
        subagents.mark_prompts(group)
    return {group.id: group for group in found}


def origins(group: OpenSession) -> list[Origin]:
    return [entry.origin for entry in group.entries]


def nested(root: Path, name: str, *records: object, **fields: object) -> None:
    put(chats(root) / SESSION / f"{name}.jsonl", log(header(name, kind="subagent", **fields), *records))


def test_a_call_that_names_its_agent(tmp_path: Path) -> None:
    calls = [invoke("c1", agentId="a1"), invoke("c2", agentId="a2")]
    put(chats(tmp_path) / f"{NAME}.jsonl", log(header(), user(), gemini("g1", "", toolCalls=calls)))
    nested(tmp_path, "a2", user("p2", "look around"))
    nested(tmp_path, "a1", user("p1", "look around"))
    found = linked(tmp_path)
    assert [(found[one].parent, found[one].parent_call) for one in ("a1", "a2")] == [(SESSION, "c1"), (SESSION, "c2")]
    assert origins(found["a1"]) == [Origin.AGENT_PROMPT]
    assert origins(found[SESSION]) == [Origin.HUMAN, Origin.MODEL]


def test_a_call_that_names_the_file(tmp_path: Path) -> None:
    put(chats(tmp_path) / f"{NAME}.jsonl", log(header(), gemini("g1", "", toolCalls=[invoke("c1", agentId="abc123")])))
    put(chats(tmp_path) / SESSION / "abc123.jsonl", log(header("another-id", kind="subagent"), user()))
    assert linked(tmp_path)["another-id"].parent_call == "c1"


def test_an_agent_of_an_agent(tmp_path: Path) -> None:
    put(chats(tmp_path) / f"{NAME}.jsonl", log(header(), gemini("g1", "", toolCalls=[invoke("c1", agentId="a1")])))
    nested(tmp_path, "a1", user("p1"), gemini("g2", "", toolCalls=[invoke("c2", agentId="a2")]))
    nested(tmp_path, "a2", user("p2"))
    found = linked(tmp_path)
    assert (found["a2"].parent, found["a2"].parent_call) == ("a1", "c2")
    assert found["a1"].parent == SESSION


def test_calls_without_a_name_are_matched_by_their_text(tmp_path: Path) -> None:
    calls = [
        call("c1", "codebase_investigator", args={"objective": "find the tests"}),
        call("c2", "codebase_investigator", args={"objective": "find the docs", "odd": 7}),
        call("c3", "codebase_investigator", args="odd"),
        call("c4", "read_file"),
    ]
    put(chats(tmp_path) / f"{NAME}.json", document(user(), gemini("g1", "", toolCalls=calls)))
    for minute, words in ((31, "docs"), (32, "tests")):
        text = f"Investigate: find the {words} please"
        data = document(user(f"p{minute}", text), kind="subagent", startTime=at(60 * minute))
        put(chats(tmp_path) / f"session-2026-11-15T19-{minute}-6ece72aa.json", data)
    found = linked(tmp_path)
    by_name = {group.id.rpartition("T")[2][:5]: group.parent_call for group in found.values() if group.parent}
    assert by_name == {"19-31": "c2", "19-32": "c1"}


def test_without_words_the_order_decides(tmp_path: Path) -> None:
    calls = [call("c1", "generalist", args={"request": "x1"}), call("c2", "generalist", args={"request": "x2"})]
    put(chats(tmp_path) / f"{NAME}.json", document(user(), gemini("g1", "", toolCalls=calls)))
    for name, second in (("later", 9), ("early", 5), ("third", 20)):
        put(chats(tmp_path) / SESSION / f"{name}.json", document(sessionId=name, kind="subagent", startTime=at(second)))
    found = linked(tmp_path)
    assert [found[one].parent_call for one in ("early", "later", "third")] == ["c1", "c2", None]


def test_an_agent_without_its_session(tmp_path: Path) -> None:
    nested(tmp_path, "a1", user("p1"))
    found = linked(tmp_path)
    assert (found["a1"].parent, found["a1"].parent_call) == (SESSION, None)


def test_only_the_first_prompt_of_an_agent_is_one(tmp_path: Path) -> None:
    nested(tmp_path, "a1", user("p1"), user("p2", "more"))
    assert origins(linked(tmp_path)["a1"]) == [Origin.AGENT_PROMPT, Origin.CONTINUE], "nobody types into an agent"
    nested(tmp_path, "a1")
    assert origins(linked(tmp_path)["a1"]) == []


def test_an_agent_that_shares_the_file_of_its_session(tmp_path: Path) -> None:
    """Up to 0.33 the turns of an agent stand in its parent's file; the call is recorded when they are over."""
    told = call("c1", "codebase_investigator", args={"objective": "find the tests"})
    path = put(
        tmp_path / f"{NAME}.json",
        document(
            user("u1", "what is there"),
            user("p1", "Your task:\n<objective>\nfind the tests\n</objective>"),
            gemini("g1", "they are in tests/"),
            gemini("g2", "", toolCalls=[call("c0"), told]),
            user("u2", "find the tests"),
            gemini("g3", "", toolCalls=[told]),
        ),
    )
    group = open_file(path)
    subagents.mark_prompts(group)
    assert [entry.id for entry in group.entries if entry.origin == Origin.AGENT_PROMPT] == ["p1"]


def test_a_prompt_with_the_words_of_a_call_was_typed(tmp_path: Path) -> None:
    records = [user("u0", "hello"), gemini("g0"), user("u1", "Let somebody look around, please.")]
    named = gemini("g1", "", toolCalls=[invoke("c1", agentId="a1")])
    put(chats(tmp_path) / f"{NAME}.jsonl", log(header(), *records, named))
    assert origins(linked(tmp_path)[SESSION])[2] == Origin.HUMAN
    unnamed = gemini("g1", "", toolCalls=[call("c1", "generalist", args={"request": "look around"})])
    put(chats(tmp_path) / f"{NAME}.jsonl", log(header(), *records, unnamed))
    assert origins(linked(tmp_path)[SESSION])[2] == Origin.HUMAN, "the words stand in the middle of a sentence"


def test_what_was_typed_before_a_call_was_typed(tmp_path: Path) -> None:
    told = call("c1", "codebase_investigator", args={"objective": "tests"})
    path = put(
        tmp_path / f"{NAME}.json", document(user("u1", "find the tests now"), gemini("g1", "", toolCalls=[told]))
    )
    group = open_file(path)
    subagents.mark_prompts(group)
    assert origins(group) == [Origin.HUMAN, Origin.MODEL]


def test_imported_prompts_were_typed_elsewhere(tmp_path: Path) -> None:
    imported = notice("import-1794771361910", "Imported session from /tmp/x.jsonl", second=40)
    records = (imported, user("u1", "one"), gemini("g1"), user("u2", "two", second=50))
    path = put(tmp_path / f"{NAME}.jsonl", log(header(startTime=at(40)), *records))
    group = open_file(path)
    subagents.mark_prompts(group)
    assert origins(group) == [Origin.NOTICE, Origin.LOADED, Origin.MODEL, Origin.HUMAN]


def test_calls_of_no_answer_tell_nothing(tmp_path: Path) -> None:
    odd = user("u2", "find it", toolCalls=[call("c1", "generalist", args={"request": "find"})])
    path = put(tmp_path / f"{NAME}.json", document(user("u0", "a"), user("u1", "find it all"), odd | {"type": "info"}))
    group = open_file(path)
    subagents.mark_prompts(group)
    assert origins(group)[:2] == [Origin.HUMAN, Origin.HUMAN]
