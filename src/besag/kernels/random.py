"""Counter-based random numbers: a hash of (key, row, sample, variable), the same on any number of threads.

`stream` hashes key, row and sample to the seed of a splitmix64 generator (Steele, Lea and Flood, OOPSLA 2014), and
`uniform` is that generator's output number `variable`, as a double in [0, 1).

The arithmetic is on 64-bit words. When compiled, int64 wraps; in Python, integers grow instead. The low 64 bits of
sums, products and exclusive ors depend on low 64 bits only, and each shift is masked to bits below 64, so both agree.
"""

from __future__ import annotations

from besag.arrays import Array
from besag.kernels.compile import inlined

# The constants of splitmix64, as signed words.
GAMMA = 0x9E3779B97F4A7C15 - 2**64
FIRST = 0xBF58476D1CE4E5B9 - 2**64
SECOND = 0x94D049BB133111EB - 2**64
BITS_33 = 2**33 - 1
BITS_34 = 2**34 - 1
BITS_37 = 2**37 - 1
BITS_53 = 2**53 - 1
UNIT = 2.0**-53


@inlined
def mix(word: int) -> int:
    """splitmix64's finaliser: every bit of the word reaches every bit of the result."""
    word = (word ^ ((word >> 30) & BITS_34)) * FIRST
    word = (word ^ ((word >> 27) & BITS_37)) * SECOND
    return word ^ ((word >> 31) & BITS_33)


@inlined
def stream(key: int, row: int, sample: int) -> int:
    """The seed of one sample of one row."""
    return mix(mix(int(key) + GAMMA * (int(row) + 1)) + GAMMA * (int(sample) + 1))


@inlined
def uniform(seed: int, variable: int) -> float:
    """Number `variable` of a stream, uniform on [0, 1)."""
    return ((mix(seed + GAMMA * (int(variable) + 1)) >> 11) & BITS_53) * UNIT


@inlined
def pick(weights: Array, n: int, target: float) -> int:
    """The state at which the running sum of the weights passes the target; never one of weight zero."""
    chosen = 0
    for k in range(n):
        if weights[k] > 0.0:
            chosen = k
            target -= weights[k]
            if target < 0.0:
                break
    return chosen


def sweep_key(key: int, sweep: int) -> int:
    """The key of one sweep, a signed word."""
    return (mix(key + GAMMA * (sweep + 1)) + 2**63) % 2**64 - 2**63
