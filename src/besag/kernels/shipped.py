"""Kernels that come compiled: machine code in the package, for a baseline processor. Imports numba, as `cache` does.

`besag warmup --ship`, which `make` and the build of a wheel run, writes the code of the kernels that usual questions
take into `besag/_compiled/`: a folder for each minor version of Python, a file for each kernel and signature. The name
of a file is a hash of all that its content depends on: the kernel and its constants, every source file that it is made
of, the types of its arguments, the versions of numba and Python, the platform, and the options of the compiler. So a
file is right, or it is not found, and the kernel is compiled as if there were none. Files of other sources are never
found, and the next build removes them.

Code for x86-64-v3 runs on processors that have its features, AVX2 and FMA among them; whether the host does is asked
once. It is trusted because it lies in the package: who can write there can change the Python as well. numba's own cache
holds, besides the machine code, its bitcode, for other functions to inline, and a text of all types: five sixths of the
bytes, which nobody reads here.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import os
import pickle
import platform
import sys
import zlib
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numba
from numba.core import bytecode, compiler, serialize

from besag.kernels.compile import all_compiled

config: Any = numba.config  # its names come from the environment
PACKAGE = Path(__file__).parents[1]
FOLDER = PACKAGE / "_compiled" / str(sys.implementation.cache_tag)
BASELINE = "x86-64-v3"
FEATURES = ("avx", "avx2", "bmi", "bmi2", "cx16", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sahf", "sse4.2", "xsave")
OPTIONS = ("OPT", "BOUNDSCHECK", "DEBUGINFO_DEFAULT", "LOOP_VECTORIZE", "SLP_VECTORIZE")

_mode = {"use": True}


def compile_for_baseline() -> None:
    """From here on this process compiles for the baseline; to be called before anything is compiled.

    Symbols have numbers that numba counts up in a process; these begin anywhere, so that two kernels that different
    processes compile for different constants never have the same.
    """
    config.CPU_NAME, config.CPU_FEATURES = BASELINE, ""
    bytecode.FunctionIdentity._unique_ids = itertools.count(int.from_bytes(os.urandom(5)))


def compile_for_host() -> None:
    """From here on this process takes no kernel from the package."""
    _mode["use"] = False


@functools.cache
def usable() -> bool:
    """Whether this machine runs code for the baseline, and numba is not asked for another processor."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return False
    features = llvm.get_host_cpu_features()
    asked = (config.CPU_NAME, config.CPU_FEATURES) in ((None, None), (BASELINE, ""))
    return asked and all(features.get(name, False) for name in FEATURES)


def load(py_func: Any, constants: tuple[int, ...], stamp: str, signature: Any, target: Any) -> Any:
    """A kernel's compile result for a signature; None if it did not come with the package."""
    if not (_mode["use"] and FOLDER.is_dir() and usable()):
        return None
    path = FOLDER / name_of(py_func, constants, stamp, signature)
    return rebuilt(target, path.read_bytes()) if path.is_file() else None


def name_of(py_func: Any, constants: tuple[int, ...], stamp: str, signature: Any) -> str:
    """The file of a kernel for a signature: its name for people, and a hash of all that the machine code depends on."""
    cells = tuple(cell.cell_contents for cell in py_func.__closure__ or ())
    options = [str(getattr(config, option, None)) for option in OPTIONS]
    made_with = [numba.__version__, sys.implementation.cache_tag, llvm.get_process_triple(), BASELINE, *options]
    what = [py_func.__module__, py_func.__qualname__, repr(constants), stamp, repr(signature)]
    data = [*(text.encode() for text in (*made_with, *what)), serialize.dumps(cells), py_func.__code__.co_code]
    digest = hashlib.sha256(b"\0".join(hashlib.sha256(part).digest() for part in data)).hexdigest()
    return f"{'-'.join([py_func.__qualname__.split('.')[0], *map(str, constants)])}-{digest[:32]}.kernel"


def write() -> frozenset[str]:
    """Write what this process has compiled; the names of the files of all kernels that it has loaded."""
    found = {}
    for (_, *constants), kernel in all_compiled():
        stamp = kernel._cache._impl.locator.get_source_stamp()
        for signature, result in kernel.overloads.items():
            found[name_of(kernel.py_func, tuple(constants), stamp, signature)] = result
    for name, result in found.items():
        if result.library._compiled and not (FOLDER / name).exists():
            part = FOLDER / f"{name}.{os.getpid()}"
            part.write_bytes(reduced(result))
            part.replace(FOLDER / name)
    return frozenset(found)


def reduced(result: Any) -> bytes:
    """The bytes of a compile result that has just been compiled: what is needed to call it, and no more."""
    (name, _, (code, _)), *rest = result._reduce()
    defined = [function.name for function in result.library.get_defined_functions()]
    rest[5] = ""  # the text of all types
    return zlib.compress(serialize.dumps((name, code, defined, tuple(rest))), 9)


def rebuilt(target: Any, data: bytes) -> Any:
    """The compile result of such bytes, which can be called; to link it to another function raises."""
    name, code, defined, rest = pickle.loads(zlib.decompress(data))
    target.codegen()._engine._defined_symbols.update(defined)  # numba takes them from the bitcode
    nothing = llvm.parse_assembly("").as_bitcode()
    result = compiler.CompileResult._rebuild(target, (name, "object", (code, nothing)), *rest)
    result.library._shared_module = None
    return result
