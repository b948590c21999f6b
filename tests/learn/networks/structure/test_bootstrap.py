"""How sure edges are, missing cells, and Markov networks."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import besag
from besag.errors import CapabilityError, ConvergenceWarning, DataError, ModelError
from besag.learn.networks.structure import learn_structure
from besag.learn.networks.structure.bootstrap import EdgeStrengths, best_threshold
from besag.learn.networks.structure.neighbourhoods import Regressions, select_neighbourhoods
from besag.learn.networks.structure.task import SearchStep
from besag.model.model import Model


@pytest.fixture(scope="module")
def model() -> Model:
    made = besag.bayesian_network("A -> C <- B; C -> D; E")
    for name, table in {
        "A": [0.5, 0.5],
        "B": [0.4, 0.6],
        "C": [[[0.9, 0.1], [0.3, 0.7]], [[0.2, 0.8], [0.05, 0.95]]],
        "D": [[0.9, 0.1], [0.2, 0.8]],
    }.items():
        made = made.with_cpt(name, table)
    return made


def test_strengths(model: Model) -> None:
    frame = model.sample(1500, seed=0)
    edges = besag.bootstrap_edges(frame, 12, random_state=1, n_jobs=1)
    again = besag.bootstrap_edges(frame, 12, random_state=1, n_jobs=3)
    assert (edges.strength == again.strength).all()
    assert (edges.direction == again.direction).all()
    assert (edges.n, edges.stopped) == (12, "converged")
    assert (edges.strength == edges.strength.T).all()
    both = edges.direction + edges.direction.T
    assert (both[edges.strength > 0] == 1).all()
    assert {*edges.averaged().edges} == {("A", "C"), ("B", "C"), ("C", "D")}
    table = edges.to_frame()
    assert table.columns.tolist() == ["source", "target", "strength", "direction"]
    assert table["strength"].is_monotonic_decreasing
    assert (table["direction"] >= 0.5).all()
    other = besag.bootstrap_edges(frame, 12, random_state=2)
    assert not np.array_equal(edges.strength, other.strength)


def test_one_sample_is_what_is_learned_from_its_rows(model: Model) -> None:
    frame = model.sample(300, seed=3)
    rows = np.random.default_rng([7, 0]).choice(300, 300)
    codes = np.stack([frame[c].cat.codes.to_numpy()[rows] for c in frame]).astype(np.uint8)
    learned = learn_structure(codes, [2] * 5, names=frame.columns, random_state=7).cpdag.matrix
    edges = besag.bootstrap_edges(frame, 1, random_state=7)
    assert (edges.strength == (learned | learned.T)).all()


def test_weights_are_as_many_rows(model: Model) -> None:
    frame = model.sample(1500, seed=0)
    counts = frame.groupby(list(frame), observed=True).size().reset_index(name="n")
    rows, n = counts[list(frame)], counts["n"]
    edges = besag.bootstrap_edges(rows, 12, weights=n, random_state=1)
    assert {*edges.averaged().edges} == {("A", "C"), ("B", "C"), ("C", "D")}
    assert edges.to_frame()["strength"][:3].tolist() == [1.0, 1.0, 1.0]
    drawn = np.random.default_rng([0, 0]).multinomial(1500, n / 1500)
    learned = besag.BayesianNetwork("hill_climb").fit(rows, sample_weight=drawn).structure_.cpdag.matrix
    assert (besag.bootstrap_edges(rows, 1, weights=n).strength == (learned | learned.T)).all()


def test_the_threshold_parts_strong_from_weak() -> None:
    assert best_threshold(np.sort([0.0, 0.05, 0.1, 0.9, 0.95, 1.0])) == 0.9
    assert best_threshold(np.zeros(4)) == 1.0
    assert best_threshold(np.ones(3)) == 1.0


def test_an_average_has_no_cycle() -> None:
    strength = np.array([[0, 0.9, 0.6], [0.9, 0, 0.8], [0.6, 0.8, 0]])
    direction = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]], float)
    edges = EdgeStrengths(("A", "B", "C"), strength, direction, 10, "converged")
    assert edges.averaged(0.5).edges == [("A", "B"), ("B", "C")]


def test_time_and_bad_input(model: Model) -> None:
    frame = model.sample(300, seed=3)
    with pytest.raises(ModelError, match="n must be a whole number of at least 1, got 0"):
        besag.bootstrap_edges(frame, 0)
    for seed in (-1, "x", None):
        with pytest.raises(CapabilityError, match="random_state must be a whole number from 0 on, got"):
            besag.bootstrap_edges(frame, 3, random_state=seed)  # type: ignore[arg-type]
    with pytest.raises(CapabilityError, match="time_limit must be a number of seconds from 0 on, got 'x'"):
        besag.bootstrap_edges(frame, 3, time_limit="x")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="no rows"):
        besag.bootstrap_edges(frame.iloc[:0], 3)
    frame.loc[frame.index[3], "B"] = None
    with pytest.raises(DataError, match="column 'B' has missing cells, or codes that are none of its 2 states"):
        besag.bootstrap_edges(frame, 3, n_jobs=1)


def test_time_cuts_into_a_structure_which_then_does_not_count(
    model: Model, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("besag.query.progress.SECONDS", 0.0)
    frame = model.sample(300, seed=3)
    three = besag.bootstrap_edges(frame, 3, n_jobs=1, progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(",")[0] for line in lines] == [f"bootstrap: {i} of 3 structures" for i in (1, 2, 3)]
    hands, begun = [0.0], list[int]()
    monkeypatch.setattr("besag.infer.iterate.time", SimpleNamespace(perf_counter=lambda: hands[0]))

    def stall(row: SearchStep) -> None:
        """The second step of the fourth structure takes longer than there is time."""
        begun.append(row.iteration)
        if begun.count(0) == 4 and row.iteration == 1:
            hands[0] += 10

    cut = besag.bootstrap_edges(frame, 500, n_jobs=1, time_limit=5, on_step=stall)
    assert (cut.n, cut.stopped, begun[-1]) == (3, "time_limit", 1)
    assert (cut.strength == three.strength).all()
    assert (cut.direction == three.direction).all()
    with pytest.warns(ConvergenceWarning, match="no structure was learned to its end: .* in 1 of 500 samples"):
        none = besag.bootstrap_edges(frame, 500, time_limit=0, n_jobs=1)
    assert (none.n, none.stopped) == (1, "time_limit")


def test_ctrl_c_keeps_what_has_ended(model: Model) -> None:
    frame, begun = model.sample(300, seed=3), []

    def press(row: SearchStep) -> None:
        begun.append(row.iteration)
        if begun.count(0) == 3:
            raise KeyboardInterrupt

    found = besag.bootstrap_edges(frame, 10, n_jobs=1, on_step=press)
    assert (found.n, found.stopped) == (2, "interrupted")
    assert (found.strength == besag.bootstrap_edges(frame, 2, n_jobs=1).strength).all()


def test_a_picture(model: Model, tmp_path: Path) -> None:
    edges = besag.bootstrap_edges(model.sample(200, seed=0), 3)
    figure = besag.plot.draw_bootstrap(edges, tmp_path / "edges.png", threshold=0.4)
    assert (tmp_path / "edges.png").stat().st_size > 1000
    kept = int((edges.strength[np.triu_indices(5, 1)] >= 0.4).sum())
    assert figure.axes[0].get_title(loc="left") == f"{kept} of 10 pairs from 0.40 on"
    with pytest.raises(ModelError, match=r"expected what besag\.bootstrap_edges gives, got int"):
        besag.plot.draw_bootstrap(3)  # type: ignore[arg-type]


def test_structural_em_finds_the_class_behind_holes(model: Model) -> None:
    frame = model.sample(3000, seed=5)
    codes = np.stack([frame[c].cat.codes for c in frame]).astype(np.uint8)
    whole = learn_structure(codes, [2] * 5, names=frame.columns)
    holes = np.where(np.random.default_rng(0).random(codes.shape) < 0.1, np.uint8(255), codes)
    found = learn_structure(holes, [2] * 5, names=frame.columns, method="structural_em[draws=3]")
    assert (found.cpdag.matrix == whole.cpdag.matrix).all()
    assert found.stopped == "converged"
    assert len(found.trace) >= 2
    again = learn_structure(holes, [2] * 5, names=frame.columns, method="structural_em[draws=3]")
    assert again.score == found.score
    complete = learn_structure(codes, [2] * 5, names=frame.columns, method="structural_em")
    assert complete.score == whole.score
    with pytest.raises(DataError, match='take the method "structural_em"'):
        learn_structure(holes, [2] * 5, names=frame.columns)
    late = learn_structure(holes, [2] * 5, method="structural_em", time_limit=1e-9)
    assert late.stopped == "time_limit"


def test_structural_em_is_told_when_to_stop_and_what_is_missing(model: Model) -> None:
    frame = model.sample(300, seed=5)
    codes = np.stack([frame[c].cat.codes for c in frame]).astype(np.uint8)
    codes[np.random.default_rng(0).random(codes.shape) < 0.2] = 255
    names, order = list(frame.columns), [3, 1, 4, 0, 2]
    way = "structural_em[draws=2,max_iterations=3]"
    first = learn_structure(codes, [2] * 5, names=names, method=way)
    other = learn_structure(codes[order], [2] * 5, names=[names[v] for v in order], method=way)
    assert other.score == first.score
    assert (other.cpdag.over(names).matrix == first.cpdag.matrix).all()
    calls = []

    def press(row: SearchStep) -> None:
        calls.append(row)
        raise KeyboardInterrupt

    assert learn_structure(codes, [2] * 5, names=names, method=way, on_step=press).stopped == "interrupted"
    assert len(calls) == 1
    codes[names.index("C")] = 255
    with pytest.raises(DataError, match="column 'C' has no value in any row"):
        learn_structure(codes, [2] * 5, names=names, method="structural_em")


def small_regressions() -> Regressions:
    rng = np.random.default_rng(0)
    rows = rng.integers(0, [2, 3, 2], (40, 3)).astype(np.uint8)
    return Regressions(rows, np.array([2, 3, 2]), rng.integers(1, 4, 40).astype(float), 1e-9, 0.25)


def test_slopes_of_regressions_are_finite_differences() -> None:
    fit, rng = small_regressions(), np.random.default_rng(1)
    weights, biases = rng.normal(size=(7, 7)), rng.normal(size=7)
    weights[fit.of_state[:, None] == fit.of_state[None, :]] = 0.0
    _, slope = fit.value_and_slope(weights, biases)
    for i, j in [(0, 3), (4, 1), (6, 2)]:
        step = np.zeros((7, 7))
        step[i, j] = 1e-5
        up, down = (fit.value_and_slope(weights + sign * step, biases)[0] for sign in (1, -1))
        assert slope[i, j] == pytest.approx(-(up - down) / 2e-5, rel=1e-6, abs=1e-9)


def test_a_solution_is_optimal() -> None:
    """A block that is there has slope -strength * c * W / |W|, one that is not a slope of at most strength * c."""
    from besag.infer.iterate import Clock

    fit = small_regressions()
    strength = float(fit.path(5)[2]) * 0.5
    fit.solve(strength, Clock())
    _, slope = fit.value_and_slope(fit.weights, fit.biases)
    norms = fit.norms()
    assert (norms > 0).any()
    for u in range(3):
        for v in range(3):
            if u == v:
                continue
            block = np.ix_(fit.of_state == u, fit.of_state == v)
            bound = strength * fit.scale[u, v]
            if norms[u, v] > 0:
                assert slope[block] == pytest.approx(-bound * fit.weights[block] / norms[u, v], abs=1e-6)
            else:
                assert np.linalg.norm(slope[block]) <= bound + 1e-6


def test_neighbourhoods_of_an_ising_model_and_of_mixed_cardinalities() -> None:
    ising = besag.ising((3, 3), 0.4, 0.1)
    frame = ising.sample(3000, seed=0)
    codes = np.stack([frame[c].cat.codes for c in frame]).astype(np.uint8)
    path = select_neighbourhoods(codes, [2] * 9, strengths=8)
    joined = {tuple(sorted(scope)) for group in ising.groups for scope in group.scopes.tolist() if len(scope) == 2}
    for rule in ("and", "or"):
        assert set(map(tuple, np.argwhere(np.triu(path.joined(rule=rule))).tolist())) == joined
    assert not path.norms[0].any()
    assert len(path.strengths) == 8
    assert (np.diff(path.strengths) < 0).all()
    rng = np.random.default_rng(0)
    a, d = rng.integers(0, 3, (2, 800))
    b = np.where(rng.random(800) < 0.8, a, rng.integers(0, 3, 800))
    c = np.where(rng.random(800) < 0.8, (b > 0) * 1, rng.integers(0, 2, 800))
    mixed = select_neighbourhoods(np.stack([a, b, c, d]).astype(np.uint8), [3, 3, 2, 3], names="ABCD", strengths=8)
    assert mixed.graph().undirected == [("A", "B"), ("B", "C")]


def test_paths_end_in_time_and_refuse() -> None:
    codes = np.random.default_rng(0).integers(0, 2, (3, 50)).astype(np.uint8)
    late = select_neighbourhoods(codes, [2, 2, 2], time_limit=1e-9)
    assert late.stopped == "time_limit"
    assert not late.joined().any()
    with pytest.raises(CapabilityError, match="strengths must be numbers above 0"):
        select_neighbourhoods(codes, [2, 2, 2], strengths=[0.1, -1])
    with pytest.raises(CapabilityError, match='rule must be "and" or "or"'):
        late.joined(rule="xor")
