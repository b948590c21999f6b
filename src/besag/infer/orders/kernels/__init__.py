"""Compiled parts of `besag.infer.orders`: arrays in, arrays out."""
