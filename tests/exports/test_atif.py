"""Sessions exported as trajectories have the documented steps, and are the same when they are read again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests import builders
from tests.builders import PRICES, call, gemini, header, log, notice, rewind, tokens, user
from tests.corpus.trees import Tree, every_release, history
from tests.exports import family

from pollux.exports import atif
from pollux.exports.source import ExportOptions, ExportSource, export_source
from pollux.model import Fate, Message, Text, Tokens
from pollux.sessions.reader import from_file, opened
from pollux.text.encode import HALF
from pollux.views.transcript import Branches

LEFT_OUT = (Fate.REWOUND, Fate.ROLLED_BACK, Fate.REPLACED)


def written(made: ExportSource) -> Any:  # noqa: ANN401  as decoded
    return json.loads(b"".join(atif.render(made)))


def of_log(folder: Path, *records: object, **more: Any) -> ExportSource:  # noqa: ANN401
    return builders.subject(builders.put(folder / f"{builders.NAME}.jsonl", log(header(), *records)), **more)


@pytest.mark.parametrize("branches", Branches)
def test_export_equals_its_snapshot(tmp_path: Path, branches: Branches) -> None:
    made = family.of_home(family.put(tmp_path), branches=branches)
    family.same(f"atif-{branches}.json", b"".join(atif.render(made)), tmp_path)


def test_calls_have_their_results_in_the_same_step(tmp_path: Path) -> None:
    step = written(family.of_home(family.put(tmp_path)))["steps"][3]
    assert [call["tool_call_id"] for call in step["tool_calls"]] == ["c1", "c2", "c3"]
    assert [(result["source_call_id"], result["content"]) for result in step["observation"]["results"]] == [
        ("c1", "text of the file"),
        ("c2", "File not found: b.txt"),
        ("c3", "text of the file"),
    ]
    assert step["observation"]["results"][1]["extra"]["gemini"]["is_error"] is True
    assert step["tool_calls"][1]["extra"]["gemini"]["status"] == "error"


def test_subagent_is_an_inner_trajectory_referred_to_by_its_call(tmp_path: Path) -> None:
    document = written(family.of_home(family.put(tmp_path)))
    (inner,) = document["subagent_trajectories"]
    assert (inner["trajectory_id"], inner["steps"][1]["message"]) == (family.AGENT, "There is none.")
    reference = document["steps"][3]["observation"]["results"][2]["subagent_trajectory_ref"]
    assert reference == [{"trajectory_id": family.AGENT, "session_id": family.AGENT}]


def test_tokens_are_counted_per_step_and_in_total(tmp_path: Path) -> None:
    document = written(family.of_home(family.put(tmp_path)))
    counts = [step["metrics"] for step in document["steps"] if "metrics" in step]
    assert [(count["prompt_tokens"], count["completion_tokens"], count["cached_tokens"]) for count in counts] == [
        (100, 5, 1),
        (207, 5, 1),
        (400, 5, 1),
    ]
    assert document["extra"]["token_rule"] == "gemini-usage-v1"  # noqa: S105
    final = document["final_metrics"]
    assert (final["total_prompt_tokens"], final["total_completion_tokens"], final["total_steps"]) == (707, 15, 8)
    assert final["extra"]["pollux"]["billed"]["input"] == 100 + 200 + 300 + 400 + 50


def test_missing_counts_and_prices_are_omitted(tmp_path: Path) -> None:
    document = written(of_log(tmp_path, user(), gemini("g1"), gemini("g2", model="gemini-9.9-ultra", tokens=tokens())))
    assert "metrics" not in document["steps"][1]
    assert "cost_usd" not in document["steps"][2]["metrics"]
    assert "total_cost_usd" not in document["final_metrics"]
    assert "final_metrics" in written(of_log(tmp_path, user()))
    assert "total_prompt_tokens" not in written(of_log(tmp_path, user()))["final_metrics"]


def test_cost_is_marked_as_an_estimate(tmp_path: Path) -> None:
    document = written(of_log(tmp_path, user(), gemini("g1", tokens=tokens(1000))))
    assert document["steps"][1]["metrics"]["cost_usd"] == pytest.approx((999 * 1250 + 125 + 5 * 10000) / 1e9)
    assert "estimated_with" in document["extra"]["pollux"]["prices"]


def test_dropped_messages_are_counted_with_their_tokens(tmp_path: Path) -> None:
    made = family.of_home(family.put(tmp_path))
    document = written(made)
    assert "Forget it." not in [step["message"] for step in document["steps"]]
    assert document["notes"] == "Messages that are no steps, since they were taken back: 2 rewound."
    assert [call["message_id"] for call in document["extra"]["pollux"]["calls"]] == ["g3"]
    assert made.losses["a message that was rewound (--branches all adds it)"] == 2


def test_notices_are_system_steps(tmp_path: Path) -> None:
    document = written(of_log(tmp_path, notice(), notice("e1", "It failed", kind="error")))
    assert [(step["source"], step["extra"]["gemini"]["type"]) for step in document["steps"]] == [
        ("system", "info"),
        ("system", "error"),
    ]


def test_session_without_messages_has_one_step_and_is_read_as_empty(tmp_path: Path) -> None:
    data = b"".join(atif.render(of_log(tmp_path)))
    assert len(json.loads(data)["steps"]) == 1
    assert not [*from_file(builders.put(tmp_path / "t.json", data))[1].messages()]


def test_picture_is_a_side_file_or_a_counted_loss(tmp_path: Path) -> None:
    made = family.of_home(family.put(tmp_path))
    assert written(made)["steps"][2]["message"] == "What is in a.txt and b.txt?"
    assert made.losses["the bytes of an attachment, image/png"] == 1
    beside = family.placed(made, tmp_path / "out")
    text, picture = written(beside)["steps"][2]["message"]
    assert picture == {"type": "image", "source": {"media_type": "image/png", "path": "files/picture-1.png"}}
    assert text["text"] == "What is in a.txt and b.txt?"
    assert (tmp_path / "out" / "files" / "picture-1.png").read_bytes().startswith(b"\x89PNG")


def test_sound_is_written_only_in_the_newest_version(tmp_path: Path) -> None:
    sound = user("u1", [{"inlineData": {"mimeType": "audio/wav", "data": "UklGRg=="}}])
    made = of_log(tmp_path, sound)
    assert written(made)["schema_version"] == "ATIF-v1.7"
    document = written(family.placed(made, tmp_path / "out"))
    assert (document["schema_version"], document["steps"][0]["message"][0]["type"]) == ("ATIF-v1.8", "audio")


def test_other_attachments_are_named_side_files(tmp_path: Path) -> None:
    paper = user("u1", [{"text": "Read"}, {"inlineData": {"mimeType": "application/pdf", "data": "JVBERi0="}}])
    step = written(family.placed(of_log(tmp_path, paper), tmp_path / "out"))["steps"][0]
    assert step["message"] == "Read"
    assert step["extra"]["gemini"]["content"][1]["fileData"]["fileUri"] == "files/file-1.pdf"


def test_call_without_id_and_odd_arguments_round_trip(tmp_path: Path) -> None:
    odd = {"name": "shell", "args": "ls", "status": "success"}
    made = of_log(tmp_path, gemini("g1", toolCalls=[odd, call("c2", result=None, status=None)]))
    (step,) = written(made)["steps"]
    assert step["tool_calls"][0]["tool_call_id"] == "g1#0"
    assert step["tool_calls"][0]["arguments"] == {"value": "ls"}
    assert "observation" not in step
    assert round_trip(made, tmp_path) == steps_of(made)


def test_copied_context_is_marked_and_counted_once(tmp_path: Path) -> None:
    chats = builders.chats(tmp_path)
    answer = gemini("g1", tokens=tokens())
    builders.put(chats / f"{builders.NAME}.jsonl", log(header(), user(), answer))
    imported = header(builders.OTHER, startTime=builders.at(60))
    again = [imported, user("import-1", "hello"), answer]
    builders.put(chats / f"session-2026-11-15T19-31-{builders.OTHER[:8]}.jsonl", log(*again))
    document = written(family.of_home(tmp_path, builders.OTHER))
    assert document["steps"][1]["is_copied_context"] is True
    assert "metrics" not in document["steps"][1]
    assert "metrics" in written(family.of_home(tmp_path))["steps"][1]


def test_lone_surrogate_is_replaced_and_counted(tmp_path: Path) -> None:
    made = of_log(tmp_path, user("u1", "half \ud83d"))
    assert written(made)["steps"][0]["message"] == "half \ufffd"
    assert made.losses[HALF] == 1


# Round trips


def facts(message: Message) -> dict[str, object]:
    """Return the fields that a round trip must keep, with lone surrogates replaced."""
    sent = "".join(part.text for part in message.parts if isinstance(part, Text))
    calls = [
        (call.id, call.name, call.args, call.status, call.output, call.error, call.response, call.at, call.agent_id)
        for call in message.tool_calls
    ]
    shown = [(call.display, call.display_name, call.description, call.exit_code) for call in message.tool_calls]
    thoughts = [(thought.subject, thought.text, thought.at) for thought in message.thoughts]
    fields = {
        "id": message.id,
        "kind": message.kind,
        "at": message.at,
        "model": message.model,
        "texts": (message.text, sent),
        "thoughts": thoughts,
        "calls": calls,
        "shown": shown,
    }
    return {key: _comparable(value) for key, value in fields.items()}


def _comparable(value: object) -> object:
    return repr(value).replace("\\ud83d", "\ufffd")


def steps_of(made: ExportSource, *, with_branches: bool = True) -> list[dict[str, object]]:
    return [facts(message) for message in made.messages() if with_branches or message.fate not in LEFT_OUT]


def round_trip(made: ExportSource, folder: Path) -> list[dict[str, object]]:
    data = b"".join(atif.render(made))
    _, group = from_file(builders.put(folder / "atif.json", data))
    without_steps = {call["message_id"] for call in json.loads(data)["extra"]["pollux"]["calls"]}
    return [facts(message) for message in group.messages() if message.id not in without_steps]


@pytest.mark.parametrize("branches", Branches)
@every_release
def test_sessions_of_the_corpus_round_trip(trees: list[Tree], branches: Branches, tmp_path: Path) -> None:
    for tree in trees:
        read = history(tree)
        by_id = {session.id: session for session in read.sessions}
        for session in read.sessions:
            made = export_source(
                session, opened(session), by_id, opened, PRICES, options=ExportOptions(branches=branches)
            )
            assert round_trip(made, tmp_path) == steps_of(made, with_branches=branches is Branches.ALL)
            back, group = from_file(tmp_path / "atif.json")
            assert back.id == session.id
            assert _sum(back.calls) == _sum(session.calls), f"{tree.name} {session.id}"
            own = {call.message_id: call.tokens for call in session.calls}
            assert {message.id: message.tokens for message in group.messages() if message.tokens} == own


def _sum(calls: Any) -> Tokens:  # noqa: ANN401
    return sum((call.tokens for call in calls), Tokens())


def test_rewind_round_trips(tmp_path: Path) -> None:
    made = of_log(tmp_path, user("u1"), gemini("g1"), user("u2"), rewind("u2"), user("u3", "again", second=5))
    for branches, fates in ((Branches.ACTIVE, "aaa"), (Branches.ALL, "aara")):
        made = of_log(
            tmp_path,
            *(user("u1"), gemini("g1"), user("u2"), rewind("u2"), user("u3", "again", second=5)),
            options=ExportOptions(branches=branches),
        )
        data = b"".join(atif.render(made))
        _, group = from_file(builders.put(tmp_path / "t.json", data))
        assert "".join(message.fate[0] for message in group.messages()) == fates


ODD_PARTS = [
    {"text": "Look: "},
    {"executableCode": {"language": "PYTHON", "code": "print(1)"}},
    {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
    {"somethingNew": [1]},
]


def test_parts_without_a_trajectory_form_round_trip(tmp_path: Path) -> None:
    made = of_log(tmp_path, user(), gemini("g1", ODD_PARTS, toolCalls=[call()]))
    assert written(made)["steps"][1]["message"] == "Look: "
    _, group = from_file(builders.put(tmp_path / "t.json", b"".join(atif.render(made))))
    assert [message.parts for message in group.messages()] == [message.parts for message in made.messages()]


@pytest.mark.parametrize(
    "response",
    [{"a": [1]}, {"output": "done", "error": "but late"}, {"output": {"deep": True}}, {"error": ""}, {}, "plain", [1]],
)
def test_any_response_round_trips(tmp_path: Path, response: object) -> None:
    result = [{"functionResponse": {"id": "c1", "name": "read_file", "response": response}}]
    made = of_log(tmp_path, gemini("g1", toolCalls=[call(result=result)]))
    assert round_trip(made, tmp_path) == steps_of(made)


def test_picture_of_a_result_is_a_content_part(tmp_path: Path) -> None:
    picture = {"inlineData": {"mimeType": "image/png", "data": family.PIXEL}}
    made = family.placed(
        of_log(tmp_path, gemini(toolCalls=[call(result=[*call()["result"], picture])])), tmp_path / "out"
    )
    content = written(made)["steps"][0]["observation"]["results"][0]["content"]
    assert [part["type"] for part in content] == ["text", "image"]
    _, group = from_file(builders.put(tmp_path / "t.json", b"".join(atif.render(made))))
    (one,) = next(group.messages()).tool_calls
    assert [each.media_type for each in one.attachments] == ["image/png"]
