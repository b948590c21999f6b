"""XDSL, the format of GeNIe and SMILE: `read` has the format and what is kept of it, `write` the other way."""
