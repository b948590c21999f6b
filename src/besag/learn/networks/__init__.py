"""Networks from tables of data: counting, priors, parameters; `structure/` learns the graph.

Read `counts` first: everything that a Bayesian network learns from complete rows is in its counts. `priors` are the
pseudo-counts added to them, `parameters` the CPTs that follow, `markov` the moments of a Markov network.
"""
