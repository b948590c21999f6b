"""Upper bounds on the weight of every labelling, which rule states out before an exact search for the best.

Read `narrowing` first; `kernels/diffusion` makes the bound. Only the junction tree's MAP asks for it.
"""
