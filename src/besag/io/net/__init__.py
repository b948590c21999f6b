"""Hugin NET: `read` has the grammar and what is kept of it, `write` the other way."""
