"""Views to HTML and to the terminal."""
