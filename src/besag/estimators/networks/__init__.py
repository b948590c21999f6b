"""Networks from tables: BayesianNetwork, MarkovNetwork, BayesianNetworkClassifier.

Read `bayesian` first. `table_model` is what they share: rows in, answers that look like the data out. `rows` has the
vector arithmetic on many rows, `structures` reads what a user gives as a graph, `uncertainty` draws from posteriors.
"""
