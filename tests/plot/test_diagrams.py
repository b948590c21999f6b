"""Factor graphs, junction trees, messages, structures, chains, traces, weights, large networks: what is on them."""

from typing import Any

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

import besag
from besag import plot
from besag.errors import CapabilityError, ModelError, TooLargeError


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for axes in figure.axes for text in axes.texts if text.get_text()]


def patches(figure: Figure, kind: type) -> list[Any]:
    return [patch for axes in figure.axes for patch in axes.patches if isinstance(patch, kind)]


def test_factor_graphs() -> None:
    model = besag.data.bundled("tree_001")
    figure = plot.draw_factor_graph(model, title="a tree")
    names = [v.name for v in model.variables]
    assert texts(figure) == ["a tree", *names, *(model.graph.factor_name(f) for f in range(model.n_factors))]
    assert len(patches(figure, FancyArrowPatch)) == len(model.graph.scope_variables)
    with pytest.raises(TooLargeError, match="at most 200 variables and factors, here are 380"):
        plot.draw_factor_graph(besag.ising((10, 10)))


def test_junction_trees() -> None:
    tree = besag.data.bundled("asia").junction_tree()
    figure = plot.draw_junction_tree(tree)
    found = [text.replace("\n", ", ") for text in texts(figure)]
    assert found == [", ".join(names) for names in [*tree.cliques, *(s.names for s in tree.separators)]]
    assert len(patches(figure, FancyArrowPatch)) == 2 * len(tree.separators)
    boxes = patches(figure, FancyBboxPatch)
    root = {*range(len(tree.cliques))} - {s.clique for s in tree.separators}
    assert max(range(len(boxes)), key=lambda i: boxes[i].get_y()) in root
    assert len(texts(plot.draw_junction_tree(besag.data.bundled("asia")))) == len(found)
    with pytest.raises(ModelError, match=r"expected a model, or what model.junction_tree\(\) gives, got str"):
        plot.draw_junction_tree("asia")


def test_messages_step_by_step() -> None:
    r = besag.data.bundled("tree_001").marginals(engine="tree[root=i]", trace=True)
    log = r.messages
    lines = len(r.graph.scope_variables)
    for until in (0, 5, int(log["step"].max())):
        figure = plot.draw_messages(r, until=until)
        sent = log[log["step"] <= until]
        assert len(patches(figure, FancyArrowPatch)) == lines + len(sent.groupby(["step", "source", "target"]))
        last = ", ".join(f"{value:.3g}" for value in log.loc[log["step"] == until, "value"])
        assert f"{until}: {last}" in texts(figure)
    with pytest.raises(ModelError, match="until must be a step from 0 to 15, got 16"):
        plot.draw_messages(r, until=16)


def test_structures_are_as_wide_as_they_are_sure() -> None:
    edges = besag.bootstrap_edges(besag.data.bundled("sprinkler").sample(300, seed=0), 5)
    figure = plot.draw_structure(edges, threshold=0.5)
    expected = np.triu(edges.strength)[np.triu(edges.strength) >= 0.5]
    arrows = patches(figure, FancyArrowPatch)
    assert sorted(a.get_linewidth() for a in arrows) == pytest.approx(sorted(0.5 + 3.5 * expected))
    assert set(edges.names) <= set(texts(figure))
    with pytest.raises(ModelError, match=r"expected what .* gives, got int"):
        plot.draw_structure(3)


def test_traces() -> None:
    model = besag.ising((4, 4), 0.4, 0.1)
    r = model.marginals(engine="trw", trace=True)
    value, residual = plot.draw_trace({"trw": r, "mean field": model.marginals(engine="mean_field", trace=True)}).axes
    np.testing.assert_array_equal(value.lines[0].get_ydata(), r.trace["value"])
    assert residual.get_yscale() == "log"
    assert [text.get_text() for text in residual.get_legend().get_texts()] == ["trw", "mean field"]
    frame = r.trace.assign(value=[2.0] * len(r.trace))
    assert len(plot.draw_trace(frame, over="iteration").axes[0].lines) == 2  # value, and a bound that differs
    with pytest.raises(ModelError, match="must be a Result that was asked for with trace=True"):
        plot.draw_trace(r.trace[["seconds"]])


def test_chains_and_their_agreement() -> None:
    model = besag.data.bundled("sprinkler")
    with pytest.warns(besag.errors.ConvergenceWarning):
        r = model.marginals(engine="gibbs[n_chains=4,n_samples=300]")
    one, other = plot.draw_chains(r, ["rain", "cloudy"]).axes
    assert len(one.lines) == 4
    ends = np.mean([line.get_ydata()[-1] for line in one.lines])
    assert ends == pytest.approx(r["rain"][-1], abs=0.01)  # which averages conditional probabilities
    assert one.get_title("left").startswith("rain = yes, R-hat 1.")
    assert other.get_title("left").startswith("cloudy = yes")
    with pytest.raises(CapabilityError, match="engine 'gibbs' has them"):
        plot.draw_chains(model.marginals())


def test_weights() -> None:
    weights = {(a, b): float(i - j) for i, a in enumerate("ABC") for j, b in enumerate("XY")}
    table = plot.draw_weights(weights).axes[0]
    np.testing.assert_array_equal(table.images[0].get_array(), [[0, -1], [1, 0], [2, 1]])
    many = {(f"w={i}", "X"): (-1) ** i * i / 100 for i in range(100)}
    bars = plot.draw_weights(many, most=3).axes[0]
    assert [bar.get_width() for bar in bars.patches] == [-0.99, 0.98, -0.97]
    with pytest.raises(ModelError, match="finite numbers"):
        plot.draw_weights({("A", "B"): np.nan})
    with pytest.raises(ModelError, match="name, name"):
        plot.draw_weights({"A": 1.0})


def test_networks_of_many_variables() -> None:
    model = besag.ising((11, 11), 0.4, 0.5)
    (axes,) = plot.draw_network(model, model.marginals()).axes
    assert len(axes.collections[1].get_offsets()) == 121
    assert len(next(c for c in axes.collections if isinstance(c, LineCollection)).get_segments()) == 220
    assert len(axes.texts) == 121
    (axes,) = plot.draw_network(besag.ising((30, 30))).axes
    assert axes.get_title("left").startswith("900 variables in ")
    assert sum(int(text.get_text()) for text in axes.texts[::2]) == 900
