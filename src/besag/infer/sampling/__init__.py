"""Samples and what they say: the engines `gibbs` and `ais`.

Read `gibbs`, then `walk`, a chain at work. A sampler (`single_site`, `blocks`) moves the chains, `scan` says in which
order, `means` and `counts` keep what is asked for, `diagnostics` says whether to believe it. A new sampler is a class
in a file of its own and a name in `walk`.
"""
