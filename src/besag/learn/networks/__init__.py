"""Bayesian and Markov networks from data: counts, structure."""
