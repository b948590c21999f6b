"""The example of 002: H(y) = h0(y0) + h01(y0, y1) + h1(y1) + h12(y1, y2) + h2(y2), every labelling in sight."""

import numpy as np

import besag

model = besag.data.bundled("factors_002")

# 002 (10) and (11): Z sums exp(-H) over all labellings, and p is exp(-H) / Z.
frame = model.to_frame()
print(frame.to_string(index=False))
print(f"\nlog Z from the table: {np.log(np.exp(-frame['H']).sum()):.6f}")
print(f"log Z from besag:     {model.log_partition():.6f}\n")

# 002 (24): the marginal of a factor, here h01 on (y0, y1).
print(model.marginals().factor("h01").round(4), "\n")

# 002 (20): minus the derivative of log Z by theta is E[phi], the moments. A finite difference agrees.
step = 1e-6
theta = model.theta.copy()
theta[0] += step
slope = (model.with_theta(theta).log_partition() - model.log_partition()) / step
print(f"d log Z / d theta_0 = {slope:.5f},  -E[phi_0] = {-model.moments()[0]:.5f}")
