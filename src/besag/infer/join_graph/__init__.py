"""Propagation on bounded cliques, between belief propagation and the junction tree: the engine `join_graph`.

Read `engine`, then `stages`: a chain of clique forests, each calibrated (`calibration`) and reduced (`reduction`) for
the next. `tables` has the algebra of dense tables, `parts` divides a problem, `ahead` starts work early.
"""
