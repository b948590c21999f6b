"""Learning: objectives, penalties, optimisers, and `fit`, which puts them together.

Read `objective`, which has the interfaces, then `fit`. `losses` and `optimisers` are rooms, a file each; neither knows
the other, since all that passes between them is a value and a gradient. `training` is the run from a start or a
`checkpoint` to the minimum; `penalty`, `box` and `regulariser` are what is added for theta alone.
"""
