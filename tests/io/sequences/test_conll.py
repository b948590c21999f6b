"""Sentences in columns: CoNLL-2000, files with tabs, CoNLL-U, and files that are none of them."""

import gzip
import lzma
from collections.abc import Callable
from itertools import chain
from pathlib import Path

import pytest

from besag.errors import ParseError
from besag.io.sequences.conll import read_conll

Write = Callable[..., Path]

CHUNKS = "He PRP B-NP\nleft VBD B-VP\n\n# # B-NP\n. . O\n"
CONLLU = """# newdoc id = a

# sent_id = 1
# text = vámonos ya
1-2\tvámonos\t_\t_\t_\t_\t_\t_\t_\t_
1\tvamos\tir\tVERB\t_\t_\t0\troot\t_\t_
2\tnos\tnosotros\tPRON\t_\t_\t1\tobj\t_\t_
2.1\tya\tya\tADV\t_\t_\t_\t_\t_\t_
3\t10 000\t#\tNUM\t_\t_\t1\tobj\t_\t_

# sent_id = 2
1\t#\t#\tSYM\t_\t_\t0\troot\t_\t_
"""


def test_blanks_separate_and_every_line_is_a_token(write: Write) -> None:
    first, second = read_conll(write("a.txt", CHUNKS))
    assert first == [("He", "PRP", "B-NP"), ("left", "VBD", "B-VP")]
    assert second == [("#", "#", "B-NP"), (".", ".", "O")]


def test_a_first_sentence_that_looks_like_comments(write: Write) -> None:
    assert list(read_conll(write("a.txt", "# # B-NP\n\na DT O\n"))) == [[("#", "#", "B-NP")], [("a", "DT", "O")]]


def test_some_columns(write: Write) -> None:
    assert list(read_conll(write("a.txt", CHUNKS), columns=(2, 0)))[1] == [("B-NP", "#"), ("O", ".")]
    assert next(read_conll(write("a.txt", CHUNKS), columns=[-1])) == [("B-NP",), ("B-VP",)]


def test_conllu_keeps_words_alone(write: Write) -> None:
    first, second = read_conll(write("a.conllu", CONLLU), columns=(0, 1, 3))
    assert first == [("1", "vamos", "VERB"), ("2", "nos", "PRON"), ("3", "10 000", "NUM")]
    assert second == [("1", "#", "SYM")]


def test_numbers_are_words_where_there_are_not_ten_columns(write: Write) -> None:
    assert list(read_conll(write("a.tsv", "1-2\tO\n1.1\tO\n"))) == [[("1-2", "O"), ("1.1", "O")]]


def test_tabs_keep_blanks_and_empty_cells(write: Write) -> None:
    text = "# a comment\nNew York\t\tB\n#\t#\tO\n"
    assert list(read_conll(write("a.tsv", text))) == [[("New York", "", "B"), ("#", "#", "O")]]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_and_many_blank_lines(write: Write, end: str) -> None:
    text = end.join(["", "", "a A", "b B", " ", "", "c C"])
    assert list(read_conll(write("a.txt", text))) == [[("a", "A"), ("b", "B")], [("c", "C")]]


def test_separators_of_unicode_are_part_of_a_cell(write: Write) -> None:
    assert list(read_conll(write("a.tsv", "a\u2028b\tA\nc\x85d\tB\n"))) == [[("a\u2028b", "A"), ("c\x85d", "B")]]


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_packed_files(write: Write, pack: Callable[[bytes], bytes]) -> None:
    assert len(list(read_conll(write("a.packed", pack(CHUNKS.encode()))))) == 2


def test_lines_are_read_as_they_come() -> None:
    def lines() -> object:
        yield from ("a A\n", "b B\n", "\n")
        raise AssertionError("read beyond the first sentence")

    assert next(read_conll(lines())) == [("a", "A"), ("b", "B")]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "columns", "match"),
    [
        ("a A\nb B\n\nc\n", None, r"a\.txt:4: expected 2 columns separated by blanks.*got 1: 'c'"),
        ("a A\nb B B\n", None, r"a\.txt:2: expected 2 columns.*got 3"),
        ("a\tA\n\nb B\n", None, r"a\.txt:3: expected 2 columns separated by tabs.*got 1: 'b B'"),
        ("\na A\n", (0, 2), r"a\.txt:2: there is no column 2: a line has 2, numbered from 0 to 1"),
        ("a A\n", (-3,), "there is no column -3"),
        ("\n\n", None, "the file is empty"),
        ("a A\nb \0\n", None, r"a\.txt:2: expected text, but there is a zero byte"),
    ],
)
def test_what_cannot_be_read(write: Write, text: str, columns: tuple[int, ...] | None, match: str) -> None:
    with pytest.raises(ParseError, match=match):
        list(read_conll(write("a.txt", text), columns))


def test_errors_in_lines_have_a_number_and_no_path() -> None:
    with pytest.raises(ParseError, match=r"^3: expected 2 columns"):
        list(read_conll(["a A", "", "b"]))


def test_conll2000(data_dir: Path) -> None:
    folder = data_dir / "crf_seq" / "conll2000"
    for name, n_sentences, n_tokens in (("train.txt", 8936, 211727), ("test.txt", 2012, 47377)):
        sentences = list(read_conll(folder / name))
        assert (len(sentences), sum(map(len, sentences))) == (n_sentences, n_tokens)  # as its README says
    assert sentences[0][0] == ("Rockwell", "NNP", "B-NP")


def test_english_web_treebank(data_dir: Path) -> None:
    folder = data_dir / "crf_seq" / "ud_english_ewt"
    sizes = {"train": 12544, "dev": 2001, "test": 2077}
    for part, n_sentences in sizes.items():
        sentences = list(read_conll(folder / f"en_ewt-ud-{part}.conllu.gz", columns=(0, 3)))
        assert len(sentences) == n_sentences
        for sentence in sentences:
            assert [token[0] for token in sentence] == [str(i + 1) for i in range(len(sentence))]
    tags = {token[1] for token in chain.from_iterable(sentences)}
    assert len(tags) == 17  # the universal parts of speech
