"""Compiled parts of `besag.infer.trees`: arrays in, arrays out."""
