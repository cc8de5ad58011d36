"""Full-text search: the query language, the index next to the archive, and the hits."""
