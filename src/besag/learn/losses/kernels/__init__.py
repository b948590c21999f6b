"""Compiled loops of the losses."""
