"""A sandbox's output works: a worker uses the printed configuration, and a submitted file is answered."""

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
import yaml

from tests.worker.harness.harness import ROOT, Harness, clean_environment, embeddings
from worker.challenge.configuration import load
from worker.cli import guarded


@contextmanager
def served(*options: str) -> Iterator[str]:
    """Run a sandbox on free ports until the block ends; yield what it prints."""
    command = [sys.executable, "-m", "worker.cli", "sandbox", "--port", "0", *options]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=clean_environment(PYTHONUNBUFFERED="1"), cwd=ROOT
    ) as process:
        assert process.stdout is not None
        told = ""
        for line in process.stdout:
            told += line
            if line.startswith("Stop with"):
                break
        try:
            yield told
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=60) == 0


def test_what_a_sandbox_prints_runs_a_worker_and_takes_a_file(
    harness: Harness, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A worker with the printed settings answers the file, and `submit --wait` shows the answer and ends with its status."""
    good, bad = tmp_path / "good.csv", tmp_path / "bad.csv"
    good.write_bytes(embeddings(1))
    bad.write_text("id,0\n")
    with served("--config", str(harness.path), "--team", "Alice") as told:
        section = told[told.index("evalai:\n") : told.index("Then run, in two other terminals:")]
        document = yaml.safe_load(harness.path.read_text())
        harness.path.write_text(yaml.safe_dump(document | yaml.safe_load(section)))
        assert load(harness.path).evalai.poll_every == 2
        token = re.search(r"EVALAI_TOKEN=(\S+) neuco-worker run", told)
        server = re.search(r"--server (\S+)", told)
        assert token is not None
        assert server is not None
        worker = subprocess.Popen(
            [sys.executable, "-m", "worker.cli", "run", "--config", str(harness.path)],
            env=clean_environment(EVALAI_TOKEN=token[1]),
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            options = ["--server", server[1], "--wait"]
            assert guarded(["sandbox", "submit", str(good), *options]) == 0
            answer = capsys.readouterr().out
            assert "by Alice to phase dev is waiting for a worker." in answer
            assert '"q_mean"' in answer
            assert guarded(["sandbox", "submit", str(bad), *options]) == 1
            assert "failed: " in capsys.readouterr().out
            assert guarded(["sandbox", "submit", str(good), *options, "--phase", "x"]) == 2
            assert "It has: dev, eval." in capsys.readouterr().err
        finally:
            worker.send_signal(signal.SIGTERM)
            worker.wait(timeout=60)


def test_submitting_without_a_sandbox_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The error names the address, and what to start."""
    (tmp_path / "file.csv").write_text("id,0\n")
    assert (
        guarded(["sandbox", "submit", os.fspath(tmp_path / "file.csv"), "--server", "http://127.0.0.1:9"])
        == 1
    )
    told = capsys.readouterr().err
    assert "No sandbox answers at http://127.0.0.1:9" in told
    assert "neuco-worker sandbox" in told
