"""Upper bounds on the weight of every labelling, which rule out states before an exact search for the best.

Read `narrowing` first; `kernels/diffusion` makes the bound. Only the junction tree's MAP uses it.
"""
