"""The types of what exports and proofs return, for the annotations of front ends; `values` is quicker to load."""

from pollux.exports.source import ExportOptions
from pollux.library.export import ExportResult
from pollux.library.keys import SigningKey
from pollux.library.redacting import RedactionReport
from pollux.proofs.keys import KeyInfo
from pollux.proofs.public import PublicKey
from pollux.proofs.seal import SealOutcome
from pollux.proofs.secrets import Secrets
from pollux.proofs.verdict import Verdict
from pollux.redaction import Finding

__all__ = [
    "ExportOptions",
    "ExportResult",
    "Finding",
    "KeyInfo",
    "PublicKey",
    "RedactionReport",
    "SealOutcome",
    "Secrets",
    "SigningKey",
    "Verdict",
]
