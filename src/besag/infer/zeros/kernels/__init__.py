"""Compiled parts of `besag.infer.zeros`: arrays in, arrays out."""
