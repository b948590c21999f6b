"""Compiled parts of `besag.infer.mean_field`: arrays in, arrays out."""
