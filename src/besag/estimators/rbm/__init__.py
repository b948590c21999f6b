"""Restricted Boltzmann machines as an estimator.

Read `estimator`; `layer` turns tables into visible units and back. The machine itself, its training and its log Z are
in `besag.learn.rbm`.
"""
