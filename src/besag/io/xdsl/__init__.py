"""XDSL, the format of GeNIe and SMILE: `read` has the format and what is kept as metadata, `write` writes files."""
