"""Graphs: models compiled to flat arrays, and problems, the numbers bound to them.

Read `graph`, the structure; `compile` makes one of a model or of many models, `evidence` reads what is known, and
`Graph.bind` makes a `problem` of theta, inputs and evidence, which is all that an engine gets. Nothing here computes a
marginal, and nothing here knows an engine.
"""
