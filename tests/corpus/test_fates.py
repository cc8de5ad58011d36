"""Each message has the right fate (rewound, compressed, rolled back or active), checked by hand in the files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence

import pytest
from tests.corpus.trees import Tree, every_release, groups, tree_of

from pollux.exports import gemini
from pollux.formats.parts import parts
from pollux.model import Fate, FunctionResponse, Kind, Origin, Part, Session, Text
from pollux.sessions.replay.reading import build_message, read

A, R, C, B, P = Fate.ACTIVE, Fate.REWOUND, Fate.COMPRESSED, Fate.ROLLED_BACK, Fate.REPLACED
CALL, RESULT, CONTEXT = "(call)", "(result)", "(context)"
Fates = list[tuple[str, Fate]]

_LONG = "0. The commit of the board needs a worke"
_STOPPED = ("Request cancelled.", A)


def _rewound(*, with_results: bool) -> Fates:
    result = [(RESULT, R)] if with_results else []
    return [
        *([(CONTEXT, A)] if with_results else []),
        ("Question one.", R),
        ("Answer one.", R),
        ("Question two.", R),
        (CALL, R),
        *result,
        ("Answer two.", R),
        ("Question three.", R),
        (CALL, R),
        *result,
        ("Answer three.", R),
        ("Question four.", R),
        ("Answer four, after the rewind.", R),
        ("Question five.", A),
        ("Answer five, after the second rewind.", A),
        ("Question six.", R),
        ("Answer six.", R),
        ("Question seven.", A),
        ("Answer seven.", A),
    ]


def _compressed(fate: Fate) -> Fates:
    """Return the timeline around /compress: the dropped messages, and the last exchange, kept under new IDs."""
    is_traced = fate == C
    return [
        *([(CONTEXT, A)] if is_traced else []),
        ("Question one.", fate),
        (_LONG, fate),
        ("Question two.", fate),
        (CALL, fate),
        *([(RESULT, fate)] if is_traced else []),
        (_LONG, fate),
        ("Question three.", A),
        (_LONG, A),
        *([("<state_snapshot>", A), ("Got it. Thanks for the additional contex", A)] if is_traced else []),
        ("", A),  # the notice of the compression has no text
        ("Question four.", A),
        ("After the compression all is short.", A),
    ]


def _aborted(fate: Fate, *, with_results: bool) -> Fates:
    return [
        *([(CONTEXT, A)] if with_results else []),
        ("Write a long text.", fate),
        _STOPPED,
        ("Sleep for a while.", A),
        ("I sleep now.", A),
        _STOPPED,
        (CALL, A),
        *([(RESULT, A)] if with_results else []),
        ("Are you still there.", A),
        ("Back to normal.", A),
    ]


def _resumed(*, with_results: bool) -> Fates:
    return [
        *([(CONTEXT, A)] if with_results else []),
        ("What is this project?", A),
        ("It is a small task board.", A),
        ("And what does the README say?", A),
        (CALL, A),
        *([(RESULT, A)] if with_results else []),
        ("The README says to run the unit tests.", A),
        ("Thanks!", A),
        ("You are welcome.", A),
    ]


TIMELINES = {
    "0.40.1/i-rewind": _rewound(with_results=False),
    "0.47.0/i-rewind": _rewound(with_results=True),
    "0.61.0/i-rewind": _rewound(with_results=True),
    "0.40.1/i-compress": _compressed(A),  # up to 0.43 the client does not record it
    "0.55.1/i-compress": _compressed(C),
    "0.61.0/i-compress": _compressed(C),
    "0.40.1/i-abort": _aborted(A, with_results=False),
    "0.47.0/i-abort": _aborted(A, with_results=True),
    "0.55.1/i-abort": _aborted(B, with_results=True),
    "0.61.0/i-abort": _aborted(B, with_results=True),
    "0.40.1/multi": _resumed(with_results=False),
    "0.47.0/multi": _resumed(with_results=True),
    "0.55.1/multi": _resumed(with_results=True),
    "0.61.0/multi": _resumed(with_results=True),
}

DROPPED = {
    "0.61.0/acp-cancel": {"Slow question.": B, "This one fails.": B},
    "0.61.0/acp-load": {
        **dict.fromkeys(("Question one.", "One.", "One done.", "After the cancel?", "After the cancel."), P),
        "Slow question.": B,
        CALL: P,
    },
    "0.61.0/i-abort2": {"Take three steps.": B, "Step 1.": B, "Step 2.": B, "Nothing comes.": B}
    | dict.fromkeys(("Hello there.", "Hello."), C),
    "0.61.0/i-chat2": dict.fromkeys(
        ("B first.", "B one.", "B second.", "B two, in A's history.", "B third.", "B three.", "B fourth.", "B four."), P
    ),
    "0.61.0/i-chatsame": dict.fromkeys(("Question three.", "Wrong way.", "Right way."), P),
    "0.61.0/i-decline2": {"do it": B, "I write.": B, "A command.": B},
    "0.61.0/i-placeholder": {"Write a long text.": B},
}
"""What left the conversation, besides tool results; all else is active, and may be the same words."""

ACTIVE_TOKENS = {"0.61.0/i-compress3": 62072, "0.61.0/i-chat2": 65686, "0.61.0/acp-cancel": 76172}

FUSED = ("0.60.0/i-chat", "0.61.0/i-chat")
PROMPT_LOST = ("0.61.0/h-hooks",)
"""Where the client does not load a prompt again, since a hook has put its words before it: it was said all the same."""


@pytest.mark.parametrize("name", TIMELINES)
def test_timeline_has_the_expected_fates(name: str) -> None:
    ((session, entries),) = timelines(tree_of(name))
    assert entries == TIMELINES[name]
    assert session.fates == Counter(fate for _, fate in entries)


@pytest.mark.parametrize("name", DROPPED)
def test_dropped_messages_are_those_checked_by_hand(name: str) -> None:
    entries = [entry for _, timeline in timelines(tree_of(name)) for entry in timeline]
    assert {head: fate for head, fate in entries if fate != A and head != RESULT} == DROPPED[name]


@pytest.mark.parametrize("name", ACTIVE_TOKENS)
def test_tokens_of_active_messages_are_those_checked_by_hand(name: str) -> None:
    calls = [call for session, _ in groups(tree_of(name)) for call in session.calls]
    assert sum(call.tokens.total for call in calls if call.fate == A) == ACTIVE_TOKENS[name]


@every_release
def test_active_messages_equal_the_state_of_the_client(trees: list[Tree]) -> None:
    for tree in trees:
        if tree.name not in (*FUSED, *PROMPT_LOST):
            check_active(tree)


@pytest.mark.parametrize("name", FUSED)
def test_messages_loaded_with_the_preamble_are_kept(name: str) -> None:
    check_active(tree_of(name))


def check_active(tree: Tree) -> None:
    """Check that the active part of the timeline equals the client's state, which contains some messages twice."""
    for path in tree.files:
        reading = read(path)
        if reading.format == "log" and reading.replay.is_readable:
            entries = [entry for entry in reading.replay.timeline if entry.fate == Fate.ACTIVE]
            active = {
                item for entry in entries for item in texts_and_calls(entry.kind, build_message(reading, entry).parts)
            }
            state = json.loads(b"".join(gemini.render_state(reading)))["messages"]
            loaded = {item for message in state for item in texts_and_calls(message["type"], parts(message["content"]))}
            assert active == loaded, tree.name


def texts_and_calls(kind: str, message_parts: Sequence[Part]) -> Iterator[tuple[str, str]]:
    """Yield the text of a message without the preamble, and the IDs of the calls that it answers.

    Notices are never in a list, and an answer may be only a call.
    """
    if kind not in (Kind.USER, Kind.GEMINI):
        return
    text = "".join(part.text for part in message_parts if isinstance(part, Text)).strip()
    if text.startswith("<session_context>"):
        text = text.partition("</session_context>")[2].strip()
    if text:
        yield kind, text
    for part in message_parts:
        if isinstance(part, FunctionResponse):
            yield kind, f"response {part.id}"


def timelines(tree: Tree) -> list[tuple[Session, Fates]]:
    result = []
    for session, group in groups(tree):
        fates = []
        for message in group.messages():
            head = message.text[:40]
            if message.origin == Origin.SESSION_CONTEXT:
                head = CONTEXT
            elif message.origin == Origin.TOOL_RESPONSE:
                head = RESULT
            elif message.origin == Origin.STATE_SNAPSHOT:
                head = "<state_snapshot>"
            elif message.kind == Kind.GEMINI and not head and message.tool_calls:
                head = CALL
            fates.append((head, message.fate))
        result.append((session, fates))
    return result
