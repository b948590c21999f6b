"""The second part of `besag demo`: a casino that swaps its die in secret, found out from the rolls alone.

The usual example of hidden Markov models (Durbin et al. 1998). The die of each roll is hidden; one die is loaded. What
is learnt: a hidden Markov model from rolls without labels, and a conditional field from rolls whose dice are told.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from besag.arrays import Array, BoolArray
from besag.cli.demo_page import Section, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from besag.estimators.hmm.estimator import HMM

N_SEQUENCES, LENGTH, SHOWN = 50, 400, 300
NEAR = 4  # rolls on each side that the conditional field looks at


def make_casino() -> HMM:
    """State 1 is the loaded die, symbol 5 a six."""
    from besag.estimators.hmm.estimator import HMM

    emission = [[1 / 6] * 6, [0.08] * 5 + [0.6]]
    return HMM.from_parameters([0.5, 0.5], [[0.97, 0.03], [0.05, 0.95]], emission)


def show_sequence(*, draw: bool) -> Section:
    """Learns both, and asks which die it was."""
    from besag.estimators.chain_crf.estimator import ChainCRF
    from besag.estimators.hmm.estimator import HMM

    rolls, dice = (np.array(found) for found in make_casino().sample(LENGTH, N_SEQUENCES, random_state=1))
    half = N_SEQUENCES // 2
    seen, asked, truth = rolls[:half], rolls[half:], dice[half:] == 1

    began = time.perf_counter()
    hidden = HMM(n_states=2, restarts=2, max_iter=300).fit(list(seen))
    learnt = time.perf_counter() - began
    loaded = int(hidden.emission_[:, 5].argmax())
    by_path = np.array(hidden.predict(list(asked))) == loaded
    p = np.array(hidden.predict_marginals(list(asked)))[..., loaded]

    began = time.perf_counter()
    crf = ChainCRF(l2=0.1).fit([features(row) for row in seen], dice[:half].tolist())
    told = time.perf_counter() - began
    by_crf = np.array(crf.predict([features(row) for row in asked])) == 1

    rows = (
        ("always the fair die", "", right(np.zeros_like(truth), truth)),
        ("HMM, no labels: best path", f"{learnt:.1f}", right(by_path, truth)),
        ("HMM, no labels: most probable die of each roll", "", right(p > 0.5, truth)),
        ("chain CRF, dice told", f"{told:.1f}", right(by_crf, truth)),
        ("the true model: best path", "", right(np.array(make_casino().predict(list(asked))) == 1, truth)),
    )
    caption = f"Which die was it? {asked.size:,} rolls that were not learnt from"
    text = (
        "A casino swaps a fair die for a loaded one in secret, and back. From the rolls alone, a hidden Markov model "
        f"finds that one die shows a six with probability {hidden.emission_[loaded, 5]:.2f}, where the truth is 0.60."
    )
    figures = {"Probability of the loaded die, shaded where it was": drawn(p[0], truth[0])} if draw else {}
    table = Table(caption, ("by", "seconds to learn", "right"), rows)
    return Section("A sequence: the occasionally dishonest casino", text, (table,), figures)


def features(row: Any) -> list[list[str]]:
    """Attributes of each roll: itself and those near it."""
    near = range(-NEAR, NEAR + 1)
    return [[f"{d}:{row[i + d]}" for d in near if 0 <= i + d < len(row)] for i in range(len(row))]


def right(found: BoolArray, truth: BoolArray) -> str:
    """The share of rolls."""
    return f"{(found == truth).mean():.1%}"


def drawn(p: Array, truth: BoolArray) -> Figure:
    """Posterior over time."""
    from besag.plot.style import BAR, KNOWN, new_figure

    figure = new_figure(figsize=(8, 2.2), layout="constrained")
    axes = figure.subplots()
    axes.fill_between(np.arange(SHOWN), truth[:SHOWN], step="mid", color=KNOWN, linewidth=0)
    axes.plot(p[:SHOWN], color=BAR, linewidth=1.2)
    axes.set(xlabel="roll", ylabel="P(loaded)", xlim=(0, SHOWN - 1), ylim=(0, 1))
    return figure
