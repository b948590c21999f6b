"""The verbs: what users ask of a model.

Read `run`, the one way from a question to a Result, then `verbs`, where each method of a Model has its function; verbs
with more to them have a file: `expect`, `covariance`, `analysis`, `divergence`, `approximation`, `session`. A new verb
is a function that calls `run`, and a method in `besag.model.queries` that calls it; engines do not change.
"""
