"""The methods of structure learning by name: a file each."""

from __future__ import annotations

from besag.learn.networks.structure.task import StructureMethod
from besag.registry import Registry

_HERE = "besag.learn.networks.structure"
METHODS: Registry[StructureMethod] = Registry(
    "structure method",
    "learn",
    "tabu[length=10]",
    {
        "chow_liu": (f"{_HERE}.chow_liu", "ChowLiu"),
        "tan": (f"{_HERE}.chow_liu", "TAN"),
        "naive": (f"{_HERE}.chow_liu", "NaiveStructure"),
        "hill_climb": (f"{_HERE}.hill_climb", "HillClimb"),
        "tabu": (f"{_HERE}.tabu", "Tabu"),
        "order_search": (f"{_HERE}.order_search", "OrderSearch"),
        "exact": (f"{_HERE}.exact", "ExactSearch"),
        "pc": (f"{_HERE}.pc", "PC"),
        "mmhc": (f"{_HERE}.mmhc", "MMHC"),
        "structural_em": (f"{_HERE}.structural_em", "StructuralEM"),
    },
)
