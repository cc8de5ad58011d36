"""Two independent COSE libraries accept signatures and seals, and reject them after a changed byte.

They need an older `cbor2`, so `make test-interop` installs them into a separate environment.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import cbor2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.archive.test_verify import archived_home
from tests.proofs.samples import KEY, PAYLOAD, PUBLIC, flipped, signed
from tests.proofs.sealing import seal_copy, seal_it

from pollux.proofs import cose, signatures

REASON = "the independent libraries are in an environment of their own: `make test-interop`"
cwt = pytest.importorskip("cwt", reason=REASON)
OKPKey = pytest.importorskip("pycose.keys", reason=REASON).OKPKey
Sign1Message = pytest.importorskip("pycose.messages", reason=REASON).Sign1Message

ATTACHED, DETACHED = signed(), signed(attached=False)
ENVELOPE = cose.open_envelope(ATTACHED)


def takes_pycose(data: bytes, detached: bytes | None = None) -> bool:
    message = Sign1Message.decode(data)
    message.key = OKPKey.decode(PUBLIC.cose)
    return bool(message.verify_signature(detached) if detached is not None else message.verify_signature())


def takes_cwt(data: bytes, detached: bytes | None = None) -> bool:
    key = cwt.COSEKey.from_pem(PUBLIC.pem, kid=PUBLIC.id)
    more = {} if detached is None else {"detached_payload": detached}
    payload = cwt.COSE.new().decode(data, key, **more)
    return bool(payload == (detached if detached is not None else cose.open_envelope(data).payload))


JUDGES = pytest.mark.parametrize("takes", [takes_pycose, takes_cwt])


def is_accepted(takes: Callable[..., bool], *args: Any) -> bool:  # noqa: ANN401
    """Return whether a library accepts a signature; some return false, others raise any exception."""
    with suppress(Exception):
        return takes(*args)
    return False


@JUDGES
def test_attached_signature_is_accepted(takes: Callable[..., bool]) -> None:
    assert takes(ATTACHED)


@JUDGES
def test_detached_signature_is_accepted(takes: Callable[..., bool]) -> None:
    assert takes(DETACHED, PAYLOAD)


@JUDGES
def test_seal_is_accepted(takes: Callable[..., bool], tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    seal_it(archive)
    assert takes(seal_copy(archive))


@JUDGES
@settings(max_examples=50)
@given(data=st.data())
def test_changed_byte_is_rejected(takes: Callable[..., bool], data: st.DataObject) -> None:
    parts = [ENVELOPE.protected_bytes, PAYLOAD, ENVELOPE.signature]
    part = data.draw(st.sampled_from(parts))
    bad = flipped(part, data.draw(st.integers(0, len(part) - 1)), data.draw(st.integers(0, 7)))
    assert not is_accepted(takes, ATTACHED.replace(part, bad))
    if part is PAYLOAD:
        assert not is_accepted(takes, DETACHED, bad)


def test_header_is_read_by_other_libraries() -> None:
    message = Sign1Message.decode(ATTACHED)
    assert cbor2.loads(message.phdr_encoded) == ENVELOPE.protected
    assert message.payload == PAYLOAD


def test_signature_of_another_library_verifies() -> None:
    """pycose writes an envelope like the signer of the draft: in its own order, without deterministic CBOR."""
    headers = import_module("pycose.headers")
    key = OKPKey.decode(PUBLIC.cose)
    key[import_module("pycose.keys.keyparam").OKPKpD] = KEY.private_bytes_raw()
    claims_and_key = {15: {1: "google", 2: "6ece72aa"}, headers.KID: PUBLIC.id}
    claims_and_key |= {headers.Algorithm: import_module("pycose.algorithms").EdDSA}
    message = Sign1Message(phdr=claims_and_key, uhdr={}, payload=PAYLOAD)
    message.key = key
    assert signatures.verify(message.encode(), None, [PUBLIC]).errors == []
    assert not signatures.verify(message.encode()[:-1] + b"x", None, [PUBLIC]).is_ok
