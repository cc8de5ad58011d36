"""Lines are attributed to the model as in the files that the client left, and after each kind of edit."""

from __future__ import annotations

import hashlib
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import builders
from tests.builders import call, gemini
from tests.corpus.trees import WHOLE, Tree, all_trees, history, needs_corpus
from tests.exports.vac_records import decoded, home_record, record_of, subject_of

from pollux.exports.vac import attribution
from pollux.exports.vac.attribution import FileLines, LineOwner, compared, kept_blocks, lines_of
from pollux.model import DiffDisplay
from pollux.views.diffs import diff_from_display

AI = LineOwner("ai", "gemini-2.5-pro")


def writes(id_: str, content: str, path: str = "a.txt", **more: Any) -> dict[str, Any]:  # noqa: ANN401
    args = {"file_path": path, "content": content} | more.pop("args", {})
    return gemini(f"m-{id_}", "", toolCalls=[call(id_, "write_file", args=args, **more)])


def replaces(id_: str, old: str, new: str, **args: Any) -> dict[str, Any]:  # noqa: ANN401
    args = {"file_path": "a.txt", "old_string": old, "new_string": new} | args
    return gemini(f"m-{id_}", "", toolCalls=[call(id_, "replace", args=args)])


def edits(
    id_: str,
    before: str | None,
    after: str,
    path: str = f"{builders.ROOT}/a.txt",
    **more: Any,  # noqa: ANN401
) -> dict[str, Any]:
    """Return a message with an edit and its diff, as the client shows it."""
    display = {"fileDiff": patch(before or "", after), "filePath": path, "originalContent": before, "newContent": after}
    args = {"file_path": path} | more.pop("args", {})
    fields = gemini(f"m-{id_}", "", toolCalls=[call(id_, "replace", args=args, resultDisplay=display)])
    return fields | more


def patch(before: str, after: str) -> str:
    return "".join(unified_diff(before.splitlines(keepends=True), after.splitlines(keepends=True), "a", "b"))


def files_of(folder: Path, *messages: object) -> dict[str, list[dict[str, Any]]]:
    """Return the conversations of each file."""
    attribution = record_of(folder, *messages).get("file-attribution", {"files": []})
    return {file["path"]: file["conversations"] for file in attribution["files"]}


def lines(conversation: dict[str, Any]) -> list[tuple[int, int]]:
    return [(range_["start-line"], range_["end-line"]) for range_ in conversation["ranges"]]


def only(folder: Path, *messages: object) -> list[tuple[int, int]]:
    ((conversation,),) = files_of(folder, *messages).values()
    return lines(conversation)


# Files of real sessions


def written() -> list[Any]:
    trees = [
        tree for tree in all_trees(WHOLE) if tree.version >= (0, 25) and (tree.folder / "project-files/app").is_dir()
    ]
    return [pytest.param(tree, id=tree.name) for tree in trees]


@needs_corpus
@pytest.mark.parametrize("tree", written())
def test_attributed_lines_equal_the_files_that_the_client_left(tree: Tree) -> None:
    read = history(tree)
    n_ranges = 0
    for session in read.main:
        for file in decoded(subject_of(read, session)).get("file-attribution", {"files": []})["files"]:
            left = lines_of((tree.folder / "project-files" / file["path"]).read_bytes().decode())
            for lines_ in (range_ for conversation in file["conversations"] for range_ in conversation["ranges"]):
                text = "".join(left[lines_["start-line"] - 1 : lines_["end-line"]])
                assert hashlib.sha256(text.encode()).hexdigest() == lines_["content-hash"]
                n_ranges += 1
    assert n_ranges >= 2


# Edits of all kinds


def test_all_lines_of_a_written_file_belong_to_the_model(tmp_path: Path) -> None:
    ((path, (conversation,)),) = files_of(tmp_path, writes("c1", "one\ntwo\n")).items()
    assert path == "a.txt"
    assert conversation == {
        "contributor": {"type": "ai", "model-id": "gemini-2.5-pro"},
        "ranges": [
            {
                "start-line": 1,
                "end-line": 2,
                "content-hash": hashlib.sha256(b"one\ntwo\n").hexdigest(),
                "content-hash-alg": "sha-256",
            }
        ],
        "related": [{"type": "tool-call", "url": "#c1"}],
    }


def test_only_lines_changed_by_an_edit_belong_to_the_model(tmp_path: Path) -> None:
    assert only(tmp_path, edits("c1", "a\nb\nc\nd\n", "a\nB\nc\nd\ne\n")) == [(2, 2), (5, 5)]


def test_lines_move_with_later_edits(tmp_path: Path) -> None:
    first, second = "a\nNEW\nb\n", "x\ny\na\nNEW\nb\n"
    files = files_of(tmp_path, edits("c1", "a\nb\n", first), edits("c2", first, second, model="gemini-3-pro-preview"))
    ((earlier, later),) = files.values()
    assert (earlier["contributor"]["model-id"], lines(earlier)) == ("gemini-2.5-pro", [(4, 4)])
    assert (later["contributor"]["model-id"], lines(later)) == ("gemini-3-pro-preview", [(1, 2)])


def test_lines_changed_between_edits_have_no_owner(tmp_path: Path) -> None:
    left, changed = "one\ntwo\nthree\n", "one\nhers\nthree\nfour\n"
    assert only(tmp_path, edits("c1", None, left), edits("c2", changed, changed + "five\n")) == [(1, 1), (3, 3), (5, 5)]


def test_overwritten_lines_are_not_attributed(tmp_path: Path) -> None:
    first, second = files_of(tmp_path, writes("c1", "a\n"), edits("c2", "a\n", "b\n", "a.txt", model="m"))["a.txt"]
    assert (lines(first), lines(second)) == ([], [(1, 1)])


def test_an_edit_modified_by_the_user_is_mixed(tmp_path: Path) -> None:
    ((conversation,),) = files_of(tmp_path, writes("c1", "a\n", args={"modified_by_user": True})).values()
    assert conversation["contributor"]["type"] == "mixed"


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (replaces("c2", "two", "TWO"), [(1, 3)]),
        (replaces("c2", "one\n", ""), [(1, 2)]),
        (replaces("c2", "o", "0", allow_multiple=True), [(1, 3)]),
        (replaces("c2", "o", "0", expected_replacements=2), [(1, 3)]),
        (replaces("c2", "o", "0"), []),  # the place is not recorded
        (replaces("c2", "nowhere", "x"), []),
    ],
)
def test_edits_of_old_releases_are_applied_to_known_text(
    tmp_path: Path, edit: dict[str, Any], expected: list[tuple[int, int]]
) -> None:
    assert only(tmp_path, writes("c1", "one\ntwo\nthree\n"), edit) == expected


def test_edit_in_an_unknown_place_still_names_the_file(tmp_path: Path) -> None:
    assert only(tmp_path, replaces("c1", "a", "b")) == []


def test_replacing_an_empty_text_creates_a_file(tmp_path: Path) -> None:
    assert only(tmp_path, replaces("c1", "", "a\nb")) == [(1, 2)]


@pytest.mark.parametrize("status", ["error", "cancelled"])
def test_failed_edits_are_not_attributed(tmp_path: Path, status: str) -> None:
    assert files_of(tmp_path, writes("c1", "a\n", status=status)) == {}


def test_arguments_may_be_a_json_text(tmp_path: Path) -> None:
    answer = gemini("m", "", toolCalls=[call("c1", "write_file", args='{"file_path": "a.txt", "content": "x"}')])
    assert only(tmp_path, answer) == [(1, 1)]
    assert files_of(tmp_path, gemini("m", "", toolCalls=[call("c1", "write_file", args="{")])) == {}


def test_calls_are_named_by_url_fragments(tmp_path: Path) -> None:
    ((conversation,),) = files_of(tmp_path, writes("a b#c", "x")).values()
    assert conversation["related"] == [{"type": "tool-call", "url": "#a%20b%23c"}]


@pytest.mark.parametrize(
    ("root", "path", "named"),
    [
        ("/home/alice/webapp", "/home/alice/webapp/src/a.py", "src/a.py"),
        ("/home/alice/webapp", "src/../a.py", "a.py"),
        ("/home/alice/webapp", "/home/alice/webapp2/a.py", "/home/alice/webapp2/a.py"),
        ("C:\\Users\\al\\web", "c:\\users\\al\\web\\src\\a.py", "src/a.py"),
        ("C:\\Users\\al\\web", "src\\a.py", "src/a.py"),
        ("C:\\Users\\al\\web", "D:\\a.py", "D:\\a.py"),
        (None, "/a.py", "/a.py"),
    ],
)
def test_paths_of_files_are_relative_to_the_project(root: str | None, path: str, named: str) -> None:
    assert attribution._relative_path(path, root) == named


def test_edits_of_subagents_are_attributed_in_order(tmp_path: Path) -> None:
    chats = builders.chats(tmp_path)
    asking = gemini("g", "", toolCalls=[call("c0", "invoke_agent", agentId="agent-1")])
    records = [edits("c1", None, "a\n"), asking, edits("c3", "a\nb\n", "a\nb\nc\n")]
    builders.put(chats / f"{builders.NAME}.jsonl", builders.log(builders.header(), builders.user(), *records))
    inner = edits("c2", "a\n", "a\nb\n", model="gemini-agent")
    head = builders.header("agent-1", kind="subagent")
    builders.put(chats / builders.SESSION / "agent-1.jsonl", builders.log(head, builders.user("p", "task"), inner))
    (file,) = home_record(tmp_path, builders.SESSION)["file-attribution"]["files"]
    assert file["path"] == "a.txt"
    assert [lines(conversation) for conversation in file["conversations"]] == [[(1, 1), (3, 3)], [(2, 2)]]


# Line by line

texts = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "\n"]), max_size=12).map("".join)


def diff_of(before: str, after: str) -> Any:  # noqa: ANN401
    return diff_from_display(DiffDisplay(patch(before, after)), None).lines


@given(texts, texts)
def test_diff_gives_the_unchanged_lines(before: str, after: str) -> None:
    old, new = lines_of(before), lines_of(after)
    kept = kept_blocks(diff_of(before, after), len(old), len(new))
    assert kept is not None
    for blocks in (kept, compared(old, new)):
        for start, now, size in blocks:
            assert old[start : start + size] == new[now : now + size]
    assert sum(size for _, _, size in kept) == len(old) - patch(before, after).count("\n-")


@given(texts, texts, texts)
def test_diff_of_other_texts_is_rejected_or_within_the_file(before: str, after: str, other: str) -> None:
    page = FileLines()
    page.observe(other)
    page.write(after, AI, diff_of(before, after))
    assert len(page.owners) == len(lines_of(after))
    assert all(range_.end <= len(lines_of(after)) for range_ in page.ranges(AI))


@pytest.mark.parametrize(
    "diff",
    [
        "@@ -1 +1 @@\n-a\n+b\n@@ -1 +1 @@\n-a\n+b\n",  # goes back
        "@@ -1,2 +5,2 @@\n a\n-b\n+c\n",  # a line that stayed, but in another place
        "@@ -1 +1,2 @@\n a\n+b\n",  # one more than there is
        "@@ -9 +9 @@\n-a\n+b\n",  # behind the end
    ],
)
def test_diff_that_does_not_fit_is_rejected(diff: str) -> None:
    assert kept_blocks(diff_from_display(DiffDisplay(diff), None).lines, 2, 2) is None


def test_long_texts_are_compared_only_at_their_ends() -> None:
    old = [f"{n}\n" for n in range(3000)]
    new = ["0\n", *(f"x{n}\n" for n in range(3000)), "2999\n"]
    assert compared(old, new) == [(0, 0, 1), (2999, 3001, 1)]


def test_lines_are_split_as_the_client_splits_them() -> None:
    assert lines_of("a\u2028b\r\nc\x0bd") == ["a\u2028b\r\n", "c\x0bd"]
