from __future__ import annotations

import textwrap
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

import pollux.prices
from pollux.errors import UnreadableFileError
from pollux.model import Tokens
from pollux.prices import InvalidPricesError, Price, Prices, Tier, cost, find, load

SMALL = 'model = "x"\ninput = 1\noutput = 2\n'


def write(folder: Path, text: str) -> Path:
    path = folder / "prices.toml"
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return path


def row(folder: Path, text: str) -> Price:
    [price] = load(write(folder, f"[[price]]\n{text}")).overrides
    return price


def fault(path: Path) -> str:
    with pytest.raises(InvalidPricesError) as caught:
        load(path)
    assert caught.value.status == 2
    return str(caught.value)


def price_id(prices: Prices, model: str, day: str | None) -> str | None:
    price = find(prices, model, datetime.fromisoformat(f"{day}T12:00:00Z") if day else None)
    return price.id if price else None


def example() -> str:
    """Return the example in the module's own documentation."""
    lines = (pollux.prices.__doc__ or "").splitlines()
    return "\n".join(line for line in lines if line.startswith("    "))


def test_the_documented_example_is_understood(tmp_path: Path) -> None:
    prices = load(write(tmp_path, example()))
    assert prices.overrides == (
        Price(
            id="gemini-2.5-pro@2026-01-01!user",
            model="gemini-2.5-pro",
            since=date(2026, 1, 1),
            until=date(2027, 1, 1),
            tiers=(Tier(0, 1_250_000, 310_000, 10_000_000), Tier(200_000, 2_500_000, 625_000, 15_000_000)),
        ),
    )
    price = find(prices, "gemini-2.5-pro", datetime(2026, 6, 1, tzinfo=UTC))
    assert price
    assert cost(price, Tokens(input=1_000, cached=1_000)) == 310_000
    assert cost(price, Tokens(input=300_000, output=1_000)) == 765_000_000


def test_an_override_holds_for_its_days_and_every_name_of_its_model(tmp_path: Path) -> None:
    prices = load(write(tmp_path, example()))
    for name in ("gemini-2.5-pro", "models/gemini-2.5-pro", "GEMINI-2.5-PRO", "gemini-2.5-pro-preview-06-05"):
        ids = [price_id(prices, name, day) for day in ("2025-12-31", "2026-01-01", "2026-12-31", "2027-01-01")]
        assert ids == ["gemini-2.5-pro", *["gemini-2.5-pro@2026-01-01!user"] * 2, "gemini-2.5-pro"]
    assert price_id(prices, "gemini-2.5-flash", "2026-06-01") == "gemini-2.5-flash"
    assert price_id(prices, "gemini-2.5-pro", None) == "gemini-2.5-pro@2026-01-01!user"


def test_the_nearer_name_and_the_later_day_win(tmp_path: Path) -> None:
    text = """
        [[price]]
        model = "gemini-2.5-pro"
        input = 1
        output = 1

        [[price]]
        model = "gemini-2.5-pro"
        since = 2026-03-01
        until = 2026-04-01
        input = 2
        output = 2

        [[price]]
        model = "models/Gemini-2.5-pro-preview-06-05"
        since = 2026-02-01
        input = 3
        output = 3
    """
    prices = load(write(tmp_path, text))
    days = ("2020-01-01", "2026-02-01", "2026-03-01", "2026-04-01")
    always, march = "gemini-2.5-pro!user", "gemini-2.5-pro@2026-03-01!user"
    dated = "gemini-2.5-pro-preview-06-05@2026-02-01!user"
    assert [price_id(prices, "gemini-2.5-pro", day) for day in days] == [always, always, march, always]
    assert [price_id(prices, "gemini-2.5-pro-preview-06-05", day) for day in days] == [always, dated, dated, dated]


@pytest.mark.parametrize("name", ["auto", "gemini-9.9-ultra", "gemini-3-pro-image", "my/own-model"])
def test_a_model_that_the_table_does_not_price_can_have_one(tmp_path: Path, name: str) -> None:
    prices = load(write(tmp_path, f'[[price]]\nmodel = "{name}"\ninput = 1\noutput = 2'))
    assert price_id(prices, name, "2026-01-01") == f"{name}!user"
    assert price_id(prices, f"{name}-other", "2026-01-01") is None


def test_what_may_be_left_out(tmp_path: Path) -> None:
    assert row(tmp_path, SMALL) == Price("x!user", "x", None, None, (Tier(0, 1_000_000, None, 2_000_000),))


def test_tiers_come_in_order_and_need_no_cache_price(tmp_path: Path) -> None:
    tiers = "above_500k = { input = 3, output = 4 }\nabove_128k = { input = 2, cached = 0, output = 3 }"
    high = (Tier(128_000, 2_000_000, 0, 3_000_000), Tier(500_000, 3_000_000, None, 4_000_000))
    assert row(tmp_path, SMALL + tiers).tiers[1:] == high


@pytest.mark.parametrize(
    ("amount", "pico"),
    [
        ("0", 0),
        ("-0.0", 0),
        ("1_000", 10**9),
        ("0.000001", 1),
        ("0.1", 100_000),
        ("1.25e0", 1_250_000),
        ("1e6", 10**12),
    ],
)
def test_amounts_are_exact(tmp_path: Path, amount: str, pico: int) -> None:
    price = row(tmp_path, f'model = "x"\ninput = {amount}\ncached = {amount}\noutput = {amount}')
    assert price.tiers == (Tier(0, pico, pico, pico),)
    assert {type(number) for number in (price.tiers[0].input, price.tiers[0].cached, price.tiers[0].output)} == {int}


def test_the_currency_may_be_named(tmp_path: Path) -> None:
    assert row(tmp_path, f'{SMALL}currency = "USD"') == row(tmp_path, SMALL)


def test_reports_name_the_file_and_the_version_changes(tmp_path: Path) -> None:
    plain = load()
    one = load(write(tmp_path, f"[[price]]\n{SMALL}"))
    other = load(write(tmp_path, f"[[price]]\n{SMALL}cached = 0"))
    assert one.table == f"{plain.table} + prices.toml"
    assert one.rows == plain.rows
    assert len({plain.version, one.version, other.version}) == 3
    assert load(write(tmp_path, f"[[price]]\n{SMALL}")).version == one.version


def test_an_empty_file_changes_no_price(tmp_path: Path) -> None:
    assert load(write(tmp_path, "# nothing yet\n")).overrides == ()


def test_a_mark_of_byte_order_does_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "prices.toml"
    path.write_bytes(b"\xef\xbb\xbf" + f"[[price]]\n{SMALL}".replace("\n", "\r\n").encode())
    assert [price.id for price in load(path).overrides] == ["x!user"]


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFileError, match=r"none\.toml: No such file"):
        load(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[[price]]\nmodel 'x'", "not valid TOML: Expected '=' after a key in a key/value pair (at line 2, column 7)"),
        ("x = 1e99999999999999999999", "a number: its exponent is far beyond any price"),
        ("[[prices]]\nmodel = 'x'", "'prices': the file may only contain [[price]] tables"),
        ("[price]\nmodel = 'x'", "'price': the file may only contain [[price]] tables"),
        ("price = [1]", "[[price]] number 1: it must be a table with model, input and output"),
        (
            f"[[price]]\n{SMALL}[[price]]\n{SMALL}",
            "[[price]] number 2: an earlier one has the same model and first day",
        ),
        (
            f"[[price]]\n{SMALL}[[price]]\ninput = 1\noutput = 2",
            "[[price]] number 2: model must be the name of a model, such as 'gemini-2.5-pro'",
        ),
    ],
)
def test_a_wrong_file_is_explained(tmp_path: Path, text: str, reason: str) -> None:
    path = write(tmp_path, text)
    assert fault(path) == f"{path}: {reason}."


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            f"{SMALL}inptu = 1",
            "unknown key 'inptu'; use cached, currency, input, model, output, since, until or above_200k",
        ),
        (
            f"{SMALL}above_0k = 1",
            "unknown key 'above_0k'; use cached, currency, input, model, output, since, until or above_200k",
        ),
        ("model = 7", "model must be the name of a model, such as 'gemini-2.5-pro'"),
        ("model = ' '", "model must be the name of a model, such as 'gemini-2.5-pro'"),
        (f"{SMALL}currency = 'EUR'", "currency can only be 'USD'"),
        (f"{SMALL}since = '2026-01-01'", "since must be a date without quotation marks, such as 2026-01-01"),
        (f"{SMALL}until = 2026-01-01T00:00:00Z", "until must be a date without quotation marks, such as 2026-01-01"),
        (f"{SMALL}since = 2026-01-01\nuntil = 2026-01-01", "since must be before until"),
        ("model = 'x'\noutput = 1", "input must be a number, in US dollars per million tokens"),
        ("model = 'x'\ninput = 1", "output must be a number, in US dollars per million tokens"),
        ("model = 'x'\ninput = true", "input must be a number, in US dollars per million tokens"),
        ("model = 'x'\ninput = '1'", "input must be a number, in US dollars per million tokens"),
        (f"{SMALL}cached = -0.1", "cached must be between 0 and 1000000 US dollars per million tokens"),
        (f"{SMALL}cached = nan", "cached must be between 0 and 1000000 US dollars per million tokens"),
        (f"{SMALL}cached = inf", "cached must be between 0 and 1000000 US dollars per million tokens"),
        (f"{SMALL}cached = 1e999999", "cached must be between 0 and 1000000 US dollars per million tokens"),
        (f"{SMALL}cached = 0.1234567", "cached can have six decimals at most"),
        (f"{SMALL}cached = 0.1{'0' * 40}1", "cached can have six decimals at most"),
        (f"{SMALL}above_200k = 3", "above_200k must be a table such as { input = 2.5, cached = 0.25, output = 15 }"),
        (
            f"{SMALL}above_200k = {{ input = 3 }}",
            "above_200k.output must be a number, in US dollars per million tokens",
        ),
        (f"{SMALL}above_200k = {{ since = 3 }}", "unknown key 'since'; use cached, input, output"),
    ],
)
def test_a_wrong_row_is_explained(tmp_path: Path, text: str, reason: str) -> None:
    path = write(tmp_path, f"[[price]]\n{text}")
    assert fault(path) == f"{path}: [[price]] number 1: {reason}."


def test_a_file_that_is_no_text_is_explained(tmp_path: Path) -> None:
    path = tmp_path / "prices.toml"
    path.write_bytes(b"\xff\xfe")
    assert fault(path).startswith(f"{path}: not valid TOML: 'utf-8' codec can't decode byte 0xff")


@pytest.mark.parametrize("text", ["a=" + "[" * 5000, "a=" + "{a=" * 5000])
def test_a_file_that_is_nested_deeply_is_explained(tmp_path: Path, text: str) -> None:
    assert fault(write(tmp_path, text)).endswith("prices.toml: not valid TOML: its values are nested too deeply.")
