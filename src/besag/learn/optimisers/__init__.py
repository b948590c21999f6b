"""Optimisers: what makes a Function small.

Read `base` first: the registry, and the loop that drives a Method. A new optimiser is one file and its line in the
registry of `base`.
"""
