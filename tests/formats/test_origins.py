from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pollux.formats.origins import one_line, origin_of, user_origin, user_words
from pollux.model import Kind, Origin

CONTEXT = "<session_context>\nToday is Sunday.\n</session_context>"
HOOK = "<hook_context>be kind</hook_context>"
SNAPSHOT = "<state_snapshot>\nall of it\n</state_snapshot>"


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        (CONTEXT, Origin.SESSION_CONTEXT),
        ("<session_context>\nthat never ends", Origin.SESSION_CONTEXT),
        ("This is the Gemini CLI. We are setting up the context for our chat.\nToday", Origin.SESSION_CONTEXT),
        ("- **Workspace Directories:**\n  - /a", Origin.SESSION_CONTEXT),
        (HOOK, Origin.HOOK_CONTEXT),
        (f" {HOOK}\n", Origin.HOOK_CONTEXT),
        (SNAPSHOT, Origin.STATE_SNAPSHOT),
        ("First, reason in your scratchpad. Then, generate the <state_snapshot>.", Origin.STATE_SNAPSHOT),
        ("I ran the following shell command:\n```sh\nls\n```", Origin.SHELL_MODE),
        ("Here is the user's editor context as a JSON object: {}", Origin.IDE_CONTEXT),
        ("[Function Response: read_file]", Origin.TOOL_RESPONSE),
        ("[Function Response: shot][Image: image/png, 12.0 KB]", Origin.TOOL_RESPONSE),
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
def test_texts_of_the_client_are_not_human(text: str, origin: Origin) -> None:
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
        "<hook_context>I typed this</hook_context> and this",
        "<session_context>typed</session_context>",
        "<state_snapshot>mine</state_snapshot> is a tag",
        "What does </hook_context> mean",
        "I ran the following shell command: ls",
        "System: Please continue. is a text",
        "Explain\n--- Content from referenced files ---\nthis",
        "- **Workspace Directories:** list them",
        "Here is the user's editor context as a JSON object",
        "User steering update: none",
        "[Function Response: none",
        "Your task is to do a deep investigation of the codebase to find all relevant files please",
        "😀",
    ],
)
def test_typed_texts_are_human(text: str) -> None:
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
def test_additions_of_the_client_are_removed_from_a_prompt(text: str) -> None:
    assert user_origin(text) == (Origin.HUMAN, "hello")


@pytest.mark.parametrize("files", ["", "\nContent from @a.txt:\nx\n--- End of content ---", "\n--- End of content ---"])
def test_contents_of_named_files_are_removed_from_a_prompt(files: str) -> None:
    assert user_origin(f"see @a.txt\n--- Content from referenced files ---{files}") == (Origin.HUMAN, "see @a.txt")


def test_steering_hint_is_human() -> None:
    text = "User steering update:\n<user_input>\nUse Python.\n</user_input>\nRe-evaluate the plan."
    assert user_origin(text, n_responses=1) == (Origin.HUMAN, "Use Python.")
    assert user_words(text, None, n_responses=1).origin == Origin.HUMAN


def test_please_continue_is_human_only_without_a_sign_of_the_client() -> None:
    assert user_words("Please continue.", None) == (Origin.HUMAN, "Please continue.", "")
    assert user_words("Please continue.", "look at it").origin == Origin.CONTINUE
    assert user_words("Please continue.", None, is_string=True).origin == Origin.CONTINUE, (
        "up to 0.27 a typed one looks the same"
    )


def test_text_of_a_hook_is_not_human() -> None:
    """The client also records the text shown for a typed prompt that a hook adds to."""
    assert user_words(f"You forgot the tests.{HOOK}", None)[:2] == (Origin.HOOK_CONTEXT, "You forgot the tests.")
    assert user_words(f"hello{HOOK}", "hello") == (Origin.HUMAN, "hello", "")
    assert user_words(f"hello\n\n{HOOK}", None, is_string=True)[:2] == (Origin.HUMAN, "hello")


def test_custom_command_is_the_prompt_and_its_text_the_expansion() -> None:
    assert user_words("Fix the board.", "/fix board") == (Origin.HUMAN, "/fix board", "Fix the board.")
    assert user_words("hello", "  ") == (Origin.HUMAN, "hello", "")


def test_synthetic_text_after_a_preamble_is_not_human() -> None:
    assert user_origin(f"{CONTEXT}Please continue.")[0] == Origin.CONTINUE
    assert user_origin(f"{CONTEXT}{SNAPSHOT}")[0] == Origin.SESSION_CONTEXT


def test_message_with_responses_is_a_tool_response() -> None:
    assert user_origin("hello", n_responses=1) == (Origin.TOOL_RESPONSE, "hello")


def test_media_without_text_is_human() -> None:
    assert user_origin("", has_media=True) == (Origin.HUMAN, "")


@pytest.mark.parametrize("kind", ["info", "warning", "error"])
def test_notices_have_their_own_origin(kind: str) -> None:
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
def test_fixed_answers_are_synthetic_unless_counted(text: str, origin: Origin) -> None:
    assert origin_of("gemini", text) == origin
    assert origin_of("gemini", text, is_counted=True) == Origin.MODEL


@given(st.text(), st.sampled_from([*Kind, "new"]))
def test_any_message_has_an_origin(text: str, kind: str) -> None:
    assert origin_of(kind, text) in Origin


@given(st.text())
def test_one_line_keeps_all_but_white_space(text: str) -> None:
    line = one_line(text)
    assert "".join(line.split()) == "".join(text.split())
    assert one_line(line) == line


def test_one_line_joins_words_with_single_spaces() -> None:
    assert one_line(" a\n\n b\t何 ") == "a b 何"
