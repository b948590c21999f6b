"""Chains that share their transitions, straight from arrays: what ChainCRF trains and serves with.

`best` and `marginals` ask, `kernels/gradient` is what training costs; they see no Graph. They say the same as the
engine `tree` on a union of chains, and tests hold them to it.
"""
