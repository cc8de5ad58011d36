"""The API returns the documents of `--json`, and its description has exactly its routes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from click.testing import CliRunner
from starlette.datastructures import QueryParams
from starlette.requests import Request
from tests.web.homes import hostile_home
from tests.web.viewing import LABEL, SESSION, Viewed, viewing

from pollux.cli import pollux
from pollux.library.config import DEMO_HOME
from pollux.web import api
from pollux.web.api_schemas import SCHEMAS
from pollux.web.openapi import PATHS


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("viewer")


@pytest.fixture(scope="module")
def viewed(folder: Path) -> Iterator[Viewed]:
    with viewing(folder) as made:
        yield made


def printed(folder: Path, *words: str) -> dict[str, Any]:
    """Return what a command prints with --json."""
    options = ("--home", str(DEMO_HOME), "--archive", str(folder / "archive.db"), "--json")
    result = CliRunner().invoke(pollux, [*words, *options])
    value = msgspec.json.decode(result.stdout)
    assert isinstance(value, dict)
    return value


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("sessions?limit=500", ("ls", "--limit", "500")),
        ("sessions?q=alerts&project=skywatch&limit=7", ("ls", "alerts", "--project", "skywatch", "--limit", "7")),
        (f"sessions/{SESSION}", ("show", SESSION)),
        ("search?q=alerts", ("search", "alerts")),
        ("search?q=alerts&in=prompt&sort=newest", ("search", "alerts in:prompt", "--sort", "newest")),
        ("files", ("search", "--files")),
        ("usage", ("usage",)),
        ("usage?by=model&since=2026-11-01", ("usage", "--by", "model", "--since", "2026-11-01")),
        ("usage?by=session&top=3", ("usage", "--by", "session", "--top", "3")),
        ("projects", ("projects",)),
        ("doctor", ("doctor",)),
    ],
)
def test_answer_is_what_the_command_prints(viewed: Viewed, folder: Path, path: str, words: tuple[str, ...]) -> None:
    expected = printed(folder, *words)
    answer = viewed.json(f"api/{path}")
    extra = {
        key: answer.pop(key)
        for key in ("next", "total", "from", "to", "facets")
        if key in answer and key not in expected
    }
    assert answer == expected
    assert extra or path.startswith(("usage", "projects", "doctor"))


def test_lists_go_on_until_their_end(viewed: Viewed) -> None:
    first = viewed.json("api/sessions", limit=500)
    ids: list[str] = []
    after = ""
    while True:
        part = viewed.json("api/sessions", limit=7, after=after)
        ids += [row["id"] for row in part["sessions"]]
        assert part["total"] == first["total"]
        if part["next"] is None:
            break
        after = part["next"]
    assert ids == [row["id"] for row in first["sessions"]]


def test_stretch_of_a_session(viewed: Viewed) -> None:
    whole = viewed.json(f"api/sessions/{SESSION}")
    part = viewed.json(f"api/sessions/{SESSION}", **{"from": 3, "to": 5})
    assert part["timeline"] == whole["timeline"][2:5]
    assert (part["from"], part["to"], part["total"]) == (3, 5, whole["total"])
    single = viewed.json(f"api/sessions/{SESSION}/messages/3")
    assert single["id"] == whole["timeline"][2]["id"]
    assert (single["schema"], single["number"]) == ("pollux.message/1", 3)


def test_find_names_messages(viewed: Viewed) -> None:
    found = viewed.json(f"api/sessions/{SESSION}/find", q="QUIET")
    timeline = viewed.json(f"api/sessions/{SESSION}")["timeline"]
    assert found["schema"] == "pollux.found/1"
    assert found["messages"] == len(timeline)
    named = [timeline[number - 1] for number in found["at"]]
    assert named
    assert all("quiet" in msgspec.json.encode(message).decode().lower() for message in named)
    others = [message for number, message in enumerate(timeline, 1) if number not in found["at"]]
    assert not any("quiet" in message["text"].lower() for message in others)


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("sessions/zzzzzzzz", 404, ""),
        (f"sessions/{SESSION}/messages/999", 404, ""),
        (f"sessions/{SESSION}/messages/x", 404, ""),
        (f"sessions/{SESSION}?from=1&to=900", 400, ""),
        ("sessions?limit=0", 400, ""),
        ("sessions?limit=1e9", 400, ""),
        ("sessions?since=never", 400, ""),
        ("sessions?after=x", 0, ""),
        ("search", 400, ""),
        ("search?q=(", 400, ""),
        ("usage?by=moon", 400, ""),
        ("nothing", 404, ""),
    ],
)
def test_mistake_is_explained(viewed: Viewed, path: str, status: int, code: str) -> None:
    answer = viewed.answer(f"api/{path}")
    assert answer.status_code == status or (not status and 400 <= answer.status_code < 500)
    error = answer.json()
    assert error["schema"] == "pollux.error/1"
    assert error["message"].endswith((".", ":"))
    assert "Traceback" not in answer.text
    assert code in error["code"]


def test_description_has_exactly_the_routes() -> None:
    routes = {route.path for route in api.ROUTES}
    assert routes == {*PATHS, "/api/openapi.json"}
    for path, item in PATHS.items():
        (operation,) = item.values()
        names = {part.strip("{}") for part in path.split("/") if part.startswith("{")}
        assert {parameter["name"] for parameter in operation["parameters"] if parameter["in"] == "path"} == names
        listed = [parameter["name"] for parameter in operation["parameters"]]
        assert len(listed) == len({*listed})


def check(value: Any, schema: dict[str, Any], place: str = "$") -> None:  # noqa: ANN401  JSON
    """Check a value against a schema, and that the schema names all its keys."""
    if "$ref" in schema:
        check(value, SCHEMAS[schema["$ref"].rpartition("/")[2]], place)
        return
    if "anyOf" in schema:
        schema = schema["anyOf"][value is None]
        check(value, schema, place)
        return
    types = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    assert any(type(value) in TYPES[name] for name in types), (place, value, types)
    assert value == schema.get("const", value), place
    if isinstance(value, int | float):
        assert value >= schema.get("minimum", value), (place, value)
    if isinstance(value, list):
        for number, item in enumerate(value):
            check(item, schema["items"], f"{place}[{number}]")
    if isinstance(value, dict):
        check_object(value, schema, place)


def check_object(value: dict[str, Any], schema: dict[str, Any], place: str) -> None:
    properties, others = schema.get("properties", {}), schema.get("additionalProperties")
    assert {*schema.get("required", ())} <= value.keys(), place
    for key, item in value.items():
        assert key in properties or others, f"{place}.{key} is not described"
        if key in properties:
            check(item, properties[key], f"{place}.{key}")
        elif isinstance(others, dict):
            check(item, others, f"{place}.{key}")


TYPES: dict[str, set[type]] = {
    "string": {str},
    "integer": {int},
    "number": {int, float},
    "boolean": {bool},
    "null": {type(None)},
    "array": {list},
    "object": {dict},
}
QUERIES: dict[str, tuple[dict[str, str], ...]] = {
    "/api/sessions": ({"limit": "500", "all": "1"}, {"limit": "3"}),
    "/api/search": ({"q": "the", "limit": "100"}, {"q": "zzzzzz"}),
    "/api/usage": tuple({"by": name} for name in ("day", "session", "project", "model", "tool")),
    "/api/sessions/{session}/find": ({"q": "alert"},),
}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Viewed]:
    folder = tmp_path_factory.mktemp("hostile")
    with viewing(folder, [hostile_home(folder / "home")]) as made:
        yield made


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("home", ["viewed", "hostile"])
def test_answer_fits_its_description(request: pytest.FixtureRequest, home: str, path: str) -> None:
    viewed: Viewed = request.getfixturevalue(home)
    schema = PATHS[path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    ids = [row["id"] for row in viewed.json("api/sessions", limit=500, all=1)["sessions"]]
    for session in ids if "{session}" in path else [""]:
        for query in QUERIES.get(path, ({},)):
            place = quote(session, errors="surrogatepass")
            answer = viewed.answer(path.strip("/").format(session=place, number=1), **query)
            if answer.status_code == 200:
                check(answer.json(), schema)
            else:
                check(answer.json(), SCHEMAS["Error"])
                assert "{session}" in path
    if home == "viewed" and "resume" not in path:  # the folders of the demo's projects do not exist here
        assert answer.status_code == 200


def test_description_names_its_server_and_its_cookie(viewed: Viewed) -> None:
    description = viewed.json("api/openapi.json")
    assert description["servers"] == [{"url": f"/{LABEL}"}]
    assert description["components"]["securitySchemes"]["cookie"]["name"] == "pollux-2990"
    assert description["paths"].keys() == PATHS.keys()


def test_description_refers_only_to_schemas_that_exist() -> None:
    text = msgspec.json.encode([PATHS, SCHEMAS]).decode()
    names = {*re.findall(r"#/components/schemas/(\w+)", text)}
    assert names == SCHEMAS.keys()


@pytest.mark.parametrize("path", PATHS)
def test_description_names_the_parameters_that_are_read(
    viewed: Viewed, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: set[str] = set()

    class Recorded(QueryParams):
        def get(self, key: str, default: Any = None) -> Any:  # noqa: ANN401  Starlette's
            names.add(key)
            return super().get(key, default)

    monkeypatch.setattr(Request, "query_params", property(lambda request: Recorded(request.scope["query_string"])))
    viewed.answer(path.strip("/").format(session=SESSION, number=3), q="alerts")
    listed = {parameter["name"] for parameter in PATHS[path]["get"]["parameters"] if parameter["in"] == "query"}
    assert names == listed


def test_csv_is_no_formula(viewed: Viewed) -> None:
    answer = viewed.answer("api/sessions", format="csv")
    assert answer.headers["content-type"].startswith("text/csv")
    assert answer.text.splitlines()[0].startswith("session,used,project")
    assert len(answer.text.splitlines()) == viewed.json("api/sessions")["total"] + 1
    assert viewed.answer("api/usage", format="csv").text.startswith("key,")


def test_error_names_the_parameter_and_no_option(viewed: Viewed) -> None:
    answer = viewed.answer("api/sessions", since="never")
    assert answer.status_code == 400
    assert "Invalid value for since: 'never'." in answer.text
