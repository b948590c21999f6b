"""Compiled parts of `besag.infer.chains`: arrays in, arrays out."""
