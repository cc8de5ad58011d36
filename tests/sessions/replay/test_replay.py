"""The three readings of a log, rule by rule (`gemini-format.md` §5 and §6)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.builders import (
    PREAMBLE,
    Wire,
    answers,
    asks,
    at,
    call,
    checkpoint,
    codes,
    document,
    gemini,
    header,
    log,
    notice,
    preamble,
    read_bytes,
    rewind,
    texts,
    tokens,
    updates,
    user,
)

from pollux.model import Fate, Origin, Tokens
from pollux.sessions.replay.reading import FileReading, build_message
from pollux.sessions.replay.replay import TimelineEntry

ONE, TWO, THREE = user("u1", "one"), gemini("g1", "two", tokens=tokens(10)), user("u2", "three", second=3)
FOUR = gemini("g2", "four", second=4, tokens=tokens(20))
TURNS = (ONE, TWO, THREE, FOUR)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def run(folder: Path, *records: object, head: bool = True) -> FileReading:
    return read_bytes(folder, log(*([header()] if head else []), *records))


def state(reading: FileReading) -> list[str]:
    return [*reading.replay.state]


def ids(reading: FileReading) -> list[str]:
    return [entry.id for entry in reading.replay.timeline]


def fates(reading: FileReading) -> dict[str, Fate]:
    return {entry.id: entry.fate for entry in reading.replay.timeline}


def fate_of(reading: FileReading, fate: Fate) -> list[str]:
    return [entry.id for entry in reading.replay.timeline if entry.fate == fate]


def entry(reading: FileReading, id_: str) -> TimelineEntry:
    (found,) = (one for one in reading.replay.timeline if one.id == id_)
    return found


def total(reading: FileReading, *, kept: bool = False) -> int:
    calls = reading.replay.calls.values()
    return sum(one.tokens.total for one in calls if not kept or one.entry.fate == Fate.ACTIVE)


def bare(message: Wire, id_: str | None = None, content: Any = None, second: int = 9) -> Wire:  # noqa: ANN401
    """Write a message as a checkpoint that does not know it does: new id, new time, no tokens."""
    parts = content if content is not None else [{"text": message["content"]}]
    return {"id": id_ or f"{message['id']}-new", "timestamp": at(second), "type": message["type"], "content": parts}


class TestState:
    """What the client itself would load."""

    def test_a_message_again_keeps_its_place(self, folder: Path) -> None:
        found = run(folder, ONE, TWO, ONE | {"content": "once more"})
        assert state(found) == ["u1", "g1"]
        assert texts(found) == ["once more", "two"]

    def test_a_rewind_drops_its_target_and_all_after_it(self, folder: Path) -> None:
        found = run(folder, *TURNS, rewind("u2"))
        assert state(found) == ["u1", "g1"]
        assert not codes(found)

    def test_a_rewind_to_nothing_known_drops_everything(self, folder: Path) -> None:
        found = run(folder, *TURNS, rewind("u9"))
        assert state(found) == []
        assert [(one.code, one.line) for one in found.replay.problems] == [("unknown-rewind", 6)]

    def test_what_was_dropped_comes_back_at_the_end(self, folder: Path) -> None:
        found = run(folder, ONE, TWO, rewind("u1"), THREE, ONE)
        assert state(found) == ["u2", "u1"]
        assert ids(found) == ["u1", "g1", "u2"]
        assert fates(found) == {"u1": Fate.ACTIVE, "g1": Fate.REWOUND, "u2": Fate.ACTIVE}

    def test_a_checkpoint_replaces_all(self, folder: Path) -> None:
        assert state(run(folder, ONE, TWO, checkpoint(TWO, THREE))) == ["g1", "u2"]
        assert state(run(folder, ONE, checkpoint())) == []

    def test_messages_that_are_no_list_replace_nothing(self, folder: Path) -> None:
        assert state(run(folder, ONE, updates(messages="x"))) == ["u1"]

    def test_metadata_is_merged_one_level_deep(self, folder: Path) -> None:
        found = run(folder, updates(a={"b": 1}, summary="s"), updates(a={"c": 2}), head=True)
        assert found.replay.metadata == header(a={"c": 2}, summary="s")

    def test_the_last_header_wins(self, folder: Path) -> None:
        found = run(folder, ONE, header("other", startTime=at(9)))
        assert (found.id, found.replay.metadata["startTime"]) == ("other", at(9))
        assert state(found) == ["u1"]

    def test_a_header_at_the_end(self, folder: Path) -> None:
        assert run(folder, ONE, header(), head=False).replay.is_readable

    def test_a_message_is_no_header(self, folder: Path) -> None:
        found = run(folder, ONE | {"sessionId": "s", "projectHash": "h"}, head=False)
        assert state(found) == ["u1"]
        assert not found.replay.is_readable

    @pytest.mark.parametrize("fields", [{}, {"sessionId": "s"}, {"projectHash": "h"}])
    def test_not_readable_without_a_header(self, folder: Path, fields: Wire) -> None:
        found = run(folder, updates(**fields), ONE, head=False)
        assert not found.replay.is_readable
        assert codes(found) == ["no-header"]

    def test_a_compact_document(self, folder: Path) -> None:
        found = run(folder, header(messages=[ONE, TWO]), head=False)
        assert state(found) == ids(found) == ["u1", "g1"]
        assert found.replay.first_words == "one"

    def test_what_is_saved_from_a_torn_line_is_not_in_the_state(self, folder: Path) -> None:
        records = (header(summary="no"), ONE, updates(summary="yes"), rewind("u1"), checkpoint(ONE, THREE))
        torn = b"x" + log(*records).replace(b"\n", b"")
        found = run(folder, TWO, torn)
        assert state(found) == ["g1"]
        assert set(ids(found)) == {"g1", "u1", "u2"}
        assert "summary" not in found.replay.metadata
        assert found.replay.seen["summary"] == "yes"
        assert not found.replay.has_checkpoints

    def test_a_compact_document_glued_to_a_torn_line(self, folder: Path) -> None:
        found = run(folder, b"x" + log(header(messages=[ONE, TWO])).strip(), head=False)
        assert state(found) == []
        assert ids(found) == ["u1", "g1"]

    def test_a_document(self, folder: Path) -> None:
        found = read_bytes(folder, document(ONE, TWO, summary="s"))
        assert found.replay.is_readable
        assert ids(found) == ["u1", "g1"]
        assert found.replay.metadata["summary"] == "s"
        assert len([*found.replay.spans]) == 2

    @pytest.mark.parametrize("data", [b'{\n  "messages": []\n}', b'{\n  "kind": "main"\n}'])
    def test_a_document_without_an_id_is_not_readable(self, folder: Path, data: bytes) -> None:
        found = read_bytes(folder, data)
        assert not found.replay.is_readable
        assert codes(found) == ["no-session-id"]

    def test_the_first_words_stay_though_rewound(self, folder: Path) -> None:
        records = (user("u0", "/help"), gemini(), ONE, rewind("u1"), THREE)
        assert run(folder, *records).replay.first_words == "one"
        assert run(folder, checkpoint(preamble(), ONE)).replay.first_words == "one"
        assert run(folder, checkpoint(preamble())).replay.first_words is None

    @pytest.mark.parametrize(
        ("after", "expected"),
        [((), False), ((ONE,), True), ((rewind("u1"),), True), ((updates(memoryScratchpad=None),), None)],
    )
    def test_the_scratchpad_goes_stale(self, folder: Path, after: tuple[Wire, ...], *, expected: bool | None) -> None:
        found = run(folder, ONE, updates(memoryScratchpad={"version": 1}), *after)
        assert found.replay.scratchpad_is_stale is expected
        assert run(folder, ONE).replay.scratchpad_is_stale is None


class TestTimeline:
    """Every message once, with its fate."""

    def test_recordings_are_folded_together(self, folder: Path) -> None:
        found = run(
            folder,
            gemini("g1", "two", second=2),
            gemini("g1", "two", second=5, tokens=tokens(10), thoughts=[{"subject": "S", "description": "D"}]),
            gemini("g1", "two", second=7, toolCalls=[call()], model=None),
        )
        (one,) = (build_message(found, entry) for entry in found.replay.timeline)
        assert (one.text, one.model, one.tokens) == ("two", "gemini-2.5-pro", Tokens(10, 1, 2, 3, 0, 15))
        assert [one.tool_calls[0].id, one.thoughts[0].subject] == ["c1", "S"]
        assert entry(found, "g1").at == at(2)
        assert entry(found, "g1").line == 2

    def test_masked_output_does_not_replace_what_was_there(self, folder: Path) -> None:
        masked = [answers(output="<tool_output_masked>x</tool_output_masked>")]
        found = run(folder, gemini("g1", "", toolCalls=[call()]), gemini("g1", "", toolCalls=[call(result=masked)]))
        assert build_message(found, entry(found, "g1")).tool_calls[0].output == "text of the file"

    def test_a_rewind(self, folder: Path) -> None:
        found = run(folder, *TURNS, rewind("u2"), user("u3", "instead"))
        assert ids(found) == ["u1", "g1", "u2", "g2", "u3"]
        assert fate_of(found, Fate.REWOUND) == ["u2", "g2"]

    def test_a_failed_request_is_rolled_back(self, folder: Path) -> None:
        found = run(folder, checkpoint(preamble()), ONE, TWO, THREE, checkpoint(preamble(), ONE, TWO))
        assert fate_of(found, Fate.ROLLED_BACK) == ["u2"]
        assert ids(found) == [PREAMBLE, "u1", "g1", "u2"]

    def test_a_failed_first_request(self, folder: Path) -> None:
        found = run(folder, checkpoint(preamble()), ONE, checkpoint(preamble()))
        assert fate_of(found, Fate.ROLLED_BACK) == ["u1"]

    def test_a_cancelled_request_takes_all_its_turns(self, folder: Path) -> None:
        asked = gemini("g2", "", tokens=tokens(20), toolCalls=[call()])
        answered = user("r1", [answers()])
        found = run(folder, checkpoint(preamble()), ONE, TWO, THREE, asked, answered, checkpoint(preamble(), ONE, TWO))
        assert fate_of(found, Fate.ROLLED_BACK) == ["u2", "g2", "r1"]
        assert (total(found), total(found, kept=True)) == (40, 15)

    def test_a_cancelled_request_after_a_call_in_a_message_of_its_own(self, folder: Path) -> None:
        apart = gemini("g2", "", toolCalls=[call()])
        rewritten = TWO | {"content": [{"text": "two"}, asks()]}
        after = (user("r1", [answers()]), FOUR | {"id": "g3"}, user("u4", "slow"), notice("i1", "Request cancelled."))
        listed = checkpoint(preamble(), ONE, rewritten, *after[:2])
        found = run(folder, checkpoint(preamble()), ONE, TWO, notice("i0"), apart, *after, listed)
        assert fate_of(found, Fate.ROLLED_BACK) == ["u4"]

    def test_an_empty_answer_stays_when_it_is_not_loaded(self, folder: Path) -> None:
        asked, answered = gemini("g2", "", toolCalls=[call()]), user("r1", [answers()])
        empty = gemini("g3", "", tokens=tokens(20))
        listed = checkpoint(preamble(), ONE, asked, answered)
        found = run(folder, checkpoint(preamble()), ONE, asked, answered, empty, listed)
        assert set(fates(found).values()) == {Fate.ACTIVE}
        assert total(found, kept=True) == 25

    def test_a_resume_changes_nothing(self, folder: Path) -> None:
        asked = gemini("g2", "", second=4, tokens=tokens(20), toolCalls=[call()], thoughts=[{"description": "D"}])
        answered = user("r1", [answers()], second=5)
        rewritten = asked | {"content": [{"text": "D", "thought": True}, asks()]}
        again = user("g2_response", [answers()], second=9)
        found = run(
            folder,
            checkpoint(preamble()),
            *(ONE, TWO, THREE, asked, answered),
            updates(sessionId=header()["sessionId"]),
            checkpoint(preamble(), ONE, TWO, THREE, rewritten, again, answered),
        )
        assert ids(found) == [PREAMBLE, "u1", "g1", "u2", "g2", "r1"]
        assert set(fates(found).values()) == {Fate.ACTIVE}
        assert texts(found)[1:] == ["one", "two", "three", "", ""]
        assert state(found) == [PREAMBLE, "u1", "g1", "u2", "g2", "g2_response", "r1"]

    def test_a_resume_in_the_same_minute(self, folder: Path) -> None:
        copies = [bare(one) for one in TURNS]
        found = run(
            folder,
            checkpoint(preamble()),
            *TURNS,
            header(startTime=at(30)),
            checkpoint(preamble()),
            updates(sessionId=header()["sessionId"]),
            checkpoint(preamble(), *copies),
            user("u3", "five", second=40),
        )
        assert ids(found) == [PREAMBLE, "u1", "g1", "u2", "g2", "u3"]
        assert set(fates(found).values()) == {Fate.ACTIVE}
        assert total(found) == total(found, kept=True) == 40
        assert entry(found, "u1").at == at(1)

    def test_a_compression(self, folder: Path) -> None:
        snapshot = user("s1", [{"text": "<state_snapshot>all of it</state_snapshot>"}], second=8)
        thanks = bare(gemini("s2", "Got it. Thanks for the additional context!"), "s2")
        tail = [bare(THREE), bare(FOUR)]
        found = run(
            folder,
            checkpoint(preamble()),
            *TURNS,
            updates(sessionId=header()["sessionId"]),
            checkpoint(preamble(), snapshot, thanks, *tail),
            user("u3", "five", second=20),
        )
        assert ids(found) == [PREAMBLE, "u1", "g1", "u2", "g2", "s1", "s2", "u3"]
        assert fate_of(found, Fate.COMPRESSED) == ["u1", "g1"]
        assert [entry(found, "s1").origin, entry(found, "s2").origin] == [Origin.STATE_SNAPSHOT, Origin.SYNTHETIC]
        assert (total(found), total(found, kept=True)) == (40, 25)

    def test_a_compression_keeps_the_last_of_equal_messages(self, folder: Path) -> None:
        snapshot = user("s1", [{"text": "<state_snapshot>all of it</state_snapshot>"}], second=8)
        turns = [gemini(f"g{n}", "OK.", tokens=tokens(n)) if n % 2 else user(f"u{n}", "go on") for n in range(6)]
        found = run(folder, preamble(), *turns, checkpoint(preamble(), snapshot, *map(bare, turns[-2:])))
        assert fate_of(found, Fate.COMPRESSED) == ["u0", "g1", "u2", "g3"]
        assert total(found, kept=True) == 10

    def test_an_interrupted_answer_is_no_compression(self, folder: Path) -> None:
        gap = bare(gemini("p1", "[The previous response was interrupted before it completed.]"), "p1")
        found = run(folder, preamble(), ONE, TWO, THREE, checkpoint(preamble(), ONE, gap, TWO))
        assert fate_of(found, Fate.ROLLED_BACK) == ["u2"]

    def test_another_conversation_replaces_this_one(self, folder: Path) -> None:
        burst = [bare(user("x1", "elsewhere")), bare(gemini("x2", "there"))]
        found = run(folder, checkpoint(preamble()), ONE, TWO, *burst, checkpoint(*burst), THREE)
        assert fate_of(found, Fate.REPLACED) == ["u1", "g1"]
        assert fates(found)[PREAMBLE] == Fate.ACTIVE
        assert entry(found, "x1-new").origin == Origin.LOADED

    def test_an_earlier_part_of_the_conversation_replaces_it(self, folder: Path) -> None:
        burst = [bare(ONE), bare(TWO)]
        saved = notice("i1", "Conversation checkpoint saved with tag: here.")
        found = run(folder, checkpoint(preamble()), *TURNS, saved, *burst, checkpoint(*burst))
        assert fate_of(found, Fate.REPLACED) == ["u2", "g2"]

    def test_an_empty_conversation_replaces_this_one(self, folder: Path) -> None:
        found = run(folder, checkpoint(preamble()), *TURNS, header(startTime=at(30)), checkpoint(preamble()))
        assert fate_of(found, Fate.REPLACED) == ["u1", "g1", "u2", "g2"]

    def test_a_declined_tool_is_rolled_back(self, folder: Path) -> None:
        burst = [bare(ONE), bare(TWO)]
        declined = gemini("g2", "I write.", toolCalls=[call(status="cancelled")])
        found = run(folder, checkpoint(preamble()), ONE, TWO, THREE, declined, *burst, checkpoint(*burst))
        assert fate_of(found, Fate.ROLLED_BACK) == ["u2", "g2"]

    def test_a_short_prompt_is_not_found_in_other_words(self, folder: Path) -> None:
        short = user("u0", "e", second=3)
        burst = [user("m1", [*preamble()["content"], {"text": "one"}]), bare(TWO)]
        records = (ONE, TWO, short, gemini("g2", "no", second=4))
        found = run(folder, checkpoint(preamble()), *records, *burst, checkpoint(*burst))
        assert fate_of(found, Fate.REPLACED) == ["u0", "g2"]

    @pytest.mark.parametrize("words", ["Fix the board.", "Fix the board. " * 100])
    def test_a_custom_command_is_recognised_by_what_it_sent(self, folder: Path, words: str) -> None:
        command = user("u1", [{"text": words}], displayContent=[{"text": "/fix board"}])
        burst = [bare(command, content=[{"text": words}]), bare(TWO)]
        found = run(folder, checkpoint(preamble()), command, TWO, *burst, checkpoint(*burst))
        assert ids(found) == [PREAMBLE, "u1", "g1"]
        assert entry(found, "u1").prompt == "/fix board"

    def test_calls_recorded_in_the_first_message_belong_to_the_answers_that_made_them(self, folder: Path) -> None:
        """ACP has one message for the calls of a whole session."""

        def calls(*numbers: int) -> Wire:
            return gemini("acp", "", toolCalls=[call(f"c{n}", f"tool{n}") for n in numbers])

        records = [
            *(ONE, TWO, calls(1), calls(1, 2), user("r1", [answers("c1"), answers("c2")])),
            *(gemini("g2", "done", tokens=tokens(20)), THREE, gemini("g3", "I write", tokens=tokens(30))),
            *(calls(1, 2, 3), user("r2", [answers("c3")]), gemini("g4", "", tokens=tokens(40))),
            *(calls(1, 2, 3, 4, 5), user("r3", [answers("c4"), answers("c5")])),
        ]
        found = run(folder, *records)
        made = {one.id: [call.name for call in build_message(found, one).tool_calls] for one in found.replay.timeline}
        expected = {"acp": ["tool1", "tool2"], "g3": ["tool3"], "g4": ["tool4", "tool5"]}
        assert {id_: names for id_, names in made.items() if names} == expected
        assert [[head.id for head in entry(found, id_).calls] for id_ in ("acp", "g3", "g4")] == [
            ["c1", "c2"],
            ["c3"],
            ["c4", "c5"],
        ]

    def test_calls_stay_where_the_answer_has_its_own(self, folder: Path) -> None:
        first, second = gemini("acp", "", toolCalls=[call("c1")]), gemini("g2", "x", toolCalls=[call("c2")])
        found = run(folder, ONE, first, second, first | {"toolCalls": [call("c1"), call("c3")]})
        assert [head.id for head in entry(found, "acp").calls] == ["c1", "c3"]
        assert [head.id for head in entry(found, "g2").calls] == ["c2"]

    def test_call_ids_that_begin_anew_in_every_answer(self, folder: Path) -> None:
        turns = []
        for n in range(3):
            turns += [gemini(f"g{n}", f"go {n}", toolCalls=[call("c0")]), user(f"r{n}", [answers("c0", output=str(n))])]
        found = run(folder, checkpoint(preamble()), ONE, *turns)
        assert ids(found) == [PREAMBLE, "u1", "g0", "r0", "g1", "r1", "g2", "r2"]
        copies = [bare(one, content=[asks("c0")] if "g" in one["id"] else one["content"]) for one in turns]
        again = run(folder, checkpoint(preamble()), ONE, *turns, checkpoint(preamble(), ONE, *copies))
        assert ids(again) == ids(found)
        assert set(fates(again).values()) == {Fate.ACTIVE}

    def test_a_response_that_stands_twice_is_one(self, folder: Path) -> None:
        """An imported session has the lines of the state that it was made from."""
        asked = gemini("g1", "", toolCalls=[call()])
        found = run(folder, ONE, asked, user("g1_response", [answers()]), user("r1", [answers()]), THREE)
        assert ids(found) == ["u1", "g1", "g1_response", "u2"]

    def test_a_hook_that_sends_the_agent_on_is_no_prompt(self, folder: Path) -> None:
        shown = [{"text": "one"}]
        pushed = user("h1", [{"text": "You forgot the tests."}], displayContent=shown)
        expanded = user(
            "u3", [{"text": "one"}, {"text": "\n--- Content from referenced files ---"}], displayContent=shown
        )
        found = run(folder, ONE, TWO, pushed, FOUR, expanded)
        assert [(one.origin, one.prompt) for one in found.replay.timeline if one.kind == "user"] == [
            (Origin.HUMAN, "one"),
            (Origin.HOOK_CONTEXT, "You forgot the tests."),
            (Origin.HUMAN, "one"),
        ]

    def test_a_custom_command_that_is_given_twice_is_typed_twice(self, folder: Path) -> None:
        commands = [user(id_, ["Fix it."], displayContent=["/fix"]) for id_ in ("u1", "u2")]
        found = run(folder, commands[0], TWO, commands[1])
        assert [one.origin for one in found.replay.timeline] == [Origin.HUMAN, Origin.MODEL, Origin.HUMAN]

    def test_a_masking_burst_is_folded(self, folder: Path) -> None:
        asked = gemini("g2", "", second=4, tokens=tokens(20), toolCalls=[call()])
        answered = user("r1", [answers()], second=5)
        last = gemini("g3", "done", second=6, tokens=tokens(30))
        fused = user("m1", [*preamble()["content"], {"text": "one"}], second=50)
        masked = [answers(output="<tool_output_masked>x")]
        burst = [
            fused,
            bare(TWO, "m2") | {"tokens": None},
            bare(THREE, "m3"),
            bare(asked, "m4", [asks()]),
            bare(answered, "m5", masked),
            bare(last, "m6"),
        ]
        between = [one for message in burst for one in (message, updates(lastUpdated=at(50)))]
        found = run(
            folder,
            checkpoint(preamble()),
            ONE,
            TWO,
            THREE,
            asked,
            answered,
            last,
            *between,
            checkpoint(*burst),
            user("u9", "x"),
        )
        assert ids(found) == [PREAMBLE, "u1", "g1", "u2", "g2", "r1", "g3", "u9"]
        assert set(fates(found).values()) == {Fate.ACTIVE}
        assert total(found) == total(found, kept=True) == 75
        assert entry(found, "g2").at == at(4)
        assert state(found) == ["m1", "m2", "m3", "m4", "m5", "m6", "u9"]

    def test_a_first_checkpoint_of_all_there_is_is_no_burst(self, folder: Path) -> None:
        """A subagent's file has no preamble: its whole history may be what was just recorded."""
        found = run(folder, notice(), ONE, TWO, checkpoint(ONE, TWO), THREE)
        assert ids(found) == ["i1", "u1", "g1", "u2"]
        assert [one.origin for one in found.replay.timeline[1:]] == [Origin.HUMAN, Origin.MODEL, Origin.HUMAN]
        assert [one.line for one in found.replay.timeline] == [2, 3, 4, 6]
        assert found.replay.calls["g1"].entry is found.replay.timeline[2]

    def test_notices_survive_checkpoints(self, folder: Path) -> None:
        found = run(folder, ONE, notice(), TWO, notice("w1", kind="warning"), checkpoint(ONE, TWO))
        assert ids(found) == ["u1", "i1", "g1", "w1"]
        assert set(fates(found).values()) == {Fate.ACTIVE}
        assert entry(found, "i1").origin == Origin.NOTICE

    def test_notices_are_rewound(self, folder: Path) -> None:
        assert fate_of(run(folder, ONE, notice(), rewind("u1")), Fate.REWOUND) == ["u1", "i1"]

    def test_what_was_typed_elsewhere_is_loaded(self, folder: Path) -> None:
        found = run(folder, checkpoint(preamble()), checkpoint(preamble(), bare(ONE, "x1"), bare(TWO, "x2")), THREE)
        assert [one.origin for one in found.replay.timeline[1:]] == [Origin.LOADED, Origin.MODEL, Origin.HUMAN]

    def test_the_same_words_twice_are_two_messages(self, folder: Path) -> None:
        twice = user("u2", "one", second=3)
        found = run(
            folder, checkpoint(preamble()), ONE, TWO, twice, checkpoint(preamble(), bare(ONE), bare(TWO), bare(twice))
        )
        assert ids(found) == [PREAMBLE, "u1", "g1", "u2"]
        assert set(fates(found).values()) == {Fate.ACTIVE}

    def test_a_prompt_that_is_typed_again_after_a_history_is_new(self, folder: Path) -> None:
        again = user("u9", "one", second=20)
        burst = [bare(ONE), bare(TWO)]
        found = run(folder, preamble(), *TURNS, *burst, checkpoint(*burst), again)
        assert ids(found) == [PREAMBLE, "u1", "g1", "u2", "g2", "u9"]
        assert entry(found, "u9").origin == Origin.HUMAN
        assert ids(run(folder, *TURNS, bare(TWO), rewind("g1-new"), again)) == ["u1", "g1", "u2", "g2", "u9"]

    def test_a_copy_recorded_again_is_still_a_copy(self, folder: Path) -> None:
        copy = bare(TWO)
        found = run(
            folder, preamble(), ONE, TWO, checkpoint(preamble(), bare(ONE), copy), copy | {"content": "other words"}
        )
        assert ids(found) == [PREAMBLE, "u1", "g1"]
        assert texts(found)[2] == "two"

    def test_message_that_occurs_twice_is_dropped_when_both_are(self, folder: Path) -> None:
        asked, answered = gemini("g2", "", toolCalls=[call()]), user("r1", [answers()])
        listed = checkpoint(preamble(), ONE, asked, user("g2_response", [answers()]), answered)
        records = (preamble(), ONE, asked, answered, listed)
        assert fate_of(run(folder, *records, rewind("r1")), Fate.REWOUND) == []
        assert fate_of(run(folder, *records, rewind("g2_response")), Fate.REWOUND) == ["r1"]

    def test_words_beside_a_call_are_not_enough_to_be_a_copy(self, folder: Path) -> None:
        other = bare(TWO, "g9", [{"text": "two"}, asks("c9")])
        found = run(folder, preamble(), ONE, TWO, checkpoint(preamble(), ONE, TWO, other))
        assert ids(found) == [PREAMBLE, "u1", "g1", "g9"]

    def test_turns_fused_with_a_call(self, folder: Path) -> None:
        asked = gemini("g2", "", toolCalls=[call()])
        fused = bare(TWO, "m1", [{"text": "two"}, asks()])
        found = run(folder, preamble(), ONE, TWO, asked, checkpoint(preamble(), ONE, fused))
        assert ids(found) == [PREAMBLE, "u1", "g1", "g2"]
        assert set(fates(found).values()) == {Fate.ACTIVE}

    def test_several_texts_fused(self, folder: Path) -> None:
        asked = gemini("g2", "", toolCalls=[call()])
        five = gemini("g3", "five", second=5)
        fused = bare(TWO, "m1", [{"text": "two"}, asks(), {"text": "five"}])
        found = run(folder, preamble(), ONE, TWO, asked, five, checkpoint(preamble(), ONE, fused))
        assert ids(found) == [PREAMBLE, "u1", "g1", "g2", "g3"]
        assert set(fates(found).values()) == {Fate.ACTIVE}

    def test_a_rewind_before_a_checkpoint(self, folder: Path) -> None:
        found = run(
            folder, checkpoint(preamble()), *TURNS, rewind("u2"), checkpoint(preamble(), ONE, TWO), user("u3", "x")
        )
        assert fate_of(found, Fate.REWOUND) == ["u2", "g2"]
        assert state(found) == [PREAMBLE, "u1", "g1", "u3"]

    def test_a_copy_and_its_original_are_rewound_together(self, folder: Path) -> None:
        found = run(
            folder, checkpoint(preamble()), ONE, TWO, checkpoint(preamble(), bare(ONE), bare(TWO)), rewind("u1-new")
        )
        assert fate_of(found, Fate.REWOUND) == ["u1", "g1"]


class TestUsage:
    """Every model call once."""

    def test_the_last_counts_of_an_id(self, folder: Path) -> None:
        found = run(folder, gemini("g1", ""), TWO, TWO | {"tokens": None}, gemini("g1", "two"), TWO)
        assert total(found) == 15
        assert [*found.replay.calls] == ["g1"]
        assert found.replay.calls["g1"].line == 6

    def test_the_union_over_all_that_ever_stood_there(self, folder: Path) -> None:
        compact = header(messages=[gemini("g0", "x", tokens=tokens(1))])
        found = run(
            folder, compact, TWO, rewind("g1"), checkpoint(FOUR, gemini("g3", "z", tokens=tokens(30))), head=False
        )
        assert [*found.replay.calls] == ["g0", "g1", "g2", "g3"]
        assert total(found) == 6 + 15 + 25 + 35

    def test_counts_in_a_torn_line(self, folder: Path) -> None:
        found = run(folder, ONE, b"x" + log(TWO).strip())
        assert total(found) == 15
        assert total(run(folder, ONE, TWO, b"x" + log(TWO).strip())) == 15

    def test_a_document(self, folder: Path) -> None:
        assert total(read_bytes(folder, document(*TURNS))) == 40

    def test_what_was_dropped_still_cost(self, folder: Path) -> None:
        found = run(folder, *TURNS, rewind("u2"))
        assert (total(found), total(found, kept=True)) == (40, 15)


class TestTwoHeaders:
    """A resume within the minute in which the session began adds a second header to its file."""

    def test_the_session_began_when_the_first_says(self, folder: Path) -> None:
        again = header(startTime=at(50), kind="subagent")
        found = run(folder, ONE, TWO, again, THREE)
        assert found.replay.seen["startTime"] == header()["startTime"]
        assert found.replay.seen["kind"] == "subagent", "all else is as the last one says"
        assert found.replay.metadata["startTime"] == at(50), "which the client goes by"

    @pytest.mark.parametrize("odd", [None, 7, "yesterday"])
    def test_a_time_that_is_none_does_not_count(self, folder: Path, odd: object) -> None:
        known = header()["startTime"]
        assert run(folder, header(startTime=odd)).replay.seen["startTime"] == known
        assert read_bytes(folder, log(header(startTime=odd), header())).replay.seen["startTime"] == known
