"""The facts outside the archive: the same tables, for engines that read files."""
