"""Compiled parts of `besag.infer.trw`: arrays in, arrays out."""
