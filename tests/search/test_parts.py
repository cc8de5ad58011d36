"""Which texts of a message are searched, and what of them is indexed."""

from __future__ import annotations

import base64
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import builders

from pollux.formats.messages import message
from pollux.model import Fate, Kind, Message, Origin
from pollux.search.parts import SEPARATOR, PartKind, PartText, json_text, limited, message_parts


def parts_of(wire: dict[str, Any], origin: Origin = Origin.MODEL) -> dict[str, str]:
    return {part.kind.name.lower(): part.text for part in message_parts(message(wire, origin=origin))}


def output_of(**fields: Any) -> str:  # noqa: ANN401  as on the wire
    call = builders.call(**fields)
    return parts_of(builders.gemini("g1", "", toolCalls=[call])).get("output", "")


def test_each_kind_has_its_text() -> None:
    thoughts = [{"subject": "Plan", "description": "look at the parser"}]
    call = builders.call("c1", "run_shell_command", args={"command": "make lint", "dir_path": "src"})
    answer = builders.gemini("g1", "It is fixed", thoughts=thoughts, toolCalls=[call])
    assert parts_of(answer) == {
        "answer": "It is fixed",
        "thoughts": "Plan\nlook at the parser",
        "args": "make lint\nsrc",
        "output": "text of the file",
    }


def test_parts_are_in_the_order_of_their_kinds() -> None:
    answer = message(builders.gemini("g1", "x", toolCalls=[builders.call()]), origin=Origin.MODEL)
    kinds = [part.kind for part in message_parts(answer)]
    assert kinds == sorted(kinds)


@pytest.mark.parametrize(
    ("origin", "kind"),
    [
        (Origin.HUMAN, "prompt"),
        (Origin.LOADED, "prompt"),
        (Origin.SHELL_MODE, "prompt"),
        (Origin.AGENT_PROMPT, "prompt"),
        (Origin.SESSION_CONTEXT, "notice"),
        (Origin.HOOK_CONTEXT, "notice"),
        (Origin.STATE_SNAPSHOT, "notice"),
    ],
)
def test_the_origin_decides_about_a_user_message(origin: Origin, kind: str) -> None:
    assert parts_of(builders.user("u1", "hello"), origin) == {kind: "hello"}


@pytest.mark.parametrize("kind", ["info", "warning", "error"])
def test_a_message_of_the_client_is_a_notice(kind: str) -> None:
    assert parts_of(builders.notice(content="out of quota", kind=kind), Origin.NOTICE) == {"notice": "out of quota"}


def test_what_was_typed_is_searched_besides_what_was_sent() -> None:
    prompt = builders.user("u1", [{"text": "expanded command"}], displayContent=[{"text": "/fix it"}])
    assert parts_of(prompt, Origin.HUMAN) == {"prompt": "/fix it\nexpanded command"}
    prompt = builders.user(
        "u1", [{"text": "look at @a\n"}, {"text": "file a"}], displayContent=[{"text": "look at @a"}]
    )
    assert parts_of(prompt, Origin.HUMAN) == {"prompt": "look at @a\n\nfile a"}


def test_names_of_arguments_count_only_for_tools_of_others() -> None:
    args = {"file_path": "a.txt", "lines": [1, 2], "deep": {"on": True, "off": None}}
    own, other = (
        builders.gemini("g1", "", toolCalls=[builders.call("c", name, args=args)]) for name in ("glob", "x_y")
    )
    assert parts_of(own)["args"] == "a.txt\n1\n2\ntrue"
    assert parts_of(other)["args"] == "file_path: a.txt\nlines:\n1\n2\ndeep:\non: true"


def test_a_request_without_a_record_is_searched() -> None:
    assert parts_of(builders.gemini("g1", [builders.asks("c1", "glob", pattern="*.toml")])) == {"args": "*.toml"}


def test_code_of_the_model_is_part_of_its_answer() -> None:
    content = [{"executableCode": {"language": "PYTHON", "code": "1 + 1"}}, {"codeExecutionResult": {"output": "two"}}]
    assert parts_of(builders.gemini("g1", content)) == {"answer": "1 + 1\ntwo"}


def test_a_response_belongs_to_the_message_that_made_the_call() -> None:
    assert not parts_of(builders.user("u1", [builders.answers("c1")]), Origin.TOOL_RESPONSE)
    lost = {"functionResponse": {"name": "glob", "response": {"output": "a.toml"}}}
    assert parts_of(builders.user("u1", [lost]), Origin.TOOL_RESPONSE) == {"output": "output: a.toml"}


@pytest.mark.parametrize(
    ("display", "words"),
    [
        ("Found 3 files", "Found 3 files"),
        ({"fileDiff": "-old\n+new", "fileName": "a.py"}, "a.py\n-old\n+new"),
        ([[{"text": "FAIL"}, {"text": "ED"}], [{"text": "one"}]], "FAILED\none"),
        ({"todos": [{"description": "write tests", "status": "pending"}]}, "write tests"),
        ({"summary": "1 match", "matches": [{"filePath": "a.py", "lineNumber": 3, "line": "x = 1"}]}, "x = 1"),
        ({"summary": "2 files", "files": ["a.py", "b.py"]}, "2 files\na.py\nb.py"),
        ({"isSubagentProgress": True, "agentName": "tester", "result": "all green", "recentActivity": []}, "all green"),
        ({"somethingNew": {"inside": "unknown words"}}, "unknown words"),
    ],
)
def test_the_display_is_part_of_the_output(display: Any, words: str) -> None:  # noqa: ANN401
    text = output_of(resultDisplay=display)
    assert text.startswith("text of the file\n")
    assert words in text


def test_what_is_displayed_again_is_indexed_once() -> None:
    output = "first line\nsecond line\nthird"
    result = [{"functionResponse": {"id": "c1", "name": "x", "response": {"output": output}}}]
    assert output_of(result=result, resultDisplay="second line\nthird") == output
    screen = [[{"text": "first line  "}], [{"text": "only on the screen"}]]
    assert output_of(result=result, resultDisplay=screen) == f"{output}\nonly on the screen"


def test_errors_and_other_fields_of_a_response_are_output() -> None:
    response = {"error": "no such file", "hints": ["try ls"]}
    result = [{"functionResponse": {"id": "c1", "name": "x", "response": response}}]
    assert output_of(result=result) == "no such file\nhints:\ntry ls"


def test_several_calls_are_separated() -> None:
    calls = [builders.call("c1", "glob", args={"pattern": "a"}), builders.call("c2", "glob", args={"pattern": "b"})]
    assert parts_of(builders.gemini("g1", "", toolCalls=calls))["args"] == f"a{SEPARATOR}b"


def output(text: str) -> PartText:
    return PartText(PartKind.OUTPUT, text)


@pytest.mark.parametrize("kind", [PartKind.PROMPT, PartKind.ANSWER, PartKind.THOUGHTS, PartKind.NOTICE])
def test_what_people_and_models_write_has_no_limits(kind: PartKind) -> None:
    text = "word " * 50_000 + "aB3" * 100
    assert limited(PartText(kind, text)) == (text, False)


def test_ordinary_output_is_indexed_whole() -> None:
    text = "\n".join(f"src/app/module_{n}.py:{n}: error[E0308] 0x{n:08x} {n:040x}" for n in range(200))
    assert limited(output(text)) == (text, False)


def test_the_middle_of_a_long_output_is_left_out() -> None:
    text = "\n".join(f"line {n}" for n in range(10_000))
    indexed, is_cut = limited(output(text))
    assert is_cut
    assert indexed.startswith("line 0\nline 1\n")
    assert indexed.endswith("line 9998\nline 9999")
    assert "line 5000" not in indexed
    assert len(indexed) == (16 << 10) + (4 << 10) + 1


def test_each_call_has_limits_of_its_own() -> None:
    long = "\n".join(f"line {n}" for n in range(10_000))
    indexed, is_cut = limited(output(f"{long}{SEPARATOR}short one"))
    assert is_cut
    assert indexed.endswith(f"line 9999{SEPARATOR}short one")


def test_encoded_data_is_left_out_and_long_names_stay() -> None:
    encoded = base64.b64encode(random.Random(1).randbytes(300)).decode()  # noqa: S311
    path = "/very/long/path/" + "of-many-folders/" * 10
    digest = "0123456789abcdef" * 4
    indexed, is_cut = limited(output(f"key {encoded} end\n{path}\n{digest}"))
    assert is_cut
    assert "key" in indexed
    assert "end" in indexed
    assert path in indexed
    assert digest in indexed
    assert encoded[10:30] not in indexed


def test_a_long_line_is_indexed_at_both_ends() -> None:
    line = " ".join(f"w{n}" for n in range(1000))
    indexed, is_cut = limited(output(f"before\n{line}\nafter"))
    assert is_cut
    assert len(indexed) < 600
    assert {"before", "w0", "w999", "after"} <= set(indexed.split())
    assert "w500" not in indexed


@pytest.mark.parametrize(
    "line",
    [
        "00000000: 7f45 4c46 0201 0100 0000 0000 0000 0000  .ELF............",
        "00000000  7f 45 4c 46 02 01 01 00  00 00 00 00 00 00 00 00  |.ELF............|",
        "0000000 457f 464c 0102 0001 0000 0000 0000 0000",
    ],
)
def test_dumps_are_left_out(line: str) -> None:
    assert limited(output(f"$ xxd a.out\n{line}\n{line}\ndone")) == ("$ xxd a.out\ndone", True)


def test_a_table_of_words_is_no_dump() -> None:
    text = "deadbeef: feed cafe\nabcdef: bad dad fad cab"
    assert limited(output(f"{text}\n" * 3)) == (f"{text}\n" * 3, False)


@given(builders.values)
def test_any_value_has_a_text(value: object) -> None:
    text = json_text(value)  # type: ignore[arg-type]
    assert isinstance(text, str)


def test_deep_and_enormous_values_have_a_text() -> None:
    deep: Any = "bottom"
    for _ in range(100_000):
        deep = [deep]
    assert json_text(deep) == "bottom"
    assert json_text({"n": 10**5000}) == "n: "


@given(st.text(max_size=300))
def test_any_text_can_be_limited(text: str) -> None:
    indexed, is_cut = limited(output(text))
    assert (indexed != text) == is_cut


def test_a_message_without_text_has_no_parts() -> None:
    assert message_parts(Message("m", Kind.GEMINI, Origin.MODEL, Fate.ACTIVE, None)) == []
    assert parts_of(builders.gemini("g1", " \n")) == {}
