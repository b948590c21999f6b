"""UAI models: every branch of the reader on small files."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import besag
from besag.errors import LossWarning, ParseError
from besag.io import load
from besag.io.shared.files import CHUNK
from tests.io.helpers import tables

Write = Callable[..., Path]

MARKOV = "MARKOV 3  2 3 2  3  2 1 0  1 2  2 2 0  6 1 2 3 4 5 6  2 0 .5  4 1e0 2E-1 +3 4."
BAYES = "BAYES 2  2 3  2  2 0 1  1 0  6 .2 .3 .5 1 0 0  2 .25 .75"


# Models --------------------------------------------------------------------------------------------------------------


def test_markov(write: Write) -> None:
    model = load(write("a.uai", MARKOV))
    assert [v.name for v in model.variables] == ["0", "1", "2"]
    assert model.variables[1].states == ("0", "1", "2")
    assert not model.is_bayesian_network
    expected = [(["1", "0"], [[1, 2], [3, 4], [5, 6]]), (["2"], [0, 0.5]), (["2", "0"], [[1, 0.2], [3, 4]])]
    for (scope, table), (names, weights) in zip(tables(model), expected, strict=True):
        assert scope == names
        np.testing.assert_allclose(table, weights, rtol=1e-15)
    assert model.support is not None
    assert (~model.support).sum() == 1


def test_markov_is_what_the_builder_makes(write: Write) -> None:
    factors = [((1, 0), [[1, 2], [3, 4], [5, 6]]), ((2,), [0, 0.5]), ((2, 0), [[1, 0.2], [3, 4]])]
    built = besag.markov_network([2, 3, 2], factors, given="weight")
    assert load(write("a.uai", MARKOV)).log_partition() == pytest.approx(built.log_partition(), rel=1e-14)


def test_bayes(write: Write) -> None:
    model = load(write("a.uai", BAYES))
    assert model.is_bayesian_network
    assert model.parents("1") == ["0"]
    np.testing.assert_allclose(model.cpt("1"), [[0.2, 0.3, 0.5], [1, 0, 0]], rtol=1e-15)
    assert [scope for scope, _ in tables(model)] == [["0", "1"], ["0"]]  # the order of the file


def test_rows_are_normalised(write: Write) -> None:
    model = load(write("a.uai", "BAYES 1 2 1 1 0 2 0.3333 0.6660"))
    np.testing.assert_allclose(model.cpt("0"), np.array([0.3333, 0.6660]) / 0.9993, rtol=1e-15)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ("1 0", "1 0 .5 .4", r"a\.uai:9: function 1: row 0=1 of the CPT of '1' sums to 0.9, not 1; .* Markov network"),
        (".85 .09", "1 0 .5 .4", r"a\.uai:7: function 0: the CPT of '0' sums to 0.94, not 1"),
        ("1 0", "1 0 0 0", r"a\.uai:9: function 1: row 0=1 of the CPT of '1' sums to 0, not 1"),
        ("2 3", "1 0 1 0", r"a\.uai:7: function 0: the CPT of '0' must hold probabilities"),
    ],
)
def test_rows_that_are_far_off_make_a_markov_network(write: Write, first: str, second: str, message: str) -> None:
    with pytest.warns(LossWarning, match=message) as told:
        model = load(write("a.uai", f"BAYES\n2\n2 2\n2\n1 0\n2 0 1\n2 {first}\n4\n{second}"))
    assert len(told) == 1
    assert not model.is_bayesian_network
    one, two = np.array(first.split(), float), np.array(second.split(), float).reshape(2, 2)
    for (_, table), expected in zip(tables(model), (one, two), strict=True):
        np.testing.assert_allclose(table, expected, rtol=1e-15)
    assert model.log_partition() == pytest.approx(np.log((one @ two).sum()), rel=1e-14)


@pytest.mark.parametrize("text", [MARKOV, BAYES])
@pytest.mark.parametrize("more", ["9", "1 0 1", "EVIDENCE 1\n0 1", "x", "1e5 2 nan"])
def test_what_follows_the_tables_is_ignored(write: Write, text: str, more: str) -> None:
    whole = load(write("a.uai", text))
    with pytest.warns(
        LossWarning, match=r"a\.uai:3: everything from here on, after the last table, is ignored"
    ) as told:
        model = load(write("a.uai", f"{text}\n\n{more}\n"))
    assert len(told) == 1
    np.testing.assert_array_equal(model.theta, whole.theta)


@pytest.mark.parametrize("text", [MARKOV.replace(" ", "\r\n"), MARKOV.replace(" ", "\t \n"), MARKOV.lower()])
def test_white_space_and_case(write: Write, text: str) -> None:
    assert len(load(write("a.uai", text)).variables) == 3


def test_comments(write: Write) -> None:
    model = load(write("a.uai", "# an example\nmarkov # kind\n1 2 # sizes\n#\n1\n1 0\n2 1 3 # weights"))
    np.testing.assert_allclose(tables(model)[0][1], [1, 3], rtol=1e-15)


def test_numbers_are_correctly_rounded(write: Write) -> None:
    text = "0.1234567890123456789 2.2250738585072014e-308 1e-320 9007199254740993"
    model = load(write("a.uai", f"MARKOV 1 4 1 1 0 4 {text}"))
    np.testing.assert_array_equal(model.theta, -np.log([float(word) for word in text.split()]))


def test_a_model_without_functions(write: Write) -> None:
    model = load(write("a.uai", "MARKOV 2 2 3 0"))
    assert model.n_factors == 0
    assert model.log_partition() == pytest.approx(np.log(6))


def test_many_functions_of_many_shapes_keep_their_order(write: Write) -> None:
    rng = np.random.default_rng(0)
    cards = rng.integers(1, 5, 50)
    scopes = [rng.permutation(50)[: rng.integers(1, 4)] for _ in range(2000)]
    weights = [rng.random(cards[scope]) for scope in scopes]
    words = ["MARKOV", 50, *cards, len(scopes)]
    for scope in scopes:
        words += [len(scope), *scope]
    for table in weights:
        words += [table.size, *(repr(float(w)) for w in table.reshape(-1))]
    text = " ".join(map(str, words))
    assert len(text) > 2 * CHUNK
    found = tables(load(write("a.uai", text)))
    for (scope, table), names, expected in zip(found, scopes, weights, strict=True):
        assert scope == [str(v) for v in names]
        np.testing.assert_allclose(table, expected, rtol=1e-14)


# Constants -----------------------------------------------------------------------------------------------------------


def test_constants_are_folded_into_the_first_factor(write: Write) -> None:
    model = load(write("a.uai", "MARKOV 2 2 2  4  0  1 1  0  2 0 1  1 3  2 1 0  1 5  4 1 2 3 4"))
    (first, unary), (second, pair) = tables(model)
    assert (first, second) == (["1"], ["0", "1"])
    np.testing.assert_allclose(unary, [15, 0], rtol=1e-14)
    np.testing.assert_allclose(pair, [[1, 2], [3, 4]], rtol=1e-15)


def test_constants_do_not_underflow(write: Write) -> None:
    model = load(write("a.uai", "MARKOV 1 2  3  0  0  1 0  1 1e-300  1 1e-300  2 1 1"))
    assert model.log_partition() == pytest.approx(np.log(2) - 600 * np.log(10))


def test_a_constant_alone_becomes_a_unary_factor(write: Write) -> None:
    model = load(write("a.uai", "MARKOV 2 3 2 1 0 1 7"))
    assert tables(model)[0][0] == ["0"]
    assert model.log_partition() == pytest.approx(np.log(42))


def test_the_constant_zero_rules_everything_out(write: Write) -> None:
    model = load(write("a.uai", "MARKOV 1 2 2 1 0 0 2 1 1 1 0"))
    assert model.support is not None
    assert not model.support.any()


# Errors --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("POTTS 2", "a.uai:1: expected BAYES or MARKOV, got 'POTTS'"),
        ("# only\n# comments", "a.uai:1: expected BAYES or MARKOV, got nothing"),
        ("MARKOV", "a.uai:1: expected the number of variables, but the file ends"),
        ("MARKOV\n0 0", "a.uai:2: expected the number of variables, an integer from 1 to 2, got 0"),
        ("MARKOV\n1e18 2", "a.uai:2: expected the number of variables, an integer from 1 to 2, got 1e.18"),
        ("MARKOV\n2.5 2", "expected the number of variables, an integer"),
        ("MARKOV\n3\n2 2", "a.uai:3: expected the cardinality of variable 2, but the file ends"),
        ("MARKOV\n2\n2 0 1", "a.uai:3: expected the cardinality of variable 1, an integer from 1 to .*, got 0"),
        ("MARKOV\n2\n2 1.5 1", "expected the cardinality of variable 1, an integer"),
        ("MARKOV\n2\n2 nan 1", "expected the cardinality of variable 1, an integer .* got nan"),
        ("MARKOV\n2\n2 1000000000 0", "a.uai:3: variable 1 has 1000000000 states, but the file has 4 numbers"),
        ("MARKOV\n1\n2", "expected the number of functions, but the file ends"),
        ("MARKOV\n1\n2\n-1", "a.uai:4: expected the number of functions, an integer from 0 to 3, got -1"),
        ("MARKOV\n1\n2\n1", "expected the number of variables of function 0, but the file ends"),
        ("MARKOV\n1\n2\n1\n2 0 0", "a.uai:5: expected the number of variables of function 0, .* from 0 to 1, got 2"),
        ("MARKOV\n2\n2 2\n1\n2 0", "a.uai:5: the file ends in the scope of function 0"),
        ("MARKOV\n2\n2 2\n1\n2 0 7\n4", "a.uai:5: expected a variable in the scope of function 0, .*1, got 7"),
        ("MARKOV\n2\n2 2\n1\n2 0 0.5\n4", "expected a variable in the scope of function 0"),
        ("MARKOV\n2\n2 2\n1\n2 1 1\n4 1 1 1 1", "a.uai:5: the scope of function 0 repeats a variable"),
        ("MARKOV\n2\n2 2\n1\n2 0 1\n3\n1 1 1", "a.uai:6: expected the size of the table of function 0, 4, got 3"),
        ("MARKOV\n1\n2\n2\n1 0\n1 0\n2 1 1\n2 1", "a.uai:8: the file ends in the table of function 1, .* 2 entries"),
        ("MARKOV\n1\n2\n2\n1 0\n1 0\n2 1 1", "a.uai:7: the file ends in the table of function 1"),
        ("MARKOV\n1\n2\n1\n1 0\n2\n1 -1", "a.uai:7: function 0: weights must be finite and not negative, got -1"),
        ("MARKOV\n1\n2\n1\n1 0\n2\n1 inf", "function 0: weights must be finite and not negative, got inf"),
        ("MARKOV\n1\n2\n1\n1 0\n2\n1 nan", "function 0: weights must be finite"),
        ("MARKOV\n1\n2\n1\n1 0\n2\n1 x", "a.uai:7: expected a number, got 'x'"),
        ("MARKOV\n1\n2\n1\n1 0\n2\n1 1_0", "a.uai:7: expected a number, got '1_0'"),
        ("MARKOV\n1\n2\n1\n1 0\n2\n1 1.5-2", "expected a number, got '1.5-2'"),
        ("BAYES\n1\n2\n1\n0\n1 1", "a.uai:5: function 0 has an empty scope"),
        ("BAYES\n2\n2 2\n2\n1 0\n1 0\n2 1 0\n2 1 0", "a.uai:6: variable 0 has two CPTs, functions 0 and 1"),
        ("BAYES\n2\n2 2\n1\n1 0\n2 1 0", "a.uai:4: variable 1 has no CPT"),
        ("BAYES\n2\n2 2\n2\n2 0 1\n2 1 0\n4 1 0 1 0\n4 1 0 1 0", "a.uai:5: the edges have a cycle: 0 -> 1 -> 0"),
    ],
)
def test_errors(write: Write, text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        load(write("a.uai", text))


def test_absurd_tables_are_refused_before_they_are_made(write: Write) -> None:
    n = 50
    text = f"MARKOV {n} {'1000 ' * n} 1 {n} {' '.join(map(str, range(n)))} 1e150"
    with pytest.raises(ParseError, match="the file ends in the table of function 0"):
        load(write("a.uai", text))
    with pytest.raises(ParseError, match="expected the number of variables of function 0, an integer from 0 to 60"):
        load(write("a.uai", f"MARKOV 61 {'1 ' * 61} 1 61 {' '.join(map(str, range(61)))} 1 1"))


def test_the_line_of_an_error_far_into_the_file(write: Write) -> None:
    text = "MARKOV 1 30000 1 1 0 30000\n" + "0.125\n" * 25000 + "-3\n" + "0.5\n" * 4999
    with pytest.raises(ParseError, match=r"a\.uai:25002: function 0: weights must be finite .* got -3"):
        load(write("a.uai", text))
