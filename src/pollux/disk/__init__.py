"""Reading and writing files safely: regular files only, private files, writes that happen whole or not at all."""
