"""Views to HTML, for exports and the web viewer."""
