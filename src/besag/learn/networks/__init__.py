"""Networks from tables of data: counting, priors, parameters; `structure/` learns the graph.

Read `counts` first: everything that a Bayesian network learns from complete rows is in its counts. `priors` are the
pseudo-counts added to them, `parameters` the CPTs that follow, `moments` finds the Markov network that has
given moments, on the `cliques` of its graph; rows with missing cells go through EM, `missing`.
"""
