"""Compiled parts of `besag.infer.sampling`: arrays in, arrays out."""
