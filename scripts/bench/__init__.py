"""Measures Pollux against its peers and against what the machine can do, and writes BENCHMARKS.md."""
