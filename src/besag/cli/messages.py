"""What a command says on stderr, one line each, and how it ends.

Exit codes: 0 answered, 1 bad input, 2 bad usage, 3 no answer within the limits of time and memory (the best so far is
printed where there is one), 130 interrupted, 141 the reader of a pipe has gone.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NoReturn

from besag.text import did_you_mean

ANSWERED, BAD_INPUT, BAD_USAGE, BEYOND_LIMITS, INTERRUPTED, CLOSED_PIPE = 0, 1, 2, 3, 130, 141


def tell(message: object) -> None:
    """One line on stderr, if anybody can hear it."""
    with suppress(OSError):
        print(f"besag: {escape(str(message))}", file=sys.stderr, flush=True)


def escape(text: str) -> str:
    r"""Text with control characters written out.

    >>> escape("a\tb")
    'a\\tb'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line each, and which knows where help is."""

    def error(self, message: str) -> NoReturn:
        """Ends the command."""
        tell(f"{message} (see {self.prog} --help)")
        raise SystemExit(BAD_USAGE)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Here and not in the caller, who does not know which command was asked."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            option = unknown[0].partition("=")[0]
            near = did_you_mean(option, self._option_string_actions) if option.startswith("-") else ""
            self.error(f"unexpected argument {unknown[0]!r}" + (f"; {near}" if near else ""))
        return found, unknown


def not_among(given: str, known: Sequence[str]) -> str:
    """What to say of a word that is none of those that are known.

    >>> not_among("mar", ["PR", "MAR"])
    "expected PR or MAR, got 'mar'; did you mean 'MAR'?"
    """
    near = did_you_mean(given, known)
    return f"expected {', '.join(known[:-1])} or {known[-1]}, got {given!r}" + (f"; {near}" if near else "")
