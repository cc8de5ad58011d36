"""Find out which project a session belongs to, and the path of the project."""
