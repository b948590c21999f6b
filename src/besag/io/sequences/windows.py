"""Attributes of tokens in columns: what stands in the columns around each token, alone and in pairs.

    word[-1]=the           column "word" of the token before
    word[0|1]=cat|sat      of two neighbours
    first, last            of a sentence

Columns are numbered, so that "word" reads "0". A window of 2 and pairs within one token to each side is what templates
for chunking and named entities begin with.
"""

from __future__ import annotations

from collections.abc import Sequence

from besag.io.sequences.conll import Token


def window_attributes(sentence: Sequence[Token], columns: Sequence[int], window: int) -> list[list[str]]:
    """The attributes of each token.

    >>> window_attributes([("He", "PRP"), ("left", "VBD")], columns=[0], window=1)
    [['0[0]=He', '0[1]=left', '0[0|1]=He|left', 'first'], ['0[-1]=He', '0[0]=left', '0[-1|0]=He|left', 'last']]
    """
    n, found = len(sentence), []
    for t in range(n):
        near = range(max(t - window, 0), min(t + window + 1, n))
        pairs = [i for i in (t - 1, t) if i in near and i + 1 in near]
        made = [f"{c}[{i - t}]={sentence[i][c]}" for c in columns for i in near]
        made += [f"{c}[{i - t}|{i - t + 1}]={sentence[i][c]}|{sentence[i + 1][c]}" for c in columns for i in pairs]
        found.append(made + ["first"] * (t == 0) + ["last"] * (t == n - 1))
    return found
