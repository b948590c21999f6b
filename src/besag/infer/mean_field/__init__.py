"""Mean field, a lower bound on log Z: the engine `mean_field`.

Read `engine`; a family of distributions is a file: `naive` (every variable alone), `trees` (induced forests). `starts`
says where they begin, `schedule` in which order variables are updated.
"""
