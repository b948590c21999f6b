"""The verbs: what users ask of a model. `run` binds evidence, calls an engine and checks the answer; the rest is built on it."""
