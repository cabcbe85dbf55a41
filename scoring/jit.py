"""Compile with numba, and cache the result if a directory is writable.

numba reads its cache directory when it is imported. With ``cache=True`` it raises at decoration if it cannot write there, for example under
systemd's ``DynamicUser``. So this module looks for a writable directory before the import; without one, each process compiles everything
for itself (a few seconds).
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def cache_candidates() -> tuple[Path, ...]:
    """List the directories that may hold compiled code, best first.

    The operator's choice (NUMBA_CACHE_DIR), or else systemd's directories (CacheDirectory=, StateDirectory=) and the user's cache
    directory. Never a shared place such as /tmp, where another user could plant code that we would run.
    """
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        return (Path(chosen),)
    provided = [os.environ.get(name, "").split(":")[0] for name in ("CACHE_DIRECTORY", "STATE_DIRECTORY")]
    of_user = os.environ.get("XDG_CACHE_HOME") or Path(os.environ.get("HOME", "/")) / ".cache"
    return (
        *(Path(directory) / "numba" for directory in provided if directory),
        Path(of_user) / "neuco-worker" / "numba",
    )


def cache_directory() -> Path | None:
    """Return a folder named after a digest of the compiled sources in the first writable candidate; None if none is writable."""
    for candidate in cache_candidates():
        directory = candidate / _digest()
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=directory):
                return directory
        except OSError:
            continue
    return None


def sources() -> tuple[Path, ...]:
    """List the modules whose change must invalidate the cache; numba itself checks only the file of the outermost function.

    These are the modules that compile something, and those whose functions they compile or call.
    """
    package = Path(__file__).parent
    called = {package / "kernel" / "simd.py", package / "metrics.py"}
    compiling = {path for path in package.rglob("*.py") if b"scoring.jit import" in path.read_bytes()}
    return (*sorted(called | compiling), Path(__file__))


def _digest() -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources())).hexdigest()[:16]


DIRECTORY = cache_directory()

import numba  # noqa: E402 - after the choice of the directory
from numba.core import config  # noqa: E402

if DIRECTORY is not None:
    config.CACHE_DIR = str(DIRECTORY)  # type: ignore[attr-defined]

_njit: Callable[..., Any] = numba.njit


def compiled(function: Function) -> Function:
    """Compile a function that runs without the GIL, raises nothing and never reorders a sum.

    Without fastmath the compiled code does exactly the operations that are written, in that order, so a result does not depend on how the
    compiler optimizes a loop. :mod:`scoring.kernel.simd` makes it fast nevertheless.
    """
    options = {"nogil": True, "error_model": "numpy", "boundscheck": False, "cache": DIRECTORY is not None}
    result: Function = _njit(**options)(function)
    return result
