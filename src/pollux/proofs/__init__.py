"""Proofs for others: signed records, sealed archives, and redacted copies that still match their seal."""
