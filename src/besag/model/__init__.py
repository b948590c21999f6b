"""Models: variables, templates, groups of factors, and the builders that make them."""
