"""The likelihood of first-order chains: what training a ChainCRF costs.

Read `likelihood`; `shards` are data compiled for the kernel in `besag.infer.chains.kernels.gradient`, `occurrences`
says where each parameter occurs in them.
"""
