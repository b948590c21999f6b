"""Formats of cost functions: WCSP, CFN and libDAI's factor graphs; `shared` turns them into Models."""
