"""Labellings that hard zeros allow: where samplers and mean field can begin.

Read `starts` first. `kernels/feasible` finds one labelling by search, `kernels/box` a set of states for each variable
such that every combination is allowed. The states that both start from are those of `besag.kernels.support`.
"""
