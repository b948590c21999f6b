"""Exact inference on any graph whose cliques are small enough: the engines `junction_tree` and `elimination`.

Read `engine`, then `run`: a problem is made smaller (`relevance`, `few_states`), planned (`plan`, kept by the Graph),
given numbers (`numbers`) and evidence (`evidence_rows`), and its messages are sent (`propagate`; `one_row` on several
threads, `session` where evidence comes and goes). `elimination` goes upwards only (`roots`, `remaining`). Tables of
cliques are made tile by tile in `kernels/tiles` and never stored; `kernels/index` lays out every index that is needed.
"""
