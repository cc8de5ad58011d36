"""The types of what exports and proofs return, for the annotations of front ends; `values` is quicker to load."""

from pollux.exports.source import Wanted
from pollux.library.export import ExportResult
from pollux.library.keys import SigningKey
from pollux.library.redacting import RedactionReport
from pollux.proofs.keys import Key
from pollux.proofs.public import PublicKey
from pollux.proofs.seal import Sealed
from pollux.proofs.secrets import Secrets
from pollux.proofs.verdict import Verdict
from pollux.redaction import Finding

__all__ = [
    "ExportResult",
    "Finding",
    "Key",
    "PublicKey",
    "RedactionReport",
    "Sealed",
    "Secrets",
    "SigningKey",
    "Verdict",
    "Wanted",
]
