"""Session files of any size that are hard to read; twice the records must need at most twice the work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from tests.builders import (
    NAME,
    SESSION,
    Wire,
    answers,
    asks,
    call,
    checkpoint,
    document,
    gemini,
    header,
    log,
    notice,
    preamble,
    rewind,
    tokens,
    updates,
    user,
)

Files: TypeAlias = dict[str, bytes]
"""The files of one chats folder, by their names."""
Shape: TypeAlias = Callable[[int], Files]
Turns: TypeAlias = Callable[[int], Iterator[Wire]]
Events: TypeAlias = Callable[[int, list[Wire]], Iterator[Wire]]

_TALK = f"{NAME}.jsonl"


def _bare(id_: str, *parts: Wire) -> Wire:
    """Return an answer as the client writes it when it records its history again."""
    message = gemini(id_, [*parts])
    del message["model"]
    return message


def _talk(turns: Turns, events: Events) -> Shape:
    def files(n: int) -> Files:
        messages = list(turns(n))
        return {_TALK: log(header(), *messages, *events(n, messages))}

    return files


# Conversations of `n` messages.


def _prompts(n: int) -> Iterator[Wire]:
    yield from (user(f"u{i}", f"prompt {i}") for i in range(n))


def _same_prompts(n: int) -> Iterator[Wire]:
    yield from (user(f"u{i}", "y") for i in range(n))


def _same_answers(n: int) -> Iterator[Wire]:
    yield from (gemini(f"u{i}", "Done.", tokens=tokens(i)) for i in range(n))


def _calls(n: int) -> Iterator[Wire]:
    for i in range(0, n, 2):
        yield gemini(f"u{i}", "", toolCalls=[call(f"c{i}")])
        yield user(f"u{i + 1}", [answers(f"c{i}")])


def _same_calls(n: int) -> Iterator[Wire]:
    """Yield calls whose IDs repeat in each answer."""
    for i in range(0, n, 2):
        yield gemini(f"u{i}", "", toolCalls=[call("c0"), call("c1")])
        yield user(f"u{i + 1}", [answers("c0"), answers("c1")])


def _dropped(n: int) -> Iterator[Wire]:
    yield from _same_answers(n)
    yield rewind("u0")
    yield gemini("last", "Done.")


def _long_texts(n: int) -> Iterator[Wire]:
    for i in range(0, n, 2):
        yield user(f"u{i}", f"{'why ' * 300}{i // 4}")
        yield gemini(f"u{i + 1}", f"{'because ' * 50}{i // 4}")


# Later records, `n` of each.


def _rewinds(n: int, _said: list[Wire]) -> Iterator[Wire]:
    for i in range(n):
        yield user(f"r{i}", "once more")
        yield rewind(f"r{i}")


def _rewinds_to_nothing(n: int, _said: list[Wire]) -> Iterator[Wire]:
    yield from (rewind(f"nobody{i}") for i in range(n))


def _checkpoints_of_one(n: int, _said: list[Wire]) -> Iterator[Wire]:
    yield from (checkpoint(user(f"p{i}", f"prompt {n + i}")) for i in range(n))


def _checkpoints_with_new_ids(n: int, messages: list[Wire]) -> Iterator[Wire]:
    words = next((message["content"] for message in messages if isinstance(message.get("content"), str)), "y")
    for i in range(n // 2):
        yield checkpoint(user(f"p{i}", words), _bare(f"q{i}", {"text": words}))


def _bare_calls(n: int, _said: list[Wire]) -> Iterator[Wire]:
    for i in range(0, n, 2):
        yield _bare(f"b{i}", asks(f"d{i}"))
        yield user(f"b{i + 1}", [answers(f"d{i}")])


def _bare_answers(n: int, _said: list[Wire]) -> Iterator[Wire]:
    yield from (_bare(f"b{i}", {"text": "Done."}, asks("c0")) for i in range(n))


def _repeated_prompts(n: int, _said: list[Wire]) -> Iterator[Wire]:
    """Yield repeated prompts after an answer that was recorded again, so that each may be a copy."""
    for i in range(n // 2):
        yield _bare(f"b{i}", {"text": "Done."})
        yield user(f"p{i}", "y")


def _recorded_again(n: int, messages: list[Wire]) -> Iterator[Wire]:
    """Yield changed messages, each of which needs a search for copies."""
    for i in range(n // 2):
        one = messages[i % len(messages)]
        if "id" in one:
            yield one | {"content": f"changed {i % 2}"}
        yield _bare(f"b{i}", {"text": "changed 1"})


def _bursts(n: int, _said: list[Wire]) -> Iterator[Wire]:
    """Yield a short history many times, as the masking of tool output records it."""
    for i in range(n // 4):
        burst = [user(f"p{i}", "y"), _bare(f"q{i}", {"text": f"Done {i % 3}."})]
        yield from burst
        yield checkpoint(*burst)


def _compressions(n: int, messages: list[Wire]) -> Iterator[Wire]:
    tail = messages[-1]
    for i in range(n // 4):
        snapshot = user(f"s{i}", [{"text": f"<state_snapshot>{i}</state_snapshot>"}])
        yield checkpoint(preamble(), snapshot, tail | {"id": f"t{i}"})
        yield user(f"p{i}", "go on")


def _settings(n: int, _said: list[Wire]) -> Iterator[Wire]:
    yield from (updates(summary=f"title {i}", memoryScratchpad={"version": i}) for i in range(n))


def _fused(n: int, messages: list[Wire]) -> Iterator[Wire]:
    """Yield the conversation as one message, many times."""
    texts = [{"text": message["content"]} for message in messages if isinstance(message.get("content"), str)]
    fused = user("fused", [*preamble()["content"], *texts, {"text": "y"}])
    yield fused
    yield gemini("g", "ok")
    yield checkpoint(fused, gemini("g", "ok"))
    for i in range(n // 4):
        yield checkpoint(user("fused", ""), user(f"p{i}", f"and {i}"))


_CONVERSATIONS: dict[str, Turns] = {
    "prompts": _prompts,
    "equal prompts": _same_prompts,
    "equal answers": _same_answers,
    "calls": _calls,
    "calls with equal IDs": _same_calls,
    "dropped answers": _dropped,
    "long texts": _long_texts,
}
_EVENTS: dict[str, Events] = {
    "rewinds": _rewinds,
    "rewinds to nothing": _rewinds_to_nothing,
    "checkpoints of one message": _checkpoints_of_one,
    "checkpoints with new IDs and the same text": _checkpoints_with_new_ids,
    "bare calls": _bare_calls,
    "bare answers": _bare_answers,
    "repeated prompts": _repeated_prompts,
    "messages recorded again": _recorded_again,
    "bursts": _bursts,
    "compressions": _compressions,
    "settings": _settings,
    "fused turns": _fused,
}


# Many files.


def _agents(n: int) -> Files:
    calls = [gemini(f"g{i}", "", toolCalls=[call(f"c{i}", "invoke_agent", agentId=f"agent-{i}")]) for i in range(n)]
    nested = {f"{SESSION}/agent-{i}.jsonl": _agent(f"agent-{i}") for i in range(n)}
    return {_TALK: log(header(), *calls), **nested}


def _unnamed_agents(n: int) -> Files:
    """Return subagents that no call names, in reverse order."""
    calls = [
        gemini(f"g{i}", "", toolCalls=[call(f"c{i}", "invoke_agent", args={"prompt": f"look at {n - i}"})])
        for i in range(n)
    ]
    nested = {f"{SESSION}/agent-{i:05}.jsonl": _agent(f"agent-{i}", f"Please look at {i}") for i in range(n)}
    return {_TALK: log(header(), *calls), **nested}


def _nested_agents(n: int) -> Files:
    talk = log(header(), gemini("g", "", toolCalls=[call("c", "invoke_agent", agentId="agent-0")]))
    return {_TALK: talk, **{f"{SESSION}/agent-{i}.jsonl": _agent(f"agent-{i}", starts=i + 1) for i in range(n)}}


def _agent(id_: str, prompt: str = "look around", starts: int | None = None) -> bytes:
    more = [] if starts is None else [call(f"c-{id_}", "invoke_agent", agentId=f"agent-{starts}")]
    return log(header(id_, kind="subagent"), user(f"u-{id_}", prompt), gemini(f"g-{id_}", "ok", toolCalls=more))


def _name(i: int, suffix: str) -> str:
    return f"session-2026-11-{1 + i // 1440 % 28:02}T{i // 60 % 24:02}-{i % 60:02}-{SESSION[:8]}{suffix}"


def _stubs(n: int) -> Files:
    stubs = {_name(i, ".jsonl"): log(header(), checkpoint(preamble())) for i in range(n)}
    return {_TALK: log(header(), user(), gemini()), **stubs}


def _parts(n: int) -> Files:
    return {_name(i, ".jsonl"): log(header(), user(f"u{i}", "y"), gemini(f"g{i}", "ok")) for i in range(n)}


def _twins(n: int) -> Files:
    old = {_name(i, ".json"): document(user(f"u{i}", "y")) for i in range(n // 2)}
    return old | {_name(i, ".jsonl"): log(header(), user(f"u{i}", "y"), gemini(f"g{i}", "ok")) for i in range(n // 2)}


def _without_header(n: int) -> Files:
    return {_name(i, ".jsonl"): log(user(f"u{i}", "y"), gemini(f"g{i}", "ok")) for i in range(n)}


def _imports(n: int) -> Files:
    messages = [user(), gemini(tokens=tokens())]
    return {
        f"session-{1794770357000 + i}-{i:08x}.jsonl": log(
            header(f"{i:08x}-import"), notice(f"import-{i}", "Imported session from a"), *messages
        )
        for i in range(n)
    }


def _headers(n: int) -> Files:
    return {_TALK: log(*(record for i in range(n // 2) for record in (header(), user(f"u{i}", "y"))))}


_MANY_FILES: dict[str, Shape] = {
    "subagents": _agents,
    "subagents that no call names": _unnamed_agents,
    "nested subagents": _nested_agents,
    "stubs": _stubs,
    "files of one session": _parts,
    "twins": _twins,
    "files without a header": _without_header,
    "imports": _imports,
    "headers": _headers,
}

ORDINARY: dict[str, Shape] = {
    "rewinds": _talk(_prompts, _rewinds),
    "checkpoints of one message": _talk(_prompts, _checkpoints_of_one),
    "checkpoints with new IDs and the same text": _talk(_same_answers, _checkpoints_with_new_ids),
    "bare calls": _talk(_prompts, _bare_calls),
    "repeated prompts": _talk(_same_prompts, _repeated_prompts),
    "bursts": _talk(_same_prompts, _bursts),
    "subagents": _agents,
    "stubs": _stubs,
}
"""The shapes that once needed time in proportion to the square of their size."""

ALL: dict[str, Shape] = {
    **{
        f"{talk}, {happened}": _talk(turns, events)
        for talk, turns in _CONVERSATIONS.items()
        for happened, events in _EVENTS.items()
    },
    **_MANY_FILES,
}
