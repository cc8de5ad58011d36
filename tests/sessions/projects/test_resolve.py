from __future__ import annotations

from collections.abc import Iterator
from typing import Never

import pytest

from pollux.model import Json, Project
from pollux.sessions.projects.paths import project_hash
from pollux.sessions.projects.resolve import PathClaim, argument_paths, index_claims, resolve, workspace_directories

WEBAPP = "/home/alice/dev/webapp"
WINDOWS = "C:\\Users\\Alice\\Dev\\WebApp"
DIGEST = project_hash(WEBAPP)
WINDOWS_DIGEST = project_hash(WINDOWS)
OTHER_DIGEST = project_hash("/elsewhere")

CONTEXT = f"""<session_context>
This is the Gemini CLI. We are setting up the context for our chat.
My operating system is: linux
The project's temporary directory is: /home/alice/.gemini/tmp/webapp
- **Workspace Directories:**
  - {WEBAPP}
  - /home/alice/Büro - Notizen
- **Directory Structure:**

Showing up to 200 items (files + folders).
</session_context>"""

OLD_CONTEXT = f"""This is the Gemini CLI. We are setting up the context for our chat.
  My operating system is: linux
  I'm currently working in the directory: {WEBAPP}
  Showing up to 200 items (files + folders)."""


def unread() -> Iterator[Never]:
    raise AssertionError
    yield


CLAIMS = [
    PathClaim("project_root", WEBAPP, "webapp"),
    PathClaim("projects.json", WEBAPP, "webapp"),
    PathClaim("trustedFolders.json", WEBAPP),
]


@pytest.mark.parametrize("skipped", range(4))
def test_order_of_what_a_home_proves(skipped: int) -> None:
    expected = [*CLAIMS, PathClaim("directories", WEBAPP)][skipped]
    known = index_claims(CLAIMS[skipped:])
    assert resolve(
        DIGEST, DIGEST, known, directories=[WEBAPP], session_context=[WEBAPP], arguments=unread()
    ) == Project(DIGEST, expected.folder, WEBAPP, expected.source, proven=True)


def test_order_of_what_else_proves() -> None:
    found = []
    told = {
        "session_context": ["/first", WEBAPP],
        "scanned": {DIGEST: WEBAPP},
        "arguments": ["/first/x", f"{WEBAPP}/app/../app/board.py"],
        "memory": {DIGEST: WEBAPP},
    }
    for kind in tuple(told):
        found.append(resolve(DIGEST, DIGEST, **told))  # type: ignore[arg-type]
        del told[kind]
    assert [one.source for one in found] == ["session_context", "scan", "arguments", "memory"]
    assert {(one.path, one.proven) for one in found} == {(WEBAPP, True)}
    assert resolve(DIGEST, DIGEST) == Project(DIGEST)


def test_a_proof_beats_the_marker() -> None:
    known = index_claims([PathClaim("project_root", "/moved/webapp", "webapp")])
    assert resolve(DIGEST, "webapp", known) == Project(DIGEST, "webapp", "/moved/webapp", "project_root")
    assert resolve(DIGEST, "webapp", known, session_context=[WEBAPP]) == Project(
        DIGEST, "webapp", WEBAPP, "session_context", proven=True
    )


def test_the_registry_of_windows_is_in_lower_case() -> None:
    known = index_claims([PathClaim("projects.json", WINDOWS.lower(), "webapp")])
    assert resolve(WINDOWS_DIGEST, "webapp", known) == Project(
        WINDOWS_DIGEST, "webapp", WINDOWS.lower(), "projects.json"
    )
    assert resolve(WINDOWS_DIGEST, "webapp", known, arguments=["C:/Users/Alice/Dev/WebApp/src/x.ts"]) == Project(
        WINDOWS_DIGEST, "webapp", WINDOWS, "arguments", proven=True
    )


def test_a_drive_has_two_spellings() -> None:
    spelled = f"c{WINDOWS[1:]}"
    assert resolve(WINDOWS_DIGEST, None, directories=[spelled]).path == WINDOWS
    assert resolve(project_hash("\\\\host\\share\\x"), None, directories=["\\\\host\\share\\x\\"]).proven


def test_the_folder_stands_in_for_a_missing_hash() -> None:
    assert resolve(None, DIGEST, directories=[WEBAPP]).proven


def test_a_path_is_believed_if_its_slug_fits() -> None:
    assert resolve(None, "webapp-1", session_context=["/skills/x", WEBAPP]) == Project(
        None, "webapp-1", WEBAPP, "session_context"
    )
    assert resolve(OTHER_DIGEST, "notes", directories=[WEBAPP]) == Project(OTHER_DIGEST, "notes")
    assert resolve(None, "webapp", arguments=[f"{WEBAPP}/a", f"{WEBAPP}/b"]) == Project(
        None, "webapp", WEBAPP, "arguments"
    )
    assert resolve(None, "webapp", arguments=[WEBAPP, "/old/webapp"]) == Project(None, "webapp")


def test_a_path_is_not_believed_against_its_hash() -> None:
    assert resolve(OTHER_DIGEST, OTHER_DIGEST, session_context=[WEBAPP]).path is None
    assert resolve(OTHER_DIGEST, OTHER_DIGEST, session_context=[WINDOWS]).path == WINDOWS
    assert resolve(None, None, session_context=["relative"], arguments=["relative"]) == Project()
    assert resolve(None, None, session_context=[WEBAPP]) == Project(None, None, WEBAPP, "session_context")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (CONTEXT, (WEBAPP, "/home/alice/Büro - Notizen")),
        (CONTEXT.replace("\n", "\r\n").replace(WEBAPP, WINDOWS), (WINDOWS, "/home/alice/Büro - Notizen")),
        (f"- **Workspace Directories:**\n  - {WEBAPP}", (WEBAPP,)),
        (OLD_CONTEXT, (WEBAPP,)),
        (f"I'm currently working in the following directories:\n  - {WEBAPP}\n  - /b\nHere is the", (WEBAPP, "/b")),
        ("I'm currently working in the directory: nowhere", ()),
        ("Which are my **Workspace Directories:**\n  - /a", ()),
        ("", ()),
    ],
)
def test_workspace_directories(text: str, expected: tuple[str, ...]) -> None:
    assert workspace_directories(text) == expected


def test_argument_paths() -> None:
    arguments: Json = {
        "file_path": f"{WEBAPP}/app.py",
        "paths": ["relative", WINDOWS, {"deep": "/deep"}],
        "content": "/* a\n comment */",
        "command": f"cd {WEBAPP} && curl https://host/x -o=/out/y 'C:/Dev' a/b ~/c $HOME/d",
        "limit": 3,
        "empty": None,
    }
    assert list(argument_paths(arguments)) == [f"{WEBAPP}/app.py", WINDOWS, "/deep", WEBAPP, "/out/y", "C:/Dev"]
    assert list(argument_paths({"command": ["/x"]})) == ["/x"]
