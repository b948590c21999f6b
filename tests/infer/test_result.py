"""Result: what users read from an answer, by name, as arrays, as frames and in print."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import besag
from besag.errors import CapabilityError, ModelError
from besag.infer.result import Diagnostics, Result
from tests.oracle import Enumeration

MODEL = besag.markov_network(
    {"A": ["no", "yes"], "B": 3},
    {
        "ab": (("A", "B"), [[0.0, 1.0, 2.0], [1.0, 0.0, 0.5]]),
        "b": ("B", [0.0, 0.2, 0.1]),
        "ba": (("B", "A"), np.eye(3, 2)),
    },
)
GRID = besag.grid((2, 3), 2, np.random.default_rng(0).normal(size=(2, 3, 2)), besag.potts(2))
FRAME = pd.DataFrame({"A": ["yes", None, "no"]}, index=pd.Index(["x", "y", "z"], name="case"))


def test_by_name() -> None:
    result = MODEL.marginals()
    assert_allclose(result["A"], Enumeration(MODEL).marginal("A"))
    assert result["B"].shape == (3,)
    assert isinstance(result.log_partition, float)
    assert list(result) == result.keys() == ["A", "B"]
    assert "A" in result
    assert "Z" not in result
    with pytest.raises(ModelError, match="no variable is named 'Z'"):
        result["Z"]


def test_an_answer_is_the_users_to_change() -> None:
    result = MODEL.marginals()
    result["A"][:] = 7
    result.factor(0)[:] = 7
    assert_allclose(result["A"].sum(), 1)
    assert_allclose(result.factor(0).sum(), 1)


def test_a_batch_by_name() -> None:
    result = MODEL.marginals(evidence=FRAME)
    assert result["B"].shape == (3, 3)
    assert result.log_partition.shape == (3,)
    assert_allclose(result["A"][[0, 2]], [[0, 1], [1, 0]])
    assert_allclose(result["B"][1], MODEL.marginals()["B"])
    assert result.factor("ab").shape == (3, 2, 3)
    low, high = result.log_partition_bounds
    assert_array_equal(low, high)


def test_an_observed_variable_is_one_hot() -> None:
    result = MODEL.marginals(evidence={"B": 1})
    assert_allclose(result["B"], [0, 1, 0])


# Targets -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("targets", ["B", ["B"], ("B",)])
def test_targets(targets: Any) -> None:
    result = MODEL.marginals(targets)
    assert result.keys() == ["B"]
    assert_allclose(result["B"], MODEL.marginals()["B"])
    assert result.to_frame().index.get_level_values("variable").unique().tolist() == ["B"]
    assert "A" not in str(result).split()
    assert "A" not in result
    with pytest.raises(CapabilityError, match=r"'A' was not among the targets \['B'\]"):
        result["A"]


def test_an_unknown_target_is_refused() -> None:
    with pytest.raises(ModelError, match="no variable is named 'Z'"):
        MODEL.marginals(["A", "Z"])


# Arrays --------------------------------------------------------------------------------------------------------------


def test_arrays_of_a_grid_are_images() -> None:
    result = GRID.marginals()
    assert result.array.shape == (2, 3, 2)
    assert_array_equal(result.array[1, 2], result["1,2"])
    batch = GRID.marginals(evidence=pd.DataFrame({"0,0": [0, 1]}))
    assert batch.array.shape == (2, 2, 3, 2)
    assert_allclose(batch.array[:, 0, 0], np.eye(2))
    assert GRID.map().labels.shape == (2, 3)
    assert GRID.map(evidence=pd.DataFrame({"0,0": [0, 1]})).labels[:, 0, 0].tolist() == [0, 1]
    assert GRID.energy(GRID.map().labels) == pytest.approx(GRID.map().energy)


def test_arrays_of_other_models() -> None:
    chain = besag.chain(np.zeros((3, 2)), np.eye(2))
    assert chain.marginals().array.shape == (3, 2)
    assert chain.map().labels.shape == (3,)
    with pytest.raises(ModelError, match=r"needs variables of equal cardinality; use r\[name\] or r\.to_frame\(\)"):
        _ = MODEL.marginals().array


# Factors -------------------------------------------------------------------------------------------------------------


def test_factors_are_numbered_as_given_even_when_shapes_differ() -> None:
    result = MODEL.marginals()
    oracle = Enumeration(MODEL)
    for number, (name, scope) in enumerate({"ab": "AB", "b": "B", "ba": "BA"}.items()):
        assert_allclose(result.factor(number), oracle.joint(list(scope)))
        assert_array_equal(result.factor(name), result.factor(number))
    network = besag.bayesian_network("A[3] -> B")
    assert_allclose(network.marginals().factor("f(A,B)"), np.full((3, 2), 1 / 6))
    assert_allclose(network.marginals().factor(0), np.full(3, 1 / 3))


@pytest.mark.parametrize(
    ("key", "match"),
    [(3, "numbered 0 to 2, got 3"), (-1, "numbered 0 to 2, got -1"), ("zz", "no factor is named 'zz'")],
)
def test_an_unknown_factor_is_refused(key: Any, match: str) -> None:
    with pytest.raises(ModelError, match=match):
        MODEL.marginals().factor(key)


# MAP -----------------------------------------------------------------------------------------------------------------


def test_map_of_one_query() -> None:
    result = MODEL.map(k=2)
    (best, energy), (second, more) = result.solutions
    assert result.assignment == best == {"A": "no", "B": "2"}
    assert result.energy == energy < more
    assert second != best
    assert result.energy_bound == result.energy
    assert result.gap == 0
    assert result.optimal is True
    assert result.labels.tolist() == [0, 2]


def test_map_of_a_batch() -> None:
    result = MODEL.map(evidence=FRAME)
    assert [y["A"] for y in result.assignment] == ["yes", MODEL.map().assignment["A"], "no"]
    assert result.energy.shape == (3,)
    assert result.optimal.tolist() == [True] * 3
    assert [solutions[0][1] for solutions in result.solutions] == result.energy.tolist()
    for row, (evidence, energy) in enumerate(zip(FRAME["A"], result.energy, strict=True)):
        single = MODEL.map(evidence={"A": evidence})
        assert single.energy == pytest.approx(energy)
        assert single.assignment == result.assignment[row]


# Unions --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def union() -> Result:
    graph = besag.compile_graph(MODEL, MODEL.condition({}), MODEL)
    wants = frozenset({"log_partition", "variables", "factors", "map", "samples", "moments"})
    return besag.infer.Brute(n_samples=4, k=2).infer(graph.bind(MODEL.theta), wants, rng=np.random.default_rng(0))


def test_instances_of_a_union(union: Result) -> None:
    single = MODEL.marginals()
    assert union.log_partition.shape == (3,)
    assert isinstance(union[1].log_partition, float)
    assert union[1].keys() == ["A", "B"]
    assert_allclose(union[2]["B"], single["B"])
    assert_allclose(union["2:B"], single["B"])
    assert_allclose(union[1].factor("ba"), single.factor("ba"))
    assert union[1].samples.shape == (4, 2)
    assert union[1].assignment == MODEL.map().assignment
    with pytest.raises(ModelError, match=r"this is a union of 3 instances; take r\[i\]\['B'\]"):
        union["B"]
    with pytest.raises(ModelError, match="from 0 to 2, got 3"):
        union[3]


def test_solutions_of_a_union(union: Result) -> None:
    """Each instance has its own; one of the whole union has the energy of the whole, or is refused."""
    assert [energy for _, energy in union[1].solutions] == [energy for _, energy in MODEL.map(k=2).solutions]
    try:
        energy = union.solutions[0][1]
    except (CapabilityError, ModelError):
        return
    assert energy == pytest.approx(3 * MODEL.map().energy)


def test_a_model_alone_is_its_own_first_instance() -> None:
    batch = MODEL.marginals(evidence=FRAME)
    assert_array_equal(batch[0]["B"], batch["B"])
    assert_array_equal(batch[0].log_partition, batch.log_partition)


def test_a_number_means_an_instance_in_a_union_of_one_too() -> None:
    """Code that goes through r[0] .. r[N - 1] must not meet an array where a mini-batch has one chain."""
    chain = besag.chain(np.zeros((2, 2)), np.eye(2))
    union = besag.compile_graph(chain, chain)
    for graph in (union, union.take([1, 0]), union.take([1])):
        result = besag.infer.Brute().infer(graph.bind(chain.theta), frozenset({"log_partition", "variables"}))
        for i in range(graph.n_instances):
            assert isinstance(result[i], Result)
            assert_allclose(result[i].log_partition, chain.log_partition())


def test_an_instance_without_factors() -> None:
    free = besag.markov_network({"A": ["no", "yes"], "B": 3}, [])
    graph = besag.compile_graph(free, MODEL)
    result = besag.infer.Brute().infer(graph.bind(MODEL.theta), frozenset({"log_partition", "variables", "factors"}))
    assert result[0].log_partition == pytest.approx(np.log(6))
    assert_allclose(result[0]["B"], [1 / 3] * 3)
    assert_allclose(result[1].factor(0), MODEL.marginals().factor(0))


# Frames and print-outs -----------------------------------------------------------------------------------------------


def test_frames_of_one_query() -> None:
    result = MODEL.marginals()
    frame = result.to_frame()
    assert frame.index.names == ["variable", "state"]
    assert frame.columns.tolist() == ["probability"]
    assert frame.loc[("B", "2"), "probability"] == result["B"][2]
    one = result.to_frame("A")
    assert one.index.tolist() == ["no", "yes"]
    assert_array_equal(one["probability"], result["A"])


def test_frames_of_a_batch_keep_the_index() -> None:
    result = MODEL.marginals(evidence=FRAME)
    frame = result.to_frame()
    assert frame.index.equals(FRAME.index)
    assert frame.columns.names == ["variable", "state"]
    assert_array_equal(frame["B"], result["B"])
    one = result.to_frame("B")
    assert one.index.equals(FRAME.index)
    assert one.columns.tolist() == ["0", "1", "2"]
    assert_array_equal(one, result["B"])


def test_print_outs_are_tables() -> None:
    model = besag.bayesian_network("rain[no,yes]", cpts={"rain": [0.75, 0.25]})
    head, *lines = str(model.marginals(engine="brute")).splitlines()
    assert "engine brute" in head
    assert "exact" in head
    assert lines == ["variable  state  probability", "rain      no        0.750000", "          yes       0.250000"]
    head, *lines = str(model.map(engine="brute")).splitlines()
    assert "energy = 0.287682" in head
    assert lines == ["variable  state", "rain      no"]
    assert repr(model.marginals(engine="brute")).startswith("Result(engine='brute', bound='exact', log_partition=")
    batch = str(MODEL.marginals(evidence=FRAME)).splitlines()
    assert "3 rows" in batch[0]
    assert batch[2].startswith("A (first row)")


def test_long_print_outs_are_cut() -> None:
    model = besag.markov_network([1] * 50, [])
    assert str(model.marginals(engine="brute")).endswith("\n... and 10 more")
    assert str(model.map(engine="brute")).endswith("\n... and 10 more")


@pytest.mark.parametrize("rows", [None, FRAME])
def test_a_marginal_map_prints_how_many_rows_were_asked(rows: Any) -> None:
    head = str(MODEL.marginal_map(["A", "B"], rows, engine="brute")).splitlines()[0]
    assert ("3 rows" in head) == (rows is not None)


# Diagnostics and bounds ----------------------------------------------------------------------------------------------


def test_diagnostics_by_key_and_by_attribute() -> None:
    diagnostics = Diagnostics(engine="bp", converged=False)
    assert diagnostics["engine"] == diagnostics.engine == "bp"
    assert dict(diagnostics) == {"engine": "bp", "converged": False}
    assert diagnostics.extend(reason="x").reason == "x"
    assert repr(diagnostics) == "Diagnostics(engine='bp', converged=False)"
    with pytest.raises(AttributeError, match="no entry 'residual'; there are engine, converged"):
        _ = diagnostics.residual
    with pytest.raises(KeyError, match="residual"):
        diagnostics["residual"]


@pytest.mark.parametrize(
    ("bound", "low", "high"),
    [("exact", 2, 2), ("lower", 2, np.inf), ("upper", -np.inf, 2), ("estimate", -np.inf, np.inf)],
)
def test_bounds_follow_from_what_log_partition_is(bound: str, low: float, high: float) -> None:
    result = Result(MODEL.graph, bound, Diagnostics(), log_partitions=np.array([2.0]))
    assert result.log_partition_bounds == (low, high)
    given = Result(
        MODEL.graph, bound, Diagnostics(), log_partitions=np.array([2.0]), bounds=(np.array([1.0]), np.array([3.0]))
    )
    assert given.log_partition_bounds == (1, 3)


def test_the_gap_of_an_answer_that_is_not_exact() -> None:
    codes, energies = np.zeros((1, 1, 2), int), np.array([[5.0]])
    unknown = Result(MODEL.graph, "estimate", Diagnostics(), codes=codes, energies=energies)
    assert (unknown.energy_bound, unknown.gap, unknown.optimal) == (-np.inf, np.inf, False)
    known = Result(
        MODEL.graph, "estimate", Diagnostics(), codes=codes, energies=energies, energy_bounds=np.array([4.5])
    )
    assert (known.energy_bound, known.gap, known.optimal) == (4.5, 0.5, False)
    closed = Result(
        MODEL.graph, "estimate", Diagnostics(), codes=codes, energies=energies, energy_bounds=np.array([5.0])
    )
    assert closed.optimal is True


def test_a_trace_must_be_asked_for() -> None:
    with pytest.raises(CapabilityError, match=r"trace was not asked for.*trace=True"):
        _ = MODEL.marginals(engine="bp").trace
    with pytest.raises(CapabilityError, match=r"engine 'brute' cannot give trace; trace=True with an iterative engine"):
        _ = MODEL.marginals(engine="brute").trace


def test_frames_of_labellings_keep_variables_and_all_solutions() -> None:
    model = besag.bayesian_network("H[no,yes] -> p", cpts={"H": [0.3, 0.7], "p": [[0.9, 0.1], [0.4, 0.6]]})
    frame = model.map(k=2).to_frame()
    assert frame["H"].tolist() == ["yes", "yes"]
    np.testing.assert_allclose(frame["H_"], -np.log([0.42, 0.28]))
    rows = pd.DataFrame({"p": ["0", "1"]}, index=["mon", "tue"])
    both = model.map(rows, k=2).to_frame()
    assert both.index.tolist() == [("mon", 0), ("mon", 1), ("tue", 0), ("tue", 1)]
    assert both["H"].tolist() == ["yes", "no", "yes", "no"]


def test_a_frame_of_no_targets_is_empty() -> None:
    assert besag.data.bundled("asia").marginals([]).to_frame().empty


def test_what_an_engine_cannot_give_is_said_of_the_engine() -> None:
    r = besag.ising((2, 2), 0.2).marginals(engine="gibbs[n_samples=4000]")
    with pytest.raises(CapabilityError, match="engine 'gibbs' cannot give log_partition; ais, "):
        r.log_partition  # noqa: B018
