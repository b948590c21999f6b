"""The wheel's build: with BESAG_SHIP=1, as `make wheel` sets it, kernels come compiled, and it is for one platform.

They serve the numba that is installed when the wheel is built, and this minor version of Python; beside any other,
kernels are compiled at their first question, as they are without.
"""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ShipKernels(BuildHookInterface):  # type: ignore[misc]
    """Compiles the kernels of the usual questions into the package, before its files are packed."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling; `version` is "editable" for a checkout."""
        if version == "editable" or os.environ.get("BESAG_SHIP") != "1":
            return
        source = Path(self.root) / "src"
        path = os.pathsep.join(filter(None, (str(source), os.environ.get("PYTHONPATH"))))
        command = [sys.executable, "-m", "besag", "warmup", "--ship"]
        subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": path})
        folder = f"src/besag/_compiled/{sys.implementation.cache_tag}"
        if any(Path(self.root, folder).glob("*.kernel")):
            python = f"cp{sys.version_info.major}{sys.version_info.minor}"
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data["pure_python"] = False
            build_data["tag"] = f"{python}-{python}-{platform}"
            build_data["artifacts"].append(f"{folder}/*.kernel")
