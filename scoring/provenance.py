"""The provenance of a scorecard: library versions, machine and memory. None of it is part of a cell's key."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_LIBRARIES = {
    "local": ("neuco-worker", "numpy", "numba", "llvmlite"),
    "torch": ("neuco-worker", "numpy", "torch"),
    "ray": ("neuco-worker", "numpy", "numba", "llvmlite", "ray"),
}


def versions(engine: str) -> dict[str, str]:
    """Return the versions of Python and of the libraries that an engine computes with."""
    found = {"engine": engine, "python": platform.python_version()}
    for library in _LIBRARIES.get(engine, _LIBRARIES["torch"]):
        try:
            found[library] = version(library)
        except PackageNotFoundError:  # a checkout that is not installed
            found[library] = "unknown"
    return found


def machine() -> dict[str, str]:
    """Describe the machine: architecture, processor, cores, system; without its host name, because scorecards are passed on."""
    return {
        "architecture": platform.machine(),
        "processor": _processor(),
        "cores": str(os.cpu_count() or 1),
        "system": platform.system(),
    }


def peak_memory_bytes() -> int:
    """Return the largest resident size of this process so far.

    Read from VmHWM if the system has it, because ru_maxrss includes the parent's memory at the time of the fork.
    """
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"
