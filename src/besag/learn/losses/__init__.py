"""Losses, which learning minimises, one module each.

Read `besag.learn.objective` for the interface of a loss; `likelihood` works with any engine, `chains` computes the same
for first-order chains by one kernel.
"""
