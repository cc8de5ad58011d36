"""Signed and redacted records are valid for an independent checker of the schema."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests import builders
from tests.archive.test_verify import archived_home
from tests.proofs.samples import KEY, PAYLOAD, record, signed
from tests.proofs.sealing import record_of, seal_it

from pollux.archive import store
from pollux.library.records import field_chooser
from pollux.proofs import signing
from pollux.proofs.canonical import cbor_bytes, json_bytes, json_value
from pollux.proofs.redacted import hide_values, prove_record
from pollux.proofs.signing import TraceMetadata

pytest.importorskip("cddl_verifier", reason="the judge is not installed: pip install cddl-verifier")

from tests.interop.test_vac import verdict


@pytest.mark.parametrize("attached", [True, False])
@pytest.mark.parametrize("payload", [PAYLOAD, cbor_bytes(record())])
def test_signatures_of_records_are_valid(payload: bytes, *, attached: bool) -> None:
    assert verdict(signed(payload, attached=attached), require_deterministic=True) == ""


@pytest.mark.parametrize("start", [None, 5, "2026-11-15T19:30:00.000Z"])
def test_signatures_of_session_files_are_valid(start: str | int | None) -> None:
    about = TraceMetadata("6ece72aa", "google", "gemini-jsonl", start)
    data = signing.sign(b"{}\n", KEY, about, content_type=signing.LOG, at=builders.instant_of(0))
    assert verdict(data, require_deterministic=True) == ""


def test_redacted_records_are_valid(tmp_path: Path) -> None:
    _, archive = archived_home(tmp_path)
    seal_it(archive)
    original = record_of(builders.SESSION)
    shown = hide_values(original, field_chooser(("content", "input"), "hunter"))
    with store.open_archive(archive, write=False) as opened:
        made = prove_record(opened, builders.SESSION, original, shown)
    assert verdict(json_value(json_bytes(made))) == ""
    assert verdict(cbor_bytes(made), require_deterministic=True) == ""
