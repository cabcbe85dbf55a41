"""A state directory on a file system that really fills up: a few megabytes of memory, mounted for the test."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from scoring.errors import InfrastructureError
from tests.waiting import LIMIT_S
from tests.worker.daemon.test_alerts import Hook, hook  # noqa: F401 - a fixture
from tests.worker.harness.harness import (
    NEW,
    Harness,
    StepWorker,
    embeddings,
)
from worker.daemon import Worker
from worker.daemon.health import health
from worker.daemon.start import utc_now
from worker.organizer.archiving import read_backup, write_backup
from worker.organizer.session import open_session
from worker.sandbox import ManualClock
from worker.state import State

pytestmark = pytest.mark.processes

MEGABYTE = 1_000_000
SIZE = 12 * MEGABYTE
ENTRIES = 1000  # files and folders that fit


@pytest.fixture
def cramped(tmp_path: Path, cells: Path) -> Iterator[Harness]:
    """A challenge whose state is on a small file system of its own."""
    with (
        small_file_system(tmp_path / "state", size=SIZE),
        Harness(tmp_path, clock=ManualClock(), cells=cells) as harness,
    ):
        yield harness


@contextmanager
def small_file_system(place: Path, *, size: int) -> Iterator[None]:
    """Mount some memory as a file system of the given size."""
    place.mkdir(mode=0o700)
    mount = shutil.which("mount")
    if mount is None:
        pytest.skip("there is no mount command here")
    options = f"size={size},nr_inodes={ENTRIES},mode=0700"
    command = [mount, "-t", "tmpfs", "-o", options, "neuco-test", str(place)]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode != 0:
        pytest.skip(f"no file system may be mounted here: {made.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(harness: Harness, *, but: int = 0) -> Path:
    """Fill the file system except for some bytes; return the file that can be removed."""
    filler = harness.state / "filler"
    left = max(0, shutil.disk_usage(harness.state).free - but)
    with filler.open("wb", buffering=0) as file, suppress(OSError):  # a child may take some of it meanwhile
        while left > 0:
            left -= file.write(bytes(min(left, MEGABYTE)))
    return filler


def press_on(worker: StepWorker, until: Callable[[], bool]) -> set[str]:
    """Continue as the daemon does, whose next step tries again if the database could not be written; return the codes of the failures."""
    failures = set()
    ends = time.monotonic() + LIMIT_S
    while not until():
        assert time.monotonic() < ends, worker.states()
        failed = False
        try:
            worker.step()
        except InfrastructureError as error:
            failed = True
            failures.add(error.code)
            worker.daemon.failed(error, worker.clock.now())
        if failed or not worker.busy:
            worker.clock.advance(0.05)
        if worker.busy:
            worker.wake.wait(0.05)
    return failures


def long_file() -> bytes:
    """Return a good file of some megabytes, most of whose rows are not required."""
    rows = "".join(f'"more_{row}",' + ",".join(["0.123456789"] * 8) + "\n" for row in range(30_000))
    return embeddings(1) + rows.encode()


def test_a_file_that_does_not_fit_waits_for_room(cramped: Harness) -> None:
    """It is tried again, its author is not told, the organizer is, and no part of it stays on the disk."""
    with cramped.worker() as worker:
        worker.drive()
        filler = fill(cramped, but=2 * MEGABYTE)
        pk = cramped.submit("A", long_file())
        failed = press_on(worker, lambda: "disk.write" in worker.alerts())
        assert failed <= {"state.database"}
        assert worker.state(pk) is State.ACKNOWLEDGED
        assert cramped.posts(pk) == []
        assert worker.failed(pk) > 0
        press_on(worker, lambda: not worker.busy)
        assert list(worker.daemon.files.stored()) == []
        assert list((cramped.state / "tmp").iterdir()) == []
        filler.unlink()
        worker.finish(pk)
        assert len(cramped.posts(pk)) == 1
        assert worker.alerts() == set()


def test_a_disk_without_a_byte_left_loses_nothing(cramped: Harness) -> None:
    """While nothing can be written the worker stays: the score that comes meanwhile is kept, and what was submitted is answered once."""
    with cramped.worker() as worker:
        scored = cramped.submit("A", embeddings(NEW))
        worker.drive(lambda: worker.scoring("scoring"))
        filler = fill(cramped)
        later = [cramped.submit("ABC"[number % 3], embeddings(number)) for number in range(6)]
        over = worker.clock.now() + timedelta(seconds=6)
        failed = press_on(worker, lambda: worker.clock.now() > over and worker.child() is None)
        assert failed == {"state.database"}
        filler.unlink()
        worker.drive()
        worker.wait(31)  # a message that could not be noted down comes again
        worker.finish(scored, *later)
        assert worker.outcomes(scored) == ["done"]
        assert {len(cramped.posts(pk)) for pk in (scored, *later)} == {1}
        assert cramped.evalai.queue_length() == 0


def test_a_full_disk_is_reported_when_no_process_can_start(cramped: Harness) -> None:
    """The child's folder cannot be made for lack of an inode; the message is about the disk, not about processes."""
    with cramped.worker() as worker:
        worker.drive()
        crowd = cramped.state / "crowd"
        crowd.mkdir()
        with suppress(OSError):
            for number in range(ENTRIES):
                (crowd / str(number)).touch()
        pk = cramped.submit("A", embeddings(1))
        press_on(worker, lambda: "disk.write" in worker.alerts())
        shutil.rmtree(crowd)
        worker.finish(pk)
        assert worker.alerts() == set()


def test_a_child_that_fills_the_disk_reports_it(cramped: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here there is no space for the code that it compiles."""
    cache = cramped.folder / "cache"
    with small_file_system(cache, size=64 << 10):
        monkeypatch.setenv("NUMBA_CACHE_DIR", str(cache))
        (cache / "filler").write_bytes(bytes(60 << 10))
        with cramped.worker() as worker:
            pk = cramped.submit("A", embeddings(NEW))
            worker.drive(lambda: bool(worker.alerts()))
            assert worker.alerts() == {"disk.write"}
            assert worker.outcomes(pk) == ["failed"]
            assert cramped.posts(pk) == []


def test_a_full_disk_is_reported_without_the_database(cramped: Harness, hook: Hook) -> None:  # noqa: F811
    """The webhook is called once, although nothing can be recorded; health and `status` show it while it lasts."""
    (cramped.folder / "hook").write_text(hook.url)
    cramped.configure({"alerts": {"webhook": "file:hook"}})

    def healthy(worker: Worker) -> tuple[bool, str | None]:
        worker.stepped_at = utc_now()
        report: dict[str, Any] = health(worker, utc_now)
        return report["healthy"], (report["problem"] or {}).get("code")

    with cramped.worker() as worker:
        worker.drive()
        assert healthy(worker.daemon) == (True, None)
        filler = fill(cramped)
        assert healthy(worker.daemon) == (False, "disk.full")
        over = worker.clock.now() + timedelta(seconds=6)
        press_on(worker, lambda: bool(hook.heard) and worker.clock.now() > over)
        assert worker.daemon.problem is not None
        assert "(disk.full)" in cramped.command("status").stdout
        filler.unlink()
        worker.drive()
        assert healthy(worker.daemon) == (True, None)
        (alert,) = hook.heard
        assert alert["text"].startswith(f"[Tiny] The disk with the state in {cramped.state} is full")
        cramped.configure({"submission": {"disk_reserve_gigabytes": 1}})
        assert "(disk.reserve)" in cramped.command("status").stdout


def test_a_restore_onto_a_full_disk_says_so(harness: Harness, tmp_path: Path) -> None:
    """The backup is good; it is not blamed."""
    archive, place = tmp_path / "backup.zip", tmp_path / "small"
    with open_session(harness.path) as session:
        write_backup(session, harness.path, archive)
    with small_file_system(place, size=16_384), pytest.raises(InfrastructureError) as raised:
        read_backup(archive, place)
    assert raised.value.code == "restore.failed"
    assert raised.value.sentence.endswith("No space left on device.")
