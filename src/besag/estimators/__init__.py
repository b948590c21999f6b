"""Estimators in the manner of scikit-learn: thin layers over models, data and learning.

Read `base` (the conventions) and `learner` (what every fit shares), then an estimator: a file, or a folder where it
takes more than one. Estimators on graphs share `structured`. An estimator turns arrays into a Dataset and results into
arrays; if it needs more than that, the layer below lacks something.
"""
