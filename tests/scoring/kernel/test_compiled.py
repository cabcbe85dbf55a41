"""Where compiled code is kept, and what happens if no folder is writable."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

from scoring.jit import DIRECTORY

SCRIPT = """
import json
from scoring import jit, metrics
ratio = jit.compiled(metrics.f1_from_counts)
print(json.dumps({"directory": jit.DIRECTORY and str(jit.DIRECTORY), "f1": ratio(3, 1, 2)}))
"""


def run(**environment: str) -> dict:
    """Compile one function in a fresh process and say where it is kept."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in ("NUMBA_CACHE_DIR", "CACHE_DIRECTORY", "STATE_DIRECTORY", "XDG_CACHE_HOME", "HOME")
    }
    answer = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**kept, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(answer.stdout)


def test_it_compiles_without_a_writable_folder(tmp_path: Path) -> None:
    """If every candidate is a file, code is compiled for this process only."""
    blocker = tmp_path / "blocker"
    blocker.touch()
    made = run(HOME=str(blocker), XDG_CACHE_HOME=str(blocker))
    assert made == {"directory": None, "f1": 6 / 9}


def test_the_service_managers_directory_is_used_and_private(tmp_path: Path) -> None:
    """Under systemd the cache is in CacheDirectory, readable only for its owner."""
    directory = Path(run(CACHE_DIRECTORY=str(tmp_path), HOME="/nonexistent")["directory"])
    assert directory.is_relative_to(tmp_path)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert list(directory.rglob("*.nbc"))


COMPILE = "from scoring.engines.registry import warm; print(warm().directory)"


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
