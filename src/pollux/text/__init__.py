"""Functions on text, numbers and times that know nothing about sessions."""
