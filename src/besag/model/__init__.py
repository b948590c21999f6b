"""Models: what a user declares, a distribution p(y | x, theta) with names and without algorithms.

Read `model` (Model, FactorGroup), then `template`. Builders make Models and nothing else: `factors` (tables given by
hand), `build` (grids, chains, trees), `bayes` with `arrows`, `cpt` and `dag` (directed graphs). `queries` has the
methods of a Model, which hand over to `besag.query`. `structured` is a room of its own. A new builder is a function
that returns a Model; no other layer has to know it.
"""
