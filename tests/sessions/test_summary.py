from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.builders import (
    NAME,
    SESSION,
    Wire,
    at,
    call,
    checkpoint,
    document,
    gemini,
    header,
    instant_of,
    log,
    notice,
    preamble,
    put,
    read_bytes,
    rewind,
    tokens,
    updates,
    user,
)

from pollux.model import Fate, Origin, Project, Role
from pollux.sessions.grouping import OpenSession, open_file
from pollux.sessions.summary import MAX_TITLE, generation, summarize

PROJECT = Project(path="/a")


def group(folder: Path, *records: object, **fields: Any) -> OpenSession:  # noqa: ANN401
    return open_file(put(folder / f"{NAME}.jsonl", log(header(**fields), *records)))


def test_summary_counts_all_messages_calls_and_fates(tmp_path: Path) -> None:
    summary = summarize(
        group(
            tmp_path,
            preamble(),
            user("u1", "first"),
            gemini("g1", "", tokens=tokens(10), toolCalls=[call("c1"), call("c2")]),
            notice(),
            user("u2", "dropped", second=3),
            rewind("u2"),
            user("u3", "last\nwords", second=4),
            gemini("g2", "x", tokens=tokens(20), model="gemini-3-pro-preview", second=5),
            gemini("g3", "x", tokens=tokens(30), second=6),
            notice("e1", kind="error", second=7),
            updates(lastUpdated=at(99), memoryScratchpad={"version": 1}),
            {"$odd": 1},
        ),
        PROJECT,
    )
    assert (summary.id, summary.kind, summary.project, summary.generation) == (SESSION, "main", PROJECT, "jsonl")
    assert (summary.title, summary.title_from, summary.first_prompt, summary.last_prompt) == (
        "first",
        "prompt",
        "first",
        "last\nwords",
    )
    assert (summary.started, summary.ended, summary.updated) == (instant_of(0), instant_of(7), instant_of(99))
    assert summary.counts == {"user": 3, "gemini": 3, "info": 1, "warning": 0, "error": 1}
    assert summary.fates == {Fate.ACTIVE: 8, Fate.REWOUND: 1}
    assert summary.tool_calls == 2
    assert summary.models == ("gemini-2.5-pro", "gemini-3-pro-preview")
    assert [usage.message_id for usage in summary.calls] == ["g1", "g2", "g3"]
    assert [(ref.path.name, ref.role, ref.format) for ref in summary.files] == [(f"{NAME}.jsonl", Role.MAIN, "log")]
    assert [problem.code for problem in summary.problems] == ["unknown-operator"]
    assert summary.extra == {"memoryScratchpad": {"version": 1}}
    assert not summary.is_stub


def test_summary_of_an_empty_session_is_a_stub(tmp_path: Path) -> None:
    summary = summarize(group(tmp_path), PROJECT)
    assert (summary.title, summary.title_from, summary.first_prompt, summary.ended) == ("", "none", "", None)
    assert summary.is_stub


@pytest.mark.parametrize(
    ("fields", "records", "expected"),
    [
        ({"summary": " Fix\nit "}, (user("u1", "one"),), ("Fix it", "summary")),
        ({"summary": " "}, (user("u1", "何を\nしますか"),), ("何を しますか", "prompt")),
        ({"summary": 7}, (user("u1", "one"),), ("one", "prompt")),
        ({}, (user("u1", [{"inlineData": {}}]), user("u2", "two")), ("two", "prompt")),
        ({}, (user("u1", "x" * 500),), ("x" * MAX_TITLE, "prompt")),
        ({}, (user("u1", "Please continue."),), ("", "none")),
        ({}, (checkpoint(preamble()), checkpoint(preamble(), user("u1", "loaded"))), ("loaded", "prompt")),
    ],
)
def test_title_is_the_summary_or_the_first_prompt(
    tmp_path: Path, fields: Wire, records: tuple[Wire, ...], expected: tuple[str, str]
) -> None:
    summary = summarize(group(tmp_path, *records, **fields), PROJECT)
    assert (summary.title, summary.title_from) == expected


def test_title_is_the_agent_prompt_without_user_prompts(tmp_path: Path) -> None:
    session = group(tmp_path, user("u1", "investigate"))
    session.entries[0].origin = Origin.AGENT_PROMPT
    summary = summarize(session, PROJECT)
    assert (summary.title, summary.counts["user"]) == ("investigate", 0)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (document(user(), gemini()), "json"),
        (document(user(), notice()), "json-notices"),
        (document(user(), summary="s"), "json-notices"),
        (document(user(content=[{"text": "a"}]), notice()), "json-parts"),
        (log(header(), user()), "jsonl"),
        (log(header(), checkpoint(preamble())), "jsonl-checkpoints"),
        (b"", "unreadable"),
        (b'[{"role":"user","parts":[{"text":"a"}]}]', "history"),
    ],
)
def test_generation_is_recognised_by_the_records(tmp_path: Path, data: bytes, expected: str) -> None:
    assert generation(read_bytes(tmp_path, data)) == expected
