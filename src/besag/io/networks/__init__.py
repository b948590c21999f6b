"""Formats of Bayesian networks that take one module each: XMLBIF, DSC and DSL."""
