"""A sandbox with a worker is a whole local challenge, to which files can be submitted."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.waiting import LIMIT_S
from tests.worker.harness.harness import ROOT, Harness, clean_environment, embeddings
from worker.challenge.configuration import load
from worker.cli import guarded
from worker.organizer.rehearsal import RehearsalFolder

pytestmark = pytest.mark.processes

SIGNALLED = """
import queue, signal, sys, threading

class Queue(queue.SimpleQueue):
    def get(self, *arguments):
        signal.raise_signal(signal.SIGTERM)
        return super().get(*arguments)

def signalled(condition, timeout=None):
    if sys._getframe(2).f_code.co_name == "sandbox":
        signal.raise_signal(signal.SIGTERM)
    return wait(condition, timeout)

wait, threading.Condition.wait, queue.SimpleQueue = threading.Condition.wait, signalled, Queue
from worker.cli import main
main()
"""
"""A program to which SIGTERM comes when the sandbox begins to wait, for an event, whose lock it then holds, or for a queue."""


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
            assert process.wait() == 0


def test_a_whole_local_challenge_runs_in_one_command(
    harness: Harness, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With `--run`, the worker answers a file that the printed line submits, the other printed line lists it, and a board is pushed.

    The challenge may be named by its folder. The copy has its own tasks, ids and secret, so that changing them changes nothing here.
    An editor's lock, which leads nowhere, is not copied.
    """
    local = tmp_path / "local"
    (harness.folder / "tasks" / "dev" / ".#alpha__regr.csv").symlink_to("somebody@machine.4711")
    (tmp_path / "embeddings.csv").write_bytes(embeddings(1))
    with served("--config", str(harness.folder), "--team", "Alice", "--run", str(local)) as printed:
        submit, read = (line for line in printed.splitlines() if line.startswith("curl "))
        assert json.loads(typed(submit, tmp_path))["status"] == "submitted"
        harness.until(lambda: json.loads(typed(read, tmp_path))["results"][0]["status"] == "finished")
        answer = json.loads(typed(read, tmp_path))["results"][0]["stdout_file"]
        assert '"q_mean"' in typed(f"curl {answer}", tmp_path)
        harness.until(lambda: [row["team"] for row in RehearsalFolder(path=local).board("dev")] == ["Alice"])
    copy = load(local / "challenge.yaml")
    places = [
        copy.challenge_secret,
        *(copy.path(path) for phase in copy.phases.values() for path in (phase.tasks, phase.ids)),
    ]
    assert all(place.exists() and place.is_relative_to(local) for place in places)
    assert copy.challenge_secret.stat().st_mode & 0o077 == 0
    assert guarded(["sandbox", "--config", str(harness.path), "--port", "0", "--run", str(local)]) == 2
    said = capsys.readouterr()
    assert ("is not an empty folder" in said.err, said.out) == (True, "")


def test_a_signal_ends_it_even_as_it_begins_to_wait() -> None:
    """The handler waits for nothing that the interrupted thread holds."""
    command = [sys.executable, "-c", SIGNALLED, "sandbox", "--port", "0"]
    ended = subprocess.run(command, env=clean_environment(), cwd=ROOT, check=False, timeout=LIMIT_S)
    assert ended.returncode == 0


@pytest.mark.parametrize("port", ["-1", "65535"])
def test_a_port_that_leaves_none_for_the_files_is_refused(
    port: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The files get the next one."""
    assert guarded(["sandbox", "--port", port]) == 2
    assert "Invalid value for '--port'" in capsys.readouterr().err


def typed(line: str, folder: Path) -> str:
    """Run a line in a shell and return what it prints."""
    return subprocess.run(line, shell=True, cwd=folder, check=True, capture_output=True, text=True).stdout
