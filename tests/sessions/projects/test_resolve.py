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


def fail_when_read() -> Iterator[Never]:
    raise AssertionError
    yield


CLAIMS = [
    PathClaim("project_root", WEBAPP, "webapp"),
    PathClaim("projects.json", WEBAPP, "webapp"),
    PathClaim("trustedFolders.json", WEBAPP),
]


@pytest.mark.parametrize("skipped", range(4))
def test_claims_of_a_home_are_tried_in_order(skipped: int) -> None:
    expected = [*CLAIMS, PathClaim("directories", WEBAPP)][skipped]
    claims = index_claims(CLAIMS[skipped:])
    assert resolve(
        DIGEST, DIGEST, claims, directories=[WEBAPP], session_context=[WEBAPP], arguments=fail_when_read()
    ) == Project(DIGEST, expected.folder, WEBAPP, expected.source, proven=True)


def test_other_evidence_is_tried_in_order() -> None:
    projects = []
    evidence = {
        "session_context": ["/first", WEBAPP],
        "scanned": {DIGEST: WEBAPP},
        "arguments": ["/first/x", f"{WEBAPP}/app/../app/board.py"],
        "memory": {DIGEST: WEBAPP},
    }
    for kind in tuple(evidence):
        projects.append(resolve(DIGEST, DIGEST, **evidence))  # type: ignore[arg-type]
        del evidence[kind]
    assert [project.source for project in projects] == ["session_context", "scan", "arguments", "memory"]
    assert {(project.path, project.proven) for project in projects} == {(WEBAPP, True)}
    assert resolve(DIGEST, DIGEST) == Project(DIGEST)


def test_proven_path_beats_the_marker() -> None:
    claims = index_claims([PathClaim("project_root", "/moved/webapp", "webapp")])
    assert resolve(DIGEST, "webapp", claims) == Project(DIGEST, "webapp", "/moved/webapp", "project_root")
    assert resolve(DIGEST, "webapp", claims, session_context=[WEBAPP]) == Project(
        DIGEST, "webapp", WEBAPP, "session_context", proven=True
    )


def test_lower_case_registry_of_windows_is_matched() -> None:
    claims = index_claims([PathClaim("projects.json", WINDOWS.lower(), "webapp")])
    assert resolve(WINDOWS_DIGEST, "webapp", claims) == Project(
        WINDOWS_DIGEST, "webapp", WINDOWS.lower(), "projects.json"
    )
    assert resolve(WINDOWS_DIGEST, "webapp", claims, arguments=["C:/Users/Alice/Dev/WebApp/src/x.ts"]) == Project(
        WINDOWS_DIGEST, "webapp", WINDOWS, "arguments", proven=True
    )


def test_drive_letter_may_be_in_lower_case() -> None:
    spelled = f"c{WINDOWS[1:]}"
    assert resolve(WINDOWS_DIGEST, None, directories=[spelled]).path == WINDOWS
    assert resolve(project_hash("\\\\host\\share\\x"), None, directories=["\\\\host\\share\\x\\"]).proven


def test_folder_replaces_a_missing_hash() -> None:
    assert resolve(None, DIGEST, directories=[WEBAPP]).proven


def test_path_is_accepted_unproven_if_its_slug_fits() -> None:
    assert resolve(None, "webapp-1", session_context=["/skills/x", WEBAPP]) == Project(
        None, "webapp-1", WEBAPP, "session_context"
    )
    assert resolve(OTHER_DIGEST, "notes", directories=[WEBAPP]) == Project(OTHER_DIGEST, "notes")
    assert resolve(None, "webapp", arguments=[f"{WEBAPP}/a", f"{WEBAPP}/b"]) == Project(
        None, "webapp", WEBAPP, "arguments"
    )
    assert resolve(None, "webapp", arguments=[WEBAPP, "/old/webapp"]) == Project(None, "webapp")


def test_path_that_contradicts_the_hash_is_rejected() -> None:
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
