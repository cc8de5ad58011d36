"""A verifier written only from the documentation gives the same verdicts as Pollux."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidSignature
from tests import builders
from tests.archive.test_verify import LOG, content_of
from tests.proofs import independent
from tests.proofs.samples import PUBLIC, STRANGER, record
from tests.proofs.test_inclusion import archive, copy_of, proof_of

__all__ = ["archive"]


def test_independent_verifier_does_not_import_pollux() -> None:
    tree = ast.parse(Path(independent.__file__).read_text("utf-8"))
    imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not {name for name in imported if name.startswith(("pollux", "tests"))}


def test_proof_verifies_independently(archive: Path) -> None:
    entries = independent.proven_entries(proof_of(archive), PUBLIC.raw)
    (data,) = content_of(archive, LOG)
    sealed = {entry["path"]: entry for entry in entries if entry["kind"] == "file"}
    assert sealed[LOG]["sha256"] == independent.sha256(data[: sealed[LOG]["length"]]).hex()


def test_redacted_record_verifies_independently(archive: Path) -> None:
    n_proven = independent.proven_fields(copy_of(archive), PUBLIC.raw)
    less = independent.proven_fields(copy_of(archive, "content", "children"), PUBLIC.raw)
    assert 0 < less < n_proven == len(independent.fields(record(id=builders.SESSION))) - 3, (
        "created and two fields of the recorder"
    )


def test_changed_records_are_rejected(archive: Path) -> None:
    with pytest.raises((InvalidSignature, AssertionError)):
        independent.proven_entries(proof_of(archive), STRANGER.raw)
    copy = copy_of(archive, "content")
    copy["session"]["entries"][0]["type"] = "assistant"
    with pytest.raises(AssertionError):
        independent.proven_fields(copy, PUBLIC.raw)
