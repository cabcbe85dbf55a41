"""Where compiled code is kept, and what happens if no folder is writable."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from scoring import jit
from tests.waiting import LIMIT_S

pytestmark = pytest.mark.processes

SCRIPT = """
import json, sys
from scoring import jit, metrics
for _ in sys.stdin:
    ratio = jit.compiled(metrics.f1_from_counts)
    made = {"directory": jit.DIRECTORY and str(jit.DIRECTORY), "f1": ratio(3, 1, 2)}
    print(json.dumps(made), flush=True)
"""


def process(**environment: str) -> subprocess.Popen[str]:
    """Start a process that for each line compiles one function, or loads it, and says where it is kept and what it gives."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in ("NUMBA_CACHE_DIR", "CACHE_DIRECTORY", "STATE_DIRECTORY", "XDG_CACHE_HOME", "HOME")
    }
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        env={**kept, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def run(**environment: str) -> dict:
    """Compile the function in a fresh process; return where it is kept and what it gives."""
    with process(**environment) as started:
        printed, _ = started.communicate("once\n", timeout=LIMIT_S)
    assert started.returncode == 0
    return json.loads(printed)


def test_it_compiles_without_a_writable_folder(tmp_path: Path) -> None:
    """If every candidate is a file, code is compiled for this process only."""
    blocker = tmp_path / "blocker"
    blocker.touch()
    made = run(HOME=str(blocker), XDG_CACHE_HOME=str(blocker))
    assert made == {"directory": None, "f1": 6 / 9}


def test_the_service_managers_directory_is_used_and_private(tmp_path: Path) -> None:
    """Under systemd the cache is in CacheDirectory, readable only for its owner."""
    made = run(CACHE_DIRECTORY=str(tmp_path), HOME="/nonexistent")
    directory = Path(made["directory"])
    assert directory.is_relative_to(tmp_path)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert list(directory.rglob("*.nbc"))


def test_an_installation_elsewhere_finds_what_was_compiled(tmp_path: Path) -> None:
    """So does the next one in the same place, whose files are newer: only what the sources contain counts."""
    made = run(NUMBA_CACHE_DIR=str(tmp_path))
    compiled = list(tmp_path.rglob("*.nbc"))
    shutil.copytree(Path(jit.__file__).parent, tmp_path / "scoring", copy_function=shutil.copyfile)
    assert run(NUMBA_CACHE_DIR=str(tmp_path), PYTHONPATH=str(tmp_path), PYTHONSAFEPATH="1") == made
    assert list(tmp_path.rglob("*.nbc")) == compiled


def zeros_within(content: bytes) -> bytes:
    """Return a file of which a block never reached the disk."""
    return content[: len(content) // 2] + bytes(64) + content[len(content) // 2 + 64 :]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "zeros": lambda content: bytes(len(content)),
    "cut off": lambda content: content[:-10],
    "zeros within": zeros_within,
}


def test_a_damaged_file_is_named_and_made_again_once(tmp_path: Path) -> None:
    """A file of code that did not reach the disk whole is replaced; numba alone would fail on it, or run it."""
    with process(NUMBA_CACHE_DIR=str(tmp_path)) as started:
        assert started.stdin is not None
        assert started.stdout is not None

        def printed() -> str:
            print("once more", file=started.stdin, flush=True)
            return started.stdout.readline()

        whole = printed()
        [path] = tmp_path.rglob("*.nbc")
        warning = f"The file {path} with compiled code is damaged, so its function is compiled again.\n"
        for name, damage in DAMAGES.items():
            path.write_bytes(damage(path.read_bytes()))
            assert printed() == warning, name
            assert started.stdout.readline() == whole, name
            assert printed() == whole, name


def test_processes_that_compile_at_the_same_time_keep_the_code_of_both(tmp_path: Path) -> None:
    """They may compile for other arguments or, with a shared home folder, for another processor; one begins before the other ends."""

    class Interrupted(jit._CacheFiles):
        def _dump(self, data: object) -> bytes:
            other.save("other", "code of the other")
            code: bytes = super()._dump(data)
            return code

    other, one = jit._CacheFiles(str(tmp_path), "f", "stamp"), Interrupted(str(tmp_path), "f", "stamp")
    one.save("one", "code of the one")
    later = jit._CacheFiles(str(tmp_path), "f", "stamp")
    assert (later.load("one"), later.load("other")) == ("code of the one", "code of the other")


def test_versions_that_share_a_folder_keep_their_code_and_add_no_file_later(tmp_path: Path) -> None:
    """Of numba, or of a source: each finds again what it compiled, however often the other one has run."""
    versions = [jit._CacheFiles(str(tmp_path), "f", stamp) for stamp in ("old", "new")]
    for number in range(3):
        for files in versions:
            assert files.load("key") == (files._source_stamp if number else None)
            files.save("key", files._source_stamp)
    assert len(list(tmp_path.iterdir())) == len(versions)


@pytest.mark.parametrize("variable", ["NUMBA_NUM_THREADS=0", "NUMBA_DISABLE_JIT=1"])
def test_a_setting_that_numba_cannot_work_with_is_named(variable: str) -> None:
    """A user's own variable is no bug: the command says which library refuses what, and what to look at."""
    name, value = variable.split("=")
    answer = subprocess.run(
        [sys.executable, "-m", "worker.cli", "compile"],
        env={**os.environ, name: value},
        capture_output=True,
        text=True,
    )
    assert answer.returncode == 2
    assert answer.stderr.startswith("neuco-worker: numba, which compiles the training loop, cannot be used: ")
    assert "environment variables that begin with NUMBA_" in answer.stderr
