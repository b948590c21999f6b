"""Compiled parts of `besag.infer.bp`: arrays in, arrays out."""
