"""The query methods of a Model: one-line delegations to the verbs, imported inside the method.

All verbs take the same options: see `besag.query.run.Options`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from besag.arrays import Array
from besag.model.network_queries import NetworkQueries
from besag.model.variable import Variable

if TYPE_CHECKING:
    import pandas as pd

    from besag.graph.compile import Structure
    from besag.infer.result import Result
    from besag.model.model import Model
    from besag.query.cost import Cost
    from besag.query.estimate import ArrayEstimate, Estimate
    from besag.query.run import Options
    from besag.query.session import Session
    from besag.query.tree_view import JunctionTreeView


class Queries(NetworkQueries):
    """The verbs of a Model."""

    __slots__ = ()

    def marginals(
        self, targets: Sequence[str] | str | Structure | None = None, evidence: Any = None, **options: Unpack[Options]
    ) -> Result:
        """The marginals p(y_v | evidence) of all variables, or of the targets, 002 (24).

        evidence: {name: state}, {name: [allowed states]}, {name: {state: likelihood}}, or a DataFrame with a row for
        each query. StructuredData in place of targets or evidence asks about its graph, see `with_data`. Options, as
        for every verb: engine="auto", init=None, time_limit=None, memory_limit=None, seed=0, n_threads=None,
        progress=False, trace=False.

        >>> import besag
        >>> model = besag.data.bundled("sprinkler")
        >>> model.marginals(evidence={"wet_grass": "yes"})["rain"].round(4)
        array([0.2921, 0.7079])
        """
        from besag.query.verbs import marginals

        return marginals(self._model(), targets, evidence, options)

    def map(self, evidence: Any = None, k: int = 1, **options: Unpack[Options]) -> Result:
        """The labelling of least energy, 002 (38), or the k best of them; of StructuredData x, 004's F(x; theta).

        r.log_probability is its log p(y | x), the confidence of 004.

        >>> import besag
        >>> besag.data.bundled("misconception").map().assignment
        {'A': '0', 'B': '1', 'C': '1', 'D': '0'}
        """
        from besag.query.verbs import map_

        return map_(self._model(), evidence, k, options)

    def marginal_map(self, targets: Sequence[str], evidence: Any = None, **options: Unpack[Options]) -> Result:
        """The most probable joint state of the targets, all other variables summed out."""
        from besag.query.verbs import marginal_map

        return marginal_map(self._model(), targets, evidence, options)

    def joint(self, targets: Sequence[str], evidence: Any = None, **options: Unpack[Options]) -> Array:
        """p(targets | evidence) as an array, axes in the order asked.

        Where inference is approximate it is a product of marginals, each under the states before it.

        >>> import besag
        >>> besag.data.bundled("sprinkler").joint(["rain", "wet_grass"]).round(4)
        array([[0.311 , 0.189 ],
               [0.0419, 0.4581]])
        """
        from besag.query.verbs import joint

        return joint(self._model(), targets, evidence, options)

    def log_partition(self, evidence: Any = None, **options: Unpack[Options]) -> Any:
        """log Z, 002 (10): a number, (B,) for a batch; for a Bayesian network log P(evidence).

        Of StructuredData it is log Z(x, theta).
        """
        from besag.query.verbs import log_partition

        return log_partition(self._model(), evidence, options)

    def log_probability(self, assignment_or_frame: Any, **options: Unpack[Options]) -> Any:
        """log p of an assignment, or of every row of a frame; variables that are not given are summed out.

        Where inference is approximate, p of up to 16 variables is a product of marginals, each under the states before
        it, so that it sums to one; else it is the difference of two estimates of log Z, or 0 where that is above 0. Of
        labelled StructuredData it is log p(y | x), 002 (11).

        >>> import besag
        >>> round(besag.data.bundled("sprinkler").log_probability({"rain": "yes"}), 4)
        -0.6931
        """
        from besag.query.probability import log_probability

        return log_probability(self._model(), assignment_or_frame, options)

    def sample(self, n: int = 1, evidence: Any = None, **options: Unpack[Options]) -> pd.DataFrame:
        """n draws from p(y | evidence): a DataFrame of Categoricals in state order.

        >>> import besag
        >>> besag.data.bundled("sprinkler").sample(3, evidence={"rain": "yes"}, seed=1)["rain"].tolist()
        ['yes', 'yes', 'yes']
        """
        from besag.query.verbs import sample

        return sample(self._model(), n, evidence, options)

    def energy(self, assignment: Any) -> Any:
        """H of an assignment {name: state}, of the rows of a frame, or of int codes in the model's shape.

        >>> import besag
        >>> besag.markov_network({"A": 2}, [("A", [0.5, 2.0])], given="energy").energy({"A": "1"})
        2.0
        """
        from besag.query.verbs import energy

        return energy(self._model(), assignment)

    def to_frame(self, evidence: Any = None, **options: Unpack[Options]) -> pd.DataFrame:
        """Every labelling with its energy H and probability p; TooLargeError above 2**16 of them.

        The columns are named H_ and p_ if there are variables named H or p.
        """
        from besag.query.verbs import to_frame

        return to_frame(self._model(), evidence, options)

    def expect(
        self,
        h: Callable[[dict[str, str]], Any],
        evidence: Any = None,
        n_samples: int | None = None,
        **options: Unpack[Options],
    ) -> Estimate | ArrayEstimate:
        """E[h(y) | evidence] with its standard error, 001; h takes an assignment {name: state}, returns numbers.

        Exact, by enumeration, where evidence leaves at most 2**16 labellings. Beyond that, or with n_samples, it is the
        mean (1/S) sum_s h(y^(s)) over samples: of exact engines they are independent (4,000 if n_samples is not given),
        of gibbs n_samples of each chain. The answer is a float, or an array if h returns one, with the attributes
        standard_error (0 where exact, None where unknown) and bound ("exact" or "estimate").

        >>> import besag
        >>> model = besag.data.bundled("sprinkler")
        >>> exactly = model.expect(lambda y: y["rain"] == "yes", {"wet_grass": "yes"})
        >>> round(exactly, 4), exactly.standard_error, exactly.bound
        (0.7079, 0.0, 'exact')
        >>> model.expect(lambda y: y["rain"] == "yes", {"wet_grass": "yes"}, n_samples=1000)
        0.706 ± 0.014
        """
        from besag.query.expect import expect

        return expect(self._model(), h, evidence, n_samples, options)

    def moments(self, evidence: Any = None, **options: Unpack[Options]) -> Array:
        """sum over factors of E[phi_f], (P,): minus the gradient of log Z by theta, 002 (20)."""
        from besag.query.verbs import moments

        return moments(self._model(), evidence, options)

    def covariance(self, evidence: Any = None, **options: Unpack[Options]) -> ArrayEstimate:
        """The covariance of the statistics, (P, P): the Hessian of log Z by theta, 002 (21).

        With engine gibbs it is that of its samples, with their standard_error; bound says "exact" or "estimate".

        >>> import besag
        >>> model = besag.ising((2, 2), 0.4, 0.1)
        >>> model.covariance().round(2)
        array([[4.5 , 1.31],
               [1.31, 8.06]])
        >>> model.covariance(engine="gibbs", seed=1)[0, 0]
        4.512 ± 0.087
        """
        from besag.query.covariance import covariance

        return covariance(self._model(), evidence, options)

    def entropy(self, evidence: Any = None, **options: Unpack[Options]) -> Estimate:
        """-sum p log p of p(y | evidence), in nats: log Z + E[H], from one inference.

        The answer is a float whose `bound` is "exact", or "estimate" where the inference is approximate.

        >>> import besag
        >>> round(besag.markov_network([2], [((0,), [0.0, 0.0])]).entropy(), 6)
        0.693147
        """
        from besag.query.verbs import entropy

        return entropy(self._model(), evidence, options)

    def information(self, target: str, evidence: Any = None, **options: Unpack[Options]) -> pd.DataFrame:
        """How much observing each other variable X would tell about the target: I(target; X | evidence), in nats.

        I = sum_t P(t | e) sum_x P(x | t, e) log(P(x | t, e) / P(x | e)). A row for every unobserved X, largest first:
        information, entropy H(target | e), expected_entropy once X is known, and the share I / H (0 where H is).
        I is never negative; a sum within rounding of zero, either side, is given as 0.

        >>> import besag
        >>> besag.data.bundled("sprinkler").information("rain", {"wet_grass": "yes"}).round(4)
                   information  entropy  expected_entropy   share
        variable
        sprinkler       0.3345    0.604            0.2695  0.5538
        cloudy          0.2654    0.604            0.3386  0.4393
        """
        from besag.query.analysis import information

        return information(self._model(), target, evidence, options)

    def impact(self, target: str, evidence: Any, **options: Unpack[Options]) -> pd.DataFrame:
        """How much each observation o has changed the target, and whether it agrees with the rest of the evidence.

        kl = KL(P(target | e) || P(target | e without o)) in nats and total_variation of the two; kl_alone and
        total_variation_alone of P(target | o) against P(target); conflict = log(P(o) P(e without o) / P(e)), positive
        where o contradicts the rest; then P(target | e without o) and P(target | o) by state. Largest kl first. attrs
        has the posterior, log_probability = log P(e), and Jensen's conflict = log(prod_o P(o) / P(e)) of all evidence.

        >>> import besag
        >>> frame = besag.data.bundled("asia").impact("lung", {"xray": "yes", "smoke": "no"})
        >>> frame[["observed", "kl", "kl_alone", "conflict"]].round(4)
                 observed      kl  kl_alone  conflict
        variable
        smoke          no  0.2682    0.0290    0.4708
        xray          yes  0.2548    0.7535    0.4708
        """
        from besag.query.analysis import impact

        return impact(self._model(), target, evidence, options)

    def sensitivity(self, target: str, state: str, evidence: Any = None, **options: Unpack[Options]) -> pd.DataFrame:
        """How P(target = state | evidence) of a Bayesian network changes with each CPT entry theta_{x|u}.

        A row for each entry: variable and state (x), given (u), value (theta), and two derivatives. `derivative`: by
        this entry with all others fixed, (P(s, x, u, e) - P(s | e) P(x, u, e)) / (theta P(e)), or its limit if theta =
        0. `covaried`: the others of its row shrink in proportion, so that the row still sums to one; evenly if they are
        all 0. Sorted by the size of `covaried`, largest first. Takes one more propagation for each CPT with zeros.

        >>> import besag
        >>> besag.data.bundled("sprinkler").sensitivity("rain", "yes", {"wet_grass": "yes"}).round(4).head(3)
          variable state      given  value  derivative  covaried
        0   cloudy    no               0.5     -0.3085   -0.6171
        1   cloudy   yes               0.5      0.3085    0.6171
        2     rain    no  cloudy=no    0.8     -0.2462   -0.4594
        """
        from besag.query.sensitivity import sensitivity

        return sensitivity(self._model(), target, state, evidence, options)

    def cost(self, evidence: Any = None, **options: Unpack[Options]) -> Cost:
        """The cost of all marginals: width, table entries, bytes, seconds, the order, the engine, and why.

        Nothing large is allocated, and nothing is refused: the answer says what does not fit. print() shows a table.

        >>> import besag
        >>> grid = besag.ising((6, 6))
        >>> grid.cost().width, grid.cost({"2,2": 1, "3,3": 1}).width
        (6, 4)
        """
        from besag.query.cost import cost

        return cost(self._model(), evidence, options)

    def junction_tree(self, evidence: Any = None) -> JunctionTreeView:
        """The tree of cliques of exact inference: cliques, separators, fill_in, width, order; print() shows a table.

        >>> import besag
        >>> tree = besag.bayesian_network("A -> B; A -> C; B -> D <- C").junction_tree()
        >>> tree.cliques, tree.fill_in
        ([('A', 'B', 'C'), ('B', 'C', 'D')], [])
        >>> tree.separators
        [Separator(clique=0, parent=1, names=('B', 'C'))]
        """
        from besag.query.tree_view import junction_tree

        return junction_tree(self._model(), evidence)

    def steps(self, evidence: Any = None, **options: Unpack[Options]) -> Iterator[Result]:
        """A Result for each step of an iterative engine; for tree and junction_tree a step is a message.

        Each has the data of trace=True: r.trace so far and, with engine tree, junction_tree or bp, r.messages. With
        trace="messages" those of bp are of all iterations so far.

        >>> import besag
        >>> step = next(besag.data.bundled("sprinkler").steps(engine="junction_tree"))
        >>> step.messages[["source", "state", "value"]].round(4)
                          source    state  value
        0  cloudy,sprinkler,rain   off,no   0.29
        1  cloudy,sprinkler,rain  off,yes   0.41
        2  cloudy,sprinkler,rain    on,no   0.21
        3  cloudy,sprinkler,rain   on,yes   0.09
        """
        from besag.query.verbs import steps

        return steps(self._model(), evidence, options)

    def session(self, evidence: Any = None, **options: Unpack[Options]) -> Session:
        """A session of changing evidence: observe, forget, ask again; only messages that change are computed again.

        evidence: the initial evidence, {name: state}.

        >>> import besag
        >>> s = besag.data.bundled("sprinkler").session()
        >>> s.observe(wet_grass="yes")
        >>> s["rain"].round(4)
        array([0.2921, 0.7079])
        """
        from besag.query.session import Session

        session = Session(self._model(), options)
        session.observe(evidence)
        return session

    def merged(self, groups: Sequence[Sequence[str]], memory_limit: int | None = None) -> Model:
        """The same distribution with each group of variables made into one, 001: Y = (Y_i, Y_j, Y_m).

        Its states are all joint states, "a,b,c", the last variable fastest, so that r["i,j,m"].reshape(K_i, K_j, K_m)
        is p(y_i, y_j, y_m). A variable may be in several groups, such as the cliques of a junction tree: hard zeros
        between them then make its copies agree.

        >>> import besag
        >>> ring = besag.data.bundled("misconception")
        >>> chain = ring.merged([["A", "B", "C"]])
        >>> [variable.name for variable in chain.variables], chain.variable("A,B,C").states[:3]
        (['A,B,C', 'D'], ('0,0,0', '0,0,1', '0,1,0'))
        >>> chain.marginals(engine="tree")["A,B,C"].reshape(2, 2, 2).sum(axis=(1, 2)).round(4)
        array([0.8194, 0.1806])
        >>> ring.marginals()["A"].round(4)
        array([0.8194, 0.1806])
        """
        from besag.query.merged import merge

        return merge(self._model(), groups, memory_limit)

    def with_data(self, data: Structure) -> Model:
        """The same parameters on the factor graph and the attributes of StructuredData, by the names of templates.

        Labels are left aside. map, marginals, log_partition, sample, log_probability and energy take the data directly.

        >>> import besag
        >>> pixel, edge = besag.Template("pixel", (2,), n_inputs=1), besag.Template("edge", (2, 2))
        >>> def row(x):
        ...     groups = [besag.FactorGroup(pixel, [[i] for i in range(len(x))], inputs=[[value] for value in x])]
        ...     groups += [besag.FactorGroup(edge, [[i, i + 1] for i in range(len(x) - 1)])]
        ...     return besag.StructuredData([2] * len(x), groups)
        >>> small = row([0.0, 0.0])
        >>> model = besag.Model(small.variables, small.groups, [1.0, 0.0, 0.0, 0.5, 0.5, 0.0])
        >>> model.with_data(row([2.0, -1.0, -3.0, 0.1])).map().labels
        array([1, 0, 0, 0])
        >>> model.map(row([2.0, -1.0])).energy
        -0.5
        """
        from besag.model.on_data import with_data

        return with_data(self._model(), data)

    def condition(self, evidence: Any) -> Model:
        """p(y | evidence) as a Model of its own, on the same variables."""
        from besag.model.networks import condition

        return condition(self._model(), evidence)

    def variable(self, name: str) -> Variable:
        """The variable of this name.

        >>> import besag
        >>> besag.data.bundled("sprinkler").variable("rain").states
        ('no', 'yes')
        """
        variables = self._model().variables
        return variables[variables.index(name)]

    def effect(
        self, x: str, y: str, evidence: Mapping[str, object] | None = None, **options: Unpack[Options]
    ) -> pd.DataFrame:
        """p(y | do(x)): a row for each state of x, a column for each state of y.

        >>> import besag
        >>> besag.data.bundled("sprinkler").effect("sprinkler", "rain").round(4).loc["on"].tolist()
        [0.5, 0.5]
        """
        from besag.query.causal import effect

        return effect(self._model(), x, y, evidence, **options)

    def adjustment_sets(
        self, x: str, y: str, *, among: Iterable[str] | None = None, max_size: int | None = None
    ) -> list[tuple[str, ...]]:
        """The smallest sets of variables given which the dependence of y on x is the effect of x; [()]: none is needed.

        >>> import besag
        >>> besag.data.bundled("sprinkler").adjustment_sets("sprinkler", "wet_grass")
        [('cloudy',), ('rain',)]
        """
        from besag.query.causal import adjustment_sets

        return adjustment_sets(self._model(), x, y, among=among, max_size=max_size)
