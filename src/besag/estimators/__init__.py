"""Estimators in the manner of scikit-learn: thin layers over models, data and learning."""
