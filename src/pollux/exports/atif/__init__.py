"""The Agent Trajectory Interchange Format (Harbor RFC 0001), written and, by `formats/atif.py`, read."""
