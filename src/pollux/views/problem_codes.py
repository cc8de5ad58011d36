"""What Pollux could save despite each kind of problem; `docs/problems.md` says the same, and what to do."""

from __future__ import annotations

from collections.abc import Mapping

SAVED: Mapping[str, str] = {
    "torn-line": "every complete record in the line; the message says how many",
    "torn-document": "every complete message; the message of the problem says how many",
    "torn-message": "all other messages, and complete messages inside the broken one",
    "empty-file": "nothing",
    "no-header": "all messages; Pollux takes the ID from the file name and from `logs.json`",
    "no-session": "nothing",
    "no-session-id": "all messages; Pollux takes the ID from the file name",
    "no-message": "in a document its content, if it has a type; in a log nothing, but the line stays in the file",
    "bad-value": "everything except that value",
    "value-out-of-range": (
        "the bytes, and everything except that value; metadata is rounded as the client does, "
        "and a time becomes the nearest one that fits"
    ),
    "unknown-record": "nothing of the line, which stays in the file and is counted",
    "split-by-newer-node": "everything; no sum changes, so `usage` does not report it",
    "unknown-operator": "nothing of the line, which stays in the file and is counted",
    "unknown-rewind": "all messages, in the timeline, as rewound",
    "cannot-derive": "the bytes, which `pollux raw FILE` prints, also from the archive; all other sessions",
    "cannot-archive": "all other files",
    "cannot-export": "all other sessions",
    "damaged-archive": "all other files",
    "damaged-facts": "all other sessions",
    "not-indexed": "the session and all others",
    "unreadable-session": "hits in all other sessions",
    "not-sealed": "its files, which are sealed",
    "byte-order-mark": "everything",
    "torn-json": "all values before that point; in logged prompts also those after it",
    "torn-stream": "everything before that",
    "no-event": "all events",
    "unknown-event": "the event, as a message of unknown kind",
    "second-session": "both, as one session",
    "no-output": "nothing",
    "no-history": "nothing",
    "no-prompts": "nothing of it; sessions are not affected",
    "bad-entry": "all other entries; in a history also the entry itself",
    "no-role": "the entry, as a message of unknown kind",
    "unknown-role": "the entry, as a message of unknown kind",
    "no-parts": "the entry, with its other fields",
    "no-steps": "nothing",
    "bad-step": "the step, as a message of unknown kind, and all other steps",
    "inner-trajectory": "the trajectory itself",
    "unreadable-file": "all other files",
    "unreadable-folder": "all other folders",
    "vanished-file": "all other files",
    "not-a-file": "all other files",
    "link-outside": "all other files",
    "broken-marker": "the sessions; their path may be known from another source",
    "broken-registry": "all other entries",
    "broken-json": "the sessions; their path may be known from another source",
    "newer-memory": "the paths, which Pollux determines again without the cache",
    "memory-not-stored": "the paths, for this run",
}
"""By the code of the problem; commands are between backticks."""
