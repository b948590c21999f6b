"""WCSP: every branch of the reader on small files, and published problems with known optima."""

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from besag.errors import LossWarning, ParseError
from besag.io import load
from besag.io.costs import wcsp
from besag.io.formats import Source
from besag.model.model import Model
from tests.io.mutations import attempt, mutated

Write = Callable[..., Path]

SMALL = b"""problem 3 3 6 22
2 3 2
2 0 1 1 3
0 0 5
1 2 12
1 1 0
# a shared function, and two that use it
-2 0 2 4 1
1 0 10
2 2 0 4 -1
1 1 0 3
0 1
1 2
2 3
0 7 0
3 2 1 0 0 1
1 2 0 9
"""


def energies(model: Model, number: int) -> np.ndarray:
    """The energies of one factor, +inf where there is a hard zero."""
    group, at = model.locate(number)
    row = int(group.inputs[at])
    start = model.layout[group.template.name].start + row * group.template.n_basis
    where = slice(start, start + group.template.n_basis)
    allowed = np.ones(1, np.bool_) if model.support is None else model.support[where]
    return np.where(allowed, model.theta[where], np.inf).reshape(group.template.shape)


def test_a_small_file(write: Write) -> None:
    model = load(write("a.wcsp", SMALL))
    assert [v.cardinality for v in model.variables] == [2, 3, 2]
    assert model.metadata["name"] == "problem"
    assert model.metadata["wcsp"]["upper_bound"] == "22"
    assert model.metadata["energy_limit"] == 22
    inf = np.inf
    np.testing.assert_array_equal(energies(model, 0), [[12, 8, 8], [8, 7, inf]])  # with the constant
    np.testing.assert_array_equal(energies(model, 1), [[4, 4], [inf, 4]])
    np.testing.assert_array_equal(energies(model, 2), [[4, 4], [inf, 4]])
    np.testing.assert_array_equal(energies(model, 3), [1, 2, 3])
    third = np.zeros((2, 3, 2))
    third[1, 2, 0] = inf  # 9, and 16 at the least for all others
    np.testing.assert_array_equal(energies(model, 4), third)
    scopes = [group.scopes[at].tolist() for group, at in map(model.locate, range(5))]
    assert scopes == [[0, 1], [0, 2], [2, 0], [1], [2, 1, 0]]


def test_energy_is_cost(write: Write) -> None:
    model = load(write("a.wcsp", SMALL))
    assert model.energy({"0": "0", "1": "2", "2": "1"}) == np.inf
    assert model.energy({"0": "0", "1": "2", "2": "0"}) == 1 + 4 + 4 + 3 + 7
    assert model.map(engine="exact").energy == 0 + 4 + 4 + 2 + 7


def test_the_bound_is_one_of_sums(write: Write) -> None:
    text = "p 2 2 3 {}\n2 2\n1 0 0 1\n1 3\n1 1 0 1\n1 3\n2 0 1 3 2\n0 0 5\n1 1 0"  # sums of 5, 6, 6 and 6
    model = load(write("a.wcsp", text.format(4)))
    np.testing.assert_array_equal(energies(model, 2), [[np.inf, 3], [3, 0]])
    with pytest.warns(LossWarning, match=r"the labelling found has an energy of 6, but .* of 4 or more"):
        assert model.map().energy == 6
    assert load(write("a.wcsp", text.format(6))).map().energy == 5


def test_a_constraint_is_hard_whatever_costs_are(write: Write) -> None:
    model = load(write("a.wcsp", "p 2 2 2 9\n2 2\n2 0 1 -1 = 0 0\n1 0 0 1\n1 -50"))
    np.testing.assert_array_equal(energies(model, 0), [[0, np.inf], [np.inf, 0]])


def test_shared_functions_share_a_row_of_theta(write: Write) -> None:
    model = load(write("a.wcsp", SMALL))
    group, _ = model.locate(1)
    assert group.inputs.tolist() == [0, 0]
    assert group.template.n_inputs == 1


def test_a_constant_is_not_added_to_what_another_function_shares(write: Write) -> None:
    model = load(write("a.wcsp", "p 2 2 3 9\n2 2\n-1 0 0 1\n1 2\n0 3 0\n1 1 0 -1"))
    np.testing.assert_array_equal(energies(model, 0), [3, 5])
    np.testing.assert_array_equal(energies(model, 1), [0, 2])


def test_constants_alone(write: Write) -> None:
    model = load(write("a.wcsp", "p 1 3 2 99\n3\n0 5 0\n0 0 1\n2"))
    assert model.map(engine="exact").energy == 7
    assert not load(write("a.wcsp", "p 1 3 2 99\n3\n0 99 0\n0 5 0")).support.any()  # type: ignore[union-attr]


def test_intervals_are_domains(write: Write) -> None:
    assert load(write("a.wcsp", "p 2 5 0 9\n-5 2")).variables[0].cardinality == 5


def test_by_content() -> None:
    assert load(io.BytesIO(SMALL)).n_factors == 5
    assert not wcsp.matches(b"MARKOV\n3\n2 2 2\n")
    assert not wcsp.matches(b'{"problem": 1 2 3 4\n')


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# nothing\n#", "expected the name of the problem, got nothing"),
        ("p", "expected the number of variables, but the file ends"),
        ("p 0 2 1 5", "expected the number of variables, an integer from 1 to 4, got 0"),
        ("p 9 2 1 5\n2", "a.wcsp:1: expected the number of variables, an integer from 1 to 5, got 9"),
        ("p 1 2 1", "a.wcsp:1: expected the upper bound of costs"),
        ("p 1 2 1 nan 2", "expected the upper bound of costs"),
        ("p 1 2 1 x", "a.wcsp:1: expected a number, got 'x'"),
        ("p 2 2 0 5\n2", "a.wcsp:2: expected the cardinality of variable 1, but the file ends"),
        ("p 2 2 0 5\n2 3", "a.wcsp:2: expected the cardinality of variable 1, an integer from 1 to 2, got 3"),
        ("p 1 2 0 5\n-3", "expected the cardinality of variable 0, an integer from 1 to 2, got -3"),
        ("p 1 2000000000 0 5\n2000000000", "a.wcsp:2: variable 0 has 2000000000 states, but the file has 5 numbers"),
        ("p 1 2 1 5\n2", "expected the number of variables of cost function 0, but the file ends"),
        ("p 1 2 1 5\n2\n2 0 0", "a.wcsp:3: expected the number of variables of cost function 0, .* -1 to 1, got 2"),
        ("p 1 2 1 5\n2\n1 1 0 0", "a.wcsp:3: expected a variable of cost function 0, an integer from 0 to 0, got 1"),
        ("p 2 2 1 5\n2 2\n2 1 1 0 0", "a.wcsp:3: cost function 0 names a variable twice"),
        ("p 1 2 1 5\n2\n1 0 0", "expected the number of tuples of cost function 0, but the file ends"),
        ("p 1 2 1 5\n2\n1 0 0 3\n0 1", "a.wcsp:4: the file ends in the 3 tuples of cost function 0"),
        ("p 1 2 1 5\n2\n1 0 0 1\n2 1", "a.wcsp:4: expected a state in a tuple of cost function 0, .* to 1, got 2"),
        ("p 1 2 1 5\n2\n1 0 0 1\n0.5 1", "expected a state in a tuple of cost function 0, an integer"),
        ("p 1 2 1 5\n2\n1 0 0 1\n0 nan", "a.wcsp:4: cost function 0: expected a cost, got nan"),
        ("p 1 2 1 5\n2\n1 0 -inf 0", "a.wcsp:3: cost function 0: expected a cost, got -inf"),
        ("p 1 2 1 5\n2\n1 0 0 -1", "a.wcsp:3: expected the number of tuples of cost function 0, an integer from 0 "),
        (
            "p 2 3 2 5\n2 3\n-1 0 0 0\n1 1 0 -1",
            r"a.wcsp:4: cost function 1 has cardinalities \(3,\), but .* 1 has \(2,\)",
        ),
        ("p 1 2 1 5\n2\n1 0 0 0\n7", "a.wcsp:4: expected the end of the file after 1 cost functions"),
        ("p 1 2 1 5\n2\n1 0 0 x", "a.wcsp:3: expected a number, got 'x'"),
        ("p 1 2 1 5\n2\n1 0 -1e301 0", "energies must be at most 1e.300"),
    ],
)
def test_errors(write: Write, text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        load(write("a.wcsp", text))


def test_absurd_tables_are_refused_before_they_are_made(write: Write) -> None:
    n = 40
    text = f"p {n} 100 1 5\n{'100 ' * n}\n{n} {' '.join(map(str, range(n)))} 0 0"
    with pytest.raises(ParseError, match=r"a\.wcsp:3: the table of cost function 0 has 1000.* entries, too many"):
        load(write("a.wcsp", text))
    many = "p 3 1000 900 5\n1000 1000 1000\n" + "2 0 1 0 0\n" * 900
    with pytest.raises(
        ParseError, match="the table of cost function 4 has 1000000 entries, too many for so short a file"
    ):
        load(write("a.wcsp", many))


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(mutated(SMALL, words=(b"salldiff var", b"-1 >= ", b"-1 ", b"-2 ", b"10 ")))
def test_mutations(data: bytes) -> None:
    attempt(wcsp.read, data)


def test_every_truncation() -> None:
    for end in range(len(SMALL)):
        attempt(wcsp.read, SMALL[:end])
    assert wcsp.read(Source(SMALL, "file")).n_factors == 5


# Constraints ---------------------------------------------------------------------------------------------------------

TOP = 100


def comparison(kept: Callable[[int, int], bool], miss: Callable[[int, int], int], most: int) -> Callable[..., float]:
    def cost(x: int, y: int) -> float:
        return 0 if kept(x, y) else miss(x, y) if miss(x, y) <= most else np.inf

    return cost


def absences(x: int, y: int) -> float:
    together = x < 4 and y < 3
    return np.inf if together and not (x >= y + 1 or y >= x + 2) else 5 * (x == 4) + 6 * (y == 3)


@pytest.mark.parametrize(
    ("line", "cost"),
    [
        ("2 0 1 -1 >= 1 2", comparison(lambda x, y: x >= y + 1, lambda x, y: y + 1 - x, 2)),
        ("2 0 1 -1 > -1 1", comparison(lambda x, y: x > y - 1, lambda x, y: y - x, 1)),
        ("2 0 1 -1 <= 1 0", comparison(lambda x, y: x <= y + 1, lambda x, y: x - y - 1, 0)),
        ("2 0 1 -1 < 2 3", comparison(lambda x, y: x < y + 2, lambda x, y: x - y - 1, 3)),
        ("2 0 1 -1 = 1 2", comparison(lambda x, y: x == y + 1, lambda x, y: abs(y + 1 - x), 2)),
        ("2 0 1 -1 disj 2 1 7", lambda x, y: 0 if x >= y + 1 or y >= x + 2 else 7),
        ("2 0 1 -1 disj 2 1 100", lambda x, y: 0 if x >= y + 1 or y >= x + 2 else np.inf),
        ("2 0 1 -1 sdisj 2 1 4 3 5 6", absences),
        ("3 0 1 2 -1 salldiff var 3", lambda x, y, z: 3 * (3 - len({x, y, z}))),
        ("3 0 1 2 -1 salldiff \t dec 3", lambda x, y, z: 3 * ((x == y) + (y == z) + (x == z))),
        ("3 0 1 2 -1 salldiff decbi 3", lambda x, y, z: 3 * ((x == y) + (y == z) + (x == z))),
        ("3 0 1 2 -1 salldiff\r\nvar 3", lambda x, y, z: 3 * (3 - len({x, y, z}))),
        ("1 2 -1 salldiff var 3", lambda z: 0),
    ],
)
def test_constraints(write: Write, line: str, cost: Callable[..., float]) -> None:
    """Their meaning, which toulbar2 confirms for all assignments of the lines without a top of 100 or one variable."""
    model = load(write("a.wcsp", f"p 3 5 2 {TOP}\n5 4 3\n{line}\n1 0 0 1 4 2\n"))
    shape = (5, 4, 3)[2:] if line.startswith("1") else (5, 4, 3)[: int(line[0])]
    expected = np.array([cost(*states) for states in np.ndindex(shape)]).reshape(shape)
    np.testing.assert_array_equal(energies(model, 0), expected)
    np.testing.assert_array_equal(energies(model, 1), [0, 0, 0, 0, 2])


def test_equal_constraints_share_a_table(write: Write) -> None:
    model = load(write("a.wcsp", "p 4 3 3 9\n3 3 3 2\n2 0 1 -1 >= 0 9\n2 1 2 -1 >= 0 9\n2 1 2 -1 >= 1 9\n"))
    assert (model.n_factors, len(model.theta)) == (3, 18)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("2 0 1 -1 sgcc var 3", "a.wcsp:3: expected a table or a constraint .*salldiff.*, got the global .* 'sgcc'"),
        ("3 0 1 2 -1 >= 1 2", "a.wcsp:3: cost function 0, >=: expected 2 variables, got 3"),
        ("2 0 1 -1 >= 1", "a.wcsp:3: cost function 0, >=: expected 2 numbers after it"),
        ("2 0 1 -1 >= 1 inf", "cost function 0, >=: expected 2 numbers after it"),
        ("2 0 1 -1 disj 1 < 3", "cost function 0, disj: expected 3 numbers after it"),
        ("2 0 1 -1 >= 1 2 3", "expected the end of the file after 1 cost functions"),
        ("2 0 1 0 >= 1 2", "a.wcsp:3: expected the number of tuples of cost function 0"),
        ("-2 0 1 -1 >= 1 2", "a.wcsp:3: expected the number of tuples of cost function 0"),
        ("2 0 >= -1 >= 1 2", "a.wcsp:3: expected a variable of cost function 0"),
        ("2 0 1 -1 disj 0 0 -inf", "cost function 0, disj: expected 3 numbers after it"),
        ("3 0 1 2 -1 salldiff dec -1e308", "a.wcsp:3: salldiff dec: expected costs, got"),
        ("3 0 1 2 -1\nsalldiff\nvar 3 7", "a.wcsp:5: expected the end of the file"),
    ],
)
def test_wrong_constraints(write: Write, line: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        load(write("a.wcsp", f"p 3 5 1 {TOP}\n5 4 3\n{line}\n"))


def test_a_constraint_on_many_variables_of_one_state(write: Write) -> None:
    n = 50
    text = f"p {n} 1 1 5000\n{'1 ' * n}\n{n} {' '.join(map(str, range(n)))} -1 salldiff dec 2"
    model = load(write("a.wcsp", text))
    assert model.energy({str(v): "0" for v in range(n)}) == n * (n - 1)


def test_constraints_that_are_too_large(write: Write) -> None:
    text = f"p 9 9 1 5\n{'9 ' * 9}\n9 {' '.join(map(str, range(9)))} -1 salldiff var 3"
    with pytest.raises(ParseError, match=r"a\.wcsp:3: .* would have 387420489 entries, more than the 16777216"):
        load(write("a.wcsp", text))


# Published problems --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "n_variables", "n_functions"),
    [
        ("505.wcsp.xz", 240, 2242),
        ("CELAR6-SUB0.wcsp.xz", 16, 207),
        ("GEOM40_6.wcsp.xz", 40, 78),
        ("example.wcsp.xz", 25, 63),
        ("oconnell.wcsp", 12, 15),
        ("pedigree1.wcsp.xz", 334, 577),
        ("scen06.wcsp.xz", 100, 1222),
        ("scen07.wcsp.xz", 200, 2665),
        ("zebra.wcsp", 25, 19),
    ],
)
def test_published_problems(data_dir: Path, name: str, n_variables: int, n_functions: int) -> None:
    model = load(data_dir / "toulbar2_instances" / name)
    assert (len(model.variables), model.n_factors) == (n_variables, n_functions)


@pytest.mark.parametrize(
    ("name", "optimum"),
    [("oconnell.wcsp", 1), ("zebra.wcsp", 0), ("GEOM40_6.wcsp.xz", 0), ("pedigree1.wcsp.xz", 76911689)],
)
def test_known_optima(data_dir: Path, name: str, optimum: int) -> None:
    model = load(data_dir / "toulbar2_instances" / name)
    best = model.map(engine="exact")
    assert best.energy == optimum
    assert model.energy(best.assignment) == optimum


def test_the_cost_of_a_known_solution(data_dir: Path) -> None:
    model = load(data_dir / "toulbar2_instances" / "example.wcsp.xz")
    states = [1, 0, 1, 2, 0, 2, 0, 4, 2, 0, 4, 1, 0, 0, 3, 0, 1, 1, 2, 4, 2, 1, 2, 4, 1]  # an optimum, by toulbar2
    assert model.energy({str(v): str(state) for v, state in enumerate(states)}) == 27


def test_latin_squares(data_dir: Path) -> None:
    model = load(data_dir / "toulbar2_instances" / "latin4.wcsp.xz")
    best = model.map(engine="exact")
    assert best.energy == model.energy(best.assignment) == 48
    count = model.with_theta(np.zeros_like(model.theta)).log_partition(engine="exact")
    assert count == pytest.approx(np.log(576))


def test_a_schedule(data_dir: Path) -> None:
    """Ten landings, none absent; and with the last one absent, whose cost counts in each of its nine constraints."""
    model = load(data_dir / "toulbar2_instances" / "10_1.wcsp")
    states = [243, 0, 445, 376, 530, 115, 314, 45, 169, 1030]  # an optimum, by toulbar2
    landings = {str(v): str(state) for v, state in enumerate(states)}
    assert model.energy(landings) == 0
    assert model.energy(landings | {"9": "1035"}) == 9 * 205
    assert model.energy(landings | {"1": "45"}) == np.inf
