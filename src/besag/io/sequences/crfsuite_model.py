r"""CRFsuite's binary models of linear chains, version 100, as `crfsuite learn` and python-crfsuite write them.

Numbers are little-endian: u4 is an unsigned integer of 4 bytes, f8 a float of 8. K labels, A attributes, F features.

    file       = header features labels attributes label-refs attribute-refs     48 bytes of header, the rest by offsets
    header     = "lCRF"  u4 size of the file  "FOMC"  u4 version, 100
                 u4 F or 0  u4 K  u4 A                                           CRFsuite itself leaves 0 for F
                 u4 * 5 offsets in the file: features, labels, attributes, label-refs, attribute-refs
    features   = "FEAT"  u4 size  u4 F  feature * F
    feature    = u4 kind  u4 source  u4 target  f8 weight                        20 bytes, not aligned
                 kind 0, state: source is an attribute, target a label
                 kind 1, transition: source is the label before, target the label after
    labels     = attributes = dictionary
    dictionary = "CQDB"  u4 size  u4 flags  u4 byte order, 0x62445371  u4 n  u4 offset of links
                 (u4 offset  u4 n) * 256 hash tables, from text to record, which are not needed to read all records
                 record * n, tables, u4 * n links: offsets of records by number; all offsets from the "CQDB"
    record     = u4 number  u4 length  text "\0"                                 UTF-8; length counts the zero byte
    refs       = "LFRF" or "AFRF"  u4 size  u4 n  u4 * n offsets in the file  list * n
    list       = u4 m  u4 * m features of one source                            label-refs have two more, unused offsets

A size includes the four letters of its chunk. Texts are literal, nothing is escaped. CRFsuite leaves out features of
weight zero, and attributes that have no others. It finds features by the lists, so a file whose lists and features
disagree is ambiguous and is refused; so is one with the same feature twice.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from os import PathLike, fspath
from typing import NamedTuple

import numpy as np

from besag.arrays import AnyArray, Array, BoolArray, IntArray, freeze, offsets_of
from besag.errors import ParseError
from besag.io.shared.budget import EntryBudget
from besag.io.shared.files import read_bytes

__all__ = ["CRFsuiteModel", "crfsuite_model_of", "read_crfsuite_model"]

VERSION = 100
BYTE_ORDER = 0x62445371
STATE, TRANSITION = 0, 1

_RECORDS = 24 + 8 * 256  # where the records of a dictionary begin
_FEATURE = np.dtype([("kind", "<u4"), ("source", "<u4"), ("target", "<u4"), ("weight", "<f8")])


@dataclass(frozen=True, slots=True, eq=False)
class CRFsuiteModel:
    """A chain of labels: log-potentials of transitions, and of an attribute and a label at the same position.

    labels, attributes: in the order of their numbers.
    transitions: (K, K) from the label before to the label after; 0 where the file has no feature.
    attribute, label, weight: (nnz,) one state feature each, in the order of the file; no pair comes twice. The value
        of an attribute at a position multiplies the weight; attributes that the model does not know are ignored.
    """

    labels: tuple[str, ...]
    attributes: tuple[str, ...]
    transitions: Array
    attribute: IntArray
    label: IntArray
    weight: Array


def read_crfsuite_model(path: str | PathLike[str]) -> CRFsuiteModel:
    """The model in a CRFsuite file, which may be compressed; ParseError if the file is broken."""
    return crfsuite_model_of(read_bytes(path), fspath(path))


def crfsuite_model_of(data: bytes, path: str) -> CRFsuiteModel:
    """The same from the content of a file."""
    content = _BinaryContent(data, path)
    header = _header(content)
    labels = _texts(content, header.labels_at, header.n_labels, "label")
    attributes = _texts(content, header.attributes_at, header.n_attributes, "attribute")
    features = _features(content, header)
    _check_refs(content, header.label_refs_at, b"LFRF", features, TRANSITION, len(labels))
    _check_refs(content, header.attribute_refs_at, b"AFRF", features, STATE, len(attributes))
    transitions = _transitions(content, features.of(TRANSITION), len(labels))
    _, *states = features.of(STATE)
    return CRFsuiteModel(labels, attributes, freeze(transitions), *map(freeze, states))


class _BinaryContent:
    """The bytes of a file, and its numbers by place; a place outside of the file is a ParseError."""

    __slots__ = ("_bytes", "_path", "data")

    def __init__(self, data: bytes, path: str) -> None:
        self.data, self._path = data, path
        self._bytes = np.frombuffer(data, np.uint8)

    def fail(self, message: str) -> ParseError:
        return ParseError(message, path=self._path)

    def check(self, right: BoolArray, what: str, expected: str, got: AnyArray) -> None:
        """ParseError for the first entry of `got` that is not right."""
        if not right.all():
            first = int(np.argmin(right))
            raise self.fail(f"{what} {first}: expected {expected}, got {got[first]}")

    def words(self, at: int, n: int, what: str) -> IntArray:
        """The n integers of 4 bytes that begin at a byte."""
        if at + 4 * n > len(self.data):
            raise self.fail(f"expected {what}, {4 * n} bytes from byte {at}, but the file has {len(self.data)} bytes")
        return np.frombuffer(self.data, "<u4", n, at).astype(np.int64)

    def words_at(self, places: IntArray) -> IntArray:
        """One integer of 4 bytes at each place; the places must be in the file."""
        words: IntArray = self._bytes[places[:, None] + np.arange(4)].view("<u4")[:, 0].astype(np.int64)
        return words

    def chunk(self, at: int, name: bytes, n: int) -> list[int]:
        """The n integers after the name of a chunk, the first of which is its size."""
        shown, got = name.decode(), self.data[at : at + 4]
        if got != name:
            raise self.fail(f"expected a chunk {shown!r} at byte {at}, got {got.decode('ascii', 'replace')!r}")
        numbers: list[int] = self.words(at + 4, n, f"the head of chunk {shown!r}").tolist()
        rest = len(self.data) - at
        if not 4 + 4 * n <= numbers[0] <= rest:
            raise self.fail(f"chunk {shown!r} at byte {at} declares {numbers[0]} bytes, the file has {rest} there")
        return numbers


class _Header(NamedTuple):
    """The numbers of the header, from the number of features on."""

    n_features: int
    n_labels: int
    n_attributes: int
    features_at: int
    labels_at: int
    attributes_at: int
    label_refs_at: int
    attribute_refs_at: int


def _header(content: _BinaryContent) -> _Header:
    data = content.data
    if data[:4] != b"lCRF":
        raise content.fail(f"expected a CRFsuite model, which begins with 'lCRF', got {data[:4]!r}")
    size, _, version, *rest = content.words(4, 11, "the header").tolist()
    if data[8:12] != b"FOMC":
        raise content.fail(f"expected a model of type 'FOMC', a first-order chain, got {data[8:12]!r}")
    if version != VERSION:
        raise content.fail(f"expected version {VERSION}, got {version}")
    if size != len(data):
        why = "is it cut off?" if size > len(data) else "what follows the model?"
        raise content.fail(f"the header declares {size} bytes, the file has {len(data)}: {why}")
    header = _Header(*rest)
    if not header.n_labels:
        raise content.fail("expected a model with labels, got one without")
    return header


def _texts(content: _BinaryContent, at: int, n: int, what: str) -> tuple[str, ...]:
    """The texts of a dictionary, in the order of their numbers."""
    size, _, byte_order, n_links, links_at = content.chunk(at, b"CQDB", 5)
    if byte_order != BYTE_ORDER:
        raise content.fail(f"the dictionary of {what}s: expected byte order {BYTE_ORDER:#x}, got {byte_order:#x}")
    if n_links != n or links_at + 4 * n > size:
        got = f"{n_links}, with links at byte {links_at} of {size}"
        raise content.fail(f"the header declares {n} {what}s, the dictionary at byte {at} {got}")
    links = content.words(at + links_at, n, f"the places of {what}s")
    inside = (links >= _RECORDS) & (links + 8 <= size)
    content.check(inside, what, f"a record from byte {_RECORDS} to {size - 8} of the dictionary", links)
    numbers, lengths = content.words_at(at + links), content.words_at(at + links + 4)
    content.check(numbers == np.arange(n), what, "its own number in its record", numbers)
    fits = (lengths > 0) & (links + 8 + lengths <= size)
    content.check(fits, what, f"the length of a text that ends in the {size} bytes of the dictionary", lengths)
    total = np.cumsum(lengths)  # overlapping records could sum up to any size
    content.check(total <= size, what, f"at most {size} bytes in all texts so far", total)
    texts = _decoded(content, at + links + 8, lengths, what)
    if len(set(texts)) < n:
        [(text, _)] = Counter(texts).most_common(1)
        raise content.fail(f"{what} {text[:60]!r} comes twice")
    return texts


def _decoded(content: _BinaryContent, starts: IntArray, lengths: IntArray, what: str) -> tuple[str, ...]:
    texts: list[str] = []
    for start, end in zip(starts.tolist(), (starts + lengths - 1).tolist(), strict=True):
        if content.data.find(b"\0", start, end + 1) != end:
            raise content.fail(f"{what} {len(texts)}: expected a zero byte at byte {end}, and none before it")
        try:
            texts.append(content.data[start:end].decode())
        except UnicodeDecodeError as error:
            raise content.fail(f"{what} {len(texts)} is not UTF-8: {error.reason} at byte {start}") from None
    return tuple(texts)


class _StoredFeatures(NamedTuple):
    """Features in the order of the file, each (F,)."""

    kind: AnyArray
    source: IntArray
    target: IntArray
    weight: Array

    def of(self, kind: int) -> _StoredFeatures:
        """Those of one kind."""
        which = self.kind == kind
        return _StoredFeatures(self.kind[which], self.source[which], self.target[which], self.weight[which])


def _features(content: _BinaryContent, header: _Header) -> _StoredFeatures:
    at = header.features_at
    size, n = content.chunk(at, b"FEAT", 2)
    if size != 12 + _FEATURE.itemsize * n or header.n_features not in (0, n):
        raise content.fail(f"the header declares {header.n_features} features, the chunk {n} in {size} bytes")
    table = np.frombuffer(content.data, _FEATURE, n, at + 12)
    source, target = table["source"].astype(np.int64), table["target"].astype(np.int64)
    features = _StoredFeatures(table["kind"], source, target, table["weight"].astype(np.float64))
    _check_features(content, features, header.n_labels, header.n_attributes)
    return features


def _check_features(content: _BinaryContent, features: _StoredFeatures, n_labels: int, n_attributes: int) -> None:
    kind, source, target, weight = features
    content.check((kind == STATE) | (kind == TRANSITION), "feature", "kind 0 (state) or 1 (transition)", kind)
    sources = f"a source among {n_attributes} attributes (state) or {n_labels} labels (transition)"
    content.check(source < np.where(kind == STATE, n_attributes, n_labels), "feature", sources, source)
    content.check(target < n_labels, "feature", f"a target among {n_labels} labels", target)
    content.check(np.isfinite(weight), "feature", "a finite weight", weight)
    new = np.zeros(len(kind), np.bool_)
    new[np.unique((source * n_labels + target) * 2 + kind, return_index=True)[1]] = True
    pairs = np.stack([source, target], axis=1)
    content.check(new, "feature", "a pair of source and target that none before it has", pairs)


def _check_refs(content: _BinaryContent, at: int, name: bytes, features: _StoredFeatures, kind: int, n: int) -> None:
    """ParseError unless the lists of the n sources name each feature of the kind once, under its source."""
    _, n_lists = content.chunk(at, name, 2)
    what = f"{name.decode()!r} list"
    if n_lists < n:
        raise content.fail(f"expected {n} lists in chunk {name.decode()!r} at byte {at}, got {n_lists}")
    end = len(content.data)
    starts = content.words(at + 12, n, f"the places of {n} lists")
    content.check(starts + 4 <= end, what, f"a place in the {end} bytes of the file", starts)
    counts = content.words_at(starts)
    mine = features.kind == kind
    total = np.cumsum(counts)
    content.check(total <= mine.sum(), what, f"at most the {mine.sum()} features of kind {kind} so far", total)
    content.check(starts + 4 + 4 * counts <= end, what, f"{end} bytes to hold all its features", counts)
    owners = np.repeat(np.arange(n), counts)
    within = np.arange(len(owners)) - offsets_of(counts)[owners]
    listed = content.words_at(starts[owners] + 4 + 4 * within)
    content.check(listed < len(mine), f"{what} entry", f"one of {len(mine)} features", listed)
    source_of = np.full(len(mine), -1)
    source_of[listed] = owners
    content.check(~mine | (source_of == features.source), "feature", f"to be in the {what} of its source", source_of)


def _transitions(content: _BinaryContent, features: _StoredFeatures, n_labels: int) -> Array:
    """The (K, K) log-potentials of features that are all transitions."""
    if not EntryBudget(len(content.data)).holds((n_labels, n_labels)):
        raise content.fail(f"{n_labels} labels have {n_labels}^2 transitions: too many for {len(content.data)} bytes")
    transitions = np.zeros((n_labels, n_labels))
    transitions[features.source, features.target] = features.weight
    return transitions
