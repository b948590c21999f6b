"""ChainCRF: conditional random fields on sequences.

Read `estimator`, the class with scikit-learn's conventions; `data` vectorises, `inference` predicts, `k_best`,
`schemes` and `spans` are what their names say.
"""
