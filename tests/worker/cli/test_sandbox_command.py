"""A sandbox with a worker is a whole local challenge, to which files can be submitted."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.worker.harness.harness import ROOT, Harness, clean_environment, embeddings
from worker.cli import guarded
from worker.organizer.rehearsal import RehearsalFolder


@contextmanager
def served(*options: str) -> Iterator[str]:
    """Run a sandbox on free ports until the block ends; yield what it prints."""
    command = [sys.executable, "-m", "worker.cli", "sandbox", "--port", "0", *options]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=clean_environment(PYTHONUNBUFFERED="1"), cwd=ROOT
    ) as process:
        assert process.stdout is not None
        printed = ""
        for line in process.stdout:
            printed += line
            if line.startswith("Stop with"):
                break
        try:
            yield printed
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=60) == 0


def test_a_whole_local_challenge_runs_in_one_command(
    harness: Harness, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With `--run`, the worker answers the file, `submit --wait` shows the answer and ends with its status, and a board is pushed."""
    good, bad, local = tmp_path / "good.csv", tmp_path / "bad.csv", tmp_path / "local"
    good.write_bytes(embeddings(1))
    bad.write_text("id,0\n")
    with served("--config", str(harness.path), "--team", "Alice", "--run", str(local)) as printed:
        server = re.search(r"--server (\S+)", printed)
        assert server is not None
        options = ["--server", server[1], "--wait"]
        assert guarded(["sandbox", "submit", str(good), *options]) == 0
        answer = capsys.readouterr().out
        assert "by Alice to phase dev is waiting for a worker." in answer
        assert '"q_mean"' in answer
        assert guarded(["sandbox", "submit", str(bad), *options]) == 1
        assert "failed: " in capsys.readouterr().out
        assert guarded(["sandbox", "submit", str(good), *options, "--phase", "x"]) == 2
        assert "It has: dev, eval." in capsys.readouterr().err
        harness.until(lambda: [row["team"] for row in RehearsalFolder(path=local).board("dev")] == ["Alice"])
    assert guarded(["sandbox", "--config", str(harness.path), "--port", "0", "--run", str(local)]) == 2
    assert "is not an empty folder" in capsys.readouterr().err


def test_submitting_without_a_sandbox_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The error names the address, and what to start."""
    (tmp_path / "file.csv").write_text("id,0\n")
    assert (
        guarded(["sandbox", "submit", os.fspath(tmp_path / "file.csv"), "--server", "http://127.0.0.1:9"])
        == 1
    )
    printed = capsys.readouterr().err
    assert "No sandbox answers at http://127.0.0.1:9" in printed
    assert "neuco-worker sandbox" in printed
