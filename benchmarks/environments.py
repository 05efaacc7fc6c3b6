"""A virtual environment for each peer, so that no two have to agree on versions.

`benchmarks/requirements/<peer>.txt` lists all that is installed, exactly: dependencies are not resolved, because
several peers forbid the torch that all are measured with, or ask for gigabytes that training does not use.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENTS = ROOT / ".bench"
_REQUIREMENTS = Path(__file__).resolve().parent / "requirements"
_PIP = "pip==24.0"  # the last that installs omegaconf 2.0, whose metadata newer ones refuse


def python_of(peer: str) -> Path:
    """The interpreter with this peer installed, made now if need be; ours is the one that is running."""
    if peer == "ours":
        return Path(sys.executable)
    requirements = _REQUIREMENTS / f"{peer}.txt"
    folder = ENVIRONMENTS / peer
    python = folder / "bin" / "python"
    installed = folder / "installed.txt"  # a copy of the requirements, once they are met
    if installed.exists() and installed.read_text() == requirements.read_text():
        return python
    print(f"installing {peer} in {folder.relative_to(ROOT)}", file=sys.stderr)
    venv.create(folder, clear=True, with_pip=True)
    _install(python, _PIP)
    # As constraints the pins hold for what builds a package from source too.
    _install(python, "--no-deps", "--requirement", str(requirements), constraints=requirements)
    installed.write_text(requirements.read_text())
    return python


def _install(python: Path, *what: str, constraints: Path | None = None) -> None:
    env = dict(os.environ) | ({"PIP_CONSTRAINT": str(constraints)} if constraints else {})
    subprocess.run([python, "-m", "pip", "install", "--quiet", *what], check=True, env=env)
