"""Mean field, a lower bound on log Z: the engine `mean_field`.

Read `engine`; a family of distributions is a file: `naive` (every variable alone), `trees` (induced forests),
`spanning` (a spanning tree, which `tree_choice` chooses). `starts` says where they begin, `schedule` in which order
variables are updated.
"""
