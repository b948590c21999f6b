"""Inference by sampling: the engines `gibbs` and `ais`, and draws from networks without evidence, `forward`.

Read `gibbs`, then `walk`, which runs the chains. A sampler (`single_site`, `single_update`, `blocks`) moves the chains,
`scan` says in which order, `means` and `counts` keep what is asked for, `diagnostics` says whether to trust it. A new
sampler is a class in a file of its own and a name in `walk`.
"""
