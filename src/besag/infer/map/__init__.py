"""The structured inference problem, 002 (38): a labelling of least energy, NP-hard in general, and what is proven.

Read `labellings` first (what all engines here answer with: labellings, their energies recomputed from the Problem,
bounds from below), then `landscape` (a problem as moves read it), then the engine in question: `icm`, `local_search`,
`trws`, `dual`, or `portfolio`, which is what `auto` does. A kind of move is a file in `kernels/` and may be changed
without looking elsewhere.
"""
