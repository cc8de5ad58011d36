"""Read and write files safely: only regular files, private to the user, written completely or not at all."""
