"""Which project a session belongs to, and where that project is."""
