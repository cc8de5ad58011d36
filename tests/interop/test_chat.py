"""Real tokenizers accept each chat row of the corpus in their chat templates."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tests.corpus.trees import Tree, every_release
from tests.interop.subjects import needs, of_trees

from pollux.exports.chat import render

pytestmark = pytest.mark.filterwarnings("default")

TOKENIZER = os.environ.get("POLLUX_TOKENIZER")
NO_TOKENIZER = "no tokenizer: `make test-interop` fetches it and sets POLLUX_TOKENIZER"
MISTRAL = "mistral_instruct_tokenizer_241114.model.v7"


def rows(trees: list[Tree], *include: str) -> Iterator[Any]:
    for made in of_trees(trees, with_agents=True, include=frozenset(include)):
        if data := b"".join(render(made)):
            yield json.loads(data)


@cache
def qwen() -> Any:  # noqa: ANN401
    """Return the tokenizer of Qwen 3 with its own chat template."""
    assert TOKENIZER
    settings = json.loads((Path(TOKENIZER) / "tokenizer_config.json").read_bytes())
    return import_module("transformers").PreTrainedTokenizerFast(
        tokenizer_file=str(Path(TOKENIZER) / "tokenizer.json"),
        chat_template=settings["chat_template"],
        eos_token=settings["eos_token"],
    )


@pytest.mark.skipif(not TOKENIZER, reason=NO_TOKENIZER)
@needs("transformers", "transformers")
@pytest.mark.parametrize("include", [[], ["argument-objects"]], ids=["text", "objects"])
@every_release
def test_qwen_renders_each_row(trees: list[Tree], include: list[str]) -> None:
    tokenizer = qwen()
    for row in rows(trees, *include):
        text = tokenizer.apply_chat_template(row["messages"], tools=row["tools"] or None, tokenize=False)
        encoded = tokenizer.apply_chat_template(row["messages"], tools=row["tools"] or None)
        assert len(encoded["input_ids"])
        calls = [call_["function"] for message in row["messages"] for call_ in message.get("tool_calls", ())]
        assert text.count('<tool_call>\n{"name": "') == len(calls)
        for call in calls:
            assert f'{{"name": "{call["name"]}", "arguments": ' in text
        for message in row["messages"]:
            assert message["content"].strip() in text
        for tool in row["tools"]:
            assert f'"name": "{tool["function"]["name"]}"' in text


@cache
def mistral() -> Any:  # noqa: ANN401
    """Return the tokenizer in Mistral's own library, in the mode that checks training data."""
    module: Any = import_module("mistral_common.tokens.tokenizers.mistral")
    folder = Path(module.__file__).parents[2] / "data"
    modes = import_module("mistral_common.protocol.instruct.validator").ValidationMode
    return module.MistralTokenizer.from_file(str(folder / MISTRAL), mode=modes.finetuning)


@needs("mistral_common", "mistral-common")
@every_release
def test_mistral_accepts_each_row(trees: list[Tree]) -> None:
    tokenizer = mistral()
    request = import_module("mistral_common.protocol.instruct.request").ChatCompletionRequest
    for row in rows(trees):
        asked = request.from_openai(messages=_for_mistral(row["messages"]), tools=row["tools"] or None)
        assert tokenizer.encode_chat_completion(asked).tokens


def _for_mistral(messages: list[Any]) -> list[Any]:
    """Return messages as only Mistral requires: IDs of nine characters, no reasoning, and an answer at the end."""
    without_reasoning = [
        {key: value for key, value in message.items() if key != "reasoning_content"} for message in messages
    ]
    while without_reasoning[-1]["role"] != "assistant":
        without_reasoning.pop()
    for message in without_reasoning:
        if "tool_call_id" in message:
            message["tool_call_id"] = _nine(message["tool_call_id"])
        if "tool_calls" in message:
            message["tool_calls"] = [{**call, "id": _nine(call["id"])} for call in message["tool_calls"]]
    return without_reasoning


def _nine(id_: str) -> str:
    return hashlib.sha256(id_.encode()).hexdigest()[:9]
