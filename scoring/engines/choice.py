"""Choose the engine that ``auto`` means on this machine, and list the engines that give the same scores."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from functools import cache

AUTO = "auto"
SAME_SCORES = frozenset({"local", "ray"})
"""The engines that run the compiled kernel, so that their scores agree to the bit on equal processors."""
DRIVER = "libcuda.so.1"
ASK_S = 120.0  # importing torch takes 2 seconds, and far longer from a cold disk
_ASK = "import sys, torch; sys.exit(not torch.cuda.is_available())"


def choose(engine: str, *, recorded: str | None = None) -> str:
    """Return the engine that a configured name means.

    Args:
        engine: The configured name, which may be ``auto``.
        recorded: The engine that a phase is recorded with. ``auto`` keeps it, because the bits of scores differ between engines.
    """
    if engine != AUTO:
        return engine
    if recorded in ("local", "torch"):
        return recorded
    return "torch" if has_gpu() else "local"


@cache
def has_gpu() -> bool:
    """Return whether PyTorch finds a CUDA device.

    Without NVIDIA's driver the answer is no. Otherwise a separate process imports PyTorch, so that this one stays small.
    """
    if not has_driver():
        return False
    command = [sys.executable, "-P", "-c", _ASK]
    try:
        return subprocess.run(command, check=False, capture_output=True, timeout=ASK_S).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def has_driver(library: str = DRIVER) -> bool:
    """Return whether NVIDIA's driver is installed."""
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True
