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


def replay_records(folder: Path, *records: object, head: bool = True) -> FileReading:
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
    (match,) = (entry_ for entry_ in reading.replay.timeline if entry_.id == id_)
    return match


def total(reading: FileReading, *, kept: bool = False) -> int:
    calls = reading.replay.calls.values()
    return sum(usage.tokens.total for usage in calls if not kept or usage.entry.fate == Fate.ACTIVE)


def bare(message: Wire, id_: str | None = None, content: Any = None, second: int = 9) -> Wire:  # noqa: ANN401
    """Return a copy of a message as a later checkpoint writes it: with a new ID, a new time and no tokens."""
    parts = content if content is not None else [{"text": message["content"]}]
    return {"id": id_ or f"{message['id']}-new", "timestamp": at(second), "type": message["type"], "content": parts}


class TestState:
    """The messages that the client would load."""

    def test_message_recorded_again_keeps_its_place(self, folder: Path) -> None:
        reading = replay_records(folder, ONE, TWO, ONE | {"content": "once more"})
        assert state(reading) == ["u1", "g1"]
        assert texts(reading) == ["once more", "two"]

    def test_rewind_drops_its_target_and_all_later_messages(self, folder: Path) -> None:
        reading = replay_records(folder, *TURNS, rewind("u2"))
        assert state(reading) == ["u1", "g1"]
        assert not codes(reading)

    def test_rewind_to_an_unknown_message_drops_everything(self, folder: Path) -> None:
        reading = replay_records(folder, *TURNS, rewind("u9"))
        assert state(reading) == []
        assert [(problem.code, problem.line) for problem in reading.replay.problems] == [("unknown-rewind", 6)]

    def test_dropped_message_recorded_again_is_last(self, folder: Path) -> None:
        reading = replay_records(folder, ONE, TWO, rewind("u1"), THREE, ONE)
        assert state(reading) == ["u2", "u1"]
        assert ids(reading) == ["u1", "g1", "u2"]
        assert fates(reading) == {"u1": Fate.ACTIVE, "g1": Fate.REWOUND, "u2": Fate.ACTIVE}

    def test_checkpoint_replaces_all_messages(self, folder: Path) -> None:
        assert state(replay_records(folder, ONE, TWO, checkpoint(TWO, THREE))) == ["g1", "u2"]
        assert state(replay_records(folder, ONE, checkpoint())) == []

    def test_update_whose_messages_are_not_a_list_replaces_nothing(self, folder: Path) -> None:
        assert state(replay_records(folder, ONE, updates(messages="x"))) == ["u1"]

    def test_metadata_is_merged_one_level_deep(self, folder: Path) -> None:
        reading = replay_records(folder, updates(a={"b": 1}, summary="s"), updates(a={"c": 2}), head=True)
        assert reading.replay.metadata == header(a={"c": 2}, summary="s")

    def test_the_last_header_wins(self, folder: Path) -> None:
        reading = replay_records(folder, ONE, header("other", startTime=at(9)))
        assert (reading.id, reading.replay.metadata["startTime"]) == ("other", at(9))
        assert state(reading) == ["u1"]

    def test_header_at_the_end_makes_a_log_readable(self, folder: Path) -> None:
        assert replay_records(folder, ONE, header(), head=False).replay.is_readable

    def test_message_with_header_fields_is_not_a_header(self, folder: Path) -> None:
        reading = replay_records(folder, ONE | {"sessionId": "s", "projectHash": "h"}, head=False)
        assert state(reading) == ["u1"]
        assert not reading.replay.is_readable

    @pytest.mark.parametrize("fields", [{}, {"sessionId": "s"}, {"projectHash": "h"}])
    def test_log_without_a_full_header_is_not_readable(self, folder: Path, fields: Wire) -> None:
        reading = replay_records(folder, updates(**fields), ONE, head=False)
        assert not reading.replay.is_readable
        assert codes(reading) == ["no-header"]

    def test_compact_document_is_read(self, folder: Path) -> None:
        reading = replay_records(folder, header(messages=[ONE, TWO]), head=False)
        assert state(reading) == ids(reading) == ["u1", "g1"]
        assert reading.replay.first_words == "one"

    def test_records_of_a_torn_line_are_only_in_the_timeline(self, folder: Path) -> None:
        records = (header(summary="no"), ONE, updates(summary="yes"), rewind("u1"), checkpoint(ONE, THREE))
        torn = b"x" + log(*records).replace(b"\n", b"")
        reading = replay_records(folder, TWO, torn)
        assert state(reading) == ["g1"]
        assert set(ids(reading)) == {"g1", "u1", "u2"}
        assert "summary" not in reading.replay.metadata
        assert reading.replay.seen["summary"] == "yes"
        assert not reading.replay.has_checkpoints

    def test_compact_document_in_a_torn_line_is_only_in_the_timeline(self, folder: Path) -> None:
        reading = replay_records(folder, b"x" + log(header(messages=[ONE, TWO])).strip(), head=False)
        assert state(reading) == []
        assert ids(reading) == ["u1", "g1"]

    def test_document_is_read(self, folder: Path) -> None:
        reading = read_bytes(folder, document(ONE, TWO, summary="s"))
        assert reading.replay.is_readable
        assert ids(reading) == ["u1", "g1"]
        assert reading.replay.metadata["summary"] == "s"
        assert len([*reading.replay.spans]) == 2

    @pytest.mark.parametrize("data", [b'{\n  "messages": []\n}', b'{\n  "kind": "main"\n}'])
    def test_a_document_without_an_id_is_not_readable(self, folder: Path, data: bytes) -> None:
        reading = read_bytes(folder, data)
        assert not reading.replay.is_readable
        assert codes(reading) == ["no-session-id"]

    def test_first_words_are_kept_after_a_rewind(self, folder: Path) -> None:
        records = (user("u0", "/help"), gemini(), ONE, rewind("u1"), THREE)
        assert replay_records(folder, *records).replay.first_words == "one"
        assert replay_records(folder, checkpoint(preamble(), ONE)).replay.first_words == "one"
        assert replay_records(folder, checkpoint(preamble())).replay.first_words is None

    @pytest.mark.parametrize(
        ("after", "expected"),
        [((), False), ((ONE,), True), ((rewind("u1"),), True), ((updates(memoryScratchpad=None),), None)],
    )
    def test_scratchpad_is_stale_after_later_messages(
        self, folder: Path, after: tuple[Wire, ...], *, expected: bool | None
    ) -> None:
        reading = replay_records(folder, ONE, updates(memoryScratchpad={"version": 1}), *after)
        assert reading.replay.scratchpad_is_stale is expected
        assert replay_records(folder, ONE).replay.scratchpad_is_stale is None


class TestTimeline:
    """Every message once, with its fate."""

    def test_recordings_are_folded_together(self, folder: Path) -> None:
        reading = replay_records(
            folder,
            gemini("g1", "two", second=2),
            gemini("g1", "two", second=5, tokens=tokens(10), thoughts=[{"subject": "S", "description": "D"}]),
            gemini("g1", "two", second=7, toolCalls=[call()], model=None),
        )
        (message,) = (build_message(reading, entry) for entry in reading.replay.timeline)
        assert (message.text, message.model, message.tokens) == ("two", "gemini-2.5-pro", Tokens(10, 1, 2, 3, 0, 15))
        assert [message.tool_calls[0].id, message.thoughts[0].subject] == ["c1", "S"]
        assert entry(reading, "g1").at == at(2)
        assert entry(reading, "g1").line == 2

    def test_masked_output_does_not_replace_the_original(self, folder: Path) -> None:
        masked = [answers(output="<tool_output_masked>x</tool_output_masked>")]
        reading = replay_records(
            folder, gemini("g1", "", toolCalls=[call()]), gemini("g1", "", toolCalls=[call(result=masked)])
        )
        assert build_message(reading, entry(reading, "g1")).tool_calls[0].output == "text of the file"

    def test_rewind_marks_later_messages_as_rewound(self, folder: Path) -> None:
        reading = replay_records(folder, *TURNS, rewind("u2"), user("u3", "instead"))
        assert ids(reading) == ["u1", "g1", "u2", "g2", "u3"]
        assert fate_of(reading, Fate.REWOUND) == ["u2", "g2"]

    def test_a_failed_request_is_rolled_back(self, folder: Path) -> None:
        reading = replay_records(folder, checkpoint(preamble()), ONE, TWO, THREE, checkpoint(preamble(), ONE, TWO))
        assert fate_of(reading, Fate.ROLLED_BACK) == ["u2"]
        assert ids(reading) == [PREAMBLE, "u1", "g1", "u2"]

    def test_failed_first_request_is_rolled_back(self, folder: Path) -> None:
        reading = replay_records(folder, checkpoint(preamble()), ONE, checkpoint(preamble()))
        assert fate_of(reading, Fate.ROLLED_BACK) == ["u1"]

    def test_cancelled_request_rolls_back_all_its_turns(self, folder: Path) -> None:
        asked = gemini("g2", "", tokens=tokens(20), toolCalls=[call()])
        answered = user("r1", [answers()])
        reading = replay_records(
            folder, checkpoint(preamble()), ONE, TWO, THREE, asked, answered, checkpoint(preamble(), ONE, TWO)
        )
        assert fate_of(reading, Fate.ROLLED_BACK) == ["u2", "g2", "r1"]
        assert (total(reading), total(reading, kept=True)) == (40, 15)

    def test_cancelled_request_after_a_separate_message_of_calls_is_rolled_back(self, folder: Path) -> None:
        apart = gemini("g2", "", toolCalls=[call()])
        rewritten = TWO | {"content": [{"text": "two"}, asks()]}
        after = (user("r1", [answers()]), FOUR | {"id": "g3"}, user("u4", "slow"), notice("i1", "Request cancelled."))
        listed = checkpoint(preamble(), ONE, rewritten, *after[:2])
        reading = replay_records(folder, checkpoint(preamble()), ONE, TWO, notice("i0"), apart, *after, listed)
        assert fate_of(reading, Fate.ROLLED_BACK) == ["u4"]

    def test_an_empty_answer_stays_when_it_is_not_loaded(self, folder: Path) -> None:
        asked, answered = gemini("g2", "", toolCalls=[call()]), user("r1", [answers()])
        empty = gemini("g3", "", tokens=tokens(20))
        listed = checkpoint(preamble(), ONE, asked, answered)
        reading = replay_records(folder, checkpoint(preamble()), ONE, asked, answered, empty, listed)
        assert set(fates(reading).values()) == {Fate.ACTIVE}
        assert total(reading, kept=True) == 25

    def test_resume_changes_no_message(self, folder: Path) -> None:
        asked = gemini("g2", "", second=4, tokens=tokens(20), toolCalls=[call()], thoughts=[{"description": "D"}])
        answered = user("r1", [answers()], second=5)
        rewritten = asked | {"content": [{"text": "D", "thought": True}, asks()]}
        again = user("g2_response", [answers()], second=9)
        reading = replay_records(
            folder,
            checkpoint(preamble()),
            *(ONE, TWO, THREE, asked, answered),
            updates(sessionId=header()["sessionId"]),
            checkpoint(preamble(), ONE, TWO, THREE, rewritten, again, answered),
        )
        assert ids(reading) == [PREAMBLE, "u1", "g1", "u2", "g2", "r1"]
        assert set(fates(reading).values()) == {Fate.ACTIVE}
        assert texts(reading)[1:] == ["one", "two", "three", "", ""]
        assert state(reading) == [PREAMBLE, "u1", "g1", "u2", "g2", "g2_response", "r1"]

    def test_resume_in_the_same_minute_changes_no_message(self, folder: Path) -> None:
        copies = [bare(message) for message in TURNS]
        reading = replay_records(
            folder,
            checkpoint(preamble()),
            *TURNS,
            header(startTime=at(30)),
            checkpoint(preamble()),
            updates(sessionId=header()["sessionId"]),
            checkpoint(preamble(), *copies),
            user("u3", "five", second=40),
        )
        assert ids(reading) == [PREAMBLE, "u1", "g1", "u2", "g2", "u3"]
        assert set(fates(reading).values()) == {Fate.ACTIVE}
        assert total(reading) == total(reading, kept=True) == 40
        assert entry(reading, "u1").at == at(1)

    def test_compression_marks_replaced_messages_as_compressed(self, folder: Path) -> None:
        snapshot = user("s1", [{"text": "<state_snapshot>all of it</state_snapshot>"}], second=8)
        thanks = bare(gemini("s2", "Got it. Thanks for the additional context!"), "s2")
        tail = [bare(THREE), bare(FOUR)]
        reading = replay_records(
            folder,
            checkpoint(preamble()),
            *TURNS,
            updates(sessionId=header()["sessionId"]),
            checkpoint(preamble(), snapshot, thanks, *tail),
            user("u3", "five", second=20),
        )
        assert ids(reading) == [PREAMBLE, "u1", "g1", "u2", "g2", "s1", "s2", "u3"]
        assert fate_of(reading, Fate.COMPRESSED) == ["u1", "g1"]
        assert [entry(reading, "s1").origin, entry(reading, "s2").origin] == [Origin.STATE_SNAPSHOT, Origin.SYNTHETIC]
        assert (total(reading), total(reading, kept=True)) == (40, 25)

    def test_compression_keeps_the_last_of_equal_messages(self, folder: Path) -> None:
        snapshot = user("s1", [{"text": "<state_snapshot>all of it</state_snapshot>"}], second=8)
        turns = [gemini(f"g{n}", "OK.", tokens=tokens(n)) if n % 2 else user(f"u{n}", "go on") for n in range(6)]
        reading = replay_records(folder, preamble(), *turns, checkpoint(preamble(), snapshot, *map(bare, turns[-2:])))
        assert fate_of(reading, Fate.COMPRESSED) == ["u0", "g1", "u2", "g3"]
        assert total(reading, kept=True) == 10

    def test_interrupted_answer_is_not_a_compression(self, folder: Path) -> None:
        gap = bare(gemini("p1", "[The previous response was interrupted before it completed.]"), "p1")
        reading = replay_records(folder, preamble(), ONE, TWO, THREE, checkpoint(preamble(), ONE, gap, TWO))
        assert fate_of(reading, Fate.ROLLED_BACK) == ["u2"]

    def test_loaded_conversation_replaces_the_current_one(self, folder: Path) -> None:
        burst = [bare(user("x1", "elsewhere")), bare(gemini("x2", "there"))]
        reading = replay_records(folder, checkpoint(preamble()), ONE, TWO, *burst, checkpoint(*burst), THREE)
        assert fate_of(reading, Fate.REPLACED) == ["u1", "g1"]
        assert fates(reading)[PREAMBLE] == Fate.ACTIVE
        assert entry(reading, "x1-new").origin == Origin.LOADED

    def test_loaded_earlier_part_replaces_the_conversation(self, folder: Path) -> None:
        burst = [bare(ONE), bare(TWO)]
        saved = notice("i1", "Conversation checkpoint saved with tag: here.")
        reading = replay_records(folder, checkpoint(preamble()), *TURNS, saved, *burst, checkpoint(*burst))
        assert fate_of(reading, Fate.REPLACED) == ["u2", "g2"]

    def test_empty_conversation_replaces_the_current_one(self, folder: Path) -> None:
        reading = replay_records(
            folder, checkpoint(preamble()), *TURNS, header(startTime=at(30)), checkpoint(preamble())
        )
        assert fate_of(reading, Fate.REPLACED) == ["u1", "g1", "u2", "g2"]

    def test_declined_tool_call_is_rolled_back(self, folder: Path) -> None:
        burst = [bare(ONE), bare(TWO)]
        declined = gemini("g2", "I write.", toolCalls=[call(status="cancelled")])
        reading = replay_records(folder, checkpoint(preamble()), ONE, TWO, THREE, declined, *burst, checkpoint(*burst))
        assert fate_of(reading, Fate.ROLLED_BACK) == ["u2", "g2"]

    def test_short_prompt_is_not_matched_inside_another(self, folder: Path) -> None:
        short = user("u0", "e", second=3)
        burst = [user("m1", [*preamble()["content"], {"text": "one"}]), bare(TWO)]
        records = (ONE, TWO, short, gemini("g2", "no", second=4))
        reading = replay_records(folder, checkpoint(preamble()), *records, *burst, checkpoint(*burst))
        assert fate_of(reading, Fate.REPLACED) == ["u0", "g2"]

    @pytest.mark.parametrize("words", ["Fix the board.", "Fix the board. " * 100])
    def test_custom_command_is_matched_by_the_prompt_it_sent(self, folder: Path, words: str) -> None:
        command = user("u1", [{"text": words}], displayContent=[{"text": "/fix board"}])
        burst = [bare(command, content=[{"text": words}]), bare(TWO)]
        reading = replay_records(folder, checkpoint(preamble()), command, TWO, *burst, checkpoint(*burst))
        assert ids(reading) == [PREAMBLE, "u1", "g1"]
        assert entry(reading, "u1").prompt == "/fix board"

    def test_calls_recorded_in_the_first_message_move_to_their_answers(self, folder: Path) -> None:
        """In ACP, one message contains the calls of a whole session."""

        def calls(*numbers: int) -> Wire:
            return gemini("acp", "", toolCalls=[call(f"c{n}", f"tool{n}") for n in numbers])

        records = [
            *(ONE, TWO, calls(1), calls(1, 2), user("r1", [answers("c1"), answers("c2")])),
            *(gemini("g2", "done", tokens=tokens(20)), THREE, gemini("g3", "I write", tokens=tokens(30))),
            *(calls(1, 2, 3), user("r2", [answers("c3")]), gemini("g4", "", tokens=tokens(40))),
            *(calls(1, 2, 3, 4, 5), user("r3", [answers("c4"), answers("c5")])),
        ]
        reading = replay_records(folder, *records)
        made = {
            message_entry.id: [call.name for call in build_message(reading, message_entry).tool_calls]
            for message_entry in reading.replay.timeline
        }
        expected = {"acp": ["tool1", "tool2"], "g3": ["tool3"], "g4": ["tool4", "tool5"]}
        assert {id_: names for id_, names in made.items() if names} == expected
        assert [[head.id for head in entry(reading, id_).calls] for id_ in ("acp", "g3", "g4")] == [
            ["c1", "c2"],
            ["c3"],
            ["c4", "c5"],
        ]

    def test_calls_do_not_move_to_an_answer_with_its_own_calls(self, folder: Path) -> None:
        first, second = gemini("acp", "", toolCalls=[call("c1")]), gemini("g2", "x", toolCalls=[call("c2")])
        reading = replay_records(folder, ONE, first, second, first | {"toolCalls": [call("c1"), call("c3")]})
        assert [head.id for head in entry(reading, "acp").calls] == ["c1", "c3"]
        assert [head.id for head in entry(reading, "g2").calls] == ["c2"]

    def test_call_ids_may_repeat_in_each_answer(self, folder: Path) -> None:
        turns = []
        for n in range(3):
            turns += [gemini(f"g{n}", f"go {n}", toolCalls=[call("c0")]), user(f"r{n}", [answers("c0", output=str(n))])]
        reading = replay_records(folder, checkpoint(preamble()), ONE, *turns)
        assert ids(reading) == [PREAMBLE, "u1", "g0", "r0", "g1", "r1", "g2", "r2"]
        copies = [
            bare(message, content=[asks("c0")] if "g" in message["id"] else message["content"]) for message in turns
        ]
        again = replay_records(folder, checkpoint(preamble()), ONE, *turns, checkpoint(preamble(), ONE, *copies))
        assert ids(again) == ids(reading)
        assert set(fates(again).values()) == {Fate.ACTIVE}

    def test_repeated_response_is_one_message(self, folder: Path) -> None:
        """An imported session contains the lines of the state that it was created from."""
        asked = gemini("g1", "", toolCalls=[call()])
        reading = replay_records(folder, ONE, asked, user("g1_response", [answers()]), user("r1", [answers()]), THREE)
        assert ids(reading) == ["u1", "g1", "g1_response", "u2"]

    def test_prompt_added_by_a_hook_is_not_human(self, folder: Path) -> None:
        shown = [{"text": "one"}]
        pushed = user("h1", [{"text": "You forgot the tests."}], displayContent=shown)
        expanded = user(
            "u3", [{"text": "one"}, {"text": "\n--- Content from referenced files ---"}], displayContent=shown
        )
        reading = replay_records(folder, ONE, TWO, pushed, FOUR, expanded)
        assert [(turn.origin, turn.prompt) for turn in reading.replay.timeline if turn.kind == "user"] == [
            (Origin.HUMAN, "one"),
            (Origin.HOOK_CONTEXT, "You forgot the tests."),
            (Origin.HUMAN, "one"),
        ]

    def test_repeated_custom_command_is_human_both_times(self, folder: Path) -> None:
        commands = [user(id_, ["Fix it."], displayContent=["/fix"]) for id_ in ("u1", "u2")]
        reading = replay_records(folder, commands[0], TWO, commands[1])
        assert [turn.origin for turn in reading.replay.timeline] == [Origin.HUMAN, Origin.MODEL, Origin.HUMAN]

    def test_copies_with_masked_output_are_merged(self, folder: Path) -> None:
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
        between = [record for message in burst for record in (message, updates(lastUpdated=at(50)))]
        reading = replay_records(
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
        assert ids(reading) == [PREAMBLE, "u1", "g1", "u2", "g2", "r1", "g3", "u9"]
        assert set(fates(reading).values()) == {Fate.ACTIVE}
        assert total(reading) == total(reading, kept=True) == 75
        assert entry(reading, "g2").at == at(4)
        assert state(reading) == ["m1", "m2", "m3", "m4", "m5", "m6", "u9"]

    def test_first_checkpoint_of_the_full_history_adds_no_copies(self, folder: Path) -> None:
        """The file of a subagent has no preamble, so its whole history may be what was just recorded."""
        reading = replay_records(folder, notice(), ONE, TWO, checkpoint(ONE, TWO), THREE)
        assert ids(reading) == ["i1", "u1", "g1", "u2"]
        assert [turn.origin for turn in reading.replay.timeline[1:]] == [Origin.HUMAN, Origin.MODEL, Origin.HUMAN]
        assert [turn.line for turn in reading.replay.timeline] == [2, 3, 4, 6]
        assert reading.replay.calls["g1"].entry is reading.replay.timeline[2]

    def test_notices_survive_checkpoints(self, folder: Path) -> None:
        reading = replay_records(folder, ONE, notice(), TWO, notice("w1", kind="warning"), checkpoint(ONE, TWO))
        assert ids(reading) == ["u1", "i1", "g1", "w1"]
        assert set(fates(reading).values()) == {Fate.ACTIVE}
        assert entry(reading, "i1").origin == Origin.NOTICE

    def test_notices_are_rewound(self, folder: Path) -> None:
        assert fate_of(replay_records(folder, ONE, notice(), rewind("u1")), Fate.REWOUND) == ["u1", "i1"]

    def test_prompts_of_a_loaded_conversation_are_loaded(self, folder: Path) -> None:
        reading = replay_records(
            folder, checkpoint(preamble()), checkpoint(preamble(), bare(ONE, "x1"), bare(TWO, "x2")), THREE
        )
        assert [turn.origin for turn in reading.replay.timeline[1:]] == [Origin.LOADED, Origin.MODEL, Origin.HUMAN]

    def test_equal_prompts_are_two_messages(self, folder: Path) -> None:
        twice = user("u2", "one", second=3)
        reading = replay_records(
            folder, checkpoint(preamble()), ONE, TWO, twice, checkpoint(preamble(), bare(ONE), bare(TWO), bare(twice))
        )
        assert ids(reading) == [PREAMBLE, "u1", "g1", "u2"]
        assert set(fates(reading).values()) == {Fate.ACTIVE}

    def test_prompt_repeated_after_a_rewritten_history_is_new(self, folder: Path) -> None:
        again = user("u9", "one", second=20)
        burst = [bare(ONE), bare(TWO)]
        reading = replay_records(folder, preamble(), *TURNS, *burst, checkpoint(*burst), again)
        assert ids(reading) == [PREAMBLE, "u1", "g1", "u2", "g2", "u9"]
        assert entry(reading, "u9").origin == Origin.HUMAN
        assert ids(replay_records(folder, *TURNS, bare(TWO), rewind("g1-new"), again)) == ["u1", "g1", "u2", "g2", "u9"]

    def test_copy_recorded_again_is_still_a_copy(self, folder: Path) -> None:
        copy = bare(TWO)
        reading = replay_records(
            folder, preamble(), ONE, TWO, checkpoint(preamble(), bare(ONE), copy), copy | {"content": "other words"}
        )
        assert ids(reading) == [PREAMBLE, "u1", "g1"]
        assert texts(reading)[2] == "two"

    def test_repeated_response_is_dropped_only_with_its_copy(self, folder: Path) -> None:
        asked, answered = gemini("g2", "", toolCalls=[call()]), user("r1", [answers()])
        listed = checkpoint(preamble(), ONE, asked, user("g2_response", [answers()]), answered)
        records = (preamble(), ONE, asked, answered, listed)
        assert fate_of(replay_records(folder, *records, rewind("r1")), Fate.REWOUND) == []
        assert fate_of(replay_records(folder, *records, rewind("g2_response")), Fate.REWOUND) == ["r1"]

    def test_equal_text_with_another_call_is_not_a_copy(self, folder: Path) -> None:
        other = bare(TWO, "g9", [{"text": "two"}, asks("c9")])
        reading = replay_records(folder, preamble(), ONE, TWO, checkpoint(preamble(), ONE, TWO, other))
        assert ids(reading) == [PREAMBLE, "u1", "g1", "g9"]

    def test_copy_that_joins_a_text_and_a_call_adds_no_message(self, folder: Path) -> None:
        asked = gemini("g2", "", toolCalls=[call()])
        fused = bare(TWO, "m1", [{"text": "two"}, asks()])
        reading = replay_records(folder, preamble(), ONE, TWO, asked, checkpoint(preamble(), ONE, fused))
        assert ids(reading) == [PREAMBLE, "u1", "g1", "g2"]
        assert set(fates(reading).values()) == {Fate.ACTIVE}

    def test_copy_that_joins_several_texts_adds_no_message(self, folder: Path) -> None:
        asked = gemini("g2", "", toolCalls=[call()])
        five = gemini("g3", "five", second=5)
        fused = bare(TWO, "m1", [{"text": "two"}, asks(), {"text": "five"}])
        reading = replay_records(folder, preamble(), ONE, TWO, asked, five, checkpoint(preamble(), ONE, fused))
        assert ids(reading) == [PREAMBLE, "u1", "g1", "g2", "g3"]
        assert set(fates(reading).values()) == {Fate.ACTIVE}

    def test_rewind_before_a_checkpoint_marks_messages_as_rewound(self, folder: Path) -> None:
        reading = replay_records(
            folder, checkpoint(preamble()), *TURNS, rewind("u2"), checkpoint(preamble(), ONE, TWO), user("u3", "x")
        )
        assert fate_of(reading, Fate.REWOUND) == ["u2", "g2"]
        assert state(reading) == [PREAMBLE, "u1", "g1", "u3"]

    def test_copy_and_its_original_are_rewound_together(self, folder: Path) -> None:
        reading = replay_records(
            folder, checkpoint(preamble()), ONE, TWO, checkpoint(preamble(), bare(ONE), bare(TWO)), rewind("u1-new")
        )
        assert fate_of(reading, Fate.REWOUND) == ["u1", "g1"]


class TestUsage:
    """Each model call is counted once."""

    def test_last_counts_of_a_message_are_used(self, folder: Path) -> None:
        reading = replay_records(folder, gemini("g1", ""), TWO, TWO | {"tokens": None}, gemini("g1", "two"), TWO)
        assert total(reading) == 15
        assert [*reading.replay.calls] == ["g1"]
        assert reading.replay.calls["g1"].line == 6

    def test_usage_contains_each_call_ever_recorded(self, folder: Path) -> None:
        compact = header(messages=[gemini("g0", "x", tokens=tokens(1))])
        reading = replay_records(
            folder, compact, TWO, rewind("g1"), checkpoint(FOUR, gemini("g3", "z", tokens=tokens(30))), head=False
        )
        assert [*reading.replay.calls] == ["g0", "g1", "g2", "g3"]
        assert total(reading) == 6 + 15 + 25 + 35

    def test_counts_in_a_torn_line_are_used(self, folder: Path) -> None:
        reading = replay_records(folder, ONE, b"x" + log(TWO).strip())
        assert total(reading) == 15
        assert total(replay_records(folder, ONE, TWO, b"x" + log(TWO).strip())) == 15

    def test_document_is_read(self, folder: Path) -> None:
        assert total(read_bytes(folder, document(*TURNS))) == 40

    def test_dropped_calls_are_billed(self, folder: Path) -> None:
        reading = replay_records(folder, *TURNS, rewind("u2"))
        assert (total(reading), total(reading, kept=True)) == (40, 15)


class TestTwoHeaders:
    """A resume within the minute in which the session began adds a second header to its file."""

    def test_start_is_taken_from_the_first_header(self, folder: Path) -> None:
        again = header(startTime=at(50), kind="subagent")
        reading = replay_records(folder, ONE, TWO, again, THREE)
        assert reading.replay.seen["startTime"] == header()["startTime"]
        assert reading.replay.seen["kind"] == "subagent", "all other fields are those of the last header"
        assert reading.replay.metadata["startTime"] == at(50), "the client uses the last header"

    @pytest.mark.parametrize("odd", [None, 7, "yesterday"])
    def test_invalid_start_in_a_header_is_ignored(self, folder: Path, odd: object) -> None:
        first_start = header()["startTime"]
        assert replay_records(folder, header(startTime=odd)).replay.seen["startTime"] == first_start
        assert read_bytes(folder, log(header(startTime=odd), header())).replay.seen["startTime"] == first_start
