"""The kinds of structured factors by name: what files can hold."""

from __future__ import annotations

from besag.model.structured.base import Structured
from besag.model.structured.bilinear import Bilinear
from besag.model.structured.potts import Potts
from besag.model.structured.scaled import Scaled

STRUCTURED: dict[str, type[Structured]] = {kind.name: kind for kind in (Potts, Scaled, Bilinear)}
