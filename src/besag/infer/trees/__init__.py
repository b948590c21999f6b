"""Exact message passing on chains and forests, in linear time: the engine `tree`.

Read `engine`, then `plan` (who sends to whom) and `sums` (any arity and semiring). `pairs` is the fast path for large
forests of pairwise tables; `messages` sends one message at a time, for people to look at. The plan of a forest serves
other engines too (mean field and Gibbs sampling on trees); kernels may be changed freely as long as tests/infer/trees
passes.
"""
