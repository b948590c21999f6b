"""ChainCRF: conditional random fields on sequences.

Read `estimator`, the class with scikit-learn's conventions; `data` vectorises, `inference` predicts, `k_best` finds the
best labellings, `schemes` has the constraints of BIO and BIOES, `spans` gives the probability of spans.
"""
