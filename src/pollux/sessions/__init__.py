"""Session files to sessions: find them, read them, join and link them."""
