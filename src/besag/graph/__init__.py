"""Graphs: compiled structure, evidence, and problems, the numbers bound to a structure."""
