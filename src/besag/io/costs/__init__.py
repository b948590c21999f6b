"""Formats of cost functions: WCSP, CFN and libDAI's factor graphs; `shared` makes Models of them."""
