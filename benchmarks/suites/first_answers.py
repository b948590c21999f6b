"""What a user waits for at the first question of each kind: fresh processes with no kernels on disk of their own.

"as it comes" takes the kernels that came compiled with the package, if they did (`besag warmup --ship`); "compiled"
asks for kernels for this machine, so that each is compiled anew; "again" has them in its cache on disk.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache

from benchmarks.suite import Case, Job, Suite

NETWORK = "model = besag.data.random_model('bayesian_network', 40, seed=1, n_states=(2, 4))\n"
IMAGE = """
unary = np.random.default_rng(0).normal(size=(50, 50, 2))
model = besag.grid((50, 50), 2, unary=unary, pairwise=besag.potts(2), weights=0.7)
"""
SEQUENCES = """
rng = np.random.default_rng(0)
X = [[[f"w{word}", f"s{word % 5}"] for word in rng.integers(50, size=15)] for _ in range(60)]
y = [["ABC"[int(item[0][1:]) % 3] for item in items] for items in X]
"""
QUESTIONS = {
    "besag infer, 40-node network in BIF": NETWORK
    + "besag.save(model, 'a.bif')\nfrom besag.cli import main\nassert main(['infer', 'a.bif']) == 0\n",
    "marginals": NETWORK + "print(model.marginals())\n",
    "map": NETWORK + "print(model.map())\n",
    "sample": NETWORK + "print(model.sample(1000))\n",
    "a table of evidence": NETWORK + "print(model.marginals(evidence=model.sample(100).iloc[:, :3]))\n",
    "bp on a grid": IMAGE + "print(model.marginals(engine='bp'))\n",
    "marginals of a grid": IMAGE + "print(model.marginals())\n",
    "map of a grid": IMAGE + "print(model.map())\n",
    "chain of 1000": "print(besag.chain(np.zeros((1000, 4)), 2 * np.eye(4)).marginals())\n",
    "ChainCRF.fit": SEQUENCES + "print(besag.ChainCRF(l2=0.1).fit(X, y).predict(X)[0])\n",
    "BayesianNetwork.fit": "print(besag.BayesianNetwork().fit(besag.data.bundled('asia').sample(1000, seed=1)))\n",
    "HMM.fit": "X = list(np.random.default_rng(0).integers(0, 4, (50, 30)))\nprint(besag.HMM(2).fit(X))\n",
    "GridCRF.fit": "X = np.random.default_rng(0).normal(size=(2, 24, 24, 3))\n"
    "print(besag.GridCRF().fit(X, (X[..., 0] > 0).astype(int)))\n",
}
HOST = "from besag.kernels import shipped\nshipped.compile_for_host()\n"


@cache
def kept() -> tempfile.TemporaryDirectory[str]:
    """Where "again" finds its kernels, until the suite ends."""
    return tempfile.TemporaryDirectory()


def lines(code: str, kernels: str) -> int:
    """The number of lines that a fresh Python prints."""
    code = "import warnings\nwarnings.simplefilter('ignore')\nimport besag\nimport numpy as np\n" + code
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": kernels or folder}
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, cwd=folder, check=True, capture_output=True, text=True
        )
    return done.stdout.count("\n")


def asked(code: str, *, again: bool = False) -> Callable[..., Job]:
    """A contestant that is a process."""
    place = kept().name if again else ""
    return lambda: Job(lambda: lines(code, place), lambda n: {"answered": float(n > 0)})


SUITE = Suite(
    title="first answers",
    cases=tuple(
        Case(
            question,
            {
                "as it comes": asked(code),
                "compiled": asked(HOST + code),
                "again": asked(HOST + code, again=True),
            },
        )
        for question, code in QUESTIONS.items()
    ),
    environments={"as it comes": "besag", "compiled": "besag", "again": "besag"},
)
