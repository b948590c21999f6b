"""Structured factors: tables that are formulas of a few weights, and how their messages are sent without the table.

A kind is a file here, what the model knows of it (`base` is the interface), and one in `kernels`, its rules: messages
in each semiring, expectations, moments. `kernels/rules` chooses a rule by the number of the kind: it is all that
engines see. Before inference a kind without levels (`scaled`) is turned into tables, and kinds on many variables
(`chained`, `noisy`) into chains of tables (`infer/unfolding`); moves of a labelling and Gibbs sampling read `noisy` by
rules of its own, `kernels/noisy`, and need whole tables of `chained`. To add a kind: its number in
`besag.arrays.Kind`, the two files, its name in `kinds`, and a line in each function of `rules`. Builders, files and
engines do not change, except that a few engines and losses have fast kernels for one kind alone, which say so at their
top.
"""
