"""Hugin NET: `read` has the grammar and what is kept as metadata, `write` writes files."""
