"""Thousands of broken signatures, seals, proofs and keys each give a verdict or one clear error."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import cbor2
import pytest
from tests import builders
from tests.archive.test_verify import LOG, archived_home, content_of, grown, synced
from tests.proofs.samples import KEY, PAYLOAD, PUBLIC, record, signed
from tests.proofs.sealing import seal_copy, seal_copy_with_entries, seal_it
from tests.proofs.test_inclusion import copy_of, proof_of

from pollux.archive import store
from pollux.cli.record import print_verdict
from pollux.errors import PolluxError
from pollux.proofs.canonical import cbor_bytes
from pollux.proofs.commitment import MEMBER
from pollux.proofs.inclusion import prove_consistency
from pollux.proofs.public import KeyFileError, read_public_key
from pollux.proofs.verify import is_detached, verify_data
from pollux.views.contracts import to_json
from pollux.views.contracts.proofs import VerdictDocument

N_CASES = 400
BIG = "1" * 5000
ODD_JSON: tuple[Any, ...] = (
    *(None, True, 0, -1, 2**63, 2**64, 10**30, 0.5, 1e300, "", "x", "\ud800", "00" * 32, "\x1b[2J"),
    *([], {}, [[]], [None], {"a": 1}, {"salt": 5}, ["x"] * 3, "BIG", "INFINITE", "DEEP"),
)
"""The last three become numbers with thousands of digits, infinite numbers, and nested arrays."""
ODD_CBOR: tuple[Any, ...] = (
    *(None, True, 0, -8, 2**63, -(2**64), 2**20000, 0.5, float("nan"), float("inf"), "", "x" * 5000, b"", b"x" * 40),
    *([], {}, [-8], [[]], {1: {1: 1}}, [99], ["x"], cbor2.CBORSimpleValue(99), cbor2.undefined, Decimal("1e999")),
    *(cbor2.CBORTag(1, "x"), cbor2.CBORTag(5, [2**60, 1]), cbor2.CBORTag(35, "("), cbor2.CBORTag(29, 0)),
    *(cbor2.CBORTag(28, [1]), cbor2.CBORTag(18, []), {b"x": 1}, {"session-id": 5}, {"timestamp-start": 2**20000}),
)
LABELS: tuple[Any, ...] = (1, 2, 3, 4, 15, 99, 100, -1, "x", b"x", "trace-metadata-sha-256", 2**20000)


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    root, archive = archived_home(tmp_path_factory.mktemp("fuzz"))
    old = seal_it(archive).data
    grown(root, LOG, b"{}\n")
    synced(archive, root)
    seal_it(archive, hours=1)
    with store.open_archive(archive, write=False) as opened:
        going_on = prove_consistency(opened, old)
    samples_by_name: dict[str, bytes] = {
        "attached": signed(),
        "detached": signed(attached=False),
        "cbor": signed(cbor_bytes(record())),
        "seal": seal_copy(archive),
        "full": seal_copy_with_entries(archive),
        "proof": _dumped(proof_of(archive)),
        "redacted": _dumped(copy_of(archive, "content")),
        "continuation": _dumped(going_on),
        "signed redacted": signed(_dumped(copy_of(archive, "content"))),
        "file": content_of(archive, LOG)[0],
    }
    return samples_by_name


def _dumped(value: object) -> bytes:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return text.replace('"BIG"', BIG).replace('"INFINITE"', "1e999").replace('"DEEP"', "[" * 3000 + "]" * 3000).encode()


def broken_bytes(random: Random, data: bytes) -> bytes:
    """Return data with some bytes flipped, cut, repeated or replaced."""
    changed = bytearray(data)
    for _ in range(random.choice([1, 1, 2, 5])):
        if not changed:
            break
        place, length = random.randrange(len(changed)), random.choice([1, 1, 2, 8])
        match random.randrange(5):
            case 0:
                changed[place] ^= 1 << random.randrange(8)
            case 1:
                del changed[place : place + length]
            case 2:
                changed[place:place] = changed[place : place + length] or b"\xff"
            case 3:
                changed[place : place + length] = random.randbytes(length)
            case _:
                del changed[place + 1 :]
    return bytes(changed)


def broken_json(random: Random, data: bytes) -> bytes:
    """Return JSON with a value replaced, removed or added anywhere."""
    value = json.loads(data)
    for _ in range(random.choice([1, 1, 2])):
        holder: Any = value
        while True:
            keys = [*holder] if isinstance(holder, dict) else [*range(len(holder))]
            if not keys:
                break
            key = random.choice(keys)
            if isinstance(holder[key], dict | list) and random.randrange(4):
                holder = holder[key]
                continue
            if random.randrange(4):
                holder[key] = deepcopy(random.choice(ODD_JSON))
            else:
                del holder[key]
            break
    return _dumped(value)


def broken_seal(random: Random, data: bytes) -> bytes:
    """Change the seal in a proof, and sign it again."""
    value = json.loads(data)
    holder = value.get(MEMBER, value)
    for name in ("seal", "old", "new"):
        if name in holder:
            holder[name] = b64encode(broken_envelope(random, b64decode(holder[name]), signs=True)).decode()
    return _dumped(value)


def broken_envelope(random: Random, data: bytes, *, signs: bool) -> bytes:
    """Put odd values into the headers, break the payload, and sign the result, or leave the old signature."""
    protected, unprotected, payload, signature = cbor2.loads(data).value
    header = {**cbor2.loads(protected)}
    places = [header, unprotected := {**unprotected}, header[15] if isinstance(header.get(15), dict) else header]
    for _ in range(random.choice([0, 1, 1, 2])):
        random.choice(places)[random.choice(LABELS)] = random.choice(ODD_CBOR)
    if payload and not random.randrange(3):
        payload = broken_json(random, payload) if payload[:1] == b"{" else broken_bytes(random, payload)
    protected = cbor2.dumps(header) if random.randrange(6) else broken_bytes(random, protected)
    if signs:
        signature = KEY.sign(cbor_bytes(["Signature1", protected, b"", payload or PAYLOAD]))
    return cbor2.dumps(cbor2.CBORTag(18, [protected, unprotected, payload, signature]))


def broken(random: Random, name: str, data: bytes) -> bytes:
    if not random.randrange(4):
        return broken_bytes(random, data)
    if data[:1] == b"{":
        return random.choice([broken_json, broken_seal] if name != "file" else [broken_json])(random, data)
    if name == "full":
        seal, entries = cbor2.loads(data)
        entries[random.randrange(len(entries))] = random.choice(
            [b"", b"{}", "text", 5, broken_json(random, entries[0])]
        )
        return cbor2.dumps([broken_envelope(random, seal, signs=True), entries])
    return broken_envelope(random, data, signs=bool(random.randrange(2)))


NAMES = ("attached", "detached", "cbor", "seal", "full", "proof", "redacted", "continuation", "signed redacted")


@pytest.mark.parametrize("name", NAMES)
def test_broken_proofs_are_faults(name: str, samples: dict[str, bytes], capsys: pytest.CaptureFixture[str]) -> None:
    random, seen = Random(name), Counter[str]()  # noqa: S311  the same numbers every time
    for _ in range(N_CASES):
        data = broken(random, name, samples[name])
        file = random.choice([None, PAYLOAD, samples["file"]]) if name in ("detached", "proof", "attached") else None
        try:
            is_detached(data)
            verdict = verify_data(data, file, [PUBLIC])
        except PolluxError:
            seen["refused"] += 1
            continue
        seen["good" if verdict.is_ok else "bad"] += 1
        json.dumps(to_json(VerdictDocument(verdict, "it")))
        print_verdict(verdict, "it")
        output = capsys.readouterr()
        assert "\x1b" not in output.out + output.err
    assert seen["bad"] > N_CASES / 4, seen


@pytest.mark.parametrize("break_", [broken_bytes, lambda random, _: cbor2.dumps(random.choice(ODD_CBOR))])
def test_broken_keys_are_errors(break_: Callable[[Random, bytes], bytes], tmp_path: Path) -> None:
    random = Random(1)  # noqa: S311
    path = builders.put(tmp_path / "odd.pub", b"")
    for number in range(200):
        path.write_bytes(break_(random, PUBLIC.cose if number % 2 else PUBLIC.pem))
        try:
            read_public_key(path)
        except KeyFileError:
            continue
