"""Loopy belief propagation on any factor graph, sum-product and min-sum: the engine `bp`.

Read `engine`, then `passing`, which chooses a kernel: `kernels/general` for any factors, `pairs` for tables on K x K
states, `binary` and `ratios` for two states. They send the same messages, and tests hold each to `general`; a schedule
is a kernel in `kernels/schedules` and a name in `passing`. `log` shows messages, `start` reads them.
"""
