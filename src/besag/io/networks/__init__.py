"""Formats of Bayesian networks that take one file each: XMLBIF, DSC and DSL."""
