"""The public API: every question that a front end may ask, answered with values."""
