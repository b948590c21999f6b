"""Compiled parts of `besag.infer.junction`: arrays in, arrays out."""
