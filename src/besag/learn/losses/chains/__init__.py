"""The likelihood of first-order chains: the bulk of training a ChainCRF.

Read `likelihood`; `shards` prepares data for the kernel in `besag.infer.chains.kernels.gradient`, `occurrences` lists
where each parameter occurs in them.
"""
