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
    AnswerBlock,
    AttachmentBlock,
    Block,
    Branches,
    Detail,
    HiddenBlock,
    NoticeBlock,
    PromptBlock,
    SyntheticBlock,
    ThoughtBlock,
    ToolBlock,
    TranscriptOptions,
    UnknownBlock,
    UsageBlock,
    blocks,
)

FULL = TranscriptOptions(Detail.FULL)
ALL = TranscriptOptions(branches=Branches.ALL)


def shown(*messages: Message, options: TranscriptOptions | None = None) -> list[Block]:
    return [*blocks(messages, options)]


def kinds(*messages: Message, options: TranscriptOptions | None = None) -> list[str]:
    return [type(block).__name__.removesuffix("Block") for block in blocks(messages, options)]


def turn() -> tuple[Message, ...]:
    """Return a turn with one message of every kind."""
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
        (TranscriptOptions(Detail.PROMPTS, thoughts=True), ["Prompt"]),
        (TranscriptOptions(Detail.DIALOGUE), ["Prompt", "Answer", "Answer"]),
        (TranscriptOptions(Detail.DIALOGUE, thoughts=True), ["Prompt", "Thought", "Answer", "Answer"]),
        (TranscriptOptions(), ["Synthetic", "Prompt", "Answer", "Tool", "Answer", "Notice"]),
        (TranscriptOptions(thoughts=True), ["Synthetic", "Prompt", "Thought", "Answer", "Tool", "Answer", "Notice"]),
        (FULL, ["Synthetic", "Prompt", "Thought", "Answer", "Tool", "Usage", "Answer", "Notice"]),
        (
            TranscriptOptions(Detail.FULL, thoughts=False),
            ["Synthetic", "Prompt", "Answer", "Tool", "Usage", "Answer", "Notice"],
        ),
    ],
)
def test_each_detail_shows_its_part(options: TranscriptOptions, expected: list[str]) -> None:
    assert kinds(*turn(), options=options) == expected


def test_blocks_are_yielded_one_message_at_a_time() -> None:
    seen: list[int] = []

    def messages() -> Iterator[Message]:
        for number in range(3):
            seen.append(number)
            yield prompt(str(number))

    yielded = blocks(messages())
    next(yielded)
    assert seen == [0]


def test_prompt_is_the_typed_text() -> None:
    picture = Attachment("image/png", 10)
    sent = prompt("Look @a", "\n--- Content ---\nsecret", picture, display=(Text("Look @a"),))
    first, second = shown(sent)
    assert first == PromptBlock("m", START, Fate.ACTIVE, Origin.HUMAN, Excerpt("Look @a"), (picture,))
    assert isinstance(second, SyntheticBlock)
    assert (second.label, second.text.hidden) == ("sent along with the prompt", "2 lines, 22 characters")
    assert shown(sent, options=FULL)[1].text == Excerpt("--- Content ---\nsecret")  # type: ignore[union-attr]
    assert kinds(sent, options=TranscriptOptions(Detail.DIALOGUE)) == ["Prompt"]
    assert kinds(prompt("same", display=(Text("same"),))) == ["Prompt"]


def test_pasted_log_is_shortened_only_in_normal_detail() -> None:
    log = "\n".join("line" for _ in range(1000))
    hidden = [shown(prompt(log), options=TranscriptOptions(detail))[0].text.hidden for detail in Detail]  # type: ignore[union-attr]
    assert hidden == ["", "", "920 more lines, 4,601 characters", ""]


def test_task_of_an_agent_is_a_prompt_of_another_origin() -> None:
    for origin in (Origin.AGENT_PROMPT, Origin.LOADED):
        task = added(origin, "Find it.")
        assert kinds(task) == ["Prompt"]
        assert kinds(task, options=TranscriptOptions(Detail.PROMPTS)) == []


def test_empty_message_has_a_block_only_if_a_human_sent_it() -> None:
    assert kinds(message(""), message(), message(" \n"), notice("")) == []
    assert kinds(prompt("")) == ["Prompt"]
    assert kinds(notice(""), options=FULL) == ["Notice"]


def test_answer_is_one_block_between_attachments() -> None:
    picture = Attachment("image/png", 10)
    parts = ("One ", Thought("hm"), "sentence.\n", FunctionCall("1", "x", {}), picture, "More.")
    assert shown(message(*parts, FunctionResponse("1", "x", {}), model="m1")) == [
        AnswerBlock("m", START, Fate.ACTIVE, "m1", "One sentence."),
        AttachmentBlock("m", START, Fate.ACTIVE, picture),
        AnswerBlock("m", START, Fate.ACTIVE, "m1", "More."),
    ]
    assert kinds(message(picture, "Words."), options=TranscriptOptions(Detail.DIALOGUE)) == ["Answer"]


def test_thoughts_are_shown_once() -> None:
    later = START + timedelta(seconds=5)
    thoughts = (Thought("A", "S", later), Thought("", ""))
    options = TranscriptOptions(thoughts=True)
    assert shown(message(Thought("**S** A"), thoughts=thoughts), options=options) == [
        ThoughtBlock("m", later, Fate.ACTIVE, None, "S", "A")
    ]
    assert shown(message(Thought("alone")), options=options) == [
        ThoughtBlock("m", START, Fate.ACTIVE, None, "", "alone")
    ]


def test_tool_block_has_all_fields_of_the_call() -> None:
    picture = Attachment("image/png", 10)
    made = call("run_shell_command", {"command": "x"}, exit_code=2, at=START, attachments=(picture,), agent_id="a")
    (block,) = shown(message(tool_calls=(made,)), options=TranscriptOptions(root=ROOT))
    assert isinstance(block, ToolBlock)
    assert (block.call_id, block.status, block.exit_code, block.is_failed) == ("c", "success", 2, True)
    assert (block.attachments, block.agent_id) == ((picture,), "a")


def test_code_run_by_the_api_is_shown_as_a_tool() -> None:
    code, result, bad = shown(
        message(Code("PYTHON", "1+1"), CodeResult("OUTCOME_OK", "2"), CodeResult("OUTCOME_FAILED", "no"))
    )
    assert isinstance(code, ToolBlock)
    assert isinstance(result, ToolBlock)
    assert isinstance(bad, ToolBlock)
    assert code.bodies == (Input(Excerpt("1+1"), "python"),)
    assert result.bodies == (Output(Excerpt("2")),)
    assert (bad.status, bad.is_failed, bad.summary.outcome) == ("error", True, "failed")


def test_unknown_part_is_shown_as_json() -> None:
    for sender in (message, prompt):
        assert UnknownBlock("m", START, Fate.ACTIVE, Excerpt('{\n  "x": 1\n}')) in shown(sender(Unknown({"x": 1})))


def test_message_of_unknown_kind_is_a_notice() -> None:
    strange = message("?", kind=Kind.UNKNOWN)
    assert shown(strange) == [NoticeBlock("m", START, Fate.ACTIVE, Kind.UNKNOWN, Excerpt("?"))]
    assert kinds(strange, options=TranscriptOptions(Detail.DIALOGUE)) == []


def test_texts_added_by_the_client_are_folded() -> None:
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
        assert isinstance(block, SyntheticBlock)
        assert (block.origin, block.label, block.summary) == (origin, LABELS[origin], summary)
        assert (block.text.hidden, block.text.head.rstrip()) == (hidden, head.rstrip())
        (full,) = shown(added(origin, text), options=FULL)
        assert isinstance(full, SyntheticBlock)
        assert full.text == Excerpt(text)


def test_every_origin_has_a_label_and_a_branch_of_the_match() -> None:
    for origin in Origin:
        assert LABELS[origin]
        assert len(kinds(added(origin, "x"), options=FULL)) == (origin is not Origin.TOOL_RESPONSE)


def test_dropped_messages_are_counted_at_their_place() -> None:
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
    result = shown(*timeline)
    assert [block.text if isinstance(block, HiddenBlock) else block.text.head for block in result] == [  # type: ignore[union-attr]
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


def test_dropped_messages_are_counted_across_messages_without_blocks() -> None:
    gone = prompt("x", fate=Fate.REWOUND)
    hidden = added(Origin.TOOL_RESPONSE, "")
    assert shown(gone, hidden, gone) == [HiddenBlock(Fate.REWOUND, 2)]
    assert shown(added(Origin.SESSION_CONTEXT, "x", fate=Fate.COMPRESSED), prompt("y"))[0] == PromptBlock(
        "m", START, Fate.ACTIVE, Origin.HUMAN, Excerpt("y")
    )


def test_usage_is_shown_for_calls_without_text() -> None:
    tokens = Tokens(5, 0, 1, 0, 0, 6)
    assert shown(message(tokens=tokens, model="m1"), options=FULL) == [
        UsageBlock("m", START, Fate.ACTIVE, "m1", tokens)
    ]


def test_notice_can_have_an_attachment() -> None:
    sound = Attachment("audio/wav", 10)
    heard = message("Binary", sound, kind=Kind.INFO, origin=Origin.NOTICE)
    assert kinds(heard) == ["Notice", "Attachment"]


def test_full_detail_shortens_nothing() -> None:
    text = "\n".join(str(number) for number in range(5000))
    made = call("run_shell_command", {"command": "seq"}, display=TextDisplay(text))
    (block,) = shown(message(tool_calls=(made,)), options=FULL)
    assert isinstance(block, ToolBlock)
    assert block.bodies == (Output(Excerpt(text)),)
