"""The documentation says what the code does: links, examples, commands, JSON keys and codes of problems are checked."""

from __future__ import annotations

import ast
import doctest
import importlib.util
import json
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import click
import msgspec
import pytest
from click.testing import CliRunner
from tests.cli.running import Runner

from pollux import model
from pollux.cli import COMMANDS, pollux
from pollux.cli.demo import HOME
from pollux.sessions.reader import from_file

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "pollux"
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.glob("*.md")])

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
ANCHOR = re.compile(r'<a id="([^"]+)">')
CODE = re.compile(r"[a-z]+(?:-[a-z]+)+")
CODED = re.compile(r"`([^`]+)`")

# What a file or a tool decides, and no contract.
OPEN = {"tool_calls[].args", "metadata", "sessions.by_generation", "usage[].tokens"} | {
    f"unknown.{what}" for what in ("operators", "fields", "kinds", "tools")
}

# Rooms of later releases: described when users can enter them.
COMING = {"archive", "prices", "lake", "tui", "web", "mcp"}


def page_id(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def text_of(path: Path) -> str:
    return path.read_text("utf-8")


def blocks(path: Path, *languages: str) -> list[str]:
    return [body for language, body in FENCE.findall(text_of(path)) if language in languages]


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_script", ROOT / "scripts" / "docs.py")
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


# The generated pages


def test_the_generated_pages_are_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    status = script().main(["--check"])
    assert status == 0, capsys.readouterr().err


def test_a_stale_page_is_seen(tmp_path: Path) -> None:
    found = script()
    for name, text in found.pages().items():
        (tmp_path / name).write_text(text, "utf-8", newline="\n")
    assert found.stale(tmp_path) == []
    (tmp_path / "tools.md").write_text("old", "utf-8")
    (tmp_path / "reference.md").unlink()
    assert found.stale(tmp_path) == ["reference.md", "tools.md"]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_in_the_reference(name: str) -> None:
    assert f"\n## pollux {name}\n" in text_of(DOCS / "reference.md")


# Links


def anchors(path: Path) -> set[str]:
    text = text_of(path)
    headings = [_slug(heading) for heading in HEADING.findall(FENCE.sub("", text))]
    assert len(headings) == len(set(headings)), f"{page_id(path)} has two headings of one name"
    return {*headings, *ANCHOR.findall(text)}


def _slug(heading: str) -> str:
    """Make the anchor of a heading as the usual renderers do."""
    return re.sub(r"[^\w\- ]", "", CODED.sub(r"\1", heading).lower()).strip().replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(FENCE.sub("", text_of(page))):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        there = (page.parent / name).resolve() if name else page
        assert there.exists(), f"{page_id(page)} links to {target}"
        assert not anchor or anchor in anchors(there), f"{page_id(page)} links to {target}"


def test_every_page_can_be_reached_from_the_index() -> None:
    linked = {target.partition("#")[0] for target in LINK.findall(text_of(DOCS / "README.md"))}
    assert {page.name for page in DOCS.glob("*.md")} - {"README.md"} <= linked


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_no_page_names_a_place_of_one_machine(page: Path) -> None:
    assert not re.search(r"(?<![\w.])/(?:work|tmp|opt)/|/home/(?!mara\b)|/Users/(?!mara\b)", text_of(page))


# Examples


@pytest.mark.parametrize("page", [ROOT / "README.md", DOCS / "library.md"], ids=page_id)
def test_python_examples_run(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLLUX_HOME", str(HOME))
    examples = doctest.DocTestParser().get_doctest("\n".join(blocks(page, "python")), {}, page_id(page), str(page), 0)
    assert examples.examples
    words: list[str] = []
    doctest.DocTestRunner(verbose=False).run(examples, out=words.append)
    assert not words, "".join(words)


def commands_shown() -> Iterator[tuple[str, str]]:
    for page in PAGES:
        for body in blocks(page, "console", "sh"):
            for line in body.splitlines():
                for piece in re.split(r"\s(?:\||&&|>|#)\s", line.removeprefix("$ ")):
                    if re.match(r"pollux( |$)", piece):
                        yield page_id(page), piece


@pytest.mark.parametrize(("page", "line"), sorted(set(commands_shown())))
def test_commands_shown_can_be_typed(page: str, line: str) -> None:
    try:
        _parse(pollux, shlex.split(line))
    except click.UsageError as error:
        pytest.fail(f"{page}: {line}: {error.message}")


def _parse(command: click.Command, words: list[str], parent: click.Context | None = None) -> None:
    name, *rest = words
    if isinstance(command, click.Group) and rest:
        context = click.Context(command, parent, info_name=name, **command.context_settings)
        _, found, rest = command.resolve_command(context, rest)
        assert found is not None
        _parse(found, [found.name or "", *rest], context)
        return
    with command.make_context(name, rest, parent) as context:
        if more := context.params.get("words"):
            _parse(pollux, ["pollux", *more])


# Pages whose console blocks are run: the output below a command is what it prints on a terminal of 80 columns.
# A block that ends with a line "…" shows the beginning of the output. Pipes to other programs are not run.
RUN_PAGES = [
    ROOT / "README.md",
    *(DOCS / f"{name}.md" for name in ("how-to", "redaction", "search", "stats", "transcripts", "tutorial", "usage")),
]


# Pages that show commands without their output: each command is run and must succeed.
OTHER_PAGES = [page for page in PAGES if page not in RUN_PAGES and "\n```console\n" in text_of(page)]
NOT_RUN = ("--follow", "/mnt/", "gemini ")
"""Parts of commands that do not end, or that need something outside of the test."""


@pytest.mark.parametrize("page", OTHER_PAGES, ids=page_id)
def test_console_commands_of_other_pages_succeed(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Runner(monkeypatch, capsys)
    monkeypatch.delenv("POLLUX_HOME")
    home = Path(os.environ["HOME"])
    shutil.copytree(HOME, home, dirs_exist_ok=True)
    (home / "safe").mkdir()
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    assert run("archive", "backup", "laptop.db", "--archive", str(_synced(run, tmp_path))).status == 0
    commands = "".join(blocks(page, "console")).splitlines()
    n_run = 0
    for line in commands:
        words = shlex.split(
            line.removeprefix("$ ").replace("--project .", "--project skywatch").replace("~", str(home))
        )
        if not line.startswith("$ pollux") or any(part in line for part in NOT_RUN):
            continue
        target = Path(words[words.index(">") + 1]) if ">" in words else None
        _prepare(run, words)
        result = run(*words[1 : words.index(">") if target else None])
        assert result.status == 0, f"{line}: {result.err}"
        if target:
            target.write_text(result.out, "utf-8")
        n_run += 1
    assert n_run


def _synced(run: Runner, folder: Path) -> Path:
    archive = folder / "other.db"
    assert run("sync", "--archive", str(archive)).status == 0
    return archive


def _prepare(run: Runner, words: list[str]) -> None:
    """Provide what a command needs that its page describes in words."""
    if words[1] == "forget" and "--undo" in words:
        assert run("forget", "latest", "--yes").status == 0
    if "mara.pub" in words:
        Path("mara.pub").write_text(run("keys", "show").out, "utf-8")
    if words[1:3] == ["archive", "seal"] or words[1:3] == ["record", "redact"]:
        run("sync")
        run("keys", "create")
        run("archive", "seal")


@pytest.mark.parametrize("page", RUN_PAGES, ids=page_id)
def test_console_examples_print_what_the_page_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Run a page from top to bottom in one home that holds the demo's sessions."""
    run = Runner(monkeypatch, capsys)
    monkeypatch.delenv("POLLUX_HOME")
    home = Path(os.environ["HOME"])
    shutil.copytree(HOME, home, dirs_exist_ok=True)
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    text = page.read_text("utf-8")
    for body in blocks(page, "console"):
        shown = body
        for example in re.split(r"^(?=\$ )", body, flags=re.MULTILINE)[1:]:
            line, _, expected = example.partition("\n")
            words = shlex.split(line.removeprefix("$ "))
            if "|" in words or words[0] != "pollux":
                continue
            result = run(*words[1:], columns=80)
            printed = re.sub(r" +$", "", (result.out + result.err).replace(str(home), "~"), flags=re.MULTILINE)
            if expected.endswith("…\n"):
                printed = "".join(printed.splitlines(keepends=True)[: expected.count("\n") - 1]) + "…\n"
            shown = shown.replace(example, f"{line}\n{printed}")
        text = text.replace(body, shown)
    if "POLLUX_REWRITE" in os.environ:
        page.write_text(text, "utf-8", newline="\n")
    assert text == page.read_text("utf-8"), f"{page} differs: look at it, and rewrite it with POLLUX_REWRITE=1"


# JSON


def keys(value: Any, path: str = "") -> Iterator[str]:  # noqa: ANN401  # whatever JSON holds
    """Return the way to each value, as the page on JSON writes it."""
    if path in OPEN:
        yield path
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from keys(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for inner in value:
            yield from keys(inner, f"{path}[]")
    else:
        yield path


def output_of(*arguments: str) -> bytes:
    result = CliRunner().invoke(pollux, arguments, env={"POLLUX_HOME": str(HOME)})
    assert result.exit_code in (0, 1), result.output
    return result.stdout_bytes


def section(title: str) -> dict[str, str]:
    """Return the first two columns of the table below a heading of the page on JSON."""
    _, _, rest = text_of(DOCS / "json.md").partition(f"\n{title}\n")
    body = re.split(r"^#+ ", rest, maxsplit=1, flags=re.MULTILINE)[0]
    rows = [line.strip("| ").split("|") for line in body.splitlines() if line.startswith("| `")]
    return {CODED.findall(row[0])[0]: row[1] if len(row) > 1 else "" for row in rows if row[0].strip() != "`type`"}


def test_keys_of_a_session() -> None:
    sessions = json.loads(output_of("ls", "--all", "--json"))["sessions"]
    assert set(section("## A session")) == {key for one in sessions for key in keys(one)}


def test_keys_of_a_message() -> None:
    ids = [one["id"] for one in json.loads(output_of("ls", "--json"))["sessions"]]
    messages = [one for id_ in ids for one in json.loads(output_of("show", id_, "--json"))["timeline"]]
    empty = {"thoughts", "tool_calls", "attachments", "tokens"}
    assert set(section("## A message")) == {key for one in messages for key in keys(one)} - empty


def test_keys_of_a_problem() -> None:
    problems = json.loads(output_of("ls", "--json"))["problems"]
    assert set(section("## A problem")) == {key for one in problems for key in keys(one)}


@pytest.mark.parametrize(
    ("title", "arguments", "told_elsewhere"),
    [
        ("## `pollux ls --json`", ["ls", "--json"], {"sessions[]", "problems[]"}),
        (
            "## `pollux search --json`",
            ["search", "the", "--json"],
            {"hits[].project", "sessions[].project", "problems[]"},
        ),
        ("## `pollux show --json`", ["show", "--json"], {"session", "timeline[]"}),
        ("## `pollux tree --json`", ["tree", "e92f6bc2", "--json"], {"tree"}),
        ("## `pollux projects --json`", ["projects", "--json"], set()),
        ("## `pollux doctor --json`", ["doctor", "--json"], {"problems[]"}),
        (
            "## `pollux export --format json`",
            ["export", "f92c", "--format", "json"],
            {"session", "timeline[]", "problems[]"},
        ),
    ],
)
def test_keys_of_a_command(title: str, arguments: list[str], told_elsewhere: set[str]) -> None:
    described = section(title)
    found = json.loads(output_of(*arguments))
    assert f"`{found['schema']}`" in text_of(DOCS / "json.md").partition(f"\n{title}\n")[2][:200]
    plain = {key.removesuffix("[]") for key in described}
    for key in keys(found):
        is_told = any(key.startswith((f"{one}.", f"{one[:-2]}[].")) for one in told_elsewhere)
        assert is_told or key.removesuffix("[]") in plain, f"{title} lacks {key}"
    shown = {key.split(".")[0].split("[")[0] for key in described}
    assert shown == set(found), f"{title} names keys that are not there"


def test_records_of_an_export() -> None:
    types = {json.loads(line)["type"] for line in output_of("export", "f92c", "--format", "jsonl").splitlines()}
    assert types == set(section("## `pollux export --format jsonl`"))


@pytest.mark.parametrize("struct", [model.Message, model.ToolCall])
def test_fields_of_values(struct: type[msgspec.Struct]) -> None:
    assert list(section(f"### {struct.__name__}")) == list(struct.__struct_fields__)


@pytest.mark.parametrize(("title", "union"), [("### Parts", model.Part), ("### Displays", model.Display)])
def test_fields_of_unions(title: str, union: Any) -> None:  # noqa: ANN401  # a type alias
    described = section(title)
    structs = {struct.__struct_config__.tag: struct for struct in get_args(union)}
    assert list(described) == list(structs)
    for tag, struct in structs.items():
        assert set(struct.__struct_fields__) <= set(CODED.findall(described[tag])), f"{title}: {tag}"


# Formats, problems, origins, fates, modules


def test_samples_of_formats_are_recognised(tmp_path: Path) -> None:
    samples = [body for body in blocks(DOCS / "formats.md", "json", "text") if body[0] in "[{"]
    path = tmp_path / "sample"
    found = []
    for sample in samples:
        path.write_text(sample, "utf-8")
        session, group = from_file(path)
        assert all(message.kind != "unknown" for message in group.messages())
        found.append((session.generation, session.files[0].format))
    assert found == [
        ("json", "document"),
        ("jsonl-checkpoints", "log"),
        ("history", "history"),
        ("stream", "stream"),
        ("prompts", "prompts"),
    ]


def codes() -> set[str]:
    """Return the codes of problems that the code can produce: of problems made, and of faults that will become some."""
    return {
        code for path in SOURCE.rglob("*.py") for node in ast.walk(ast.parse(text_of(path))) for code in _code(node)
    }


def _code(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Call(func=ast.Name(id="Problem"), args=[ast.Constant(value=str(code)), *_]):
            yield code
        case ast.Tuple(elts=[ast.Constant(value=str(code)), ast.Constant(value=str()) | ast.JoinedStr()]):
            if CODE.fullmatch(code):
                yield code


def test_every_code_of_a_problem_is_explained() -> None:
    explained = re.findall(r'^\| <a id="([\w-]+)"></a>`([\w-]+)` \|', text_of(DOCS / "problems.md"), re.MULTILINE)
    assert all(anchor == code for anchor, code in explained)
    assert {code for code, _ in explained} == codes()


@pytest.mark.parametrize("word", [*model.Origin, *model.Fate, *model.Role])
def test_every_word_of_the_model_is_explained(word: str) -> None:
    if word != model.Role.SUBAGENT:  # given to no file: a subagent's session has a main file too
        assert f"\n| `{word}` |" in text_of(DOCS / "formats.md")


def test_every_module_is_in_the_tour() -> None:
    rooms = {path.relative_to(SOURCE).parts[0].removesuffix(".py") for path in SOURCE.rglob("*.py")}
    inner = {path.stem for path in (SOURCE / "formats").glob("*.py")}
    named = set(CODED.findall(text_of(DOCS / "architecture.md")))
    assert {name for name in rooms | inner if not name.startswith("__")} - COMING <= named
