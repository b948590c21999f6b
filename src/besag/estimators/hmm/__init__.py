"""HMM: hidden Markov models on the kernels of `besag.infer.chains`, in the manner of scikit-learn and hmmlearn.

`estimator` is the class; `start` where learning begins, `parameters` what users give as probabilities. Learning itself
is `besag.learn.hidden.baum_welch`, how X is read `besag.data.observations`.
"""
