"""A user's own prices reach every export that shows money."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import builders
from tests.builders import gemini, header, log, tokens, user
from tests.cli.running import Runner

from pollux.archive.lock import WriterLock

AGENT = "0a9e1b77-5c43-4f0e-8f51-2f6a9c3d7e10"
MILLION = 1_000_000


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Write a session and its subagent; both used a model that has a price in the table."""
    chats = builders.chats(tmp_path)
    asks = builders.call("c1", "codebase_investigator", agentId=AGENT)
    answer = gemini("g1", "Found.", tokens=tokens(MILLION), toolCalls=[asks])
    builders.put(chats / f"{builders.NAME}.jsonl", log(header(), user(), answer))
    task = gemini("s2", "Here.", tokens=tokens(MILLION))
    builders.put(chats / builders.SESSION / f"{AGENT}.jsonl", log(header(AGENT, kind="subagent"), user("s1"), task))
    return tmp_path


def dollars_shown(text: str) -> float:
    return float(re.findall(r"\$(\d+\.\d+)", text)[0])


def json_amount(text: str) -> float:
    return float(json.loads(text)["session"]["cost_nanousd"])


def lines_amount(text: str) -> float:
    return float(json.loads(text.splitlines()[0])["session"]["cost_nanousd"])


def calls_amount(text: str) -> float:
    return float(sum(json.loads(line)["cost_nanousd"] for line in text.splitlines()))


def csv_amount(text: str) -> float:
    return sum(float(row["cost_nanousd"]) for row in csv.DictReader(io.StringIO(text)))


def atif_amount(text: str) -> float:
    trajectory = json.loads(text)
    steps = [step["metrics"]["cost_usd"] for step in trajectory["steps"] if "metrics" in step]
    return float(sum(steps) + trajectory["final_metrics"]["total_cost_usd"])


def otlp_amount(text: str) -> float:
    return sum(float(value) for value in values_of(json.loads(text), "pollux.cost.nano_usd"))


def values_of(value: Any, key: str) -> Iterator[str]:  # noqa: ANN401  decoded JSON
    """Yield the whole numbers of an attribute, wherever it is."""
    if isinstance(value, dict) and value.get("key") == key:
        yield value["value"]["intValue"]
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from values_of(part, key)


def hf_amount(text: str) -> float:
    messages = [json.loads(line).get("message", {}) for line in text.splitlines()]
    return float(sum(message["usage"]["cost"]["total"] for message in messages if "usage" in message))


AMOUNTS: dict[str, Callable[[str], float]] = {
    "markdown": dollars_shown,
    "html": dollars_shown,
    "json": json_amount,
    "jsonl": lines_amount,
    "calls": calls_amount,
    "calls-csv": csv_amount,
    "atif": atif_amount,
    "otlp": otlp_amount,
    "hf": hf_amount,
}


def set_price(monkeypatch: pytest.MonkeyPatch, folder: Path, dollars: int, name: str = "prices.toml") -> None:
    """Make the tokens of a model cost so many dollars a million."""
    price = f'[[price]]\nmodel = "gemini-2.5-pro"\ninput = {dollars}\noutput = {dollars}\n'
    monkeypatch.setenv("POLLUX_PRICES", str(builders.put(folder / name, price.encode())))


@pytest.mark.parametrize("name", AMOUNTS)
def test_doubled_price_doubles_the_amount(
    run: Runner, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    amounts = []
    for dollars in (100, 200):
        set_price(monkeypatch, tmp_path, dollars)
        target = tmp_path / f"{dollars}"
        assert run("export", builders.SESSION, "-f", name, "-o", f"{target}/", home=home).status == 0
        [file] = [path for path in target.iterdir() if builders.SESSION[:8] in path.name and path.is_file()]
        amounts.append(AMOUNTS[name](file.read_text("utf-8")))
    assert amounts[0] > 0
    assert amounts[1] == pytest.approx(2 * amounts[0])


@pytest.mark.parametrize("name", ["atif", "otlp", "hf"])
def test_name_of_the_price_file_is_redacted(
    run: Runner, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    set_price(monkeypatch, tmp_path, 100, "carol.jones@example.org.toml")
    options = () if name == "hf" else ("--redact",)
    ended = run("export", builders.SESSION, "-f", name, "-o", f"{tmp_path / 'shared'}/", *options, home=home)
    assert ended.status == 0
    [*texts] = [path.read_text("utf-8") for path in (tmp_path / "shared").iterdir() if path.is_file()]
    assert "genai-prices" in "".join(texts)
    assert "carol" not in "".join(texts)


@pytest.mark.parametrize(("name", "page"), [("markdown", "README.md"), ("html", "index.html")])
def test_folder_is_written_again_with_other_prices(
    run: Runner, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, page: str
) -> None:
    folder = tmp_path / "pages"
    amounts = []
    for dollars in (100, 200):
        set_price(monkeypatch, tmp_path, dollars)
        ended = run("export", "--all", "-f", name, "-o", f"{folder}/", home=home)
        assert (ended.status, "unchanged" in ended.err) == (0, False)
        amounts.append(dollars_shown((folder / page).read_text("utf-8")))
    assert amounts[1] == pytest.approx(2 * amounts[0])


def test_parquet_has_the_users_prices(run: Runner, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="no pyarrow: `pip install 'pollux-cli[lake]'`")
    amounts = []
    for dollars in (100, 200):
        set_price(monkeypatch, tmp_path, dollars)
        folder = tmp_path / f"{dollars}"
        assert run("export", "--all", "-f", "parquet", "-o", str(folder), home=home).status == 0
        rows = parquet.read_table(folder / "model_calls.parquet").to_pylist()
        amounts.append(sum(row["cost_nanousd"] for row in rows))
    assert amounts[0] > 0
    assert amounts[1] == 2 * amounts[0]


def test_parquet_has_the_users_prices_while_another_process_writes(
    run: Runner, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="no pyarrow: `pip install 'pollux-cli[lake]'`")
    archive = tmp_path / "archive.db"
    monkeypatch.setenv("POLLUX_ARCHIVE", str(archive))
    assert run("sync", home=home).status == 0
    set_price(monkeypatch, tmp_path, 100)
    lock = WriterLock(archive)
    assert lock.take()
    try:
        ended = run("export", "--all", "-f", "parquet", "-o", f"{tmp_path / 'facts'}/")
    finally:
        lock.release()
    assert ended.status == 0, ended.err
    costs = parquet.read_table(tmp_path / "facts" / "model_calls.parquet")["cost_nanousd"].to_pylist()
    assert all(cost >= 100 * 10**9 for cost in costs)
