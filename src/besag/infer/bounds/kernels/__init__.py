"""Compiled parts of `besag.infer.bounds`: arrays in, arrays out."""
