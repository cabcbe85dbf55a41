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
    by_library = {"engine": engine, "python": platform.python_version()}
    for library in _LIBRARIES.get(engine, _LIBRARIES["torch"]):
        try:
            by_library[library] = version(library)
        except PackageNotFoundError:  # a checkout that is not installed
            by_library[library] = "unknown"
    return by_library


def machine() -> dict[str, str]:
    """Describe the machine: architecture, processor, cores, system; without its host name, because scorecards are passed on."""
    return {
        "architecture": platform.machine(),
        "processor": _entry("/proc/cpuinfo", "model name") or platform.processor() or "unknown",
        "cores": str(os.cpu_count() or 1),
        "system": platform.system(),
    }


def peak_memory_bytes() -> int:
    """Return the largest resident size of this process so far.

    Read from VmHWM if the system has it, because ru_maxrss includes the parent's memory at the time of the fork.
    """
    if peak := _entry("/proc/self/status", "VmHWM"):
        return int(peak.split()[0]) * 1024
    import resource

    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest if sys.platform == "darwin" else largest * 1024


def _entry(path: str, name: str) -> str:
    """Return an entry of a file of the Linux kernel; empty elsewhere."""
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), "")
