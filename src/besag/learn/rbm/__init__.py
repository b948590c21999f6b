"""Restricted Boltzmann machines: two layers, every pair between them tied, learnt by chains.

Read `machine` first (what a machine is, and what follows from it in closed form); `training` moves its numbers along
gradients that chains estimate, `partition` finds log Z, exactly or by annealing, `monitors` tell how a fit gets on,
`as_model` writes the machine as a Model. What costs time is matrix products in single precision, in `kernels/`.
"""
