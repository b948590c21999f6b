"""Labellings that hard zeros allow: where samplers and mean field can begin.

Read `starts` first. `kernels/feasible` finds one labelling by search, `kernels/box` a set of states for each variable
in which everything is allowed. Which states are left to begin with is `besag.kernels.support`.
"""
