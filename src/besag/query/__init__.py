"""The verbs: what users ask of a model. `run` goes from a question to a Result; the rest is built on it."""
