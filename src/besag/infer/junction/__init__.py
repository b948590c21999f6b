"""Exact inference on any graph whose cliques are small enough: the engines `junction_tree` and `elimination`.

Read `engine`, then `run`: a problem is reduced (`relevance`, `few_states`), planned (`plan`, kept by the Graph), given
numbers (`numbers`) and evidence (`evidence_rows`), and its messages are sent (`propagate`; `one_row` for one row on
several threads, `session` for evidence that changes; `shown` for people to look at). `elimination` needs the upward
pass only (`roots`, `remaining`).
Clique tables are computed tile by tile in `kernels/tiles` and never stored; `kernels/index` lays out all index maps.
"""
