"""What a notebook shows: each object by what it prints, escaped, and figures as pictures."""

import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import besag
from besag.learn.networks.structure.learn import learn_structure
from besag.markup import Markup, make_card, make_table


class Texts(HTMLParser):
    """The texts between tags; an error where tags are not closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def read(shown: Any) -> list[str]:
    parser = Texts()
    parser.feed(shown._repr_html_())
    parser.close()
    assert not parser.open
    return parser.texts


def widths(shown: Any) -> list[float]:
    return [float(w) for w in re.findall(r"width:([\d.]+)%", shown._repr_html_())]


def test_marginals_are_bars() -> None:
    r = besag.data.bundled("asia").marginals(["lung", "tub"], {"dysp": "yes"})
    texts = read(r)
    assert texts[0] == "engine junction_tree, exact, log Z = -0.83018"
    assert texts.index("lung") < texts.index("no") < texts.index("0.897241") < texts.index("tub")
    np.testing.assert_allclose(widths(r), 100 * np.concatenate([r["lung"], r["tub"]]), atol=0.05)


def test_bounds_and_convergence_are_words() -> None:
    rng = np.random.default_rng(0)
    model = besag.ising((4, 4), coupling=(2 * rng.normal(size=(4, 3)), 2 * rng.normal(size=(3, 4))), field=0.1)
    with pytest.warns(besag.errors.ConvergenceWarning):
        r = model.marginals(engine="trw[max_iterations=2]")
    assert "not converged after 2 iterations" in " ".join(read(r))
    assert "proven optimal" in " ".join(read(model.map()))
    assert "not proven optimal, the gap is" in " ".join(read(model.map(engine="icm")))


def test_best_labellings_stand_side_by_side() -> None:
    texts = read(besag.data.bundled("sprinkler").map(k=3))
    assert sum(text.startswith("H = ") for text in texts) == 3


def test_models_show_their_variables() -> None:
    model = besag.data.bundled("asia")
    texts = read(model)
    assert texts[0] == repr(model)
    assert {*model.variables.names, "lung, tub"} <= set(texts) or "tub, lung" in texts
    assert "... and 80 more" in read(besag.chain(np.zeros((100, 2)), np.eye(2)))


def test_names_are_escaped() -> None:
    model = besag.markov_network({"<b>": ["<i>", "&"]}, [(("<b>",), [0.0, 1.0])])
    for shown in (model, model.marginals(), model.map()):
        assert "<b>" in read(shown)
        assert "<i>" not in shown._repr_html_()


def test_sessions_costs_and_trees() -> None:
    model = besag.data.bundled("asia")
    session = model.session()
    session.observe(dysp="yes")
    assert read(session)[:4] == ["Session(8 variables, 1 observed)", "observed", "dysp", "yes"]
    assert "junction_tree" in read(model.cost())
    assert read(model.junction_tree())[0] == repr(model.junction_tree())


def test_fits_say_how_they_ended() -> None:
    model = besag.markov_network({"A": 2, "B": 2}, [(("A", "B"), np.zeros((2, 2)))])
    texts = " ".join(read(besag.fit(model, [[0, 0], [1, 1], [0, 1]], l2=0.1)))
    assert "Fit of 4 parameters" in texts
    assert " · converged, " in texts
    with pytest.warns(besag.errors.ConvergenceWarning):
        cut = besag.fit(model, [[0, 0], [1, 1]], l2=0.1, optimizer="gradient_descent[max_iterations=1,step=1e-3]")
    assert "not converged: max_iterations" in " ".join(read(cut))


def test_estimators_show_what_they_learnt() -> None:
    crf = besag.ChainCRF(l2=0.1)
    assert read(crf) == ["ChainCRF(l2=0.1)", "not fitted yet"]
    texts = read(crf.fit([[["a"], ["b"]]], [["X", "Y"]]))
    assert "fitted" in texts
    assert texts[texts.index("objective_") + 1] == f"{crf.objective_:.6g}"


def test_learned_structures() -> None:
    rng = np.random.default_rng(0)
    a = rng.integers(2, size=500)
    b = np.where(rng.random(500) < 0.1, 1 - a, a)
    found = learn_structure([a, b], [2, 2], names=["cause", "effect"])
    [(parent, child)] = found.edges
    texts = read(found)
    assert texts[0] == "structure of 2 variables"
    assert texts[texts.index(child) + 1] == parent or texts[texts.index(child, texts.index(child) + 1) + 1] == parent


def test_figures_are_pictures() -> None:
    pytest.importorskip("matplotlib")
    model = besag.data.bundled("sprinkler")
    figure = besag.plot.draw_network(model, model.marginals())
    assert figure._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]


def test_markup_is_not_escaped_again() -> None:
    assert make_table(("a",), [(Markup("<b>x</b>"),)]).count("<b>x</b>") == 1
    assert "&lt;b&gt;" in make_card("<b>")
