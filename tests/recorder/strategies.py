"""Strategies for random conversations: a release of the client, and the actions of a user."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st
from tests.recorder.model import (
    DOCUMENT,
    LOG,
    RELEASES,
    Action,
    Ask,
    Call,
    Clear,
    Compress,
    ImportSession,
    Load,
    Mask,
    ModelAnswer,
    Notice,
    RecorderModel,
    Release,
    Resume,
    Rewind,
    Save,
    Shell,
    Start,
)

WORDS = (
    "y",
    "fix",
    "do it",
    "same",
    "text of the file",
    "Fine.",
    "webapp",
    "what is a <state_snapshot>?",
    "修好它",
    "ok\nthen",
)
"""Prompts that are short, repeated, or also occur in answers, tool output and the preamble."""
TEXTS = ("Fine.", "OK", "fix", "修好了", "I will look at a.txt.")
OUTCOMES = ("success", "success", "success", "error", "declined", "cancelled")
TAGS = ("here", "there")


@dataclass(frozen=True)
class Conversation:
    """A release, and the actions of its user."""

    release: Release
    actions: tuple[Action, ...]

    def played(self) -> RecorderModel:
        """Return the model after all actions."""
        client = RecorderModel(self.release)
        for action in self.actions:
            if not (isinstance(action, Load) and client.release.has_checkpoints and client.is_ambiguous(action.tag)):
                client.do(action)
            client.ends.append(len(client.writes))
        return client


texts = st.one_of(st.sampled_from(TEXTS), st.integers(0, 999).map(lambda n: f"Answer {n}."))
prompts = st.one_of(st.sampled_from(WORDS), st.integers(0, 99).map(lambda n: f"question {n}"))


@st.composite
def calls(draw: st.DrawFn, *, may_have_ids: bool, may_end: bool = True) -> tuple[Call, ...]:
    """Draw parallel calls; IDs of the API repeat in each answer."""
    n = draw(st.integers(1, 3))
    has_ids = may_have_ids and draw(st.booleans())
    outcomes = OUTCOMES if may_end else OUTCOMES[:4]
    drawn = []
    for index in range(n):
        name = draw(st.sampled_from(["read_file", "run_shell_command"]))
        drawn.append(Call(name, draw(st.sampled_from(outcomes)), f"call_{index}" if has_ids else None))
    return tuple(drawn)


@st.composite
def agents(draw: st.DrawFn) -> Call:
    steps = draw(
        st.lists(st.builds(ModelAnswer, texts, calls(may_have_ids=False, may_end=False)), min_size=1, max_size=2)
    )
    return Call("invoke_agent", id=None, output=draw(prompts), agent=tuple(steps))


@st.composite
def asks(draw: st.DrawFn, *, may_have_ids: bool) -> Ask:
    """Draw a prompt with its answers."""
    answers: list[ModelAnswer] = []
    own = calls(may_have_ids=may_have_ids)
    for _ in range(draw(st.integers(0, 2))):
        asked = draw(st.one_of(own, own, own, agents().map(lambda agent: (agent,))))
        notice = draw(st.sampled_from([None, None, None, "Heads up."]))
        text = draw(st.one_of(st.just(""), texts))
        is_apart = notice is not None or any(call.outcome == "cancelled" for call in asked)
        n_thoughts = draw(st.integers(0, 1)) if text or not is_apart else 0  # a thought alone is like any other
        answers.append(ModelAnswer(text, asked, n_thoughts, notice))
    end = draw(st.sampled_from(["", "", "", "cut", "failed"]))
    answers.append(ModelAnswer(end=end) if end else ModelAnswer(draw(texts), n_thoughts=draw(st.integers(0, 1))))
    return Ask(draw(prompts), tuple(answers))


def actions(release: Release, *, may_import: bool) -> st.SearchStrategy[Action]:
    """Draw one action; prompts are the most frequent.

    An import repeats responses, so one session has repeated IDs of calls or imports, not both.
    """
    others: list[st.SearchStrategy[Action]] = [
        st.builds(Rewind, st.integers(0, 6)),
        st.builds(Rewind, st.integers(0, 2)),
        st.builds(Compress, st.integers(0, 3)),
        st.builds(Save, st.sampled_from(TAGS)),
        st.builds(Load, st.sampled_from(TAGS)),
        st.just(Clear()),
        st.builds(Start, st.booleans(), st.booleans()),
        st.builds(Resume, st.integers(0, 3), st.booleans(), st.integers(0, 4)),
        st.integers(0, 999).map(lambda n: Shell(f"ls {n}")),
        st.builds(Notice, st.sampled_from(["Update available", ""]), st.sampled_from(["info", "warning", "error"])),
    ]
    if release not in (DOCUMENT, LOG):
        others.append(st.just(Mask()))
        if may_import:
            others.append(st.builds(ImportSession, st.integers(0, 3), st.booleans()))
    prompted = asks(may_have_ids=not may_import)
    return st.one_of(prompted, prompted, st.one_of(others))


@st.composite
def conversations(draw: st.DrawFn, *, max_size: int = 12) -> Conversation:
    release = draw(st.sampled_from(RELEASES[::-1]))
    may_import = draw(st.booleans())
    first = draw(asks(may_have_ids=not may_import))
    return Conversation(release, (first, *draw(st.lists(actions(release, may_import=may_import), max_size=max_size))))
