"""Which edges are real? A network found from a table, and again from 50 resampled tables: how often each edge comes.

The rows are drawn from the chest clinic (asia), so that the answer is known.
"""

from pathlib import Path

import besag
import besag.plot
from besag.metrics import structural_hamming_distance

truth = besag.data.bundled("asia")
rows = truth.sample(2000, seed=1)
sure = besag.bootstrap_edges(rows, 50, method="tabu")
strong = sure.to_frame().query("strength >= 0.5")
print(strong.round(2).to_string(index=False))

network = besag.BayesianNetwork("tabu").fit(rows)
wrong = structural_hamming_distance(truth, network.model_)
print(f"\nedges of the network that are wrong: {wrong} of 8")
Path("out").mkdir(exist_ok=True)
besag.plot.draw_bootstrap(sure, "out/discovery.png")
print("out/discovery.png shows how sure each edge is")
