"""Compiled algorithms: arrays in, arrays out. Nothing here is imported before it is run; see `compile`."""
