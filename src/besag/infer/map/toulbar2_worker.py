"""What runs in a process of its own for engine `toulbar2`: python toulbar2_worker.py FILE BYTES SEED.

toulbar2 keeps its options in globals, prints on the standard output, and may end the process: here it may do all that.
It is asked for the best labelling of the network in FILE, with at most so many BYTES of memory, 0 for any; what it
prints on its way is read by `besag.infer.map.toulbar2`.
"""

import contextlib
import ctypes
import signal
import sys


def main(path: str, n_bytes: int, seed: int) -> None:
    """Solve."""
    with contextlib.suppress(OSError, AttributeError):  # where there is such a thing, end with the process that asked
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    if n_bytes:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (n_bytes, n_bytes))
    from pytoulbar2 import CFN

    network = CFN(resolution=0, vac=1, seed=seed, verbose=0)
    network.Option.FullEAC = True
    network.Option.VACthreshold = True
    network.Option.useRASPS = 1
    network.Read(path)
    network.Solve(showSolutions=1)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
