"""Rows and blocks on a terminal, with Rich."""
