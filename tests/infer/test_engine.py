"""Engines by text: names, options, and the errors of what cannot be read."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import besag
from besag.errors import CapabilityError, TooLargeError
from besag.infer.auto.engine import Auto, Exact
from besag.infer.bp.engine import BP
from besag.infer.brute import Brute
from besag.infer.engine import ENGINES
from besag.registry import read_value, split_spec

MODEL = besag.chain(np.zeros((3, 2)), np.eye(2))


@pytest.mark.parametrize(
    ("text", "name", "options"),
    [
        ("brute", "brute", {}),
        (" brute ", "brute", {}),
        ("brute[]", "brute", {}),
        ("bp[damping=0.3]", "bp", {"damping": 0.3}),
        ("bp[ damping = 0.3 , schedule=residual ]", "bp", {"damping": 0.3, "schedule": "residual"}),
        ("tree[root=A]", "tree", {"root": "A"}),
        ("tree[root=b 2]", "tree", {"root": "b 2"}),
        ("x[a=1,b=-2.5e3,c=true,d=False,e=none,f=word]", "x",
         {"a": 1, "b": -2500.0, "c": True, "d": False, "e": None, "f": "word"}),
    ],
)  # fmt: skip
def test_parsing(text: str, name: str, options: dict[str, Any]) -> None:
    found, texts = split_spec(text)
    values = {option: read_value(value) for option, value in texts.items()}
    assert (found, values) == (name, options)
    assert [type(v) for v in values.values()] == [type(v) for v in options.values()]


def test_a_root_may_be_named_as_grids_name_their_variables() -> None:
    assert split_spec("tree[root=0,1]") == ("tree", {"root": "0,1"})
    assert split_spec("tree[root=0,1,n_threads=2]") == ("tree", {"root": "0,1", "n_threads": "2"})


@pytest.mark.parametrize(
    ("engine", "match"),
    [
        ("brut", "no engine is named 'brut'; there are .*auto, .*brute, .*exact, .*junction_tree, .*tree"),
        ("bpp", r"no engine is named 'bpp'; there are .*trws; did you mean 'bp'\?$"),
        ("bp(damping=0.5)", r"no engine is named 'bp\(damping=0.5\)'; there are .*; write bp\[damping=0.5\]$"),
        ("bp()", r"; write bp\[\]$"),
        ("nothing(k=1)", "; there are .*, trws$"),
        ("bp[dampin=0.5]", r"engine 'bp' has no option 'dampin'; it has .*; did you mean 'damping'\?$"),
        ("", "no engine is named ''"),
        ("brute[k=1", r"'brute\[k=1' opens a bracket and does not close it"),
        ("brute[k]", "expected option=value, got 'k'"),
        ("brute[=1]", "expected option=value, got '=1'"),
        ("brute[depth=3]", "engine 'brute' has no option 'depth'; it has k, memory_limit, n_samples"),
        (3, 'engine must be text such as "tree" or an engine object, got 3'),
        (object(), "engine must be text"),
    ],
)
def test_bad_engines_are_refused(engine: Any, match: str) -> None:
    with pytest.raises(CapabilityError, match=match):
        ENGINES.read(engine)
    with pytest.raises(CapabilityError, match=match):
        MODEL.marginals(engine=engine)


@pytest.mark.parametrize("name", [*ENGINES])
def test_text_and_object_are_each_others_inverse(name: str) -> None:
    engine = ENGINES.read(name)
    assert type(engine) is ENGINES.find(name)
    assert ENGINES.name_of(engine) == name
    assert ENGINES.text_of(engine) == name
    options = {"n_samples": 7, "memory_limit": 1000}
    known = [f"{option}={value}" for option, value in options.items() if hasattr(engine, option)]
    changed = ENGINES.read(f"{name}[{','.join(known)}]")
    assert changed.memory_limit == 1000
    assert getattr(changed, "n_samples", 7) == 7
    assert ENGINES.read(ENGINES.text_of(changed)) == changed


def test_text_overrides_keywords_and_keywords_fill_what_is_open() -> None:
    assert ENGINES.read("brute[memory_limit=10]", memory_limit=99).memory_limit == 10
    assert ENGINES.read("brute", memory_limit=99, n_threads=3).memory_limit == 99
    assert ENGINES.read("brute", memory_limit=None).memory_limit is None
    assert ENGINES.read(Brute(memory_limit=10), memory_limit=99).memory_limit == 10
    assert ENGINES.read(Brute(), memory_limit=99) == Brute(memory_limit=99)
    with pytest.raises(TooLargeError, match="memory_limit=10"):
        MODEL.marginals(engine="brute[memory_limit=10]", memory_limit=10**9)
    with pytest.raises(TooLargeError, match="memory_limit=10;"):
        MODEL.marginals(engine="brute", memory_limit=10)


@pytest.mark.parametrize("engine", ["brute", Brute(), "exact", Exact(), "auto", Auto()])
def test_an_engine_is_named_or_given(engine: Any) -> None:
    assert MODEL.log_partition(engine=engine) == pytest.approx(np.log(2 * (np.e + 1) ** 2))


def test_engines_are_public_by_class() -> None:
    assert besag.infer.Brute is Brute
    assert besag.infer.Auto is Auto
    assert set(besag.infer.__all__) <= set(dir(besag.infer))
    with pytest.raises(AttributeError, match=r"besag\.infer has no 'Nothing'; it has .*Auto, .*Brute"):
        _ = besag.infer.Nothing


@pytest.mark.parametrize(
    "call",
    [
        lambda: MODEL.marginals(speed=9),
        lambda: MODEL.map(speed=9),
        lambda: MODEL.joint(["0"], speed=9),
        lambda: MODEL.log_probability({}, speed=9),
        lambda: MODEL.sample(1, speed=9),
        lambda: MODEL.cost(speed=9),
        lambda: MODEL.steps(speed=9),
    ],
)
def test_an_unknown_option_is_refused(call: Callable[[], Any]) -> None:
    with pytest.raises(TypeError, match=r"unknown options \['speed'\]; .*here are engine, init"):
        call()


def test_who_can_serve_a_want_includes_those_who_choose() -> None:
    with pytest.raises(
        CapabilityError,
        match="engine 'trw' cannot give map; alpha_beta_swap, alpha_expansion, anneal, auto, exact, bp, brute, dual",
    ):
        MODEL.map(engine="trw")


# brute ---------------------------------------------------------------------------------------------------------------


def test_brute_gives_the_k_best() -> None:
    rng = np.random.default_rng(0)
    model = besag.chain(rng.normal(size=(4, 3)), rng.normal(size=(3, 3)))
    energies = np.sort(model.to_frame()["H"])
    result = model.map(k=10, engine="brute")
    np.testing.assert_allclose([energy for _, energy in result.solutions], energies[:10])
    np.testing.assert_allclose([model.energy(y) for y, _ in result.solutions], energies[:10])
    assert len({tuple(y.values()) for y, _ in result.solutions}) == 10
    assert result.assignment == result.solutions[0][0]
    assert len(model.map(k=1000).solutions) == 81


def test_the_k_best_are_possible() -> None:
    model = besag.markov_network([2, 2], [((0, 1), [[1, 0], [0, 2]])], given="weight")
    assert [y for y, _ in model.map(k=4).solutions] == [{"0": "1", "1": "1"}, {"0": "0", "1": "0"}]


def test_brute_refuses_what_does_not_fit() -> None:
    with pytest.raises(TooLargeError, match=r"brute force would look at .* labellings .* more than memory_limit=1000"):
        besag.chain(np.zeros((10, 2)), np.eye(2)).marginals(engine="brute", memory_limit=1000)
    with pytest.raises(TooLargeError, match="brute force"):
        besag.chain(np.zeros((5000, 2)), np.eye(2)).marginals(engine="brute")


def test_brute_is_right_for_extreme_energies() -> None:
    model = besag.chain(np.array([[1e5, 0], [0, -1e5], [1e5, 1e5 + 1]]), np.zeros((2, 2)))
    result = model.marginals(engine="brute")
    assert result.log_partition == pytest.approx(1e5 + 1e5 + 1 + np.log1p(np.exp(-1)))
    np.testing.assert_allclose(result["2"], [1 / (1 + np.e), np.e / (1 + np.e)])


# auto and exact ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["auto", "exact"])
def test_a_graph_with_cycles_takes_the_junction_tree_and_says_why(engine: str) -> None:
    result = besag.ising((2, 2)).marginals(engine=engine)
    assert result.diagnostics.engine == "junction_tree"
    assert "cycles" in result.diagnostics["reason"]


def test_a_graph_too_large_is_refused() -> None:
    with pytest.raises(TooLargeError, match=r"memory_limit=.*width .* table entries in the best order found"):
        besag.ising((40, 60)).marginals(engine="exact")


@pytest.mark.parametrize("option", ["n_threads=0", "n_threads=a", "memory_limit=-1", "k=0", "n_samples=1.5"])
def test_counts_in_the_text_of_an_engine_are_checked(option: str) -> None:
    with pytest.raises(CapabilityError, match=f"{option.partition('=')[0]} must be a whole number of at least 1"):
        ENGINES.read(f"junction_tree[{option}]")


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("bp[max_iterations=abc]", "max_iterations must be a whole number of at least 1, got 'abc'"),
        ("bp[max_iterations=2.5]", "max_iterations must be a whole number of at least 1, got 2.5"),
        ("bp[max_iterations=true]", "max_iterations must be a whole number of at least 1, got True"),
        ("bp[tolerance=abc]", "tolerance must be a number"),
        ("bp[tolerance=none]", "tolerance must be a number"),
        ("mean_field[tolerance=abc]", "tolerance must be a number"),
        ("trw[damping=adaptive]", "damping must be a number from 0 to below 1, got 'adaptive'"),
        ("trw[n_forests=abc]", "n_forests must be a whole number"),
        ("ais[confidence=none]", "confidence must be a number between 0 and 1, got None"),
        ("auto[seed=abc]", "engine 'auto': seed must be a whole number of at least 0, got 'abc'"),
        ("auto[seed=-1]", "engine 'auto': seed must be a whole number of at least 0, got '-1'"),
        ("ilp[relaxation=maybe]", "engine 'ilp': relaxation must be true or false, got 'maybe'"),
        ("bp[n_threads=-1]", "engine 'bp': n_threads must be a whole number of at least 1, got '-1'"),
    ],
)
def test_options_of_the_wrong_kind(text: str, match: str) -> None:
    with pytest.raises(CapabilityError, match=match):
        ENGINES.read(text)


@pytest.mark.parametrize(
    "engine",
    [BP(n_threads="a"), BP(memory_limit="1GB"), BP(n_threads=-1)],  # type: ignore[arg-type]
)
def test_objects_with_options_of_the_wrong_kind(engine: BP) -> None:
    with pytest.raises(CapabilityError, match=r"engine 'bp': .* must be a whole number of at least 1, got"):
        besag.ising((2, 2), 0.1).marginals(engine=engine)
    with pytest.raises(CapabilityError, match="engine must be text"):
        besag.ising((2, 2), 0.1).marginals(engine=BP)  # type: ignore[arg-type]
