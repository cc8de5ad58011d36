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
    groups, _ = open_bundle(bundle, lambda _file, _id8: None)
    subagents.link(groups)
    for group in groups:
        subagents.mark_prompts(group)
    return {group.id: group for group in groups}


def origins(group: OpenSession) -> list[Origin]:
    return [entry.origin for entry in group.entries]


def put_subagent(root: Path, name: str, *records: object, **fields: object) -> None:
    put(chats(root) / SESSION / f"{name}.jsonl", log(header(name, kind="subagent", **fields), *records))


def test_subagent_is_linked_by_the_agent_id_of_its_call(tmp_path: Path) -> None:
    calls = [invoke("c1", agentId="a1"), invoke("c2", agentId="a2")]
    put(chats(tmp_path) / f"{NAME}.jsonl", log(header(), user(), gemini("g1", "", toolCalls=calls)))
    put_subagent(tmp_path, "a2", user("p2", "look around"))
    put_subagent(tmp_path, "a1", user("p1", "look around"))
    groups = linked(tmp_path)
    assert [(groups[id_].parent, groups[id_].parent_call) for id_ in ("a1", "a2")] == [(SESSION, "c1"), (SESSION, "c2")]
    assert origins(groups["a1"]) == [Origin.AGENT_PROMPT]
    assert origins(groups[SESSION]) == [Origin.HUMAN, Origin.MODEL]


def test_subagent_is_linked_by_its_file_name(tmp_path: Path) -> None:
    put(chats(tmp_path) / f"{NAME}.jsonl", log(header(), gemini("g1", "", toolCalls=[invoke("c1", agentId="abc123")])))
    put(chats(tmp_path) / SESSION / "abc123.jsonl", log(header("another-id", kind="subagent"), user()))
    assert linked(tmp_path)["another-id"].parent_call == "c1"


def test_subagent_of_a_subagent_is_linked_to_its_parent(tmp_path: Path) -> None:
    put(chats(tmp_path) / f"{NAME}.jsonl", log(header(), gemini("g1", "", toolCalls=[invoke("c1", agentId="a1")])))
    put_subagent(tmp_path, "a1", user("p1"), gemini("g2", "", toolCalls=[invoke("c2", agentId="a2")]))
    put_subagent(tmp_path, "a2", user("p2"))
    groups = linked(tmp_path)
    assert (groups["a2"].parent, groups["a2"].parent_call) == ("a1", "c2")
    assert groups["a1"].parent == SESSION


def test_calls_without_an_agent_id_are_matched_by_prompt(tmp_path: Path) -> None:
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
    groups = linked(tmp_path)
    by_name = {group.id.rpartition("T")[2][:5]: group.parent_call for group in groups.values() if group.parent}
    assert by_name == {"19-31": "c2", "19-32": "c1"}


def test_calls_without_a_matching_prompt_are_matched_in_order(tmp_path: Path) -> None:
    calls = [call("c1", "generalist", args={"request": "x1"}), call("c2", "generalist", args={"request": "x2"})]
    put(chats(tmp_path) / f"{NAME}.json", document(user(), gemini("g1", "", toolCalls=calls)))
    for name, second in (("later", 9), ("early", 5), ("third", 20)):
        put(chats(tmp_path) / SESSION / f"{name}.json", document(sessionId=name, kind="subagent", startTime=at(second)))
    groups = linked(tmp_path)
    assert [groups[id_].parent_call for id_ in ("early", "later", "third")] == ["c1", "c2", None]


def test_subagent_without_its_session_has_no_parent_call(tmp_path: Path) -> None:
    put_subagent(tmp_path, "a1", user("p1"))
    groups = linked(tmp_path)
    assert (groups["a1"].parent, groups["a1"].parent_call) == (SESSION, None)


def test_only_the_first_prompt_of_a_subagent_is_an_agent_prompt(tmp_path: Path) -> None:
    put_subagent(tmp_path, "a1", user("p1"), user("p2", "more"))
    assert origins(linked(tmp_path)["a1"]) == [Origin.AGENT_PROMPT, Origin.CONTINUE], (
        "later prompts of a subagent are not typed by a user"
    )
    put_subagent(tmp_path, "a1")
    assert origins(linked(tmp_path)["a1"]) == []


def test_agent_prompt_is_found_in_the_file_of_its_session(tmp_path: Path) -> None:
    """Up to 0.33 the client records the turns of an agent in its parent's file, and the call after them."""
    agent_call = call("c1", "codebase_investigator", args={"objective": "find the tests"})
    path = put(
        tmp_path / f"{NAME}.json",
        document(
            user("u1", "what is there"),
            user("p1", "Your task:\n<objective>\nfind the tests\n</objective>"),
            gemini("g1", "they are in tests/"),
            gemini("g2", "", toolCalls=[call("c0"), agent_call]),
            user("u2", "find the tests"),
            gemini("g3", "", toolCalls=[agent_call]),
        ),
    )
    group = open_file(path)
    subagents.mark_prompts(group)
    assert [entry.id for entry in group.entries if entry.origin == Origin.AGENT_PROMPT] == ["p1"]


def test_user_prompt_that_contains_the_words_of_a_call_is_human(tmp_path: Path) -> None:
    records = [user("u0", "hello"), gemini("g0"), user("u1", "Let somebody look around, please.")]
    named = gemini("g1", "", toolCalls=[invoke("c1", agentId="a1")])
    put(chats(tmp_path) / f"{NAME}.jsonl", log(header(), *records, named))
    assert origins(linked(tmp_path)[SESSION])[2] == Origin.HUMAN
    unnamed = gemini("g1", "", toolCalls=[call("c1", "generalist", args={"request": "look around"})])
    put(chats(tmp_path) / f"{NAME}.jsonl", log(header(), *records, unnamed))
    assert origins(linked(tmp_path)[SESSION])[2] == Origin.HUMAN, "the words are in the middle of a sentence"


def test_user_prompt_before_a_call_with_its_words_is_human(tmp_path: Path) -> None:
    agent_call = call("c1", "codebase_investigator", args={"objective": "tests"})
    path = put(
        tmp_path / f"{NAME}.json", document(user("u1", "find the tests now"), gemini("g1", "", toolCalls=[agent_call]))
    )
    group = open_file(path)
    subagents.mark_prompts(group)
    assert origins(group) == [Origin.HUMAN, Origin.MODEL]


def test_prompts_of_an_import_are_loaded(tmp_path: Path) -> None:
    imported = notice("import-1794771361910", "Imported session from /tmp/x.jsonl", second=40)
    records = (imported, user("u1", "one"), gemini("g1"), user("u2", "two", second=50))
    path = put(tmp_path / f"{NAME}.jsonl", log(header(startTime=at(40)), *records))
    group = open_file(path)
    subagents.mark_prompts(group)
    assert origins(group) == [Origin.NOTICE, Origin.LOADED, Origin.MODEL, Origin.HUMAN]


def test_calls_outside_answers_do_not_mark_prompts(tmp_path: Path) -> None:
    odd = user("u2", "find it", toolCalls=[call("c1", "generalist", args={"request": "find"})])
    path = put(tmp_path / f"{NAME}.json", document(user("u0", "a"), user("u1", "find it all"), odd | {"type": "info"}))
    group = open_file(path)
    subagents.mark_prompts(group)
    assert origins(group)[:2] == [Origin.HUMAN, Origin.HUMAN]
