"""Tree-reweighted sum-product, an upper bound on log Z: the engine `trw`.

Read `engine`, which has the mathematics; `kernels/messages` sends, `forests` gives factors their probabilities,
`reweighing` makes these better, `plan` prepares tables for them.
"""
