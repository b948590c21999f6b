"""Fits are compared to the last bit: all of them by compiled kernels, never the first half by plain Python."""

import importlib

import pytest


@pytest.fixture(autouse=True, scope="session")
def compiled_from_the_start() -> None:
    importlib.import_module("numba")
