"""Losses, which learning minimises, one module each.

Read `besag.learn.objective` for the interface of a loss, and `base` for how they are named, OBJECTIVES, and what they
share. `likelihood` works with any engine that has log Z, `sampled` with one that draws; `chains` computes the same for
first-order chains by one kernel. `pseudolikelihood` and `piecewise` are sums over few states at a time, `terms`; with
`tree_pieces` the pieces of the latter are forests. `marginal_loss` is that of marginals which an engine makes; cut off
after a few iterations, by back-propagation through them, `unrolled`.
"""
