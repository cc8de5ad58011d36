from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pollux.model import Kind, Origin
from pollux.origins import one_line, origin_of, user_origin

CONTEXT = "<session_context>\nToday is Sunday.\n</session_context>"
HOOK = "<hook_context>be kind</hook_context>"
SNAPSHOT = "<state_snapshot>\nall of it\n</state_snapshot>"


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        (CONTEXT, Origin.SESSION_CONTEXT),
        ("<session_context> that never ends", Origin.SESSION_CONTEXT),
        ("This is the Gemini CLI. We are setting up the context for our chat.\nToday", Origin.SESSION_CONTEXT),
        ("- **Workspace Directories:**\n  - /a", Origin.SESSION_CONTEXT),
        (HOOK, Origin.HOOK_CONTEXT),
        (f" {HOOK}\n", Origin.HOOK_CONTEXT),
        (SNAPSHOT, Origin.STATE_SNAPSHOT),
        ("First, reason in your scratchpad. Then, generate the <state_snapshot>.", Origin.STATE_SNAPSHOT),
        ("I ran the following shell command:\n```sh\nls\n```", Origin.SHELL_MODE),
        ("Here is the user's editor context as a JSON object: {}", Origin.IDE_CONTEXT),
        ("Here is a summary of changes in the user's editor context: {}", Origin.IDE_CONTEXT),
        ("Please continue.", Origin.CONTINUE),
        ("System: Please continue.", Origin.CONTINUE),
        ("System: Potential loop detected. Details: x", Origin.CONTINUE),
        ("[System: You successfully executed a tool but returned an empty response. Go on.]", Origin.CONTINUE),
        (
            "Your task is to do a deep investigation of the codebase to find all relevant files\n</objective>",
            Origin.AGENT_PROMPT,
        ),
        ("", Origin.SYNTHETIC),
        (" \n ", Origin.SYNTHETIC),
    ],
)
def test_what_nobody_typed(text: str, origin: Origin) -> None:
    assert user_origin(text)[0] == origin
    assert origin_of("user", text) == origin


@pytest.mark.parametrize(
    "text",
    [
        "hello",
        "/not-a-command is what I typed",
        "? what is this",
        "何をしますか",
        "Please continue. And then stop.",
        "Why does it say <session_context> there?",
        "please continue.",
        "Your task is to do a deep investigation of the codebase to find all relevant files please",
        "😀",
    ],
)
def test_what_somebody_typed(text: str) -> None:
    assert user_origin(text) == (Origin.HUMAN, text)


@pytest.mark.parametrize(
    "text",
    [
        f"{CONTEXT}\n\nhello",
        f"{CONTEXT}hello",
        f"{HOOK}\n\nhello",
        f"hello\n\n{HOOK}",
        f"{CONTEXT}{HOOK}hello{HOOK}",
        "  hello \n",
    ],
)
def test_a_prompt_is_freed_of_what_the_client_added(text: str) -> None:
    assert user_origin(text) == (Origin.HUMAN, "hello")


def test_a_synthetic_text_behind_a_preamble() -> None:
    assert user_origin(f"{CONTEXT}Please continue.")[0] == Origin.CONTINUE
    assert user_origin(f"{CONTEXT}{SNAPSHOT}")[0] == Origin.SESSION_CONTEXT


def test_a_response_is_one_whatever_it_says() -> None:
    assert user_origin("hello", n_responses=1) == (Origin.TOOL_RESPONSE, "hello")


def test_media_alone_is_typed() -> None:
    assert user_origin("", has_media=True) == (Origin.HUMAN, "")


@pytest.mark.parametrize("kind", ["info", "warning", "error"])
def test_notices(kind: str) -> None:
    assert origin_of(kind, "Please continue.") == Origin.NOTICE


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("It says hello.", Origin.MODEL),
        ("", Origin.MODEL),
        ("Got it. Thanks for the context!", Origin.SYNTHETIC),
        ("Got it. Thanks for the additional context!\n", Origin.SYNTHETIC),
        ("Binary content received. Proceeding with analysis.", Origin.SYNTHETIC),
        ("[The previous response was interrupted before it completed.]", Origin.SYNTHETIC),
    ],
)
def test_answers(text: str, origin: Origin) -> None:
    assert origin_of("gemini", text) == origin


@given(st.text(), st.sampled_from([*Kind, "new"]))
def test_every_message_is_something(text: str, kind: str) -> None:
    assert origin_of(kind, text) in Origin


@given(st.text())
def test_a_line_keeps_all_but_white_space(text: str) -> None:
    line = one_line(text)
    assert "".join(line.split()) == "".join(text.split())
    assert one_line(line) == line


def test_one_line() -> None:
    assert one_line(" a\n\n b\t何 ") == "a b 何"
