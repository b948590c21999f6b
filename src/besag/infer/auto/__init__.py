"""Choosing an engine: `auto` and `exact`.

Read `engine`; `approximate` is what happens where exact inference does not fit, `candidates` which of several
estimates is believed.
"""
