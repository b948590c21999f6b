"""One source, two modes: kernels run as plain Python when small, compiled by numba when large.

Importing numba and loading one cached kernel costs about a second in a fresh process, so no module of this package
imports numba. A kernel is made by a factory which closes over integers only,

    def make_kernel(n_states: int) -> Kernel:
        def kernel(...): ...
        return kernel

`make_kernel(8)` is the Python kernel; `compiled(make_kernel, 8)` is the same function compiled for those integers, once
per process and, through the cache on disk, once per machine. Functions that kernels call are marked `@inlined`: they
stay plain functions and become part of the caller when the caller is compiled.

Rules for code that runs in both modes:

- no reliance on 1/0 or log(0);
- integers are int64, numbers float64; inputs are read-only, only outputs writable (numba types the two differently, and
  each mixture is compiled anew);
- memory that an inlined function writes through one argument must not be reached through another one: when compiled
  they are `noalias`, without which half the time goes into checks for overlap;
- the innermost index is a loop variable, or `at(start + i)`: numba's wrap-around of negative indices turns vector loads
  into gathers.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from besag.kernels.interrupts import delay_interrupts, keep_interrupts

Function = TypeVar("Function", bound=Callable[..., Any])

# True would let LLVM assume that there are no infinities; these two only reorder sums and fuse multiply-adds.
FASTMATH = {"contract", "reassoc"}

IMPORTED_AT = time.time()  # kernels import this module first, so files edited later are not what runs here

COMPILE_ABOVE = 8_000  # table entries, some 0.1 s of plain Python

_helpers: list[Callable[..., Any]] = []  # marked functions that are not registered with numba yet
_gatherers: list[Callable[..., Any]] = []  # those of them that may not be noalias
_called: list[Callable[..., Any]] = []  # those of them that stay functions
_interpreted = [0.0]  # work done by plain Python in this process
_kernels: dict[tuple[Any, ...], Any] = {}
_entries: dict[Any, Callable[..., Any]] = {}  # of machine code, by kernel and kinds of arguments
_locks = [threading.Lock()]

if hasattr(os, "register_at_fork"):  # a child must not inherit a lock that another thread of its parent held
    os.register_at_fork(after_in_child=lambda: _locks.__setitem__(0, threading.Lock()))


def inlined(function: Function) -> Function:
    """Mark a function that compiled kernels call; it stays a plain Python function."""
    _helpers.append(function)
    return function


def gathering(function: Function) -> Function:
    """As `inlined`, for loops that read x[index[i]]: they are not `noalias`.

    With it, LLVM turns them into gather instructions, which take seven times as long as single loads on processors with
    mitigations against data sampling.
    """
    _gatherers.append(function)
    return inlined(function)


def called(function: Function) -> Function:
    """As `inlined`, for long functions, which stay functions of their own when compiled."""
    _called.append(function)
    return inlined(function)


@inlined
def at(index: int) -> int:
    """The index; when compiled, as an unsigned number, so that numba leaves out the wrap-around of negative ones."""
    return index


def compiled(make_kernel: Callable[..., Function], *constants: int) -> Function:
    """The kernel `make_kernel(*constants)`, compiled on its first call or loaded from the cache on disk."""
    key = (make_kernel, *constants)
    kernel = _kernels.get(key)
    if kernel is None:
        with delay_interrupts():
            numba = importlib.import_module("numba")
            with _locks[0]:
                _register_helpers()
                kernel = _kernels.get(key)
                if kernel is None:
                    kernel = numba.njit(nogil=True, fastmath=FASTMATH, error_model="numpy")(make_kernel(*constants))
                    _enable_cache(kernel, constants)
                    keep_interrupts(kernel)
                    _kernels[key] = kernel
    return kernel  # type: ignore[no-any-return]


def all_compiled() -> list[tuple[tuple[Any, ...], Any]]:
    """The kernels of this process that were compiled or loaded: (factory, *constants), and the kernel."""
    return list(_kernels.items())


def worth_compiling(work: float) -> bool:
    """Whether to compile for so many table entries: if numba is loaded, or the work so far would have paid for that.

    A first question about a small model is answered before numba would be loaded; a second one about a model of a few
    dozen variables loads it.
    """
    if "numba" in sys.modules:
        return True
    _interpreted[0] += work
    return _interpreted[0] > COMPILE_ABOVE


def kernel_of(make_kernel: Callable[..., Function], *constants: int, compile: bool) -> Function:
    """The kernel in the mode asked for."""
    return compiled(make_kernel, *constants) if compile else make_kernel(*constants)


def entry_of(kernel: Callable[..., Any], *arguments: Any) -> Callable[..., Any]:
    """The machine code of a compiled kernel for arguments of these types; the kernel itself if it is out of reach.

    Calling it skips numba's dispatch on the types of all arrays, three quarters of the time of a short call. It may be
    called only with the same arrays, or others of the same types.
    """
    key = (kernel, _kind(arguments))
    entry = _entries.get(key)
    if entry is None:
        try:
            types = tuple(kernel.typeof_pyval(argument) for argument in arguments)  # type: ignore[attr-defined]
            entry = kernel.overloads[types].entry_point  # type: ignore[attr-defined]
        except (AttributeError, KeyError):  # NUMBA_DISABLE_JIT, or another numba
            entry = kernel
        _entries[key] = entry
    return entry


def _kind(argument: Any) -> Any:
    """A key that distinguishes the types of arguments, in a fiftieth of the time that numba takes to find the types."""
    if type(argument) is np.ndarray:
        return argument.dtype.num, argument.ndim, argument.flags.num
    return (type(argument), *map(_kind, argument)) if isinstance(argument, tuple) else type(argument)


def _register_helpers() -> None:
    extending, options = importlib.import_module("numba.extending"), _helper_options()
    while _helpers:
        if _helpers[-1] is at:
            extending.overload(at, jit_options=options)(_unsigned)
        elif _helpers[-1] in _gatherers:
            extending.register_jitable(**{k: v for k, v in options.items() if k != "noalias"})(_helpers[-1])
        elif _helpers[-1] in _called:
            extending.register_jitable(**{k: v for k, v in options.items() if k != "forceinline"})(_helpers[-1])
        else:
            extending.register_jitable(**options)(_helpers[-1])
        _helpers.pop()


def _unsigned(index: Any) -> Callable[[Any], Any]:
    """The compiled form of `at`."""

    def unsigned(index: Any) -> Any:
        return np.uintp(index)

    return unsigned


def _helper_options() -> dict[str, object]:
    """Options of inlined functions; numba supports `noalias` but does not offer it among the options of `jit`."""
    options: dict[str, object] = {"forceinline": True, "fastmath": FASTMATH, "error_model": "numpy"}
    try:
        target = importlib.import_module("numba.core.cpu").CPUTargetOptions
        if not hasattr(target, "noalias"):
            importlib.import_module("numba.core.compiler").Flags.noalias  # noqa: B018  # does this numba have it?
            target.noalias = importlib.import_module("numba.core.options")._mapping("noalias")
    except (ImportError, AttributeError):  # another version of numba: half the speed, the same answers
        return options
    return {**options, "noalias": True}


def _enable_cache(kernel: Any, constants: tuple[int, ...]) -> None:
    """Keep the machine code on disk if possible; a kernel without a cache is slow to start, not wrong."""
    if not hasattr(kernel, "_cache"):  # NUMBA_DISABLE_JIT
        return
    try:
        from besag.kernels.cache import kernel_cache
        from besag.kernels.notice import watch

        watch(kernel)
        kernel._cache = kernel_cache(kernel.py_func, constants)
    except Exception:  # no place to write, or another version of numba: kernels are compiled again each time
        return
