"""The kinds of structured factors by name: what files can hold."""

from __future__ import annotations

from besag.model.structured.base import Structured
from besag.model.structured.bilinear import Bilinear
from besag.model.structured.counts import AllOf, AnyOf, Count, Parity
from besag.model.structured.displacement import Displacement
from besag.model.structured.noisy import NoisyMax
from besag.model.structured.potts import Potts
from besag.model.structured.robust import RobustPotts
from besag.model.structured.scaled import Scaled
from besag.model.structured.truncated import TruncatedLinear, TruncatedQuadratic

KINDS: tuple[type[Structured], ...] = (
    Potts,
    Scaled,
    Bilinear,
    TruncatedLinear,
    TruncatedQuadratic,
    Displacement,
    Count,
    Parity,
    AnyOf,
    AllOf,
    NoisyMax,
    RobustPotts,
)
STRUCTURED: dict[str, type[Structured]] = {kind.name: kind for kind in KINDS}
