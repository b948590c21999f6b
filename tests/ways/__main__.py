"""`python -m tests.ways`: see `tests.ways.driver`."""

import sys

from tests.ways.driver import main

if __name__ == "__main__":
    sys.exit(main())
