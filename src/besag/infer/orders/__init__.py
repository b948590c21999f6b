"""Elimination orders: which variable is summed out first, and what that costs.

Read `search` first, the best of several orders; `kernels/greedy_run` is one of them, `kernels/cliques` makes the tree
of cliques of an order, `triangulation` shows it. A new rule for orders is a score in `kernels/greedy_run` and a name
in `search`; nothing else knows the rules.
"""
