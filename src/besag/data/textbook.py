"""Bundled models: the seeds' own examples and small networks of the textbooks, whose answers can be checked by hand.

Each model is a function; its docstring says what it is and where it comes from. Numbers are those of the source:
probabilities and weights in the textbooks, energies in 001 and 002, u = -energy in 003.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from besag.errors import ModelError
from besag.model.bayes import bayesian_network
from besag.model.build import ising
from besag.model.factors import markov_network
from besag.model.model import Model


def factors_002() -> Model:
    """Three binary variables in a row, H(y) = h0(y0) + h01(y0, y1) + h1(y1) + h12(y1, y2) + h2(y2).

    Source: 002, the example below (3); the energies are ours.
    """
    factors = {
        "h0": ("y0", [0.0, 1.0]),
        "h01": (("y0", "y1"), [[0.0, 2.0], [2.0, 0.0]]),
        "h1": ("y1", [0.5, 0.0]),
        "h12": (("y1", "y2"), [[0.0, 1.0], [3.0, 0.0]]),
        "h2": ("y2", [1.0, 0.0]),
    }
    return markov_network({"y0": 2, "y1": 2, "y2": 2}, factors, given="energy")


def chain_001() -> Model:
    """The chain i - F - j - G - k - H - l, E(y) = E_F(yi, yj) + E_G(yj, yk) + E_H(yk, yl).

    Source: 001, "Belief Propagation" on chains; the label sets and energies are ours.
    """
    factors = {
        "F": (("i", "j"), [[0.0, 1.0, 2.0], [1.0, 0.0, 1.0]]),
        "G": (("j", "k"), [[0.0, 2.0], [1.0, 1.0], [2.0, 0.0]]),
        "H": (("k", "l"), [[0.5, 1.0], [1.5, 0.0]]),
    }
    return markov_network({"i": 2, "j": 3, "k": 2, "l": 2}, factors, given="energy")


def tree_001() -> Model:
    """The tree with root i: i - F - j - G - k, and below k the leaves l, through H, and m, through I.

    Source: 001, "Example: Inference on Trees"; the label sets and energies are ours.
    """
    factors = {
        "F": (("i", "j"), [[0.0, 1.0, 2.0], [1.0, 0.0, 1.0]]),
        "G": (("j", "k"), [[0.0, 2.0], [1.0, 1.0], [2.0, 0.0]]),
        "H": (("k", "l"), [[0.5, 1.0], [1.5, 0.0]]),
        "I": (("k", "m"), [[0.0, 1.0, 1.0], [2.0, 1.0, 0.0]]),
    }
    return markov_network({"i": 2, "j": 3, "k": 2, "l": 2, "m": 3}, factors, given="energy")


def field_003() -> Model:
    r"""A field of visible x with values {0, 1} and hidden s with values {a, b, c}, p(x, s) ~ exp(sum of u).

        x1 --- x2 --- x3        E1:   x1x2, x2x3
          \   /  \   /
           s1 --- s2            E2:   s1s2;   E12:  x1s1, x2s1, x2s2, x3s2

    Source: 003, Example 1; its drawing is not in the text, so this one and its numbers u are ours.
    """
    agree = [[0.5, -0.5], [-0.5, 1.0]]
    same = [[1.0, 0.0, -1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 1.0]]
    emits = [[1.0, 0.0, -1.0], [-1.0, 0.5, 1.0]]
    edges = {
        "E1": {("x1", "x2"): agree, ("x2", "x3"): agree},
        "E2": {("s1", "s2"): same},
        "E12": {("x1", "s1"): emits, ("x2", "s1"): emits, ("x2", "s2"): emits, ("x3", "s2"): emits},
    }
    factors = {f"{part}:{''.join(edge)}": (edge, u) for part, tables in edges.items() for edge, u in tables.items()}
    visible, hidden = ["0", "1"], ["a", "b", "c"]
    states = {"x1": visible, "x2": visible, "x3": visible, "s1": hidden, "s2": hidden}
    return markov_network(states, factors, given="log_potential")


def sprinkler() -> Model:
    """Clouds decide on the sprinkler and the rain, and either wets the grass.

    Source: Murphy, A brief introduction to graphical models and Bayesian networks, 1998, after Russell and Norvig.
    """
    return bayesian_network(
        "cloudy[no,yes] -> sprinkler[off,on]; cloudy -> rain[no,yes]; sprinkler -> wet_grass[no,yes] <- rain",
        cpts={
            "cloudy": [0.5, 0.5],
            "sprinkler": {"no": [0.5, 0.5], "yes": [0.9, 0.1]},
            "rain": {"no": [0.8, 0.2], "yes": [0.2, 0.8]},
            "wet_grass": {
                ("off", "no"): [1.0, 0.0],
                ("off", "yes"): [0.1, 0.9],
                ("on", "no"): [0.1, 0.9],
                ("on", "yes"): [0.01, 0.99],
            },
        },
    )


def student() -> Model:
    """A student's intelligence and the difficulty of a course decide on grade, SAT score and letter of recommendation.

    Source: Koller and Friedman, Probabilistic Graphical Models, 2009, figure 3.4.
    """
    return bayesian_network(
        """
        difficulty[d0,d1]
        intelligence[i0,i1] -> grade[g1,g2,g3] <- difficulty
        intelligence -> sat[s0,s1]
        grade -> letter[l0,l1]
        """,
        cpts={
            "difficulty": [0.6, 0.4],
            "intelligence": [0.7, 0.3],
            "grade": {
                ("i0", "d0"): [0.3, 0.4, 0.3],
                ("i0", "d1"): [0.05, 0.25, 0.7],
                ("i1", "d0"): [0.9, 0.08, 0.02],
                ("i1", "d1"): [0.5, 0.3, 0.2],
            },
            "sat": {"i0": [0.95, 0.05], "i1": [0.2, 0.8]},
            "letter": {"g1": [0.1, 0.9], "g2": [0.4, 0.6], "g3": [0.99, 0.01]},
        },
    )


def asia() -> Model:
    """A chest clinic: a visit to Asia, smoking, three diseases, an X-ray and dyspnoea; `either` is a hard or.

    Source: Lauritzen and Spiegelhalter, Local computations with probabilities on graphical structures, 1988.
    """
    return bayesian_network(
        """
        asia[no,yes] -> tub[no,yes]
        smoke[no,yes] -> lung[no,yes]
        smoke -> bronc[no,yes]
        tub -> either[no,yes] <- lung
        either -> xray[no,yes]
        bronc -> dysp[no,yes] <- either
        """,
        cpts={
            "asia": [0.99, 0.01],
            "tub": {"no": [0.99, 0.01], "yes": [0.95, 0.05]},
            "smoke": [0.5, 0.5],
            "lung": {"no": [0.99, 0.01], "yes": [0.9, 0.1]},
            "bronc": {"no": [0.7, 0.3], "yes": [0.4, 0.6]},
            "either": {("no", "no"): [1, 0], ("no", "yes"): [0, 1], ("yes", "no"): [0, 1], ("yes", "yes"): [0, 1]},
            "xray": {"no": [0.95, 0.05], "yes": [0.02, 0.98]},
            "dysp": {
                ("no", "no"): [0.9, 0.1],
                ("no", "yes"): [0.3, 0.7],
                ("yes", "no"): [0.2, 0.8],
                ("yes", "yes"): [0.1, 0.9],
            },
        },
    )


def misconception() -> Model:
    """Four students study in pairs, A-B-C-D-A; state 1 is to have the misconception: the smallest loop.

    Source: Koller and Friedman, Probabilistic Graphical Models, 2009, figures 4.1 and 4.2.
    """
    factors = {
        "phi1": (("A", "B"), [[30, 5], [1, 10]]),
        "phi2": (("B", "C"), [[100, 1], [1, 100]]),
        "phi3": (("C", "D"), [[1, 100], [100, 1]]),
        "phi4": (("D", "A"), [[100, 1], [1, 100]]),
    }
    return markov_network({"A": 2, "B": 2, "C": 2, "D": 2}, factors, given="weight")


def umbrella() -> Model:
    """A hidden Markov model: rain on days 0 to 5, and whether an umbrella is seen on days 1 to 5.

    Source: Russell and Norvig, Artificial Intelligence, chapter on probabilistic reasoning over time.
    """
    rain = [f"rain{day}" for day in range(6)]
    seen = [f"umbrella{day}" for day in range(1, 6)]
    transition = {"no": [0.7, 0.3], "yes": [0.3, 0.7]}
    emission = {"no": [0.8, 0.2], "yes": [0.1, 0.9]}
    cpts = {rain[0]: [0.5, 0.5], **dict.fromkeys(rain[1:], transition), **dict.fromkeys(seen, emission)}
    edges = [*pairwise(rain), *zip(rain[1:], seen, strict=True)]
    return bayesian_network(edges, states=dict.fromkeys(cpts, ("no", "yes")), cpts=cpts)


def ising_4x4() -> Model:
    """The Ising model on a 4 x 4 lattice with free borders, coupling 0.4 and field 0.1.

    The infinite lattice is critical at coupling log(1 + sqrt(2)) / 2 = 0.4407.

    Source: Ising, Beitrag zur Theorie des Ferromagnetismus, 1925.
    """
    return ising((4, 4), coupling=0.4, field=0.1)


_MODELS: dict[str, Callable[[], Model]] = {
    make.__name__: make
    for make in (
        factors_002, chain_001, tree_001, field_003, sprinkler, student, asia, misconception, umbrella, ising_4x4,
    )
}  # fmt: skip
BUNDLED: tuple[str, ...] = tuple(_MODELS)


def bundled(name: str) -> Model:
    """A bundled model by name; `BUNDLED` has the names.

    factors_002, chain_001, tree_001, field_003   the examples of the seeds
    sprinkler, student, asia                      Bayesian networks
    misconception, ising_4x4                      Markov networks with cycles
    umbrella                                      a hidden Markov model

    >>> import besag
    >>> student = besag.data.bundled("student")
    >>> student.marginals(evidence={"grade": "g3"})["intelligence"].round(3)
    array([0.921, 0.079])
    """
    if name not in _MODELS:
        raise ModelError(f"no bundled model is named {name!r}; there are {', '.join(BUNDLED)}")
    return _MODELS[name]()
