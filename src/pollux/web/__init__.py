"""The local web viewer: a front end that parses a request, calls the library and renders the answer."""
