"""MarkovNetwork: moments matched, in closed form and by search, against the likelihood that fits best."""

from contextlib import nullcontext
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import expit

import besag
from besag.errors import ConvergenceWarning, DataError, DataWarning, ModelError
from besag.learn.networks.cliques import decomposition, maximal_cliques, neighbours_of
from besag.learn.networks.structure.neighbourhoods import select_neighbourhoods

TRUE = besag.data.bundled("misconception")
ROWS = TRUE.sample(400, seed=1)
LOOP = [("A", "B"), ("B", "C"), ("C", "D"), ("D", "A")]
CHAIN = LOOP[:3]


def share(rows: pd.DataFrame, model: Any, scope: tuple[str, ...]) -> Any:
    """The rows' own marginal of a scope."""
    table = np.zeros([len(model.variable(v).states) for v in scope])
    codes = [pd.Categorical(rows[v].astype(str), model.variable(v).states).codes for v in scope]
    np.add.at(table, tuple(codes), 1 / len(rows))
    return table


@pytest.mark.parametrize(
    ("structure", "factors", "closed"),
    [
        (LOOP, "cliques", False),
        (LOOP, "edges", False),
        (CHAIN, "cliques", True),
        (CHAIN, "edges", True),
        ([("A", "B", "C"), ("C", "D")], "cliques", True),
        ([("A", "B", "C"), ("C", "D")], "edges", False),
        ([*LOOP, ("A", "C")], "cliques", True),
        (None, "cliques", True),
    ],
)
def test_moments_are_matched(structure: Any, factors: Any, closed: bool) -> None:
    fitted = besag.MarkovNetwork(structure, factors, prior_strength=1e-3).fit(ROWS)
    assert fitted.is_closed_form_ is closed
    states = fitted.model_.to_frame()
    for scope, aimed in fitted.moments_.items():
        table = states.groupby(list(scope), observed=False)["p"].sum().to_numpy().reshape(aimed.shape)
        np.testing.assert_allclose(table, aimed, atol=1e-6)
        np.testing.assert_allclose(aimed, share(ROWS, fitted.model_, scope), atol=1e-4)
    assert fitted.residual_ < 1e-6
    q = ROWS.value_counts(normalize=True)
    entropy = -(q[q > 0] * np.log(q[q > 0])).sum()
    assert fitted.kl_ == pytest.approx(-entropy - fitted.score(ROWS), abs=1e-9)
    assert fitted.log_likelihood_ == pytest.approx(fitted.model_.log_probability(ROWS).sum(), abs=1e-6)


def test_closed_form_and_search_agree() -> None:
    closed = besag.MarkovNetwork(CHAIN).fit(ROWS)
    searched = besag.MarkovNetwork(CHAIN, l2=1e-9).fit(ROWS)
    assert closed.is_closed_form_
    assert not searched.is_closed_form_
    assert searched.log_likelihood_ == pytest.approx(closed.log_likelihood_, abs=1e-5)
    np.testing.assert_allclose(searched.score_samples(ROWS), closed.score_samples(ROWS), atol=1e-4)


def test_l2_is_of_the_summed_objective() -> None:
    fitted = besag.MarkovNetwork(CHAIN, l2=2.0).fit(ROWS)
    pairs = [(scope, np.zeros(table.shape)) for scope, table in fitted.moments_.items()]
    model = besag.markov_network({name: ["0", "1"] for name in "ABCD"}, pairs)
    direct = besag.fit(model, ROWS, l2=2.0)
    assert direct.model.log_probability(ROWS).sum() == pytest.approx(fitted.log_likelihood_, abs=1e-3)


def test_weights() -> None:
    weights = np.random.default_rng(0).integers(0, 3, len(ROWS))
    fitted = besag.MarkovNetwork(LOOP).fit(ROWS, sample_weight=weights)
    repeated = besag.MarkovNetwork(LOOP).fit(ROWS.loc[np.repeat(np.arange(len(ROWS)), weights)])
    assert fitted.log_likelihood_ == pytest.approx(repeated.log_likelihood_, abs=1e-4)


@pytest.mark.parametrize("ring", [False, True])
def test_an_optimum_at_infinity_is_said(ring: bool) -> None:
    """In the ring (a=0, b=1, c=0) has to go too, though each of its pairs occurs: a smaller face, met on the way."""
    rows = pd.DataFrame({"a": [0, 0, 1, 1], "b": [0, 1, 1, 1], "c": [0, 1, 0, 1]})
    structure = [("a", "b"), ("b", "c"), *([("a", "c")] if ring else [])]
    way = pytest.warns(ConvergenceWarning, match="optimum is at infinity") if ring else nullcontext()
    with way, pytest.warns(DataWarning, match=r"moments are 0, such as that of \(a=1, b=0.*at infinity"):
        fitted = besag.MarkovNetwork(structure, "edges").fit(rows)
    assert fitted.residual_ < 1e-6
    assert fitted.score_samples(pd.DataFrame({"a": [1], "b": [0], "c": [0]})).tolist() == [-np.inf]
    assert np.isfinite(fitted.log_likelihood_)
    kept = besag.MarkovNetwork(structure, "edges", prior_strength=1.0).fit(rows)
    assert np.isfinite(kept.score_samples(pd.DataFrame({"a": [1], "b": [0], "c": [0]}))).all()


def test_given_moments() -> None:
    fitted = besag.MarkovNetwork(LOOP).fit_moments(TRUE)
    np.testing.assert_allclose(fitted.model_.to_frame()["p"], TRUE.to_frame()["p"], atol=1e-7)
    tables = {("A", "B"): [[0.3, 0.2], [0.1, 0.4]], ("B", "C"): [[0.1, 0.3], [0.5, 0.1]]}
    chain = besag.MarkovNetwork(states=dict.fromkeys("ABC", 2))
    chain.fit_moments(tables)
    np.testing.assert_allclose(chain.model_.joint(["B", "C"]), tables["B", "C"], atol=1e-12)
    tables["B", "C"] = [[0.3, 0.3], [0.3, 0.1]]
    with pytest.raises(DataError, match=r"differ by 0.2 for \('B',\)"):
        chain.fit_moments(tables)
    with pytest.raises(DataError, match="must be probabilities of shape"):
        chain.fit_moments({("A", "B"): [[1, 1], [1, 1]]})
    with pytest.raises(ModelError, match="need states="):
        besag.MarkovNetwork().fit_moments(tables)


def test_a_model_as_structure_and_scores() -> None:
    """Of a ring of four binary variables 1 + 4 + 4 interactions less one are free."""
    fitted = besag.MarkovNetwork(TRUE, prior_strength=1e-3).fit(ROWS)
    ring = besag.MarkovNetwork(LOOP, prior_strength=1e-3).fit(ROWS)
    assert fitted.log_likelihood_ == pytest.approx(ring.log_likelihood_, abs=1e-6)
    value = ROWS.pipe(ring.model_.log_probability).sum()
    assert ring.aic() == pytest.approx(value - 8, abs=1e-6)
    assert ring.bic(ROWS) == pytest.approx(value - 4 * np.log(400), abs=1e-6)
    with pytest.raises(ModelError, match="give the rows"):
        besag.MarkovNetwork(LOOP).fit_moments(TRUE).bic()
    with pytest.raises(DataError, match="'E' is no variable of the structure"):
        besag.MarkovNetwork(TRUE).fit(ROWS.assign(E=1))


def test_files(tmp_path: Any) -> None:
    fitted = besag.MarkovNetwork(LOOP).fit(ROWS)
    fitted.save(tmp_path / "markov.npz")
    read = besag.load(tmp_path / "markov.npz")
    assert np.array_equal(read.score_samples(ROWS), fitted.score_samples(ROWS))
    assert read.kl_ == fitted.kl_
    assert read.sample(20, random_state=3).equals(fitted.sample(20, random_state=3))
    ROWS.to_csv(tmp_path / "rows.csv", index=False)
    assert besag.MarkovNetwork(LOOP).fit(tmp_path / "rows.csv").kl_ == pytest.approx(fitted.kl_)


@pytest.mark.parametrize(
    ("options", "rows", "match"),
    [
        ({"structure": [("A", "E")]}, ROWS, "the structure names 'E'"),
        ({"structure": [("A", "A")]}, ROWS, "names a variable twice"),
        ({"structure": "ring"}, ROWS, "structure must be one of 'chow_liu', 'neighbourhoods'"),
        ({"factors": "stars"}, ROWS, "factors must be one of"),
        ({"l2": -1}, ROWS, "l2 must be a number of at least 0"),
        ({"structure": CHAIN}, ROWS[:0], "no rows"),
    ],
)
def test_bad_input(options: Any, rows: Any, match: str) -> None:
    with pytest.raises((DataError, ModelError), match=match):
        besag.MarkovNetwork(**options).fit(rows)


def test_neighbourhoods_find_the_loop_and_keep_their_path() -> None:
    rows = TRUE.sample(4000, seed=2)
    fitted = besag.MarkovNetwork("neighbourhoods").fit(rows)
    path, codes = fitted.path_, [rows[name].cat.codes.to_numpy().astype(np.uint8) for name in rows]
    assert path.names == tuple(rows)
    assert path.norms.shape == (len(path.strengths), 4, 4)
    assert {frozenset(scope) for scope in fitted.moments_} == {frozenset(edge) for edge in LOOP}
    loop = besag.MarkovNetwork(LOOP).fit(rows)
    assert fitted.log_likelihood_ == pytest.approx(loop.log_likelihood_, abs=1e-4)
    numbers = [2, 8, path.best]
    exact = select_neighbourhoods(codes, [2] * 4, strengths=path.strengths[numbers].tolist(), tolerance=1e-9)
    for i, number in enumerate(numbers):
        for v in range(4):
            others = [u for u in range(4) if u != v]
            x = np.stack([codes[u] for u in others], axis=1) * 1.0
            slopes = l1_slopes(x, codes[v], float(path.strengths[number]))
            np.testing.assert_allclose(exact.norms[i][others, v], np.abs(slopes) / 2, atol=1e-4)
            assert ((path.norms[number][others, v] > 0) == (np.abs(slopes) > 1e-6)).all()
    few = besag.MarkovNetwork(path.graph(1)).fit(rows)
    ties = {frozenset(edge) for edge in path.graph(1).undirected}
    assert {frozenset(scope) for scope in few.moments_ if len(scope) == 2} == ties
    late = besag.MarkovNetwork("neighbourhoods", time_limit=1e-9).fit(rows)
    assert late.path_.stopped == "time_limit"
    assert all(len(scope) == 1 for scope in late.moments_)
    with pytest.raises(ModelError, match='structure="neighbourhoods" needs rows'):
        besag.MarkovNetwork("neighbourhoods").fit_moments(TRUE)


def l1_slopes(x: Any, y: Any, strength: float) -> Any:
    """Of a logistic regression, by scipy: its penalty is strength * |slope| / 2.

    The block of a pair of binary variables is slope / 4 * [[1, -1], [-1, 1]], which is the one of least norm.
    """

    def loss(z: Any) -> tuple[float, Any]:
        up, down = z[1 : 1 + x.shape[1]], z[1 + x.shape[1] :]
        logits = z[0] + x @ (up - down)
        error = expit(logits) - y
        slope = x.T @ error / len(y)
        value = (np.logaddexp(0, logits) - y * logits).mean() + strength / 2 * (up + down).sum()
        return value, np.concatenate([[error.mean()], slope + strength / 2, strength / 2 - slope])

    n = x.shape[1]
    found = minimize(
        loss,
        np.zeros(1 + 2 * n),
        jac=True,
        method="L-BFGS-B",
        bounds=[(None, None)] + [(0, None)] * (2 * n),
        options={"ftol": 1e-15, "gtol": 1e-9},
    )
    return found.x[1 : 1 + n] - found.x[1 + n :]


def test_graphs_against_networkx() -> None:
    import networkx as nx

    for seed in range(40):
        graph = nx.gnp_random_graph(7, 0.2 + seed / 80, seed=seed)
        near = neighbours_of(7, graph.edges())
        cliques = sorted(tuple(sorted(clique)) for clique in nx.find_cliques(graph))
        assert maximal_cliques(near) == cliques
        parts = decomposition(near)
        assert (parts is not None) is nx.is_chordal(graph)
        if parts is not None:
            assert sorted(clique for clique, _ in parts) == cliques
            seen: list[set[int]] = []
            for clique, separator in parts:
                before = set().union(*seen) if seen else set()
                assert set(clique) & before == set(separator)
                assert not separator or any(set(separator) <= earlier for earlier in seen)
                seen.append(set(clique))
