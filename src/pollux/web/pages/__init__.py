"""The pages of the web viewer: one module per page, each with a table of routes."""
