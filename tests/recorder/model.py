"""A small model of the client's recorder, which turns actions into session files and their expected reading.

`Client` takes actions one by one (`Ask`, `Rewind`, `Compress`, …), writes the session files that the client would
write, and records beside them the author of each message, the prompt of each tool call, the tokens of each model call
and the fate of each message. These facts never come from the bytes: each turn of the model's history carries the IDs
of the messages that it repeats, so the model knows that a message with a new ID is a copy.

What a release writes was read in the published packages of 0.38.2, 0.40.1, 0.47.0 and 0.61.0 (the recorder, the chat,
the conversion of a session to a history, compression, and the commands that replace the history) and compared with the
files that these releases left (`test_model.py` names them):

- document (0.38): one object, written anew at every change; a rewind cuts the list.
- log (0.40): one line for each message, again whenever it changes; `$rewindTo`; compression and `/chat resume` leave no
  trace but the results of tool calls written once more.
- log with checkpoints (0.47): `$set.messages` whenever the history is not what was recorded; tool responses are
  messages; `/chat resume` records the loaded history line by line, then as a checkpoint.
- 0.55 also joins neighbouring turns of one side and leaves thoughts out when it hands out its history, takes back a
  request that failed, and closes a tool response that nobody answered with a text of its own.
- 0.61 also takes back everything since the prompt when a request is cancelled, and records the whole history anew
  when a tool is declined.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

Wire: TypeAlias = dict[str, Any]

ROOT = "/home/alice/webapp"
HASH = hashlib.sha256(ROOT.encode()).hexdigest()
PREAMBLE = "d04923d38bb0f6017037e74183378ef4"
CONTEXT = (
    "<session_context>\nThis is the Gemini CLI. We are setting up the context for our chat.\n"
    f"- **Workspace Directories:**\n  - {ROOT}\n- **Directory Structure:**\n{ROOT}/\n├───fix.py\n└───tests/\n"
    "</session_context>"
)
INTERRUPTED = "[The previous response was interrupted before it completed.]"
THANKS = "Got it. Thanks for the additional context!"
CANCELLED = "Request cancelled."

ACTIVE, REWOUND, ROLLED_BACK, COMPRESSED, REPLACED = "active", "rewound", "rolled_back", "compressed", "replaced"


@dataclass(frozen=True)
class Release:
    """The behaviour of a release; the docstring of the module names the release in which each began."""

    name: str
    is_log: bool = True
    has_checkpoints: bool = True
    fuses: bool = True
    takes_back_failed: bool = True
    takes_back_cancelled: bool = True
    records_declined_anew: bool = True


NEWEST = Release("0.61")
FUSING = replace(NEWEST, name="0.55", takes_back_cancelled=False, records_declined_anew=False)
CHECKPOINTS = replace(FUSING, name="0.47", fuses=False, takes_back_failed=False)
LOG = replace(CHECKPOINTS, name="0.40", has_checkpoints=False)
DOCUMENT = replace(LOG, name="0.38", is_log=False)
RELEASES = (DOCUMENT, LOG, CHECKPOINTS, FUSING, NEWEST)


@dataclass(frozen=True)
class Call:
    """A tool call that the model requests, and its outcome.

    `declined` is the user's answer to the question, `cancelled` is Ctrl-C while the tool runs.
    """

    name: str = "read_file"
    outcome: str = "success"
    id: str | None = None
    """The ID from the API, which may repeat in each answer; without one, the client creates an ID."""
    output: str = "text of the file"
    agent: tuple[ModelAnswer, ...] = ()
    """The answers of the subagent that it starts."""


@dataclass(frozen=True)
class ModelAnswer:
    """One response of the model."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    n_thoughts: int = 0
    notice: str | None = None
    """A notice that the client records between the answer and the results of its calls."""
    end: str = ""
    """`cut` by Ctrl-C, or `failed`: then nothing of it is recorded."""


@dataclass(frozen=True)
class Ask:
    """A prompt, and the answers of the model until its turn ends."""

    text: str
    answers: tuple[ModelAnswer, ...]


@dataclass(frozen=True)
class Shell:
    """A command in shell mode."""

    command: str


@dataclass(frozen=True)
class Notice:
    """A text that the client itself writes."""

    text: str
    kind: str = "info"


@dataclass(frozen=True)
class Rewind:
    """`/rewind` to a user message of the record, counted from the last."""

    back: int


@dataclass(frozen=True)
class Compress:
    """`/compress`, which keeps at most this number of prompts."""

    keep: int


@dataclass(frozen=True)
class Mask:
    """Replace the outputs of tools in the history, as the client does when there are many."""


@dataclass(frozen=True)
class Save:
    """`/chat save`."""

    tag: str


@dataclass(frozen=True)
class Load:
    """`/chat resume`."""

    tag: str


@dataclass(frozen=True)
class Clear:
    """`/clear`, which begins another session."""


@dataclass(frozen=True)
class Start:
    """Another process with a session of its own; `is_twin` shares the file of the session before."""

    is_later: bool = False
    is_twin: bool = False


@dataclass(frozen=True)
class Resume:
    """`--resume` of an earlier session in another process, perhaps of a newer release."""

    session: int
    is_later: bool = False
    release: int = 0


@dataclass(frozen=True)
class ImportSession:
    """`--session-file` with the file of an earlier session, in another process."""

    session: int
    is_later: bool = False


Action: TypeAlias = (
    Ask | Shell | Notice | Rewind | Compress | Mask | Save | Load | Clear | Start | Resume | ImportSession
)


@dataclass
class MessageTruth:
    """The expected reading of one message."""

    id: str
    kind: str
    role: str
    """`prompt`, `answer`, `calls` (a message that only holds tool calls), `response`, `loaded`, `notice`, `other`."""
    text: str = ""
    fate: str = ACTIVE
    tokens: Wire | None = None
    calls: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Name and status of each tool call."""
    prompt: str | None = None
    """The ID of the prompt that it belongs to."""
    answer: str | None = None
    """The ID of the answer whose tool calls these are, where they have a message of their own."""
    is_imported: bool = False
    is_lost: bool = False
    """Whether the client dropped it by mistake when it rebuilt its history, so that its fate is not checked."""


@dataclass
class SessionTruth:
    """The expected reading of one session."""

    id: str
    parent: str | None = None
    source: str | None = None
    """The session that it was imported from."""
    messages: dict[str, MessageTruth] = field(default_factory=dict)
    """The messages in order, by the ID of their first recording."""

    def with_calls(self, ids: set[str]) -> set[str]:
        """Return IDs of messages with those of the answers of their calls and the calls of their answers."""
        pairs = [{message.id, message.answer} for message in self.messages.values() if message.answer]
        return ids.union(*(pair for pair in pairs if not ids.isdisjoint(pair)))


@dataclass(frozen=True)
class Turn:
    """A turn of the history that goes to the model."""

    id: str
    role: str
    parts: list[Wire]


@dataclass(frozen=True)
class Content:
    """A turn without ID, and the messages of a session that it repeats."""

    role: str
    parts: list[Wire]
    session: str
    sources: tuple[str, ...]


@dataclass(frozen=True)
class Write:
    """Bytes appended to a file, or its new contents."""

    path: str
    data: bytes
    is_whole: bool = False


@dataclass
class Chat:
    """One conversation of one process: its file, what is recorded, and the history."""

    session: str
    path: str
    cached: list[Wire] = field(default_factory=list)
    history: list[Turn] = field(default_factory=list)
    fields: Wire = field(default_factory=dict)
    """The metadata, for documents."""
    thoughts: list[Wire] = field(default_factory=list)
    tokens: Wire | None = None


class RecorderModel:
    """The client of one user, as a series of processes."""

    def __init__(self, release: Release = NEWEST) -> None:
        self.release = release
        self.writes: list[Write] = []
        self.ends: list[int] = []
        """The number of writes after each action."""
        self.truths: dict[str, SessionTruth] = {}
        self._files: dict[str, bytes] = {}
        self._n = 0
        self._n_sessions = 0
        self._clock = datetime(2026, 11, 15, 19, 30, tzinfo=UTC)
        self._saved: dict[str, list[Content]] = {}
        self._sources: dict[tuple[str, str], tuple[str, ...]] = {}
        """By session and ID: the messages that a recording repeats; an original repeats itself."""
        self._responses: dict[tuple[str, str, str], str] = {}
        """By session, message and call: the first recording of the response."""
        self._loaded: dict[tuple[str, str, tuple[str, ...], str], str] = {}
        """By session, other session, its messages and their words: the message as which they were loaded."""
        self._adopted: dict[tuple[str, str, str], str] = {}
        """By importing session, source session and message in it: the imported message."""
        self._order: list[str] = []
        """Main sessions, in the order of their beginning."""
        self._paths: dict[str, str] = {}
        self._muddled: set[str] = set()
        """Files that sessions share without checkpoints, so that the client confuses their messages."""
        self._releases: dict[str, int] = {}
        self._prompt: str | None = None
        self.chat = self._begin(self._new_session())

    @property
    def files(self) -> dict[str, bytes]:
        """The files as they are now, by their path below the project's folder."""
        return dict(self._files)

    @property
    def truth(self) -> SessionTruth:
        """The expected reading of the current session."""
        return self.truths[self.chat.session]

    def do(self, action: Action) -> bool:
        """Return whether the client allows an action now, and carry it out if it does."""
        match action:
            case Ask(text, answers):
                self._ask(text, answers)
            case Shell(command):
                self._shell(command)
            case Notice(text, kind):
                self._notice(text, kind)
            case Rewind(back):
                return self._rewind(back)
            case Compress(keep):
                return self._compress(keep)
            case Mask():
                return self._mask()
            case Save(tag):
                return self._save(tag)
            case Load(tag):
                return self._load_saved(tag)
            case Clear():
                return self._is_worth_keeping() and self._start(is_later=False, is_twin=False)
            case Start(is_later, is_twin):
                return self._is_worth_keeping() and self._start(is_later=is_later, is_twin=is_twin)
            case Resume(session, is_later, release):
                return self._is_worth_keeping() and self._resume(session, release, is_later=is_later)
            case ImportSession(session, is_later):
                return self._is_worth_keeping() and self._import(session, is_later=is_later)
        return True

    def can_be_read(self, id_: str) -> bool:
        """Return whether the client would find this session, and no other, in its file."""
        path = self._paths[id_]
        last = next(session_id for session_id, own in reversed(self._paths.items()) if own == path)
        return path in self._files and path not in self._muddled and last == id_

    def is_ambiguous(self, tag: str) -> bool:
        """Return whether the files do not show which messages `/chat resume` would load.

        If nothing is recorded, no checkpoint follows the loaded messages, and they look typed. A loaded message with
        the text of another message of this session that was loaded or dropped cannot be distinguished from it, nor can
        two equal loaded messages.
        """
        own, alive = self.truth.messages, self._alive()
        foreign = [content.sources for content in self._saved.get(tag, ()) if content.session != self.chat.session]
        if len(foreign) > len(set(foreign)):
            return True
        words = [
            (message.kind, message.text) for message in own.values() if message.role in ("prompt", "answer", "loaded")
        ]
        calls = {id_ for message in own.values() for id_ in message.calls}
        for content in self._saved.get(tag, ()):
            kind = "user" if content.role == "user" else "gemini"
            for part in content.parts if content.session != self.chat.session else ():
                if (kind, part.get("text")) in words or part.get("functionCall", {}).get("id") in calls:
                    return True
            dropped = [own[source] for source in content.sources if source in own and source not in alive]
            if any(words.count((message.kind, message.text)) > 1 for message in dropped):
                return True
        return all(record["type"] not in ("user", "gemini") for record in self.chat.cached)

    # The conversation

    def _ask(self, text: str, answers: Sequence[ModelAnswer]) -> None:
        chat = self.chat
        n_before, n_seen = len(chat.history), len(self._handed_out())
        if self.release.fuses and chat.history and _has_response(chat.history[-1]):
            chat.history.append(Turn(self._id(), "model", [{"text": INTERRUPTED}]))
        parts = [{"text": text}]
        message = self._record("user", text if not self.release.is_log and self.release.name < "0.28" else parts)
        self._say(message, "prompt", text)
        self._prompt = message["id"]
        chat.history.append(Turn(message["id"], "user", parts))
        is_first = True
        for answer in answers:
            if answer.end:
                self._break_off(answer, n_before, is_first=is_first)
                return
            turn = self._answer(answer)
            if not answer.calls:
                return
            statuses = {call.outcome for call in answer.calls}
            if "cancelled" in statuses:
                self._notice(CANCELLED)
                self._results(answer, turn)
                return
            if answer.notice is not None:
                self._notice(answer.notice)
            n_answered = len(self._handed_out())
            responses = self._results(answer, turn, is_recorded=statuses != {"declined"})
            if statuses == {"declined"}:
                self._decline(responses, n_seen)
                return
            n_seen, is_first = n_answered, False

    def _answer(self, answer: ModelAnswer) -> Turn:
        """Record a response: thoughts and counts first, then the message, which takes both."""
        chat = self.chat
        self._n += 1
        for n in range(answer.n_thoughts):
            chat.thoughts.append({"subject": f"Thought {n}", "description": "x", "timestamp": self._now()})
        counts = _tokens(self._n, answer)
        last = chat.cached[-1] if chat.cached else None
        if not self.release.has_checkpoints and last and last["type"] == "gemini" and not last.get("tokens"):
            last["tokens"] = counts | {"output": 1, "thoughts": 0, "total": counts["input"] + 1}  # of the first chunk
            self._push(last)
        chat.tokens = counts
        message = self._record("gemini", answer.text, model="gemini-3.8-flash")
        message_truth = self._say(message, "answer", answer.text)
        message_truth.tokens = counts
        parts: list[Wire] = [{"text": answer.text}] if answer.text else []
        for n, call in enumerate(answer.calls):
            parts.append({"functionCall": {"name": call.name, "args": _args(call), "id": self._call_id(call, n)}})
        turn = Turn(message["id"], "model", parts)
        chat.history.append(turn)
        return turn

    def _results(self, answer: ModelAnswer, turn: Turn, *, is_recorded: bool = True) -> list[Wire]:
        """Record the results of an answer's calls, and the response to the model where there is one."""
        ids = [part["functionCall"]["id"] for part in turn.parts if "functionCall" in part]
        records, responses = [], []
        for call, id_ in zip(answer.calls, ids, strict=True):
            response = {"functionResponse": {"id": id_, "name": call.name, "response": _response(call)}}
            status = "cancelled" if call.outcome == "declined" else call.outcome
            record = {
                "id": id_,
                "name": call.name,
                "args": _args(call),
                "result": [response],
                "status": status,
                "timestamp": self._now(),
                "description": "a.txt",
                "displayName": call.name,
                "renderOutputAsMarkdown": False,
            }
            if call.agent:
                record["agentId"] = self._run_agent(call)
            records.append(record)
            responses.append(response)
        message = self._record_calls(records)
        calls_message = self.truth.messages.get(message["id"])
        if calls_message is None:
            calls_message = self._say(message, "calls", "")
            calls_message.answer = turn.id
        for record in records:
            calls_message.calls[record["id"]] = (record["name"], record["status"])
        if self.release.has_checkpoints and is_recorded:
            self._respond(responses, (turn.id, message["id"]), ids)
        elif not self.release.has_checkpoints:
            turn = Turn(self._id(), "user", responses)
            self._sources[self.chat.session, turn.id] = (f"{message['id']}_response",)  # if it is ever recorded
            self.chat.history.append(turn)
        return responses

    def _respond(self, responses: list[Wire], messages: tuple[str, ...], ids: Sequence[str]) -> None:
        message = self._record("user", responses)
        self._say(message, "response", "")
        for id_ in ids:
            for message_id in messages:
                self._responses[self.chat.session, message_id, id_] = message["id"]
        self.chat.history.append(Turn(message["id"], "user", responses))

    def _decline(self, responses: list[Wire], n_seen: int) -> None:
        self._notice(CANCELLED)
        if self.release.records_declined_anew:
            contents = self._handed_out()
            if len(contents) > n_seen:
                with self._dropping(ROLLED_BACK):
                    self._set_contents(contents[:n_seen])
        elif self.release.has_checkpoints:
            last = next(record for record in reversed(self.chat.cached) if record["type"] == "gemini")
            ids = [response["functionResponse"]["id"] for response in responses]
            answer = self.truth.messages[last["id"]].answer or last["id"]
            self._respond(responses, (last["id"], answer), ids)

    def _break_off(self, answer: ModelAnswer, n_before: int, *, is_first: bool) -> None:
        is_cut = answer.end == "cut"
        takes_back = self.release.takes_back_cancelled if is_cut else self.release.takes_back_failed and is_first
        takes_back = takes_back or (is_cut and self.release.takes_back_failed and is_first)
        if is_cut:
            self._notice(CANCELLED)
        if takes_back:
            with self._dropping(ROLLED_BACK):
                self.chat.history = self.chat.history[:n_before]
                self._sync()
        if not is_cut:
            self._notice("[API Error: scripted]", "error")
            self._notice("This request failed. Press F12 for diagnostics.")

    def _shell(self, command: str) -> None:
        text = f"I ran the following shell command:\n```sh\n{command}\n```\n\nThis produced the following result:\nok"
        parts = [{"text": text}]
        if self.release.has_checkpoints:
            message = self._record("user", parts)
            self._say(message, "other", text)
            self.chat.history.append(Turn(message["id"], "user", parts))
        else:
            self.chat.history.append(Turn(self._id(), "user", parts))

    def _notice(self, text: str, kind: str = "info") -> None:
        self._say(self._record(kind, text), "notice", text)

    def _run_agent(self, call: Call) -> str:
        """Run a subagent to its end, and write its file below that of its parent."""
        parent, release_path = self.chat, self.release
        id_ = self._id()
        suffix = "jsonl" if self.release.is_log else "json"
        self.truths[id_] = SessionTruth(id_, parent.session)
        self.chat = Chat(id_, f"chats/{parent.session}/{id_}.{suffix}")
        self._header("subagent", directories=[ROOT])
        prompt = self._prompt
        parts = [{"text": call.output}]
        message = self._record("user", parts)
        self._say(message, "other", call.output)
        self.chat.history.append(Turn(message["id"], "user", parts))
        for n, answer in enumerate(call.agent):
            calls = tuple(replace(agent_call, id=f"{id_}#{n}-{index}") for index, agent_call in enumerate(answer.calls))
            turn = self._answer(replace(answer, calls=calls))
            if calls:
                self._results(replace(answer, calls=calls), turn)
        self._n += 1
        done = ModelAnswer("", (Call("complete_task", id=f"{id_}#{len(call.agent)}-0"),))
        self._results(done, self._answer(done), is_recorded=False)
        self._update({"summary": "done"})
        self.chat, self.release, self._prompt = parent, release_path, prompt
        return id_

    # Commands that replace the history

    def _rewind(self, back: int) -> bool:
        chat = self.chat
        targets = [n for n, message in enumerate(chat.cached) if message["type"] == "user"]
        if not targets:
            return False
        index = targets[-1 - back % len(targets)]
        index = next(n for n, record in enumerate(chat.cached) if record["id"] == chat.cached[index]["id"])
        cut = self.truth.with_calls(
            {source for message in chat.cached[index:] for source in self._sources_of(message["id"])}
        )
        before = self._alive()
        target = chat.cached[index]["id"]
        chat.cached = chat.cached[:index]
        if self.release.is_log:
            self._append(chat.path, {"$rewindTo": target})
        else:
            self._rewrite()
            self._saved = {
                tag: contents for tag, contents in self._saved.items() if contents[0].session != chat.session
            }
        turns = self._converted(chat.cached)
        chat.history = turns
        self._sync()
        after = self._alive()
        self._settle(before & cut, after, REWOUND)
        self._lose(before - cut - after)
        return True

    def _compress(self, keep: int) -> bool:
        contents = self._handed_out()
        splits = [
            n
            for n, content in enumerate(contents)
            if n and content.role == "user" and not any("functionResponse" in part for part in content.parts)
        ]
        if (
            self.chat.path in self._muddled
            or len(contents) < 3
            or contents[-1].role != "model"
            or any("functionCall" in part for part in contents[-1].parts)
        ):
            return False
        split = splits[-keep] if 0 < keep <= len(splits) else len(contents)
        session = self.chat.session
        snapshot = "<state_snapshot>\n<overall_goal>Keep the webapp working.</overall_goal>\n</state_snapshot>"
        head = [
            Content("user", [{"text": snapshot}], session, ()),
            Content("model", [{"text": THANKS}], session, ()),
        ]
        if not self.release.has_checkpoints:
            kept = [self._unrecorded(content) for content in (*head, *contents[split:])]
            self.chat.history = [Turn(PREAMBLE, "user", [{"text": CONTEXT}]), *kept]
            if self.release.is_log:
                self.chat.cached = self._replayed(self.chat.path)
                self._update({"sessionId": session})
            self._notice("")
            return True
        with self._dropping(COMPRESSED):
            turns = [Turn(PREAMBLE, "user", [{"text": CONTEXT}])]
            turns += [self._turn_of(content) for content in (*head, *contents[split:])]
            self.chat.history = turns
            self.chat.cached = self._replayed(self.chat.path)
            self._update({"sessionId": session})
            self._sync()
        self._notice("")
        return True

    def _mask(self) -> bool:
        contents = self._handed_out()
        if not self.release.has_checkpoints or not any(
            "functionResponse" in part for content in contents for part in content.parts
        ):
            return False
        masked = [replace(content, parts=[_masked(part) for part in content.parts]) for content in contents]
        with self._dropping(None):
            self._set_contents(masked)
        return True

    def _save(self, tag: str) -> bool:
        contents = self._handed_out()
        if len(contents) < 2:  # the preamble alone is no conversation
            return False
        self._saved[tag] = copy.deepcopy(contents)
        self._notice(f"Conversation checkpoint saved with tag: {tag}.")
        return True

    def _load_saved(self, tag: str) -> bool:
        if tag not in self._saved:
            return False
        contents = copy.deepcopy(self._saved[tag])
        if not self.release.has_checkpoints:
            self.chat.history = [self._unrecorded(content) for content in contents]
            self._sync()
            return True
        with self._dropping(REPLACED):
            self._set_contents(contents)
        return True

    # Processes

    def _is_worth_keeping(self) -> bool:
        """Return whether the session can be resumed; newer releases delete other sessions when they end."""
        return any(message.role == "answer" for message in self.truth.messages.values())

    def _start(self, *, is_later: bool, is_twin: bool) -> bool:
        if is_twin and not self.release.is_log:
            return False
        if is_later and not is_twin:
            self._wait()
        like = self.chat.session if is_twin and self._minute() in self.chat.path else None
        if like and not self.release.has_checkpoints:
            self._muddled.add(self.chat.path)
        self.chat = self._begin(self._new_session(like))
        return True

    def _resume(self, session: int, release: int, *, is_later: bool) -> bool:
        id_ = self._order[session % len(self._order)]
        path = self._paths[id_]
        if not self.can_be_read(id_):
            return False
        now = RELEASES[max(release % len(RELEASES), self._releases[id_])]
        if is_later:
            self._wait()
        self.release = now
        messages = self._replayed(path)
        if not now.is_log:
            self.chat = Chat(id_, path, messages, self._converted_loosely(messages), json.loads(self._files[path]))
            return True
        self._releases[id_] = RELEASES.index(now)
        self._begin_in(id_, self._path_of(id_))
        self._go_on(id_, path, messages)
        return True

    def _go_on(self, id_: str, path: str, messages: list[Wire]) -> None:
        """Continue a file with a history that was read before this process wrote anything."""
        if path.endswith(".json"):
            document = json.loads(self._files[path])
            path += "l"
            self._paths[id_] = path
            head = ("sessionId", "projectHash", "startTime", "lastUpdated", "kind")
            self._append(path, {key: document[key] for key in head})
            for message in messages:
                self._append(path, message)
        self.chat = Chat(id_, path)
        before = self._alive_in(messages)
        self.chat.cached = self._replayed(path)
        self.chat.history = [Turn(PREAMBLE, "user", [{"text": CONTEXT}]), *self._converted(messages)]
        self._update({"sessionId": id_})
        if self.release.has_checkpoints:
            self._sync()
            self._lose(before - self._alive())

    def _import(self, session: int, *, is_later: bool) -> bool:
        source = self._order[session % len(self._order)]
        path = self._paths[source]
        if not self.release.has_checkpoints or not self.can_be_read(source):
            return False
        if self._releases[source] > RELEASES.index(self.release):
            return False
        if is_later:
            self._wait()
        id_ = self._new_session()
        stamp = int(self._clock.timestamp() * 1000)
        own = f"chats/session-{stamp}-{id_[:8]}.jsonl"
        kept = [record for record in self._replayed(path) if record["type"] in ("user", "gemini")]
        self._append(own, self._head(id_, "main") | {"messageCount": len(kept), "hasResumableContent": True})
        self.truths[id_] = SessionTruth(id_, source=source)
        self._paths[id_] = own
        notice = {
            "id": f"import-{stamp}",
            "type": "info",
            "content": f"Imported session from {path}",
            "timestamp": self._now(),
        }
        self._append(own, notice)
        self.truths[id_].messages[notice["id"]] = MessageTruth(notice["id"], "info", "notice", str(notice["content"]))
        for message in kept:
            self._append(own, message)
            self._adopt(source, id_, message, {record["id"] for record in kept})
        self._begin_in(id_, self._path_of(id_))
        self._go_on(id_, own, [notice, *kept])
        return True

    def _adopt(self, source: str, id_: str, message: Wire, ids: set[str]) -> None:
        """Copy the expected reading of an imported message to the session that imports it."""
        original = self.truths[source].messages.get(message["id"])
        if original is None:  # a copy is an original here
            original = MessageTruth(
                message["id"], message["type"], "response" if _has_responses(message["content"]) else "other"
            )
        sources = {*self._sources.get((source, message["id"]), ())}
        is_twice = any(
            sources & {*self._sources.get((source, id_in_import), ())} for id_in_import in ids - {message["id"]}
        )
        calls = {call["id"]: original.calls[call["id"]] for call in message.get("toolCalls", ())}
        answer = original.answer if original.answer in ids else None
        taken = replace(original, fate=ACTIVE, calls=calls, answer=answer, is_lost=False, is_imported=True)
        if original.role == "response" and is_twice:  # the files do not show which of two recordings is the original
            taken.role = "other"
        self.truths[id_].messages[message["id"]] = taken
        self._sources[id_, message["id"]] = (message["id"],)
        for source_id in sources:
            self._adopted.setdefault((id_, source, source_id), message["id"])
        for call in message.get("toolCalls", ()):
            response = self._responses.get((source, message["id"], call["id"]))
            if response is not None:
                self._responses[id_, message["id"], call["id"]] = response

    def _begin(self, id_: str) -> Chat:
        """Begin a new session in a new file."""
        path = self._path_of(id_)
        self._paths[id_] = path
        self.truths[id_] = SessionTruth(id_)
        self._begin_in(id_, path)
        return self.chat

    def _begin_in(self, id_: str, path: str) -> None:
        """Write the header and the preamble, as a process does at its start."""
        self._prompt = None
        self.chat = Chat(id_, path)
        self._header("main")
        self.chat.history = [Turn(PREAMBLE, "user", [{"text": CONTEXT}])]
        if self.release.has_checkpoints:
            self._sync()
        else:
            self._sources[id_, PREAMBLE] = (PREAMBLE,)  # if it is ever recorded

    # The history

    def _handed_out(self) -> list[Content]:
        """Return the history as the chat passes it on; newer releases join neighbouring turns of one role."""
        contents: list[Content] = []
        for turn in self.chat.history:
            parts = copy.deepcopy(turn.parts)
            if self.release.fuses:
                parts = [part for part in parts if not part.get("thought")]
            sources = self._sources_of(turn.id)
            if self.release.fuses and contents and contents[-1].role == turn.role:
                last = contents[-1]
                contents[-1] = replace(last, parts=[*last.parts, *parts], sources=(*last.sources, *sources))
            elif parts or not self.release.fuses:
                contents.append(Content(turn.role, parts, self.chat.session, sources))
        return contents

    def _set_contents(self, contents: list[Content]) -> None:
        """Replace the history by turns without IDs; the client records each as a new one, then all in a checkpoint."""
        turns = []
        for content in contents:
            kind = "user" if content.role == "user" else "gemini"
            message = self._record(kind, content.parts)
            turns.append(self._turn_of(content, message))
        self.chat.history = turns
        self._sync()

    def _turn_of(self, content: Content, message: Wire | None = None) -> Turn:
        """Return a turn for content without an ID, and record which messages it repeats."""
        id_ = message["id"] if message else self._id()
        turn = Turn(id_, content.role, content.parts)
        session = self.chat.session
        sources = tuple(source for source in content.sources if source in self.truth.messages)
        if content.session != session:
            sources = self._sources_elsewhere(content, id_)
        if sources:
            self._sources[session, id_] = sources
        else:
            self._say_unheard(turn)
        return turn

    def _unrecorded(self, content: Content) -> Turn:
        """Return a turn that is only in the history, as in releases without checkpoints."""
        turn = Turn(self._id(), content.role, content.parts)
        if content.session == self.chat.session:
            self._sources[self.chat.session, turn.id] = content.sources
        return turn

    def _sources_elsewhere(self, content: Content, id_: str) -> tuple[str, ...]:
        """Return the messages of this session that repeat those of another, and create them when first loaded."""
        adopted = [
            self._adopted.get((self.chat.session, content.session, source_id), source_id)
            for source_id in content.sources
        ]
        if adopted and all(message_id in self.truth.messages for message_id in adopted):
            return tuple(adopted)  # the preamble, or what was imported from there
        text = "".join(part.get("text", "") for part in content.parts)
        key = (self.chat.session, content.session, content.sources, text)
        if key not in self._loaded:
            self._loaded[key] = id_
            kind = "user" if content.role == "user" else "gemini"
            other_messages = self.truths[content.session].messages
            is_own = all(
                source_id in other_messages and other_messages[source_id].role == "other"
                for source_id in content.sources
            )
            role = "other" if is_own else "loaded"  # texts of the client have no author
            self.truth.messages[id_] = MessageTruth(id_, kind, role, text, prompt=self._prompt)
        return (self._loaded[key],)

    def _converted(self, messages: list[Wire]) -> list[Turn]:
        """Rebuild a history from recorded messages, as at a resume or rewind."""
        turns = []
        for message in messages:
            content = message["content"]
            parts = [{"text": content}] if isinstance(content, str) else copy.deepcopy(content)
            if message["type"] == "user":
                text = "".join(part.get("text", "") for part in parts).strip()
                has_response = any("functionResponse" in part for part in parts)
                if has_response or (text and not text.startswith(("/", "?", "<session_context>", "<hook_context>"))):
                    turns.append(Turn(message["id"], "user", parts))
            elif message["type"] == "gemini":
                turns += self._converted_answer(message, parts if content else [])
        return turns

    def _converted_answer(self, message: Wire, parts: list[Wire]) -> Iterator[Turn]:
        calls = message.get("toolCalls") or []
        if not any("functionCall" in part or part.get("thought") for part in parts):
            thoughts = [
                {"text": f"**{thought['subject']}** {thought['description']}", "thought": True}
                for thought in message.get("thoughts") or ()
            ]
            asked = [{"functionCall": {"id": call["id"], "name": call["name"], "args": call["args"]}} for call in calls]
            parts = [*thoughts, *parts, *asked]
        if not parts:
            return
        yield Turn(message["id"], "model", parts)
        responses = [part for call in calls for part in copy.deepcopy(call["result"])]
        if not responses:
            return
        id_ = f"{message['id']}_response"
        recorded = [self._responses.get((self.chat.session, message["id"], call["id"])) for call in calls]
        sources = tuple(dict.fromkeys(source for source in recorded if source))
        if (self.chat.session, id_) not in self._sources:
            self._sources[self.chat.session, id_] = sources or (id_,)
        yield Turn(id_, "user", responses)

    def _converted_loosely(self, messages: list[Wire]) -> list[Turn]:
        return [Turn(PREAMBLE, "user", [{"text": CONTEXT}]), *self._converted(messages)]

    # The record

    def _sync(self) -> None:
        """Write a checkpoint if the history differs from the record (with checkpoints), or results again (without)."""
        chat = self.chat
        if not self.release.has_checkpoints:
            self._sync_results()
            return
        is_changed = False
        messages = []
        for turn in chat.history:
            recorded = next((record for record in chat.cached if record["id"] == turn.id), None)
            if recorded is None:
                is_changed = True
                messages.append(self._message("user" if turn.role == "user" else "gemini", turn.parts, turn.id))
                self._say_unheard(turn)
            else:
                is_changed = is_changed or recorded["content"] != turn.parts
                messages.append(recorded | {"content": turn.parts})
        for turn in chat.history:
            for part in turn.parts if turn.role == "user" else ():
                call = _call_of(messages, part.get("functionResponse", {}).get("id"))
                if call is not None and call["result"] != turn.parts:
                    call["result"] = turn.parts
                    is_changed = True
        if is_changed or len(messages) != len(chat.cached):
            chat.cached = messages
            self._update({"messages": messages, "lastUpdated": self._now()})

    def _sync_results(self) -> None:
        results: dict[str, list[Wire]] = {}
        for turn in self.chat.history:
            for part in turn.parts if turn.role == "user" else ():
                if "functionResponse" in part:
                    results.setdefault(part["functionResponse"]["id"], []).append(part)
        for message in self.chat.cached:
            changed = [call for call in message.get("toolCalls") or () if call["id"] in results]
            for call in changed:
                call["result"] = results[call["id"]]
            if changed:
                self._push(message)

    def _record(self, kind: str, content: Any, model: str | None = None) -> Wire:  # noqa: ANN401  text or parts
        message = self._message(kind, content)
        if kind == "gemini":
            chat = self.chat
            message |= {"thoughts": chat.thoughts, "tokens": chat.tokens}
            if model:
                message["model"] = model
            chat.thoughts, chat.tokens = [], None
        self._push(message)
        if self.release.is_log:
            self._update({"lastUpdated": self._now()})
        return message

    def _record_calls(self, records: list[Wire]) -> Wire:
        """Add tool calls to the last message if it is an answer, else record a message for them alone."""
        last = self.chat.cached[-1]
        if last["type"] != "gemini":
            last = self._message("gemini", "") | {"toolCalls": records, "thoughts": [], "model": "gemini-3.8-flash"}
        else:
            last["toolCalls"] = [*last.get("toolCalls", ()), *records]
        self._push(last)
        return last

    def _push(self, message: Wire) -> None:
        chat = self.chat
        place = next((n for n, record in enumerate(chat.cached) if record["id"] == message["id"]), None)
        if place is None:
            chat.cached.append(message)
        else:
            chat.cached[place] = message
        if self.release.is_log:
            self._append(chat.path, message)
        else:
            self._rewrite()

    def _message(self, kind: str, content: Any, id_: str | None = None) -> Wire:  # noqa: ANN401
        return {"id": id_ or self._id(), "timestamp": self._now(), "type": kind, "content": content}

    def _header(self, kind: str, **more: Any) -> None:  # noqa: ANN401
        head = self._head(self.chat.session, kind) | more
        self.chat.fields = head
        if self.release.is_log:
            self._append(self.chat.path, head)

    def _head(self, id_: str, kind: str) -> Wire:
        now = self._now()
        return {"sessionId": id_, "projectHash": HASH, "startTime": now, "lastUpdated": now, "kind": kind}

    def _update(self, fields: Wire) -> None:
        if self.release.is_log:
            self._append(self.chat.path, {"$set": fields})
        else:
            self.chat.fields |= fields
            self._rewrite()

    def _append(self, path: str, record: Wire) -> None:
        data = json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        self._files[path] = self._files.get(path, b"") + data
        self.writes.append(Write(path, data))

    def _rewrite(self) -> None:
        chat = self.chat
        chat.fields["lastUpdated"] = self._now()
        document = chat.fields | {"messages": chat.cached}
        data = json.dumps(document, ensure_ascii=False, indent=2).encode()
        self._files[chat.path] = data
        self.writes.append(Write(chat.path, data, is_whole=True))

    def _replayed(self, path: str) -> list[Wire]:
        """Read the messages of a file as the client does when it loads a session."""
        data = self._files[path]
        if path.endswith(".json"):
            return copy.deepcopy(json.loads(data)["messages"])
        messages: dict[str, Wire] = {}
        for line in data.decode().split("\n")[:-1]:
            record = json.loads(line)
            if "$rewindTo" in record:
                ids = list(messages)
                for id_ in ids[ids.index(record["$rewindTo"]) :]:
                    del messages[id_]
            elif "id" in record:
                messages[record["id"]] = record
            elif "messages" in record.get("$set", ()):
                messages = {message["id"]: message for message in record["$set"]["messages"]}
        return list(messages.values())

    # The truth

    def _say(self, message: Wire, role: str, text: str) -> MessageTruth:
        id_ = message["id"]
        message_truth = MessageTruth(id_, message["type"], role, text, prompt=self._prompt)
        self.truth.messages[id_] = message_truth
        self._sources[self.chat.session, id_] = (id_,)
        return message_truth

    def _say_unheard(self, turn: Turn) -> None:
        """Add a message for a turn that has no line of its own and repeats no message."""
        if (
            self._sources.get((self.chat.session, turn.id), (turn.id,)) == (turn.id,)
            and turn.id not in self.truth.messages
        ):
            role = "response" if _has_response(turn) else "other"
            self._say({"id": turn.id, "type": "user" if turn.role == "user" else "gemini"}, role, "")

    def _sources_of(self, id_: str) -> tuple[str, ...]:
        return self._sources.get((self.chat.session, id_), ())

    def _alive(self) -> set[str]:
        """Return the messages that are part of the conversation."""
        if not self.release.has_checkpoints:
            return self._alive_in(self.chat.cached)
        return self.truth.with_calls({source for turn in self.chat.history for source in self._sources_of(turn.id)})

    def _alive_in(self, messages: list[Wire]) -> set[str]:
        heard = (message["id"] for message in messages if message["type"] in ("user", "gemini"))
        return self.truth.with_calls({source for id_ in heard for source in self._sources_of(id_)})

    @contextmanager
    def _dropping(self, cause: str | None) -> Iterator[None]:
        """Set this fate for messages that a change of the history drops, and `active` for those that it restores."""
        before = self._alive()
        yield
        after = self._alive()
        if cause:
            self._settle(before, after, cause)
        else:
            self._lose(before - after)

    def _settle(self, before: set[str], after: set[str], cause: str) -> None:
        for id_ in before - after:
            self.truth.messages[id_].fate = cause
        for id_ in after:
            self.truth.messages[id_].fate = ACTIVE

    def _lose(self, ids: set[str]) -> None:
        for id_ in ids:
            self.truth.messages[id_].is_lost = True

    # IDs and times

    def _id(self) -> str:
        self._n += 1
        return f"{self._n:08x}-0000-4000-8000-{self._n:012x}"

    def _call_id(self, call: Call, n: int) -> str:
        own_id = call.id or f"{call.name}_{int(self._clock.timestamp() * 1000)}_{n}"
        self._now()
        is_prefixed = self.release.has_checkpoints and "#" not in own_id
        return f"{call.name}__{own_id}" if is_prefixed else own_id

    def _new_session(self, like: str | None = None) -> str:
        self._n_sessions += 1
        head = like[:8] if like else f"{0xA0000000 + self._n_sessions:08x}"
        id_ = f"{head}-0000-4000-9000-{self._n_sessions:012x}"
        self._order.append(id_)
        self._releases[id_] = RELEASES.index(self.release)
        return id_

    def _path_of(self, id_: str) -> str:
        suffix = "jsonl" if self.release.is_log else "json"
        return f"chats/session-{self._minute()}-{id_[:8]}.{suffix}"

    def _minute(self) -> str:
        return self._clock.strftime("%Y-%m-%dT%H-%M")

    def _wait(self) -> None:
        """Wait for the next minute."""
        self._clock = (self._clock + timedelta(minutes=1)).replace(second=0, microsecond=0)

    def _now(self) -> str:
        self._clock += timedelta(milliseconds=1)
        return self._clock.strftime("%Y-%m-%dT%H:%M:%S.") + f"{self._clock.microsecond // 1000:03}Z"


def _tokens(n: int, answer: ModelAnswer) -> Wire:
    n_input, output, thoughts = 1000 + 17 * n, 3 + len(answer.text), 5 * answer.n_thoughts
    total = n_input + output + thoughts
    return {"input": n_input, "output": output, "cached": n % 5, "thoughts": thoughts, "tool": 0, "total": total}


def _args(call: Call) -> Wire:
    if call.agent:
        return {"agent_name": "codebase_investigator", "prompt": call.output}
    return {"file_path": "a.txt"}


def _response(call: Call) -> Wire:
    match call.outcome:
        case "success":
            return {"output": call.output}
        case "error":
            return {"error": "File not found."}
        case "declined":
            return {"error": "[Operation Cancelled] Reason: User denied execution."}
        case _:
            return {"error": "[Operation Cancelled] Reason: Operation cancelled by user"}


def _masked(part: Wire) -> Wire:
    if "functionResponse" not in part:
        return part
    inner = part["functionResponse"]
    return {"functionResponse": inner | {"response": {"output": "<tool_output_masked>\nFull output available at: x"}}}


def _has_response(turn: Turn) -> bool:
    return turn.role == "user" and _has_responses(turn.parts)


def _has_responses(content: Any) -> bool:  # noqa: ANN401  text or parts
    return isinstance(content, list) and any("functionResponse" in part for part in content)


def _call_of(messages: list[Wire], id_: str | None) -> Wire | None:
    """Return the first record of a call, as the client finds it."""
    for message in messages:
        for call in message.get("toolCalls") or () if message["type"] == "gemini" else ():
            if id_ is not None and call["id"] == id_:
                record: Wire = call
                return record
    return None
