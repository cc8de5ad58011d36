"""An export is a download that is redacted unless its address says otherwise."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.builders import NAME, SESSION, chats, gemini, header, log, put, user
from tests.exports.everything import PIXEL
from tests.web.viewing import Viewed, viewing

from pollux.library.export_options import FORMATS

KEY = "AKIA" + "QYLPMN5HFIQR7XYA"  # in two parts, so that nobody takes it for a real one


@pytest.fixture(scope="module")
def viewed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Viewed]:
    folder = tmp_path_factory.mktemp("viewer")
    picture = {"inlineData": {"mimeType": "image/png", "data": PIXEL}}
    prompt = user("u1", [{"text": f"my key is {KEY}"}, picture])
    put(chats(folder / "home") / f"{NAME}.jsonl", log(header(), prompt, gemini("g1", f"I keep {KEY} secret")))
    with viewing(folder, [folder / "home"]) as made:
        yield made


@pytest.mark.parametrize("format_", ["html", "markdown", "json", "jsonl"])
@pytest.mark.parametrize("query", [{}, {"redact": "yes"}, {"redact": ""}, {"redact": "share"}])
def test_export_is_redacted(viewed: Viewed, format_: str, query: dict[str, str]) -> None:
    answer = viewed.answer(f"s/{SESSION}/export", format=format_, **query)
    assert answer.status_code == 200
    assert answer.headers["content-disposition"].startswith("attachment")
    assert "my key is" in answer.text
    assert KEY not in answer.text
    assert (PIXEL in answer.text) == (format_ in ("html", "json", "jsonl") and query.get("redact") != "share")


@pytest.mark.parametrize("format_", ["html", "markdown", "json", "jsonl"])
def test_only_an_address_that_says_so_leads_to_secrets(viewed: Viewed, format_: str) -> None:
    answer = viewed.answer(f"s/{SESSION}/export", format=format_, redact="none")
    assert KEY in answer.text


@pytest.mark.parametrize("value", ["0", "1", "no", "false", "maybe", "NONE", "<script>"])
def test_an_unknown_redaction_is_explained(viewed: Viewed, value: str) -> None:
    """A word that looks like "no" must not become a file with secrets, nor one like "none" a redacted one."""
    text = viewed.page(f"s/{SESSION}/export", 400, format="html", redact=value).text
    assert f"The parameter redact is '{value}', but only yes, share, none are known." in text


def test_a_format_for_other_people_is_always_redacted(viewed: Viewed) -> None:
    public = [name for name, exporter in FORMATS.items() if exporter.is_public and not exporter.reads_archive]
    for name in public:
        assert "always redacted" in viewed.page(f"s/{SESSION}/export", 400, format=name, redact="none").text


def test_the_form_redacts_unless_the_user_chooses_otherwise(viewed: Viewed) -> None:
    page = viewed.page(f"s/{SESSION}/export")
    values = [tag.attributes["value"] for tag in page.named("option")]
    assert values[-3:] == ["yes", "share", "none"]
    assert "redact=" not in viewed.get(f"s/{SESSION}")
