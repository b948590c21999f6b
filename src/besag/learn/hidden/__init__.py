"""Hidden variables: expectation-maximisation for any model, 003.

What the data do not give is hidden: labels, cells of a table, whole variables. Begin with `em`, which says what is
minimised; `rounds` is one step after the other. An E-step is a class in `expect`, or `latent_class` for one hidden
parent of all others; an M-step one in `tables` (closed form), `matching` (exact moments) or `inner` (003's loop with
estimates); `steps` has their names. Hidden Markov chains have parameters and E-steps of their own, `chains`, and
`baum_welch`.
"""
