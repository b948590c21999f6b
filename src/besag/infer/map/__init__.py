"""The structured inference problem, 002 (38): a labelling of least energy, NP-hard in general, and what is proven.

Read `labellings` first (what all engines here answer with: labellings, their energies recomputed from the Problem,
bounds from below), then `landscape` (a problem as moves read it), then the engine in question. An engine is a file:
moves in `icm`, `anneal` and `local_search`, cuts in `graph_cut` and `expansion`, messages in `trws` and `dual`, solvers
in `ilp` and `toulbar2`; `labeller` is what most of them share. `portfolio` is what `auto` does, `k_best` and
`marginal_search` the same for several labellings and for some of the variables. A kind of move is a file in `kernels/`
and may be changed without looking elsewhere.
"""
