"""Pollux keeps, reads, counts, finds, exports and proves Gemini CLI history."""

__version__ = "0.1.0"
