"""Compile with numba, and cache the result if a directory is writable.

numba reads its cache directory when it is imported. With ``cache=True`` it raises at decoration if it cannot write there, for example under
systemd's ``DynamicUser``. So this module looks for a writable directory before the import; without one, each process compiles everything
for itself (a few seconds).

A power failure or a full disk can damage the cache, and numba fails on what it cannot read. So each file of code begins with its hash, and
a function whose file cannot be read is compiled again.
"""

from __future__ import annotations

import hashlib
import logging
import os
import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from scoring.errors import OrganizerError

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

try:  # after the choice of the directory
    import numba
    from numba.core import caching, config

    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        raise ValueError("NUMBA_DISABLE_JIT is set.")
except Exception as error:
    raise OrganizerError(
        f"numba, which compiles the training loop, cannot be used: {error}",
        hint="Correct the environment variables that begin with NUMBA_, or else install numba and numpy again.",
        code="library.unusable",
    ) from error

if DIRECTORY is not None:
    config.CACHE_DIR = str(DIRECTORY)  # type: ignore[attr-defined]

_NumbaFiles: Any = caching.IndexDataCacheFile


class _CacheFiles(_NumbaFiles):  # type: ignore[misc]
    """The cached code of one function: a file for each signature and processor.

    numba numbers the files in an index, of which processes that write at the same time lose a part, or name code of the other. Here the
    name of a file says for what its code was compiled.
    """

    def load(self, key: object) -> object:
        """Return what was compiled for a signature and a processor; None if it must be compiled."""
        file = Path(self._cache_path, self._name_of(key))
        try:
            content = file.read_bytes()
        except OSError:
            return None
        size = hashlib.sha256().digest_size
        if hashlib.sha256(content[size:]).digest() != content[:size]:
            file.unlink(missing_ok=True)
            logging.getLogger("scoring").warning(
                "The file %s with compiled code is damaged, so its function is compiled again.", file
            )
            return None
        return pickle.loads(content[size:])  # noqa: S301 - our own

    def save(self, key: object, data: object) -> None:
        """Keep what was compiled for a signature and a processor."""
        code = self._dump(data)
        with self._open_for_write(str(Path(self._cache_path, self._name_of(key)))) as file:
            file.write(hashlib.sha256(code).digest() + code)

    def _name_of(self, key: object) -> str:
        compiled_for = repr((self._version, self._source_stamp, key)).encode()
        name: str = self._data_name(int.from_bytes(hashlib.sha256(compiled_for).digest()[:8], "big"))
        return name


def compiled(function: Function) -> Function:
    """Compile a function that runs without the GIL, raises nothing and never reorders a sum.

    Without fastmath the compiled code does exactly the operations that are written, in that order, so a result does not depend on how the
    compiler optimizes a loop. :mod:`scoring.kernel.simd` makes it fast nevertheless.
    """
    options: dict[str, Any] = {
        "nogil": True,
        "error_model": "numpy",
        "boundscheck": False,
        "cache": DIRECTORY is not None,
    }
    dispatcher: Any = numba.njit(**options)(function)
    if DIRECTORY is not None:
        # Neither where the sources are nor how old they are matters: the directory is named after what they contain.
        base = dispatcher._cache._impl.filename_base
        dispatcher._cache._cache_file = _CacheFiles(str(DIRECTORY), base, "")
    result: Function = dispatcher
    return result
