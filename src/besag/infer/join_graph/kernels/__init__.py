"""Compiled parts of `besag.infer.join_graph`: arrays in, arrays out."""
