"""Compiling in advance repairs a cache after a power failure."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from scoring.jit import DIRECTORY

COMPILE = "from scoring.warm import warm; print(warm().directory)"


def compile_all(cache: Path) -> Path:
    """Compile in a process of its own with a cache folder, and return where the code is."""
    done = subprocess.run(
        [sys.executable, "-c", COMPILE],
        env=os.environ | {"NUMBA_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


def test_empty_files_are_compiled_again(tmp_path: Path) -> None:
    """An empty index and an empty code file are replaced; numba alone would fail on both."""
    assert DIRECTORY is not None
    directory = tmp_path / compile_all(DIRECTORY.parent).name
    shutil.copytree(DIRECTORY, directory)
    index = min(directory.rglob("*.nbi"))
    code = max(directory.rglob("*.nbc"))
    assert index.stem.split("-")[0] != code.stem.split("-")[0]
    index.write_bytes(b"")
    code.write_bytes(b"")
    assert compile_all(tmp_path) == directory
    assert all(path.stat().st_size > 0 for path in directory.rglob("*.nb?"))
