"""BIF, the Bayesian interchange format: `read` has the grammar, `tables` the numbers, `write` the other way."""
