"""BIF, the Bayesian interchange format: `read` has the grammar, `tables` parses the numbers, `write` writes files."""
