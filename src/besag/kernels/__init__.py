"""The compiled toolkit: what the kernels of all rooms share. Arrays in, arrays out, and no inference.

Read `compile`, which has the rules that kernels are written by, then `semiring` and `factors`. `cache` keeps machine
code on disk, `threads` runs chunks. A change here is a change of every kernel that imports the file, directly or not:
all of those are compiled anew. Nothing is compiled, and numba is not imported, before a kernel runs.
"""
