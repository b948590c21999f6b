"""The first part of `besag demo`: a chest clinic, from a network to a diagnosis, and back from rows to a network."""

from __future__ import annotations

import time
import warnings
from typing import TYPE_CHECKING

from besag.cli.demo_page import Section, Table
from besag.errors import ConvergenceWarning

if TYPE_CHECKING:
    from besag.infer.result import Result
    from besag.model.model import Model

EVIDENCE = {"asia": "yes", "dysp": "yes"}
ENGINES = ("junction_tree", "bp", "mean_field", "trw")
N_ROWS = 4000


def show_network(*, draw: bool) -> Section:
    """A posterior, a network learnt from rows, and engines side by side."""
    from besag.data.textbook import bundled

    model = bundled("asia")
    known = ", ".join(f"{name}={state}" for name, state in EVIDENCE.items())
    before, after = model.marginals(), model.marginals(evidence=EVIDENCE)
    text = (
        "A chest clinic (Lauritzen and Spiegelhalter 1988). A patient is short of breath and was in Asia lately: is it "
        f"tuberculosis, lung cancer or bronchitis? log P({known}) = {after.log_partition:.6f}, and the most probable "
        f"explanation is {explained(model)}."
    )
    figures = {}
    if draw:
        from besag.plot import draw_network

        drawn = draw_network(model, after, before=before, observed=list(EVIDENCE))
        figures[f"Marginals given {known}; red marks: without evidence"] = drawn
    sides = compared(model)  # first, while numba is not there: small questions are answered by plain Python then
    tables = (posteriors(before, after, known), learnt(model), sides)
    return Section("A network: diagnosis", text, tables, figures)


def explained(model: Model) -> str:
    """What is most probable of what was not observed."""
    best = model.map(evidence=EVIDENCE).assignment
    return ", ".join(f"{name}={state}" for name, state in best.items() if name not in EVIDENCE)


def posteriors(before: Result, after: Result, known: str) -> Table:
    """The three diseases, without and with evidence."""
    rows = tuple((name, f"{before[name][1]:.4f}", f"{after[name][1]:.4f}") for name in ("tub", "lung", "bronc"))
    return Table(f"Probability of yes, without evidence and given {known}", ("disease", "without", "given"), rows)


def learnt(model: Model) -> Table:
    """The network again, from rows of it."""
    from besag.estimators.networks.bayesian import BayesianNetwork
    from besag.metrics import structural_hamming_distance

    rows = model.sample(N_ROWS, seed=1)
    began = time.perf_counter()
    network = BayesianNetwork("tabu").fit(rows)
    seconds = time.perf_counter() - began
    wrong = structural_hamming_distance(model, network.model_)
    edges = [(parent, child.name) for child in model.variables for parent in model.parents(child.name)]
    cells = (
        ("seconds", f"{seconds:.1f}"),
        ("edges that are wrong, up to directions that no data tell", f"{wrong} of {len(edges)}"),
        ("its BIC", f"{network.bic():.1f}"),
        ("BIC of the true structure", f"{BayesianNetwork(edges).fit(rows).bic():.1f}"),
    )
    return Table(f"Learnt again from {N_ROWS} rows, structure and tables", ("what", "is"), cells)


def compared(model: Model) -> Table:
    """Engines beside the truth."""
    from besag.query.compare import compare

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = compare(model, list(ENGINES), evidence=EVIDENCE)
    rows = tuple(
        (str(name), f"{row.log_partition:.3f}", str(row.bound), f"{row.error:.4f}", f"{row.seconds:.3f}")
        for name, row in zip(found.index, found.itertuples(), strict=True)
    )
    header = ("engine", "log P(evidence)", "which is", "largest error", "seconds")
    return Table("Engines side by side: the largest error of a marginal; the first call may compile", header, rows)
