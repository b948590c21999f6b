"""CRFsuite's models: files that CRFsuite wrote against its own words about them, and broken files.

tests/references/crfsuite has three models of python-crfsuite 0.9.12, and beside each what CRFsuite says of it:

    seen       only the transitions that the training data have
    unicode    all transitions and states; texts that are not ASCII; attributes with values
    sparse     an L1 penalty that takes away transitions, attributes and most states

They were made from the data and params in the same JSON file, so that anyone can make them again:

    trainer = pycrfsuite.Trainer("lbfgs", params, verbose=False)
    for items, labels in training:
        trainer.append(items, labels)
    trainer.train(f"{name}.crfsuite")
    tagger.open(f"{name}.crfsuite")

labels, attributes, transitions and states are those of tagger.info(), names in the order of their numbers, weights
with the six decimals that CRFsuite's dump has. In answers, tags are tagger.tag(items), probability is that of these
tags, and marginals[t][k] = tagger.marginal(labels[k], t) after tagger.set(items).
"""

import json
import struct
import tracemalloc
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from besag.errors import ParseError
from besag.io.sequences.crfsuite_model import CRFsuiteModel, crfsuite_model_of, read_crfsuite_model
from besag.io.shared.files import pack

Write = Callable[..., Path]
Feature = tuple[int, int, int, float]

FOLDER = Path(__file__).resolve().parents[2] / "references" / "crfsuite"
NAMES = ("seen", "unicode", "sparse")
SEEN = (FOLDER / "seen.crfsuite").read_bytes()
AT = dict(zip(("features", "labels", "attributes", "label refs", "attribute refs"), range(28, 48, 4), strict=True))


def reference(name: str) -> tuple[CRFsuiteModel, Any]:
    expected = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return read_crfsuite_model(FOLDER / f"{name}.crfsuite"), expected


# What CRFsuite says ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_names_and_weights_are_those_of_the_dump(name: str) -> None:
    model, expected = reference(name)
    assert list(model.labels) == expected["labels"]
    assert list(model.attributes) == expected["attributes"]
    transitions = np.zeros((len(model.labels),) * 2)
    for before, after, weight in expected["transitions"]:
        transitions[model.labels.index(before), model.labels.index(after)] = weight
    np.testing.assert_allclose(model.transitions, transitions, rtol=0, atol=5.1e-7)
    np.testing.assert_array_equal(model.transitions != 0, transitions != 0)
    states = [
        (model.attributes.index(attribute), model.labels.index(label)) for attribute, label, _ in expected["states"]
    ]
    assert list(zip(model.attribute.tolist(), model.label.tolist(), strict=True)) == states
    np.testing.assert_allclose(model.weight, [weight for *_, weight in expected["states"]], rtol=0, atol=5.1e-7)


def test_the_files_differ_in_what_they_leave_out() -> None:
    (seen, _), (everything, _), (sparse, expected) = map(reference, NAMES)
    assert 0 < (seen.transitions == 0).sum() < 9
    assert (everything.transitions != 0).all()
    assert 0 < (sparse.transitions == 0).sum() < 9
    trained = {attribute for items, _ in expected["training"] for item in items for attribute in item}
    assert set(sparse.attributes) < trained


def scores(model: CRFsuiteModel, items: Sequence[dict[str, float]]) -> dict[tuple[int, ...], float]:
    """The log-potential of every sequence of labels."""
    weights = np.zeros((len(model.attributes), len(model.labels)))
    weights[model.attribute, model.label] = model.weight
    values = np.array([[item.get(attribute, 0.0) for attribute in model.attributes] for item in items])
    places = values @ weights
    return {
        path: float(places[range(len(path)), path].sum() + model.transitions[path[:-1], path[1:]].sum())
        for path in product(range(len(model.labels)), repeat=len(items))
    }


@pytest.mark.parametrize("name", NAMES)
def test_all_digits_of_the_weights_by_the_answers_of_the_tagger(name: str) -> None:
    model, expected = reference(name)
    for answer in expected["answers"]:
        weights = {path: np.exp(score) for path, score in scores(model, answer["items"]).items()}
        total = sum(weights.values())
        best = max(weights, key=weights.__getitem__)
        assert [model.labels[k] for k in best] == answer["tags"]
        np.testing.assert_allclose(weights[best] / total, answer["probability"], rtol=1e-12)
        marginals = np.zeros((len(answer["items"]), len(model.labels)))
        for path, weight in weights.items():
            marginals[range(len(path)), path] += weight / total
        np.testing.assert_allclose(marginals, answer["marginals"], rtol=1e-12)


def test_arrays_have_their_types_and_cannot_be_written() -> None:
    model, _ = reference("seen")
    arrays = (model.transitions, model.attribute, model.label, model.weight)
    assert [array.dtype for array in arrays] == [np.float64, np.int64, np.int64, np.float64]
    assert not any(array.flags.writeable for array in arrays)


def test_a_compressed_file(write: Write) -> None:
    model = read_crfsuite_model(write("a.crfsuite.gz", pack(SEEN, "a.gz")))
    np.testing.assert_array_equal(model.transitions, crfsuite_model_of(SEEN, "a").transitions)


# Files of our own -----------------------------------------------------------------------------------------------------


def words(*numbers: int) -> bytes:
    return struct.pack(f"<{len(numbers)}I", *numbers)


def dictionary(texts: Sequence[bytes]) -> bytes:
    """A CQDB chunk, its 256 hash tables empty."""
    head, records, links = 24 + 2048, b"", []
    for number, text in enumerate(texts):
        links.append(head + len(records))
        records += words(number, len(text) + 1) + text + b"\0"
    size = head + len(records) + 4 * len(links)
    opening = b"CQDB" + words(size, 0, 0x62445371, len(links), head + len(records))
    return opening + bytes(2048) + records + words(*links)


def lists(name: bytes, at: int, sources: Sequence[int], n: int, spare: int = 0) -> bytes:
    """The features of each of n sources, where sources[f] is that of feature f and -1 means no source."""
    starts, body, begin = [], b"", at + 12 + 4 * (n + spare)
    for source in range(n):
        members = [f for f, other in enumerate(sources) if other == source]
        starts.append(begin + len(body))
        body += words(len(members), *members)
    return name + words(begin + len(body) - at, n + spare, *starts, *[0] * spare) + body


def written(labels: Sequence[bytes], attributes: Sequence[bytes], features: Sequence[Feature]) -> bytes:
    """A model file, its chunks in CRFsuite's order."""
    chunks = [b"FEAT" + words(12 + 20 * len(features), len(features))]
    chunks[0] += b"".join(struct.pack("<IIId", *feature) for feature in features)
    chunks += [dictionary(labels), dictionary(attributes)]
    places = [48, 48 + len(chunks[0]), 48 + len(chunks[0]) + len(chunks[1]), 48 + sum(map(len, chunks))]
    of = [[source if kind == wanted else -1 for kind, source, *_ in features] for wanted in (0, 1)]
    chunks.append(lists(b"LFRF", places[-1], of[1], len(labels), spare=2))
    places.append(48 + sum(map(len, chunks)))
    chunks.append(lists(b"AFRF", places[-1], of[0], len(attributes)))
    size = 48 + sum(map(len, chunks))
    head = b"lCRF" + words(size) + b"FOMC" + words(100, 0, len(labels), len(attributes), *places)
    return head + b"".join(chunks)


FEATURES: list[Feature] = [(0, 0, 1, 0.5), (0, 1, 0, -2.0), (1, 0, 1, 3.0), (1, 1, 1, 0.25)]
SMALL = written([b"x", b"y"], [b"a", b"bc"], FEATURES)


def test_a_small_file() -> None:
    model = crfsuite_model_of(SMALL, "a")
    assert (model.labels, model.attributes) == (("x", "y"), ("a", "bc"))
    np.testing.assert_array_equal(model.transitions, [[0, 3], [0, 0.25]])
    np.testing.assert_array_equal(model.attribute, [0, 1])
    np.testing.assert_array_equal(model.label, [1, 0])
    np.testing.assert_array_equal(model.weight, [0.5, -2])


def test_features_may_come_in_any_order() -> None:
    model = crfsuite_model_of(written([b"x", b"y"], [b"a", b"bc"], FEATURES[::-1]), "a")
    np.testing.assert_array_equal(model.transitions, [[0, 3], [0, 0.25]])
    np.testing.assert_array_equal(model.attribute, [1, 0])
    np.testing.assert_array_equal(model.weight, [-2, 0.5])


def test_no_attributes_and_empty_texts() -> None:
    model = crfsuite_model_of(written([b"", b" \n"], [], []), "a")
    assert (model.labels, model.attributes, len(model.weight)) == (("", " \n"), (), 0)


# Broken files ---------------------------------------------------------------------------------------------------------


def word(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "little")


def patched(data: bytes, at: int, new: bytes) -> bytes:
    return data[:at] + new + data[at + len(new) :]


def chunk(name: str) -> int:
    """Where a chunk of SMALL begins."""
    return word(SMALL, AT[name])


def record(name: str, number: int) -> int:
    """Where a record of a dictionary of SMALL begins."""
    at = chunk(name)
    return at + word(SMALL, at + word(SMALL, at + 20) + 4 * number)


def first_list(name: str) -> int:
    return word(SMALL, chunk(name) + 12)


FEATURE = chunk("features") + 12
LINKS = chunk("labels") + word(SMALL, chunk("labels") + 20)
NAN = struct.pack("<d", np.nan)

BROKEN = {
    "magic": (0, b"lCRG", "begins with 'lCRF', got b'lCRG'"),
    "type": (8, b"FOMD", "expected a model of type 'FOMC'.*got b'FOMD'"),
    "version": (12, words(101), "expected version 100, got 101"),
    "size, more": (4, words(len(SMALL) + 1), "cut off"),
    "size, less": (4, words(len(SMALL) - 1), "what follows"),
    "features, number": (16, words(3), "declares 3 features, the chunk 4 in 92 bytes"),
    "features, number in the chunk": (FEATURE - 4, words(5), "declares 0 features, the chunk 5 in 92 bytes"),
    "no labels": (20, words(0), "expected a model with labels"),
    "labels, number": (20, words(3), "declares 3 labels, the dictionary at byte .* 2"),
    "attributes, number": (24, words(2**32 - 1), "declares 4294967295 attributes, the dictionary at byte .* 2"),
    "features, place": (AT["features"], words(2**32 - 1), "'FEAT' at byte 4294967295, got ''"),
    "labels, place": (AT["labels"], words(48), "expected a chunk 'CQDB' at byte 48, got 'FEAT'"),
    "label refs, place": (AT["label refs"], words(chunk("attribute refs")), "expected a chunk 'LFRF' .* got 'AFRF'"),
    "chunk, too long": (chunk("labels") + 4, words(2**31), "chunk 'CQDB' .* declares 2147483648 bytes"),
    "chunk, too short": (chunk("label refs") + 4, words(11), "chunk 'LFRF' .* declares 11 bytes"),
    "byte order": (chunk("labels") + 12, words(0x71534462), "labels: expected byte order 0x62445371, got 0x71534462"),
    "links, number": (chunk("labels") + 16, words(7), "declares 2 labels, the dictionary at byte .* 7"),
    "links, place": (chunk("labels") + 20, words(2**32 - 8), "with links at byte 4294967288"),
    "link, low": (LINKS, words(2071), "label 0: expected a record from byte 2072 to .* got 2071"),
    "link, high": (LINKS + 4, words(2**32 - 1), "label 1: expected a record from byte .* got 4294967295"),
    "record, number": (record("labels", 1), words(0), "label 1: expected its own number in its record, got 0"),
    "record, no text": (record("labels", 1) + 4, words(0), "label 1: expected the length of a text .* got 0"),
    "record, long text": (record("labels", 1) + 4, words(2**32 - 1), "label 1: expected the length .* got 4294967295"),
    "record, no zero byte": (record("attributes", 1) + 10, b"x", "attribute 1: expected a zero byte at byte"),
    "record, two zero bytes": (record("attributes", 1) + 8, b"\0", "attribute 1: expected a zero byte at byte"),
    "record, not UTF-8": (record("attributes", 1) + 8, b"\xff", "attribute 1 is not UTF-8: invalid start byte"),
    "label twice": (record("labels", 1) + 8, b"x", "label 'x' comes twice"),
    "kind": (FEATURE + 20, words(2), r"feature 1: expected kind 0 \(state\) or 1 \(transition\), got 2"),
    "attribute": (FEATURE + 24, words(2), "feature 1: expected a source among 2 attributes .* got 2"),
    "label before": (FEATURE + 64, words(2), "feature 3: expected a source among .* or 2 labels .* got 2"),
    "label after": (FEATURE + 48, words(2**31), "feature 2: expected a target among 2 labels, got 2147483648"),
    "weight": (FEATURE + 12, NAN, "feature 0: expected a finite weight, got nan"),
    "transition twice": (FEATURE + 64, words(0), r"feature 3: expected a pair .* none before it has, got \[0 1\]"),
    "lists, number": (chunk("label refs") + 8, words(1), "expected 2 lists in chunk 'LFRF' .* got 1"),
    "list, place": (chunk("label refs") + 16, words(2**32 - 1), "'LFRF' list 1: expected a place .* got 4294967295"),
    "list, too long": (first_list("label refs"), words(2**32 - 1), "'LFRF' list 0: expected at most the 2 features"),
    "list, empty": (first_list("label refs"), words(0), "feature 2: expected to be in the 'LFRF' list .* got -1"),
    "list, no such feature": (first_list("label refs") + 4, words(4), "entry 0: expected one of 4 features, got 4"),
    "list, other kind": (first_list("attribute refs") + 4, words(2), "feature 0: expected to be in the 'AFRF' list"),
    "list of another": (chunk("attribute refs") + 12, words(first_list("attribute refs") + 8), "feature 0: .* got -1"),
    "list past the end": (chunk("attribute refs") + 16, words(len(SMALL) - 4), "'AFRF' list 1: expected"),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_fault_is_named(fault: str) -> None:
    at, new, message = BROKEN[fault]
    with pytest.raises(ParseError, match=f"^a[.]model: .*{message}"):
        crfsuite_model_of(patched(SMALL, at, new), "a.model")


@pytest.mark.parametrize("size_is_corrected", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_a_file_cut_off_anywhere(name: str, size_is_corrected: bool) -> None:
    data = (FOLDER / f"{name}.crfsuite").read_bytes()
    ends = [*range(1, 60), *range(60, len(data) - 60, 17), *range(len(data) - 60, len(data))]
    for end in ends:
        cut = patched(data, 4, words(end))[:end] if size_is_corrected else data[:end]
        with pytest.raises(ParseError, match=r"^cut: "):
            crfsuite_model_of(cut, "cut")


@pytest.mark.parametrize("bit", range(8))
def test_no_bit_of_the_header_may_change(bit: int) -> None:
    for at in range(48):
        with pytest.raises(ParseError, match=r"^flipped: "):
            crfsuite_model_of(patched(SEEN, at, bytes([SEEN[at] ^ 1 << bit])), "flipped")


@given(st.lists(st.tuples(st.integers(0, len(SEEN) - 4), st.integers(0, 2**32 - 1) | st.integers(0, 9)), max_size=4))
def test_any_change_gives_a_sound_model_or_a_refusal(changes: list[tuple[int, int]]) -> None:
    data = SEEN
    for at, number in changes:
        data = patched(data, at, words(number))
    try:
        model = crfsuite_model_of(data, "a")
    except ParseError:
        return
    assert len(set(model.labels)) == 3
    assert model.attribute.max() < len(model.attributes)
    assert model.label.max() < 3
    assert np.isfinite(model.weight).all()


def peak_of(data: bytes, message: str) -> int:
    """The memory that is taken before a file is refused."""
    tracemalloc.start()
    try:
        with pytest.raises(ParseError, match=message):
            crfsuite_model_of(data, "a")
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_more_transitions_than_the_file_is_worth() -> None:
    data = written([b"%d" % k for k in range(2500)], [], [])
    assert peak_of(data, r"2500 labels have 2500\^2 transitions: too many") < 2500 * 2500


def test_texts_that_overlap() -> None:
    data = written([b"%d" % k for k in range(3000)], [], [])
    at = word(data, AT["labels"])
    size, links_at = word(data, at + 4), word(data, at + 20)
    for k in range(3000):
        link = word(data, at + links_at + 4 * k)
        data = patched(data, at + link + 4, words(size - link - 8))
    assert peak_of(data, "label 1: expected at most .* bytes in all texts so far") < 2_000_000


@pytest.mark.parametrize("content", [b"", b"MARKOV 1 2 0", b"lCRF"])
def test_other_files(write: Write, content: bytes) -> None:
    path = write("a.crfsuite", content)
    with pytest.raises(ParseError, match=r"a\.crfsuite: "):
        read_crfsuite_model(path)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_crfsuite_model(tmp_path / "absent.crfsuite")
    with pytest.raises(ParseError, match="cannot be read"):
        read_crfsuite_model(tmp_path)
