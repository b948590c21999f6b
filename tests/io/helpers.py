"""Small tools of the tests of readers."""

import numpy as np

from besag.arrays import Array
from besag.model.model import Model


def tables(model: Model) -> list[tuple[list[str], Array]]:
    """The scope and the table of weights of each factor, in the model's order."""
    found = []
    for number in range(model.n_factors):
        group, at = model.locate(number)
        start = model.layout[group.template.name].start + int(group.inputs[at]) * group.template.n_basis
        where = slice(start, start + group.template.n_basis)
        weights = np.exp(-model.theta[where]) * (1.0 if model.support is None else model.support[where])
        found.append((model.variables.names_at(group.scopes[at]), weights.reshape(group.template.shape)))
    return found


def same_networks(one: Model, two: Model) -> None:
    """The same names, states, tables and metadata."""
    assert list(one.variables) == list(two.variables)
    assert one.metadata == two.metadata
    for a, b in zip(one.variables, two.variables, strict=True):
        assert a.metadata == b.metadata
        assert one.parents(a.name) == two.parents(b.name)
        np.testing.assert_allclose(one.cpt(a.name), two.cpt(b.name), rtol=0, atol=1e-14)


def encrypted(archive: bytes) -> bytes:
    """A zip archive whose members all say that they are encrypted."""
    data = bytearray(archive)
    for mark, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = data.find(mark)
        while at >= 0:
            data[at + flags] |= 1
            at = data.find(mark, at + 1)
    return bytes(data)
