"""Pictures: what is on them, where it is, and what is refused."""

import os
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

import besag
from besag import plot
from besag.data import BUNDLED, bundled, random_model
from besag.errors import ModelError


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def cards(figure: Figure) -> dict[str, FancyBboxPatch]:
    """The card of each variable, by the first text inside of it: its name."""
    (axes,) = figure.axes
    boxes = [patch for patch in axes.patches if isinstance(patch, FancyBboxPatch)]
    bold = [text.get_text() for text in axes.texts if text.get_weight() == "bold"]
    return dict(zip(bold, boxes, strict=True))


def overlap(one: FancyBboxPatch, other: FancyBboxPatch) -> bool:
    apart_x = one.get_x() + one.get_width() < other.get_x() or other.get_x() + other.get_width() < one.get_x()
    apart_y = one.get_y() + one.get_height() < other.get_y() or other.get_y() + other.get_height() < one.get_y()
    return not (apart_x or apart_y)


@pytest.mark.parametrize("name", BUNDLED)
def test_every_variable_has_a_card_of_its_own(name: str) -> None:
    model = bundled(name)
    found = cards(plot.draw_network(model, model.marginals()))
    assert list(found) == [variable.name for variable in model.variables]
    assert not any(overlap(one, other) for one, other in combinations(found.values(), 2))


@pytest.mark.parametrize("kind", ["forest_factors", "markov_network", "polytree", "bayesian_network", "tree"])
def test_random_models_have_no_overlaps(kind: str) -> None:
    found = cards(plot.draw_network(random_model(kind, 25, seed=1)))
    assert len(found) == 25
    assert not any(overlap(one, other) for one, other in combinations(found.values(), 2))


def test_parents_are_above_their_children() -> None:
    model = random_model("bayesian_network", 20, seed=3)
    figure = plot.draw_network(model)
    found = cards(figure)
    pairs = [(parent, v.name) for v in model.variables for parent in model.parents(v.name)]
    assert all(found[parent].get_y() > found[child].get_y() for parent, child in pairs)
    assert sum(isinstance(patch, FancyArrowPatch) for patch in figure.axes[0].patches) == len(pairs)


def test_edges_stay_on_the_picture() -> None:
    for seed in range(5):
        (axes,) = plot.draw_network(random_model("polytree", 30, seed=seed)).axes
        for arrow in (patch for patch in axes.patches if isinstance(patch, FancyArrowPatch)):
            drawn = arrow.get_path()
            x = drawn.vertices[drawn.codes != drawn.CLOSEPOLY, 0]
            left, right = axes.get_xlim()
            assert left < x.min() < x.max() < right


def test_bars_show_the_marginals() -> None:
    model = bundled("sprinkler")
    figure = plot.draw_network(model, model.marginals(evidence={"wet_grass": "yes"}), observed=["wet_grass"])
    assert {"70.8%", "29.2%", "100.0%"} <= set(texts(figure))
    colours = {name: card.get_facecolor() for name, card in cards(figure).items()}
    assert colours["wet_grass"] != colours["rain"] == colours["cloudy"]


def test_factors_are_named_and_large_ones_are_squares() -> None:
    factors = {"f": (("A", "B", "C"), np.zeros((2, 2, 2))), "g": (("C", "D"), np.zeros((2, 2))), "h": ("A", [0, 1])}
    figure = plot.draw_network(besag.markov_network(dict.fromkeys("ABCD", 2), factors))
    assert {"f", "g"} <= set(texts(figure))
    assert "h" not in texts(figure)
    assert [line.get_marker() for line in figure.axes[0].lines].count("s") == 1


def test_a_lattice_is_drawn_as_one() -> None:
    found = cards(plot.draw_network(besag.ising((2, 3))))
    assert found["0,0"].get_x() == found["1,0"].get_x() < found["0,1"].get_x()
    assert found["0,0"].get_y() == found["0,2"].get_y() > found["1,0"].get_y()


def test_many_states_are_cut_to_the_most_probable() -> None:
    weights = np.arange(1.0, 21.0)
    model = besag.markov_network({"A": 20}, [("A", weights)], given="weight")
    shown = texts(plot.draw_network(model, model.marginals()))
    assert "and 13 more" in shown
    assert {"13", "19"} <= set(shown)
    assert "12" not in shown


def test_ends_of_intervals_can_be_told_apart() -> None:
    states = ["(-inf, 39.232066932231774]", "(39.232066932231774, 39.9310299597156]", "(39.9310299597156, inf]"]
    shown = texts(plot.draw_network(besag.bayesian_network([("A", "B")], {"A": states, "B": 2})))
    assert {"(-inf, 39.23]", "(39.23, 39.93]", "(39.93, inf]"} <= set(shown)
    shown = texts(plot.draw_network(besag.bayesian_network([("A", "B")], {"A": ["1.00001", "1.00002"], "B": 2})))
    assert {"1.00001", "1.00002"} <= set(shown)


def test_a_path_in_place_of_the_result_is_told() -> None:
    with pytest.raises(ModelError, match=r"result must be a Result, such as model.marginals\(\), got 'net.png'"):
        plot.draw_network(bundled("sprinkler"), "net.png")  # type: ignore[arg-type]


def test_compare_marginals() -> None:
    model = bundled("student")
    before, after = model.marginals(), model.marginals(evidence={"grade": "g3"})
    figure = plot.compare_marginals(before, after, labels=("prior", "grade g3"))
    assert [axes.get_title("left") for axes in figure.axes if axes.axison] == [v.name for v in model.variables]
    assert {"0.300", "0.079"} <= set(texts(figure))
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["prior", "grade g3"]
    assert len(plot.compare_marginals(before, after, variables=["sat"]).axes) == 1
    assert len(plot.compare_marginals(before, model.marginals("sat")).axes) == 1


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_files_are_written(suffix: str, tmp_path: Path) -> None:
    model = bundled("misconception")
    path = tmp_path / f"picture{suffix}"
    assert isinstance(plot.draw_network(model, model.marginals(), path, title="Misconception"), Figure)
    assert path.stat().st_size > 1000
    plot.compare_marginals(model.marginals(), model.marginals(evidence={"A": "1"}), str(path))


def test_pictures_are_deterministic() -> None:
    code = (
        "from besag import plot, data; model = data.random_model('forest_factors', 15, seed=2);"
        "print([(round(t.get_position()[0], 6), t.get_text()) for t in plot.draw_network(model).axes[0].texts])"
    )
    command = [sys.executable, "-c", code]
    places = {
        subprocess.run(command, capture_output=True, check=True, env=os.environ | {"PYTHONHASHSEED": seed}).stdout
        for seed in ("1", "2")
    }
    assert len(places) == 1


def test_nothing_global_changes() -> None:
    loaded = "matplotlib.pyplot" in sys.modules
    settings = dict(mpl.rcParams)
    plot.draw_network(bundled("asia"))
    assert ("matplotlib.pyplot" in sys.modules) == loaded
    assert dict(mpl.rcParams) == settings


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    model = bundled("chain_001")
    monkeypatch.setattr(besag.errors, "find_spec", lambda name: None)
    for draw in (
        lambda: plot.draw_network(model),
        lambda: plot.compare_marginals(model.marginals(), model.marginals()),
    ):
        with pytest.raises(besag.errors.CapabilityError, match=r"matplotlib.*pip install 'besag\[plot\]'"):
            draw()
    monkeypatch.setattr(besag.errors, "find_spec", lambda name: None if name == "networkx" else "found")
    with pytest.raises(besag.errors.CapabilityError, match=r"networkx.*pip install 'besag\[graph\]'"):
        plot.draw_network(model)
    plot.draw_network(bundled("asia"))  # layers need no networkx


def test_bad_arguments() -> None:
    import pandas as pd

    model = bundled("sprinkler")
    batch = model.marginals(evidence=pd.DataFrame({"rain": ["yes", "no"]}))
    with pytest.raises(besag.errors.ModelError, match="one row of evidence"):
        plot.draw_network(model, batch)
    with pytest.raises(besag.errors.ModelError, match="no variable is named 'snow'"):
        plot.draw_network(model, observed=["snow"])
    with pytest.raises(besag.errors.ModelError, match="no variable is named"):
        plot.draw_network(model, bundled("asia").marginals())
    with pytest.raises(besag.errors.TooLargeError, match="1 to 100 variables, got 0"):
        plot.compare_marginals(model.marginals(), model.marginals(), variables=[])
    other = besag.bayesian_network("rain[no,yes,hail]").marginals()
    with pytest.raises(besag.errors.ModelError, match="'rain' has 2 states in one Result and 3 in the other"):
        plot.compare_marginals(model.marginals(), other, variables=["rain"])


def test_what_is_no_model_is_refused() -> None:
    frame = bundled("sprinkler").sample(50, seed=1)
    network = besag.BayesianNetwork("rain -> wet_grass").fit(frame[["rain", "wet_grass"]])
    for draw in (plot.draw_network, plot.draw_factor_graph):
        with pytest.raises(ModelError, match=r"got BayesianNetwork; write model_, which fit has learnt"):
            draw(network)  # type: ignore[arg-type]
        with pytest.raises(ModelError, match=r"expected a Model, as besag.load gives, got str"):
            draw("net.bif")  # type: ignore[arg-type]
        with pytest.raises(ModelError, match="got Result; the model comes first"):
            draw(bundled("sprinkler").marginals())  # type: ignore[arg-type]


def test_what_is_no_result_is_refused() -> None:
    model = bundled("sprinkler")
    with pytest.raises(ModelError, match=r"expected a Result, such as model.marginals\(\), got Model"):
        plot.compare_marginals(model.marginals(), model)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match=r"model.marginals\(trace=True\), got Model"):
        plot.draw_messages(model)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match=r'model.marginals\(engine="gibbs"\), got Model'):
        plot.draw_chains(model)  # type: ignore[arg-type]


def test_one_observed_variable_is_a_name() -> None:
    model = bundled("sprinkler")
    one, other = (cards(plot.draw_network(model, observed=names)) for names in ("rain", ["rain"]))
    assert [card.get_facecolor() for card in one.values()] == [card.get_facecolor() for card in other.values()]


def test_a_picture_that_does_not_exist() -> None:
    with pytest.raises(AttributeError, match=r"besag.plot has no 'draw_marginals'; did you mean .*'compare_marginals'"):
        _ = plot.draw_marginals  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"besag.metrics has no 'f1'"):
        _ = besag.metrics.f1  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"besag.io has no 'read_conl'"):
        _ = besag.io.read_conl  # type: ignore[attr-defined]


def test_marks_of_what_was_before_have_a_key() -> None:
    model = bundled("sprinkler")
    assert "red marks: before" in texts(plot.draw_network(model, model.marginals(), before=model.marginals()))
    assert "red marks: before" not in texts(plot.draw_network(model, model.marginals()))
