"""Losses: what learning makes small, one file each.

Read `besag.learn.objective` for what a loss has to offer; `likelihood` works with any engine, `chains` says the same
for first-order chains by one kernel.
"""
