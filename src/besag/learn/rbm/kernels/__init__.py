"""Compiled parts of restricted Boltzmann machines."""
