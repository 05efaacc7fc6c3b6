"""What the numbers were measured on."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from typing import Any

_TELLING = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_int8", "amx_bf16")  # flags that decide about speed


def machine() -> dict[str, Any]:
    """Processor, its vector instructions, cores, system and Python."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    flags = next((line.split() for line in lines if line.startswith("flags")), [])
    return {
        "cpu": model,
        "vectors": [flag for flag in _TELLING if flag in flags],
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": sys.version.split()[0],
    }


def vectors(run: dict[str, Any]) -> str:
    """The vector instructions of the processor that a run was measured on, if they were noted."""
    found = run.get("machine", {}).get("vectors")
    return f", by a processor with {', '.join(found)}" if found else ""
