"""Security test 21 of the viewer: no request that schemathesis derives from the OpenAPI document is a server error.

`make test-api` installs schemathesis in an environment of its own and sets `POLLUX_SCHEMATHESIS`.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests.web.browser.serving import serving
from tests.web.homes import hostile_home
from tests.web.hostile_home import write_hostile_home

from pollux.library.config import DEMO_HOME
from pollux.web.openapi import PATHS

PROGRAM = os.environ.get("POLLUX_SCHEMATHESIS")
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "unsupported_method",
    "ignored_auth",
)
"""All but two that need a schema of every text: a time such as `7d` and a query have a syntax of their own."""
EXAMPLES = 40
"""Generated requests for an operation, besides those for each limit of each parameter."""
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no schemathesis: `make test-api` installs and runs it")


@pytest.mark.parametrize("home", ["demo", "hostile"])
def test_no_generated_request_is_a_server_error(tmp_path: Path, home: str) -> None:
    assert PROGRAM is not None
    root = DEMO_HOME if home == "demo" else write_hostile_home(hostile_home(tmp_path / "sessions"))
    with serving(tmp_path / "served", root) as served:
        done = subprocess.run(
            [
                *(PROGRAM, "run", f"{served.origin}{served.root}api/openapi.json"),
                *("--header", f"Cookie: {served.cookie}"),
                *("--checks", ",".join(CHECKS)),
                *("--phases", "examples,coverage,fuzzing"),
                *("--max-examples", str(EXAMPLES)),
                *("--workers", "2"),
                *("--seed", "2990"),
                *("--generation-database", "none"),
                *("--request-timeout", "60"),
                "--continue-on-failure",
                "--no-color",
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert served.get("api/openapi.json")[0] == 200
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr
    assert f"Tested: {len(PATHS)}" in done.stdout
