"""EM on the field of 003's Example 1, by every E-step and M-step: steps, seconds, log-likelihood, its gradient.

x1, x2, x3 are seen and s1, s2 hidden. The log-likelihood and the gradient of its mean, E[phi | x] - E[phi], are exact
for every route, by enumeration, whatever the route itself has used. Sampled steps come as close as their samples allow;
belief propagation in the M-step may miss or circle, as its moments are those of no model near by.
"""

import time
import warnings

import numpy as np

import besag

E_STEPS = ["exact", "gibbs[n_samples=20]", "bp", "mean_field"]
M_STEPS = [
    "exact",
    "gibbs[n_samples=20,n_chains=50,max_steps=10]",
    "bp[max_steps=10]",
    "contrastive_divergence[k=3,n_chains=500,max_steps=20]",
    "pcd[n_chains=500,max_steps=20]",
    "pseudolikelihood",
]
STEPS = 15

field = besag.data.bundled("field_003")
X = field.with_theta(0.5 * field.theta).sample(200, seed=0)[["x1", "x2", "x3"]]


def exact(model: besag.Model) -> tuple[float, float]:
    """The log-likelihood, and the norm of the gradient of its mean."""
    value = float(model.log_partition(evidence=X, engine="brute").sum() - len(X) * model.log_partition(engine="brute"))
    gradient = model.moments(evidence=X, engine="brute") / len(X) - model.moments(engine="brute")
    return value, float(np.linalg.norm(gradient))


print(f"{'E-step':10} {'M-step':24} {'steps':>5} {'seconds':>8} {'log-likelihood':>15} {'gradient':>9}")
value, slope = exact(field)
print(f"{'(start)':10} {'':24} {0:5} {'':8} {value:15.2f} {slope:9.4f}")
best = -np.inf
for e_step in E_STEPS:
    for m_step in M_STEPS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            began = time.perf_counter()
            found = besag.em(field, X, e_step, m_step, max_iterations=STEPS, tolerance=0)
            seconds = time.perf_counter() - began
        value, slope = exact(found.model)
        best = max(best, value)
        names = e_step.partition("[")[0], m_step.partition("[")[0]
        print(f"{names[0]:10} {names[1]:24} {found.log.n_iterations:5} {seconds:8.2f} {value:15.2f} {slope:9.4f}")
print(f"the best log-likelihood of all routes is {best:.1f}")
