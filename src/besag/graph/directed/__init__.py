"""Graphs of directed and undirected edges between variables: DAGs, and PDAGs that stand for many of them.

Read `pdag` first; `orientation` has the rules that direct edges.
"""
