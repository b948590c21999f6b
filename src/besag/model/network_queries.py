"""The methods of a Model that are about its directed graph and its CPTs: one-line delegations, as in `queries`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

from besag.arrays import Array

if TYPE_CHECKING:
    import networkx as nx

    from besag.model.model import Model


class NetworkQueries:
    """The graph of a Bayesian network, its CPTs, and other networks made of it."""

    __slots__ = ()

    def _model(self) -> Model:
        return cast("Model", self)

    def cpt(self, name: str) -> Array:
        """The conditional probability table of a variable: axes model.parents(name), then the variable itself."""
        from besag.model.bayes import cpt

        return cpt(self._model(), name)

    def with_cpt(self, name: str, table: Any) -> Model:
        """The same network with another CPT, from an array, a DataFrame or a dict; rows must sum to one within 1e-6.

        A DataFrame has the parents' states as index (a MultiIndex for several parents) and the states as columns. A
        dict is {states of the parents: row}, or {state: probability} without parents; a row is a list or {state:
        probability}.

        >>> import besag
        >>> model = besag.bayesian_network("A -> B").with_cpt("B", {"0": [0.9, 0.1], "1": {"0": 0.3, "1": 0.7}})
        >>> model.cpt("B").round(6)
        array([[0.9, 0.1],
               [0.3, 0.7]])
        """
        from besag.model.bayes import with_cpts

        return with_cpts(self._model(), {name: table})

    def do(self, interventions: Mapping[str, object]) -> Model:
        """The network under an intervention: the variables lose their parents and take the given states.

        >>> import besag
        >>> model = besag.data.bundled("sprinkler")
        >>> model.do({"sprinkler": "on"}).marginals()["cloudy"]
        array([0.5, 0.5])
        """
        from besag.model.bayes import do

        return do(self._model(), interventions)

    def with_noisy_or(self, name: str, causes: Mapping[str, float], leak: float = 0.0, on: str | None = None) -> Model:
        """The network in which `name` has these parents, and is on where one of them makes it so, or the leak does.

        p(off | parents) = (1 - leak) prod over the parents i that are on of (1 - p_i): p_i is what parent i does alone,
        without the leak. All are binary; on: the state that means so in all of them, by default the second of each. No
        table is made of it.

        >>> import besag
        >>> model = besag.bayesian_network("flu; cold; fever").with_noisy_or(
        ...     "fever", {"flu": 0.8, "cold": 0.3}, leak=0.01
        ... )
        >>> model.cpt("fever")[..., 1].round(4)
        array([[0.01  , 0.307 ],
               [0.802 , 0.8614]])
        """
        from besag.model.bayes import with_noisy_binary

        return with_noisy_binary(self._model(), name, causes, leak, on, "with_noisy_or")

    def with_noisy_and(self, name: str, causes: Mapping[str, float], leak: float = 0.0, on: str | None = None) -> Model:
        """The network in which `name` has these parents, and is off where one that is off, or the leak, makes it so.

        p(on | parents) = (1 - leak) prod over the parents i that are off of (1 - p_i): the noisy-OR, all states turned.

        >>> import besag
        >>> model = besag.bayesian_network("pump; power; flow").with_noisy_and("flow", {"pump": 0.9, "power": 1.0})
        >>> model.cpt("flow")[..., 1].round(4)
        array([[0. , 0.1],
               [0. , 1. ]])
        """
        from besag.model.bayes import with_noisy_binary

        return with_noisy_binary(self._model(), name, causes, leak, on, "with_noisy_and")

    def with_noisy_max(
        self, name: str, causes: Mapping[str, Any], leak: Any = None, weakest: str | None = None
    ) -> Model:
        """The network in which `name` has these parents, and is the strongest of an effect of each and a leak.

        causes: {parent: table}, the distribution of its effect on `name` for each of its states, as a CPT. leak: a
        distribution of one more effect. weakest: the first state of `name` or its last, which is no effect; the others
        grow stronger from there. p(name not stronger than y | parents) is the product of that of the effects.

        >>> import besag
        >>> model = besag.bayesian_network("A; B; pain[none,weak,strong]")
        >>> effects = {"A": [[1, 0, 0], [0.5, 0.3, 0.2]], "B": [[1, 0, 0], [0.1, 0.9, 0]]}
        >>> model.with_noisy_max("pain", effects).cpt("pain")[1, 1].round(3)
        array([0.05, 0.75, 0.2 ])
        """
        from besag.model.bayes import with_noisy_max

        return with_noisy_max(self._model(), name, causes, leak, weakest)

    def parents(self, name: str) -> list[str]:
        """The parents of a variable, in the order of its table's axes."""
        from besag.model.dag import parents_of

        model = self._model()
        return model.variables.names_at(parents_of(model)[model.variables.index(name)])

    def children(self, name: str) -> list[str]:
        """The children of a variable."""
        from besag.model.dag import children_of

        model = self._model()
        return model.variables.names_at(children_of(model, model.variables.index(name)))

    def topological_order(self) -> list[str]:
        """All variables, parents before children."""
        from besag.model.dag import topological_order

        return self._model().variables.names_at(topological_order(self._model()))

    def markov_blanket(self, name: str) -> list[str]:
        """The variables given which `name` is independent of all others: those it shares a factor with.

        >>> import besag
        >>> besag.bayesian_network("A -> C <- B; C -> D").markov_blanket("A")
        ['C', 'B']
        """
        from besag.model.dag import markov_blanket

        return markov_blanket(self._model(), name)

    def d_separated(self, a: str | Sequence[str], b: str | Sequence[str], given: Sequence[str] = ()) -> bool:
        """Whether a and b are d-separated given some variables.

        >>> import besag
        >>> collider = besag.bayesian_network("A -> C <- B")
        >>> collider.d_separated("A", "B"), collider.d_separated("A", "B", given=["C"])
        (True, False)
        """
        from besag.model.dag import d_separated

        model = self._model()
        sets = [[x] if isinstance(x, (str, int)) else x for x in (a, b, given)]
        return d_separated(model, *([model.variables.index(name) for name in names] for names in sets))

    def to_networkx(self, kind: Literal["dag", "moral", "factor", "junction_tree"] | None = None) -> nx.Graph[Any]:
        """A networkx graph: the directed one, the moral one, the bipartite factor graph, or the tree of cliques.

        By default the directed graph of a Bayesian network, the moral graph of another model.
        """
        from besag.model.networks import to_networkx

        return to_networkx(self._model(), kind or ("dag" if self._model().is_bayesian_network else "moral"))
