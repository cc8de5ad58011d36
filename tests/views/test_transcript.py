from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from tests.views.build import ROOT, START, added, call, message, notice, prompt

from pollux.model import (
    Attachment,
    Code,
    CodeResult,
    Fate,
    FunctionCall,
    FunctionResponse,
    Kind,
    Message,
    Origin,
    Text,
    TextDisplay,
    Thought,
    Tokens,
    Unknown,
)
from pollux.views.bodies import Input, Output
from pollux.views.excerpts import Excerpt
from pollux.views.transcript import (
    LABELS,
    Answer,
    Attached,
    Block,
    Branches,
    Detail,
    LeftOut,
    Notice,
    Options,
    Other,
    Prompt,
    Synthetic,
    Thinking,
    Tool,
    UsageBlock,
    blocks,
)

FULL = Options(Detail.FULL)
ALL = Options(branches=Branches.ALL)


def shown(*messages: Message, options: Options | None = None) -> list[Block]:
    return [*blocks(messages, options)]


def kinds(*messages: Message, options: Options | None = None) -> list[str]:
    return [type(block).__name__ for block in blocks(messages, options)]


def turn() -> tuple[Message, ...]:
    """Give a turn in which everything happens once."""
    return (
        added(Origin.SESSION_CONTEXT, "<session_context>x</session_context>"),
        prompt("Do it."),
        message(
            "On it.",
            thoughts=(Thought("First this.", "Plan"),),
            tool_calls=(call("read_file", {"file_path": "a"}),),
            tokens=Tokens(1, 0, 1, 0, 0, 2),
            model="gemini-3-pro",
        ),
        added(Origin.TOOL_RESPONSE, ""),
        message("Done."),
        notice("Saved."),
    )


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (Options(Detail.PROMPTS, thoughts=True), ["Prompt"]),
        (Options(Detail.DIALOGUE), ["Prompt", "Answer", "Answer"]),
        (Options(Detail.DIALOGUE, thoughts=True), ["Prompt", "Thinking", "Answer", "Answer"]),
        (Options(), ["Synthetic", "Prompt", "Answer", "Tool", "Answer", "Notice"]),
        (Options(thoughts=True), ["Synthetic", "Prompt", "Thinking", "Answer", "Tool", "Answer", "Notice"]),
        (FULL, ["Synthetic", "Prompt", "Thinking", "Answer", "Tool", "UsageBlock", "Answer", "Notice"]),
        (
            Options(Detail.FULL, thoughts=False),
            ["Synthetic", "Prompt", "Answer", "Tool", "UsageBlock", "Answer", "Notice"],
        ),
    ],
)
def test_each_detail_shows_its_part(options: Options, expected: list[str]) -> None:
    assert kinds(*turn(), options=options) == expected


def test_blocks_come_one_message_at_a_time() -> None:
    seen: list[int] = []

    def messages() -> Iterator[Message]:
        for number in range(3):
            seen.append(number)
            yield prompt(str(number))

    found = blocks(messages())
    next(found)
    assert seen == [0]


def test_a_prompt_is_what_was_typed() -> None:
    picture = Attachment("image/png", 10)
    sent = prompt("Look @a", "\n--- Content ---\nsecret", picture, display=(Text("Look @a"),))
    first, second = shown(sent)
    assert first == Prompt("m", START, Fate.ACTIVE, Origin.HUMAN, Excerpt("Look @a"), (picture,))
    assert isinstance(second, Synthetic)
    assert (second.label, second.text.hidden) == ("sent along with the prompt", "2 lines, 22 characters")
    assert shown(sent, options=FULL)[1].text == Excerpt("--- Content ---\nsecret")  # type: ignore[union-attr]
    assert kinds(sent, options=Options(Detail.DIALOGUE)) == ["Prompt"]
    assert kinds(prompt("same", display=(Text("same"),))) == ["Prompt"]


def test_a_pasted_log_is_shortened_only_in_normal_detail() -> None:
    log = "\n".join("line" for _ in range(1000))
    hidden = [shown(prompt(log), options=Options(detail))[0].text.hidden for detail in Detail]  # type: ignore[union-attr]
    assert hidden == ["", "", "920 more lines, 4,601 characters", ""]


def test_the_task_of_an_agent_is_a_prompt_but_not_a_human_s() -> None:
    for origin in (Origin.AGENT_PROMPT, Origin.LOADED):
        task = added(origin, "Find it.")
        assert kinds(task) == ["Prompt"]
        assert kinds(task, options=Options(Detail.PROMPTS)) == []


def test_an_empty_message_is_no_block_unless_a_human_sent_it() -> None:
    assert kinds(message(""), message(), message(" \n"), notice("")) == []
    assert kinds(prompt("")) == ["Prompt"]
    assert kinds(notice(""), options=FULL) == ["Notice"]


def test_an_answer_is_one_block_between_its_attachments() -> None:
    picture = Attachment("image/png", 10)
    parts = ("One ", Thought("hm"), "sentence.\n", FunctionCall("1", "x", {}), picture, "More.")
    assert shown(message(*parts, FunctionResponse("1", "x", {}), model="m1")) == [
        Answer("m", START, Fate.ACTIVE, "m1", "One sentence."),
        Attached("m", START, Fate.ACTIVE, picture),
        Answer("m", START, Fate.ACTIVE, "m1", "More."),
    ]
    assert kinds(message(picture, "Words."), options=Options(Detail.DIALOGUE)) == ["Answer"]


def test_thoughts_are_not_told_twice() -> None:
    later = START + timedelta(seconds=5)
    thoughts = (Thought("A", "S", later), Thought("", ""))
    options = Options(thoughts=True)
    assert shown(message(Thought("**S** A"), thoughts=thoughts), options=options) == [
        Thinking("m", later, Fate.ACTIVE, None, "S", "A")
    ]
    assert shown(message(Thought("alone")), options=options) == [Thinking("m", START, Fate.ACTIVE, None, "", "alone")]


def test_a_tool_block_has_all_of_the_call() -> None:
    picture = Attachment("image/png", 10)
    made = call("run_shell_command", {"command": "x"}, exit_code=2, at=START, attachments=(picture,), agent_id="a")
    (block,) = shown(message(tool_calls=(made,)), options=Options(root=ROOT))
    assert isinstance(block, Tool)
    assert (block.call_id, block.status, block.exit_code, block.is_failed) == ("c", "success", 2, True)
    assert (block.attachments, block.agent_id) == ((picture,), "a")


def test_code_run_by_the_api_is_told_like_a_tool() -> None:
    code, result, bad = shown(
        message(Code("PYTHON", "1+1"), CodeResult("OUTCOME_OK", "2"), CodeResult("OUTCOME_FAILED", "no"))
    )
    assert isinstance(code, Tool)
    assert isinstance(result, Tool)
    assert isinstance(bad, Tool)
    assert code.bodies == (Input(Excerpt("1+1"), "python"),)
    assert result.bodies == (Output(Excerpt("2")),)
    assert (bad.status, bad.is_failed, bad.summary.outcome) == ("error", True, "failed")


def test_an_unknown_part_is_shown_as_it_is() -> None:
    for sender in (message, prompt):
        assert Other("m", START, Fate.ACTIVE, Excerpt('{\n  "x": 1\n}')) in shown(sender(Unknown({"x": 1})))


def test_a_message_of_unknown_kind_is_shown_as_a_notice() -> None:
    strange = message("?", kind=Kind.UNKNOWN)
    assert shown(strange) == [Notice("m", START, Fate.ACTIVE, Kind.UNKNOWN, Excerpt("?"))]
    assert kinds(strange, options=Options(Detail.DIALOGUE)) == []


def test_what_the_client_adds_is_folded() -> None:
    shell = "I ran the following shell command:\n```sh\nls\n```\n\nThis produced the following result:\n```\na\nb\n```"
    cases = {
        Origin.SESSION_CONTEXT: ("<session_context>\nx\n</session_context>", "", "3 lines, 38 characters", ""),
        Origin.HOOK_CONTEXT: ("<hook_context>be nice</hook_context>", "be nice", "1 line, 36 characters", ""),
        Origin.SHELL_MODE: (shell, "ls", "", "a\nb\n"),
        Origin.CONTINUE: ("Please continue.", "Please continue.", "", ""),
        Origin.SYNTHETIC: ("Got it.", "Got it.", "", ""),
        Origin.IDE_CONTEXT: ("Here is", "", "1 line, 7 characters", ""),
    }
    for origin, (text, summary, hidden, head) in cases.items():
        (block,) = shown(added(origin, text))
        assert isinstance(block, Synthetic)
        assert (block.origin, block.label, block.summary) == (origin, LABELS[origin], summary)
        assert (block.text.hidden, block.text.head.rstrip()) == (hidden, head.rstrip())
        (whole,) = shown(added(origin, text), options=FULL)
        assert isinstance(whole, Synthetic)
        assert whole.text == Excerpt(text)


def test_every_origin_has_a_label_and_a_place() -> None:
    for origin in Origin:
        assert LABELS[origin]
        assert len(kinds(added(origin, "x"), options=FULL)) == (origin is not Origin.TOOL_RESPONSE)


def test_what_was_left_out_is_counted_where_it_was() -> None:
    gone = Fate.REWOUND
    timeline = (
        prompt("A"),
        prompt("B", fate=gone),
        message("b", fate=gone),
        added(Origin.TOOL_RESPONSE, "", fate=gone),
        notice("n", fate=gone),
        prompt("C", fate=Fate.COMPRESSED),
        prompt("D"),
        prompt("E", fate=Fate.ROLLED_BACK),
    )
    found = shown(*timeline)
    assert [block.words if isinstance(block, LeftOut) else block.text.head for block in found] == [  # type: ignore[union-attr]
        "A",
        "3 messages rewound",
        "1 message compressed",
        "D",
        "1 message rolled back",
    ]
    assert [block.fate for block in shown(*timeline, options=ALL)] == [
        Fate.ACTIVE,
        *[Fate.REWOUND] * 3,
        Fate.COMPRESSED,
        Fate.ACTIVE,
        Fate.ROLLED_BACK,
    ]


def test_a_stretch_goes_on_over_what_is_not_shown() -> None:
    gone = prompt("x", fate=Fate.REWOUND)
    hidden = added(Origin.TOOL_RESPONSE, "")
    assert shown(gone, hidden, gone) == [LeftOut(Fate.REWOUND, 2)]
    assert shown(added(Origin.SESSION_CONTEXT, "x", fate=Fate.COMPRESSED), prompt("y"))[0] == Prompt(
        "m", START, Fate.ACTIVE, Origin.HUMAN, Excerpt("y")
    )


def test_usage_is_told_of_calls_without_words_too() -> None:
    tokens = Tokens(5, 0, 1, 0, 0, 6)
    assert shown(message(tokens=tokens, model="m1"), options=FULL) == [
        UsageBlock("m", START, Fate.ACTIVE, "m1", tokens)
    ]


def test_a_notice_can_hold_a_recording() -> None:
    sound = Attachment("audio/wav", 10)
    heard = message("Binary", sound, kind=Kind.INFO, origin=Origin.NOTICE)
    assert kinds(heard) == ["Notice", "Attached"]


def test_in_full_nothing_is_shortened() -> None:
    text = "\n".join(str(number) for number in range(5000))
    made = call("run_shell_command", {"command": "seq"}, display=TextDisplay(text))
    (block,) = shown(message(tool_calls=(made,)), options=FULL)
    assert isinstance(block, Tool)
    assert block.bodies == (Output(Excerpt(text)),)
