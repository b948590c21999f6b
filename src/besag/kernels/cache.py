"""The cache of compiled kernels on disk. Imports numba: only `compile` imports this module, when it needs it.

numba's own cache serves functions of one file; ours adds four things:

- there is always a place: `NUMBA_CACHE_DIR`, beside the package, the user's cache directory, a private temporary
  directory;
- entries are checked against every file that a kernel's file imports, directly or not, since kernels inline helpers
  from other files; and a process whose files were edited after it had imported them saves no entry at all;
- there is one index file for each set of constants: processes which save different kernels at once into one index can
  leave an entry that names another kernel's machine code;
- a damaged file, a full disk or a cache of another user costs a compilation, never an error.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import stat
import tempfile
import time
from pathlib import Path
from typing import Any, ClassVar

from numba.core import caching

from besag.kernels import shipped
from besag.kernels.compile import IMPORTED_AT

PACKAGE = Path(__file__).parents[1]

# What keeps and tells of machine code is no part of it.
KEEPERS = frozenset(PACKAGE / "kernels" / name for name in ("cache.py", "notice.py", "shipped.py"))

# The import statements of a text. A test compares this with Python's own parser.
IMPORTS = re.compile(r"^[ \t]*(?:import (besag.*)|from (besag[.\w]*) import (\([^)]*\)|.*))", re.MULTILINE)
COMMENT = re.compile(r"#.*")


class _ChangedSinceError(Exception):
    """A file was edited after it was imported: the machine code of this process no longer matches the source."""


@functools.cache
def _read(path: Path) -> tuple[bytes, frozenset[Path]]:
    """The hash of a file, and the files of the package that it imports."""
    if IMPORTED_AT < path.stat().st_mtime <= time.time():
        raise _ChangedSinceError(path)
    text = path.read_text(encoding="utf-8")
    files = frozenset(file for module in modules_imported(text) for file in _files_of(module))
    return hashlib.sha256(text.encode()).digest(), files - KEEPERS - {path}


def modules_imported(text: str) -> set[str]:
    """The modules of the package that a text may import: `from a import b` may mean a.b, or a name in a."""
    found = set()
    for plain, base, names in IMPORTS.findall(COMMENT.sub("", text)):
        words = re.findall(r"[\w.]+", re.sub(r"\bas\s+\w+", "", plain or names))
        found |= set(words) if plain else {base, *(f"{base}.{name}" for name in words)}
    return found


def _files_of(module: str) -> list[Path]:
    """The file of a module of this package; none if there is no such module."""
    path = PACKAGE.joinpath(*module.split(".")[1:])
    return [file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()]


@functools.cache
def _stamp(file: str) -> str:
    """A hash of a file and of all the files of the package that it imports, directly or not."""
    found = {Path(file), PACKAGE / "kernels" / "compile.py"}
    waiting = list(found)
    while waiting:
        new = _read(waiting.pop())[1] - found
        found |= new
        waiting += new
    return hashlib.sha256(b"".join(_read(path)[0] for path in sorted(found))).hexdigest()


class _Stamped:
    """A locator whose entries are valid as long as no file that the kernel is made of has changed."""

    _py_file: str

    def get_source_stamp(self) -> str:
        return _stamp(self._py_file)


class _GivenDirectory(_Stamped, caching.UserProvidedCacheLocator):
    pass


class _PackageDirectory(_Stamped, caching.InTreeCacheLocator):
    pass


class _UserDirectory(_Stamped, caching.UserWideCacheLocator):
    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Any:
        try:
            Path.home()
        except RuntimeError:  # no home: numba would make a directory "~" in the working directory
            return None
        return super().from_function(py_func, py_file)


class _TemporaryDirectory(_Stamped, caching.UserWideCacheLocator):
    """A directory that belongs to this user alone, since the content of a cache is executed."""

    def __init__(self, py_func: Any, py_file: str) -> None:
        self._py_file = py_file
        self._lineno = py_func.__code__.co_firstlineno
        self._cache_path = str(private_directory() / self.get_suitable_cache_subpath(py_file))

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Any:
        try:
            return super().from_function(py_func, py_file)
        except OSError:
            return None


def private_directory() -> Path:
    """A directory for this user under the temporary directory, 0700; OSError if someone else owns that name."""
    user = getattr(os, "getuid", lambda: 0)()
    path = Path(tempfile.gettempdir()) / f"besag-kernels-{user}"
    path.mkdir(0o700, exist_ok=True)
    status = path.lstat()
    foreign = os.name == "posix" and (status.st_uid != user or status.st_mode & 0o077)
    if foreign or not stat.S_ISDIR(status.st_mode):
        raise PermissionError(f"{path} is not a private directory of this user")
    return path


class _KernelCacheImpl(caching.CompileResultCacheImpl):
    _constants: ClassVar[tuple[int, ...]] = ()
    _locator_classes = [  # noqa: RUF012  # numba's own attribute
        _GivenDirectory,
        _PackageDirectory,
        _UserDirectory,
        _TemporaryDirectory,
    ]

    def get_filename_base(self, fullname: str, abiflags: str) -> str:
        base = super().get_filename_base(fullname, abiflags)
        return "-".join([str(base), *map(str, self._constants)])


class _KernelCache(caching.FunctionCache):
    _py_func: Any
    _impl: Any

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            found = super().load_overload(sig, target_context)
        except Exception:  # unreadable, truncated, of another layout: compile again, and let that take its place
            found = None
            with contextlib.suppress(Exception):
                self.flush()
        if found is not None:
            return found
        try:
            stamp = self._impl.locator.get_source_stamp()
            return shipped.load(self._py_func, self._impl._constants, stamp, sig, target_context)
        except Exception:  # the same
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except Exception:  # the disk is full, the directory is gone: run without
            return


def kernel_cache(py_func: Any, constants: tuple[int, ...]) -> Any:
    """The cache of one kernel; raises if there is no place at all for it."""
    implementation = type("_Impl", (_KernelCacheImpl,), {"_constants": constants})
    return type("_Cache", (_KernelCache,), {"_impl_class": implementation})(py_func)
