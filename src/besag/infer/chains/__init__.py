"""Chains that share their transitions, straight from arrays: what ChainCRF trains and predicts with.

`best` and `marginals` answer queries, `kernels/gradient` is the work of training; none of them needs a Graph. They
give the answers of the engine `tree` on a union of chains, which tests check.
"""
