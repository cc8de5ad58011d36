"""The fields of a query on facts of which every row is known, in an archive and in memory."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests import builders
from tests.builders import (
    OTHER,
    PRICES,
    SESSION,
    call,
    gemini,
    header,
    log,
    notice,
    preamble,
    put,
    rewind,
    tokens,
    user,
)
from tests.refreshing import refresh

from pollux.archive import store
from pollux.archive.load_sessions import load_sessions, session_projects
from pollux.archive.memory import in_memory
from pollux.archive.pricing import price_calls
from pollux.cli.demo import HOME as DEMO
from pollux.errors import InvalidQueryError
from pollux.model import Attachment, Fate, Kind, Message, Origin, ToolCall
from pollux.reports import sessions
from pollux.search.facts import (
    CONTENT,
    TIMES,
    FactPlace,
    has_image,
    level,
    messages_of,
    passing_messages,
    present_rows,
    sessions_of,
)
from pollux.search.fields import FIELDS, Level
from pollux.search.lists import commands_run, touched_files
from pollux.search.query import parse_query
from pollux.search.terms import FieldTest
from pollux.sessions.homes import Home
from pollux.sessions.reader import history, opened

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)
KID = "7ffa9413-0e52-481c-aa76-916820b43a25"
WINDOWS_ROOT = r"C:\Users\mara\Shop App"
DIFF = {
    "fileDiff": "--- a\n+++ b\n@@\n-x\n+y\n+z\n",
    "filePath": "/home/alice/webapp/src/Été.ts",
    "originalContent": "x",
}
EXITED = [{"functionResponse": {"id": "c", "name": "x", "response": {"output": "x\nExit Code: 3\nPGID: 1"}}}]


def home(root: Path) -> Home:
    """Write three sessions: in a folder on Linux, its subagent, and in a folder on Windows."""
    chats = builders.chats(root)
    shell = "run_shell_command"
    calls = [
        call("c1", shell, args={"command": "docker compose up -d && npm run format | tail"}, result=EXITED),
        call("c2", shell, args={"command": "rm -rf build"}, status="cancelled"),
        call("c3", args={"file_path": "src/services/userRepository.ts"}),
        call("c4", "replace", args={"file_path": "src/Été.ts"}, resultDisplay=DIFF),
        call("c5", "search_docs", displayName="search_docs (context7 MCP Server)", args={}),
    ]
    put(
        chats / f"{builders.NAME}.jsonl",
        log(
            header(),
            preamble(),
            user("u1", "start it", second=1),
            gemini("g1", second=2, tokens=tokens(1_000_000), toolCalls=calls),
            user("u2", "no", second=60),
            gemini("g2", second=61, tokens=tokens(10), model="gemini-2.5-flash"),
            rewind("u2"),
            notice("e1", "[API Error]", kind="error", second=70),
        ),
    )
    failed = call("k9", args={"file_path": "100%_[a]*?'\"!.txt"}, status="error")
    put(
        chats / SESSION / f"{KID}.jsonl",
        log(
            header(KID, kind="subagent"),
            user("k1", "look", second=20),
            gemini("k2", second=50, tokens=tokens(2_000_000), toolCalls=[failed]),
        ),
    )
    windows = root / ".gemini" / "tmp" / "shop"
    put(windows / ".project_root", WINDOWS_ROOT.encode())
    put(
        windows / "chats" / "session-2026-01-10T08-00-b3e2640d.jsonl",
        log(
            header(
                OTHER, projectHash=hashlib.sha256(WINDOWS_ROOT.encode()).hexdigest(), startTime="2026-01-10T08:00:00Z"
            ),
            user("o1", "buy") | {"timestamp": "2026-01-10T08:00:00.000Z"},
            gemini(
                "o2",
                model="model-without-price",
                tokens=tokens(5),
                toolCalls=[
                    call("c1", "write_file", args={"file_path": r"C:\Users\mara\Shop App\src\cart.py"}),
                    call("c2", shell, args={"command": "git push --force; git status"}, status="error"),
                ],
            )
            | {"timestamp": "2026-01-11T08:00:00.000Z"},
        ),
    )
    return builders.home(root)


@pytest.fixture(params=["archive", "memory"], scope="module")
def known(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    tmp_path = tmp_path_factory.mktemp("facts")
    written = home(tmp_path / "home")
    if request.param == "memory":
        with closing(in_memory(history([written]).sessions, [], opened, prices=PRICES)) as facts:
            yield facts
        return
    archive = store.open_archive(tmp_path / "archive.db")
    refresh(archive, [written])
    price_calls(archive.database, PRICES)
    with closing(archive):
        yield archive.database


@pytest.fixture
def database(known: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Give the facts, and undo what a test changes."""
    known.execute("BEGIN")
    yield known
    known.execute("ROLLBACK")


@pytest.fixture
def place(database: sqlite3.Connection) -> FactPlace:
    return FactPlace(session_projects(database, {}), Path("/home/alice/webapp/src"), Path("/home/alice"))


def field_test(text: str) -> FieldTest:
    (node,) = parse_query(text, now=NOW, zone=UTC).node.nodes
    assert isinstance(node, FieldTest)
    return node


NAMES = {SESSION: "main", KID: "kid", OTHER: "shop"}


def named(ids: set[str] | None) -> str:
    assert ids is not None
    return " ".join(sorted(NAMES[session_id] for session_id in ids))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("project:webapp", "kid main"),
        ("project:WEB", "kid main"),
        ("project:.", "kid main"),
        ("project:/home/alice", "kid main"),
        ("project:shop", "shop"),
        ('project:"Shop App"', "shop"),
        ("project:s*p", "shop"),
        ("project:*app", "kid main shop"),
        ("project:nothing", ""),
        ("project:nothing,shop", "shop"),
        ("dir:/home/alice", "kid main"),
        ("dir:~", "kid main"),
        ("dir:~/other", ""),
        ("dir:alice", "kid main"),
        ("dir:.", ""),
        ("dir:mara/shop", "shop"),
        (r'dir:"C:\Users"', "shop"),
        ("dir:*webapp", "kid main"),
        ("dir:lice/webapp/x", ""),
        ("cost:>1", "kid main"),
        ("cost:>1.3", "kid main"),
        ("cost:<1", ""),
        ("cost:0..1000", "kid main"),
        ("tokens:>=3000000", "main"),
        ("tokens:2M..3M", "kid"),
        ("tokens:<100", "shop"),
        ("tokens:10,2000005", "kid shop"),
        ("model:flash", "main"),
        ("model:GEMINI", "kid main"),
        ("model:gemini-2.5-pro*", "kid main"),
        ("model:2.5-pro*", ""),
        ("model:flash,price", "main shop"),
        ("kind:subagent", "kid"),
        ("kind:main", "main shop"),
        ("kind:main,subagent", "kid main shop"),
        ("has:subagent", "main"),
        ("has:gone", ""),
        ("has:problem", ""),
        ("has:dropped", "main"),
        ("id:6ece", "kid main"),
        ("id:7FFA9413", "kid"),
        ("id:6ece*,b3e", "kid main shop"),
        ("id:ece", ""),
        ("on:2026-11-15", "kid main"),
        ("on:2026-01", "shop"),
        ("on:2026-01-11", "shop"),
        ("on:2025", ""),
        ("after:2026-11-15T19:30:55", "main"),
        ("before:2026-01-11", "shop"),
        ("before:2026-01-10", ""),
        ("last:7d", "kid main"),
        ("last:1h", ""),
    ],
)
def test_sessions(database: sqlite3.Connection, place: FactPlace, text: str, expected: str) -> None:
    assert named(sessions_of(database, field_test(text), place)) == expected
    assert named(sessions_of(database, field_test(text), place, among=NAMES)) == expected
    kid = sessions_of(database, field_test(text), place, among=[KID])
    assert kid is not None
    assert (kid == {KID}) == ("kid" in expected.split())


def messages(database: sqlite3.Connection, test: FieldTest, ids: list[str]) -> str:
    """Name the messages that pass a test, by their IDs."""
    found = []
    for session_id, positions in messages_of(database, test, ids).items():
        for seq in positions:
            row = database.execute(
                "SELECT message_id FROM messages WHERE session_id = ? AND seq = ?", (session_id, seq)
            ).fetchone()
            found.append(row[0][:2])
    return " ".join(sorted(found))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("role:user", "d0 k1 o1 u1 u2"),
        ("role:gemini", "g1 g2 k2 o2"),
        ("role:error", "e1"),
        ("role:warning", ""),
        ("fate:active", "d0 e1 g1 k1 k2 o1 o2 u1"),
        ("fate:rewound", "g2 u2"),
        ("fate:dropped", "g2 u2"),
        ("fate:compressed", ""),
        ("status:error", "k2 o2"),
        ("status:cancelled", "g1"),
        ("status:success,error", "g1 k2 o2"),
        ("status:pending", ""),
        ("file:userRepository.ts", "g1"),
        ("file:USERREPOSITORY", "g1"),
        ("file:services/user", "g1"),
        (r"file:services\user", "g1"),
        ("file:*.ts", "g1"),
        ("file:*.py", "o2"),
        ("file:cart.py", "o2"),
        ("file:src/cart.py", "o2"),
        (r"file:src\cart.py", "o2"),
        ("file:src/*", "g1 o2"),
        ("file:services/*.ts", "g1"),
        ("file:Repository*", ""),
        ("file:été.ts", "g1"),
        ("file:ÉTÉ.TS", "g1"),
        ("file:e\u0301te\u0301.ts", "g1"),
        ("file:100%", "k2"),
        ("file:1%0", ""),
        ("file:100_", ""),
        ("file:_[a]", "k2"),
        ("file:%", "k2"),
        ("file:_", "k2"),
        ("file:!.txt", "k2"),
        ("file:?'", "k2"),
        ("file:a.ts", ""),
        ('file:"\' OR 1=1 --"', ""),
        ("cmd:compose", "g1"),
        ('cmd:"docker compose"', "g1"),
        ('cmd:"Docker Compose UP"', "g1"),
        ("cmd:rm", "g1"),
        ("cmd:form", ""),
        ("cmd:format", "g1"),
        ("cmd:-rf", "g1"),
        ("cmd:--force", "o2"),
        ("cmd:force", "o2"),
        ("cmd:git*", "o2"),
        ('cmd:"git push*"', "o2"),
        ("cmd:push*", ""),
        ("cmd:[a-z]", ""),
        ("cmd:?it", ""),
        ("cmd:tail", "g1"),
        ("tool:shell", "g1 o2"),
        ("tool:Bash", "g1 o2"),
        ("tool:run_shell_command*", "g1 o2"),
        ("tool:ReadFile", "g1 k2"),
        ("tool:file_write", "o2"),
        ("tool:context7", "g1"),
        ("tool:search_docs", "g1"),
        ("tool:grep", ""),
        ("tool:%", ""),
        ("has:error", "e1 k2 o2"),
        ("has:diff", "g1"),
        ("has:dropped", "g2 u2"),
        ("on:2026-01-10", "o1"),
        ("on:2026-01", "o1 o2"),
        ("on:2026-11-15T19:31", "e1 g2 u2"),
        ("after:2026-11-15T19:31:01", "e1 g2"),
        ("before:2026-01-11", "o1"),
        ("last:7d", "d0 e1 g1 g2 k1 k2 u1 u2"),
        ("on:2025", ""),
    ],
)
def test_messages(database: sqlite3.Connection, place: FactPlace, text: str, expected: str) -> None:
    test = field_test(text)
    assert level(test) == Level.MESSAGE
    assert messages(database, test, [*NAMES]) == expected
    ids = sessions_of(database, test, place)
    assert ids is not None
    if test.name not in TIMES:
        assert ids == set(messages_of(database, test, [*NAMES]))
    assert messages_of(database, test, []) == {}
    for session_id, positions in messages_of(database, test, [*NAMES]).items():
        rows = present_rows(database, test)
        assert passing_messages(database, rows, session_id, range(100)) == positions
        assert passing_messages(database, rows, session_id, [min(positions)]) == {min(positions)}
    assert set(messages_of(database, test, [KID])) == {KID} & set(messages_of(database, test, [*NAMES]))


def test_every_field_has_a_level_and_an_answer(database: sqlite3.Connection, place: FactPlace) -> None:
    for field in FIELDS:
        examples = [f"{field.name}:{choice}" for choice in field.choices] or [field.example]
        for text in examples if field.name != "re" else ():
            test = field_test(text)
            ids = sessions_of(database, test, place)
            if level(test) in {CONTENT, Level.PART}:
                assert ids is None
            else:
                assert ids is not None
                assert ids <= NAMES.keys()
            if level(test) == Level.MESSAGE:
                assert messages_of(database, test, [*NAMES]).keys() <= NAMES.keys()


def test_sessions_are_those_of_the_messages_on_the_demo() -> None:
    with closing(in_memory(history([builders.home(DEMO)]).sessions, [], opened)) as facts:
        ids = [row[0] for row in facts.execute("SELECT session_id FROM sessions")]
        place = FactPlace(session_projects(facts, {}), Path("/"), Path("/"))
        n_messages = 0
        for field in FIELDS:
            examples = [f"{field.name}:{choice}" for choice in field.choices] or [field.example]
            for text in examples if field.name != "re" else ():
                test = field_test(text)
                if level(test) == Level.MESSAGE and test.name not in TIMES:
                    expected = messages_of(facts, test, ids)
                    assert sessions_of(facts, test, place) == expected.keys(), text
                    n_messages += sum(map(len, expected.values()))
        assert n_messages > 500


def test_costs_and_tokens_are_those_of_the_list(database: sqlite3.Connection, place: FactPlace) -> None:
    rows = sessions.rows(database, load_sessions(database, None).sessions)
    assert len(rows) == 3
    for row in rows:
        tests = [f"tokens:{row.usage.tokens.total}"]
        if row.usage.cost_nanousd is not None:
            tests.append(f"cost:{row.usage.cost_nanousd / 10**9:.9f}")
        for text in tests:
            assert row.id in (sessions_of(database, field_test(text), place) or ()), text
    (free,) = [row for row in rows if row.id == OTHER]
    assert free.usage.cost_nanousd is None


def test_a_deleted_session_is_gone(database: sqlite3.Connection, place: FactPlace) -> None:
    database.execute("UPDATE sessions SET is_deleted = 1 WHERE session_id = ?", (OTHER,))
    assert named(sessions_of(database, field_test("has:gone"), place)) == "shop"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE session_files SET problems = 1 WHERE session_id = ?",
        "INSERT INTO value_problems SELECT ?, 'm', 0, 0, min(file_version_id), 1, 'tokens' FROM session_files",
    ],
)
def test_a_session_with_a_damaged_file_or_value_has_a_problem(
    database: sqlite3.Connection, place: FactPlace, statement: str
) -> None:
    database.execute(statement, (OTHER,))
    assert named(sessions_of(database, field_test("has:problem"), place)) == "shop"
    assert named(sessions_of(database, field_test("has:problem"), place, among=[KID])) == ""


def test_images_are_found_in_messages() -> None:
    image, sound = Attachment("Image/PNG", 3), Attachment("audio/wav", 3)
    plain = Message("u", Kind.USER, Origin.HUMAN, Fate.ACTIVE, None)
    assert not has_image(plain)
    assert has_image(Message("u", Kind.USER, Origin.HUMAN, Fate.ACTIVE, None, parts=(sound, image)))
    assert not has_image(Message("u", Kind.USER, Origin.HUMAN, Fate.ACTIVE, None, parts=(sound,)))
    shot = ToolCall("c", "x", "x", "x", "x", "x", "success", {}, attachments=(image,))
    assert has_image(Message("g", Kind.GEMINI, Origin.MODEL, Fate.ACTIVE, None, tool_calls=(shot,)))


# Lists


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["Été.ts", "userRepository.ts", "cart.py"]),
        ("user", ["userRepository.ts", "cart.py"]),
        ("services/user", ["userRepository.ts"]),
        (r"src\cart", ["cart.py"]),
        ("USER repo", ["userRepository.ts"]),
        ("user OR cart", ["userRepository.ts", "cart.py"]),
        ("src -cart", ["Été.ts", "userRepository.ts"]),
        ('"src/services"', ["userRepository.ts"]),
        ("re:/[rt]\\.py$/", ["cart.py"]),
        ("re:/SRC/i -re:/cart/", ["Été.ts", "userRepository.ts"]),
        ("file:*.ts", ["Été.ts", "userRepository.ts"]),
        ("-file:*.ts", ["cart.py"]),
        ("tool:replace", ["Été.ts"]),
        ("cmd:compose", ["Été.ts", "userRepository.ts"]),
        ("-cmd:compose", ["cart.py"]),
        ("status:error", ["100%_[a]*?'\"!.txt"]),
        ("has:diff", ["Été.ts"]),
        ("project:shop", ["cart.py"]),
        ("-project:shop", ["Été.ts", "userRepository.ts"]),
        ("on:2026-01", ["cart.py"]),
        ("fate:rewound", []),
        ("s*c", []),
        ("a%t", []),
        ("x_y", []),
    ],
)
def test_touched_files(database: sqlite3.Connection, place: FactPlace, text: str, expected: list[str]) -> None:
    files, total = touched_files(database, parse_query(text, now=NOW, zone=UTC), place)
    assert [file.path.replace("\\", "/").rpartition("/")[2] for file in files] == expected
    assert total == len(files)


def test_a_touched_file_names_its_message(database: sqlite3.Connection, place: FactPlace) -> None:
    (edit,), _ = touched_files(database, parse_query("file:été", now=NOW), place)
    assert (edit.path, edit.op, edit.lines_added, edit.lines_removed) == (DIFF["filePath"], "edit", 2, 1)
    assert (edit.session_id, edit.message_id, edit.number, edit.fate) == (SESSION, "g1", 2, "active")
    assert edit.at == builders.instant_of(2)
    assert edit.project.path == builders.ROOT
    assert edit.title == "start it"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["docker compose up -d", "npm run format", "tail", "git push --force", "git status"]),
        ("docker", ["docker compose up -d"]),
        ("form", ["npm run format"]),
        ("cmd:git status:error -push", ["git status"]),
        ("status:cancelled", ["rm -rf build"]),
        ("cmd:git", ["git push --force", "git status"]),
        ("file:cart.py", ["git push --force", "git status"]),
        ("(cmd:tail OR status) -npm", ["tail", "git status"]),
        ("re:/^git (push|pull)/", ["git push --force"]),
        ("x' OR '1'='1", []),
    ],
)
def test_commands_run(database: sqlite3.Connection, place: FactPlace, text: str, expected: list[str]) -> None:
    commands, total = commands_run(database, parse_query(text, now=NOW, zone=UTC), place)
    assert sorted(row.command for row in commands) == sorted(expected)
    assert total == len(commands)


def test_a_command_has_the_exit_code_of_its_line(database: sqlite3.Connection, place: FactPlace) -> None:
    (row,), _ = commands_run(database, parse_query("npm", now=NOW), place)
    assert (row.command, row.program, row.exit_code, row.status) == ("npm run format", "npm", 3, "success")


def test_lists_are_cut_into_pages_newest_first(database: sqlite3.Connection, place: FactPlace) -> None:
    query = parse_query("", now=NOW)
    whole, _ = commands_run(database, query, place)
    times = [row.at for row in whole]
    assert times == sorted(times, key=lambda at: at or NOW, reverse=True)
    pages = [commands_run(database, query, place, limit=2, offset=offset) for offset in (0, 2, 4, 6)]
    assert [row for rows, _ in pages for row in rows] == [*whole]
    assert {total for _, total in pages} == {5}


def test_lists_are_limited_to_sessions(database: sqlite3.Connection, place: FactPlace) -> None:
    query = parse_query("", now=NOW)
    rows, total = commands_run(database, query, place, ids=[OTHER])
    assert total == 2
    assert {row.session_id for row in rows} == {OTHER}
    assert commands_run(database, query, place, ids=[]) == ((), 0)


@pytest.mark.parametrize("text", ["a in:prompt", "a has:image"])
def test_what_says_nothing_about_files_is_an_error(database: sqlite3.Connection, place: FactPlace, text: str) -> None:
    with pytest.raises(
        InvalidQueryError, match=r'"[a-z]+:[a-z]+" cannot be combined with --files\. Leave it out\.'
    ) as caught:
        touched_files(database, parse_query(text, now=NOW), place)
    assert caught.value.position == 2


def test_a_slow_pattern_is_stopped(database: sqlite3.Connection, place: FactPlace) -> None:
    database.execute("UPDATE shell_commands SET command = ? WHERE command = 'tail'", ("a" * 40,))
    with pytest.raises(InvalidQueryError, match="takes too long"):
        commands_run(database, parse_query("re:/(a|aa)+b/", now=NOW), place)
