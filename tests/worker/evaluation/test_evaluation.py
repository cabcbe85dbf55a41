"""The child that reads and scores: the ways in which it can end, and who is to blame."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest

from scoring.errors import NeucoError, OrganizerError, ParticipantError
from tests.worker.harness.gate import hanging
from tests.worker.harness.harness import LIMIT_S, NEW, Harness, StepWorker, embeddings
from worker.challenge.configuration import load
from worker.challenge.files import read_phases
from worker.evaluation.act import ScoreSubmission
from worker.evaluation.outcomes import READING, SCORING, STARTING, blame
from worker.fairness.register import RegisterFold
from worker.fetching.act import FetchFile
from worker.runtime.cgroup import Delegation
from worker.runtime.child import Child, command
from worker.runtime.child_acts import ChildAct, Died, OverLimit
from worker.runtime.limits import GIGABYTE
from worker.state import Attempt, Outcome, State

SLOW = {"phases": {"dev": {"folds": 60_000}}}  # scoring that lasts until it is ended


@contextmanager
def held_reading(harness: Harness) -> Iterator[tuple[StepWorker, Callable[[], None]]]:
    """Run a worker whose children hang when they open the one submitted file, until it is released."""
    with ExitStack() as obstacles:
        held: list[Path] = []

        def hold(checkpoint: str) -> None:
            if checkpoint == "before child evaluate" and not held:
                held.extend(worker.daemon.files.stored())
                obstacles.enter_context(hanging(held[0]))

        with harness.worker(checkpoint=hold) as worker:
            yield worker, obstacles.close


@contextmanager
def unheld(harness: Harness) -> Iterator[tuple[StepWorker, Callable[[], None]]]:
    """Run a worker without any obstacle."""
    with harness.worker() as worker:
        yield worker, lambda: None


def reach(worker: StepWorker, stage: str) -> None:
    """Drive until the child is in a stage."""
    worker.drive(lambda: worker.scoring(stage))


def tighten(worker: StepWorker, **limits: float) -> None:
    """Give the worker a limit that the configuration does not allow, so that it is exceeded at once."""
    configuration = worker.daemon.context.configuration
    submission = configuration.submission.model_copy(update=limits)
    worker.daemon.context.configuration = configuration.model_copy(update={"submission": submission})


def end_for_memory(worker: StepWorker, tree: Path) -> None:
    """End the child as the kernel does when it exceeds its cgroup's limit, and record that in the cgroup's file."""
    child = worker.child()
    assert child is not None
    (group,) = [one for one in tree.iterdir() if (one / "cgroup.procs").read_text() == f"{child.pid}\n"]
    (group / "memory.events").write_text("oom 1\noom_kill 1\n")
    child.send_signal(signal.SIGKILL)


@pytest.fixture
def slow(harness: Harness) -> Harness:
    """A challenge on which scoring takes long."""
    harness.configure(SLOW)
    return harness


@pytest.mark.parametrize(
    ("error", "stage", "crashed_before", "code"),
    [
        (OverLimit(Outcome.DEADLINE), STARTING, 0, "evaluate.deadline"),
        (OverLimit(Outcome.DEADLINE), READING, 0, "file.deadline"),
        (OverLimit(Outcome.DEADLINE), SCORING, 0, "evaluate.deadline"),
        (OverLimit(Outcome.MEMORY), READING, 0, "file.memory"),
        (OverLimit(Outcome.MEMORY), SCORING, 0, "evaluate.memory"),
        (Died(-signal.SIGSEGV), READING, 1, "evaluate.died"),
        (Died(-signal.SIGSEGV), READING, 2, "file.breaks_reader"),
        (Died(-signal.SIGSEGV), SCORING, 2, "evaluate.died"),
        (Died(-signal.SIGKILL), READING, 2, "evaluate.died"),
    ],
)
def test_a_file_is_to_blame_only_while_it_is_read(
    error: NeucoError, stage: str, crashed_before: int, code: str
) -> None:
    """A limit is its author's fault only during reading, and a crash only if it is the third one; a kill never is."""
    _, found = blame(error, stage, 7, fits=True, crashed_before=crashed_before)
    assert (found.code, isinstance(found, ParticipantError)) == (code, code.startswith("file."))


@pytest.mark.parametrize("what", ["deadline", "memory"])
def test_a_limit_exceeded_while_scoring_is_not_the_participants_fault(slow: Harness, what: str) -> None:
    """The submission waits, the organizer is told, and it continues by itself after the limit is raised."""
    with slow.worker() as worker:
        pk = slow.submit("A", embeddings(NEW))
        reach(worker, "scoring")
        tighten(worker, **{"deadline": 0.001} if what == "deadline" else {"memory_gigabytes": 0.001})
        worker.drive(lambda: bool(worker.alerts()))
        assert worker.outcomes(pk) == [what]
        assert worker.alerts() == {f"evaluate.{what}"}
        assert slow.posts(pk) == []
        assert slow.status(pk) == "running"
        assert worker.state(pk) is State.FETCHED


@pytest.mark.parametrize("what", ["deadline", "memory"])
def test_a_limit_exceeded_while_reading_is_the_files_fault(harness: Harness, what: str) -> None:
    """A file that takes too much to read fails, with a message about the file."""
    tree = harness.folder / "tree"
    tree.mkdir()
    with held_reading(harness) as (worker, _):
        worker.daemon.context.cgroup = Delegation(tree)
        pk = harness.submit("A", embeddings(NEW))
        reach(worker, "reading")
        if what == "deadline":
            tighten(worker, deadline=0.001)
        else:
            end_for_memory(worker, tree)
        worker.drive(lambda: worker.state(pk) is State.FAILED)
        assert worker.outcomes(pk) == [what]
        assert harness.status(pk) == "failed"
        assert "Reading the file took more" in harness.stderr(pk)
        assert worker.alerts() == set()


def test_a_memory_limit_too_low_for_a_valid_file_is_not_the_files_fault(harness: Harness) -> None:
    """The child's memory before reading is measured; if too little is left, only the organizer is told."""
    with held_reading(harness) as (worker, release):
        pk = harness.submit("A", embeddings(NEW))
        reach(worker, "reading")
        tighten(worker, memory_gigabytes=0.001)
        worker.drive(lambda: bool(worker.alerts()))
        assert worker.outcomes(pk) == ["memory"]
        assert worker.alerts() == {"evaluate.memory_limit"}
        assert harness.posts(pk) == []
        assert harness.status(pk) == "running"
        release()
        worker.reload()
        worker.drive(lambda: harness.status(pk) == "finished")
        worker.drive()
        assert worker.alerts() == set()


def test_a_memory_limit_that_no_good_file_fits_into_is_refused(harness: Harness) -> None:
    """The configuration is refused before any participant's file is read."""
    harness.configure({"submission": {"memory_gigabytes": 0.1}})
    with pytest.raises(
        OrganizerError, match=r"reading a valid file of phase dev .* may need 0\.25 GB"
    ) as refused:
        read_phases(load(harness.path))
    assert (refused.value.code, refused.value.cure.split(" or ")[0]) == ("config.memory", "Set it to 1")
    harness.configure({"submission": {"memory_gigabytes": 0.3}})
    assert set(read_phases(load(harness.path))) >= {"dev"}


@pytest.mark.parametrize("stage_name", ["reading", "scoring"])
def test_a_killed_child_is_nobodys_fault(slow: Harness, stage_name: str) -> None:
    """After a death by signal it is tried again, and the participant is not told."""
    with held_reading(slow) if stage_name == "reading" else unheld(slow) as (worker, _):
        pk = slow.submit("A", embeddings(NEW))
        reach(worker, stage_name)
        child = worker.child()
        assert child is not None
        child.send_signal(signal.SIGKILL)
        worker.drive(lambda: not worker.daemon.evaluation.busy)
        assert worker.outcomes(pk)[0] == "signal"
        assert "evaluate.died" in worker.alerts()
        assert slow.posts(pk) == []
        worker.drive(lambda: len(worker.outcomes(pk)) == 2)


def test_a_child_that_the_kernel_ends_for_its_memory_has_hit_the_limit(slow: Harness) -> None:
    """With a cgroup, a kill by the kernel can be distinguished from any other signal."""
    tree = slow.folder / "tree"
    tree.mkdir()
    with slow.worker() as worker:
        worker.daemon.context.cgroup = Delegation(tree)
        pk = slow.submit("A", embeddings(NEW))
        reach(worker, "scoring")
        child = worker.child()
        assert child is not None
        (group,) = tree.iterdir()
        assert (group / "cgroup.procs").read_text().strip() == str(child.pid)
        assert int((group / "memory.max").read_text()) == 8 * GIGABYTE
        end_for_memory(worker, tree)
        worker.drive(lambda: not worker.daemon.evaluation.busy)
        assert worker.outcomes(pk)[0] == "memory"
        assert worker.alerts() == {"evaluate.memory"}
        assert slow.posts(pk) == []


def test_after_a_killed_child_the_answer_comes(harness: Harness, worker: StepWorker) -> None:
    """There is one distinct result, and the alert is resolved."""
    pk = harness.submit("A", embeddings(NEW))
    reach(worker, "scoring")
    child = worker.child()
    assert child is not None
    child.kill()
    worker.drive()
    assert len(harness.posts(pk)) == 1
    assert worker.outcomes(pk) == ["signal", "done"]
    assert worker.alerts() == set()


def test_an_exception_in_a_child_shows_nothing_outside(tmp_path: Path) -> None:
    """A defect ends the child with a status; what it printed stays in its stderr."""
    woken = threading.Event()
    module = "worker.evaluation.evaluate_child"
    child = Child(command(module), {"file": "/nowhere"}, folder=tmp_path / "child", wake=woken.set)
    try:
        ends = time.monotonic() + LIMIT_S
        while child.ended() is None and time.monotonic() < ends:
            woken.wait(0.05)
        assert child.ended() == 1
        assert list(child.messages()) == []
        assert "KeyError" in child.errors()
    finally:
        child.close()
    assert not (tmp_path / "child").exists()


def test_a_child_has_low_priority_and_sees_no_secret(slow: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has a lower priority, a process group of its own, is killed first when memory runs out, and sees no secret."""
    monkeypatch.setenv("NEUCO_TEST_SECRET", "hush-hush")
    with slow.worker() as worker:
        slow.submit("A", embeddings(NEW))
        reach(worker, "scoring")
        child = worker.child()
        assert child is not None
        assert child.nice() > psutil.Process().nice()
        assert os.getpgid(child.pid) == child.pid
        assert int(Path(f"/proc/{child.pid}/oom_score_adj").read_text()) >= 500
        seen = (
            Path(f"/proc/{child.pid}/environ").read_bytes() + Path(f"/proc/{child.pid}/cmdline").read_bytes()
        )
        for secret in (b"hush-hush", slow.evalai.token("host").encode(), b"5a5a5a5a"):
            assert secret not in seen


def test_the_whole_group_is_gone_and_the_folder_too(slow: Harness) -> None:
    """However an evaluation ends, no process and no temporary file stays."""
    with slow.worker() as worker:
        slow.submit("A", embeddings(NEW))
        reach(worker, "scoring")
        child = worker.child()
        assert child is not None
        worker.stop()
        assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE
        assert list((slow.state / "tmp").iterdir()) == []
        worker.start()
        assert list(worker.states().values()) == ["fetched"]


def test_a_cancellation_while_scoring_ends_the_child(slow: Harness) -> None:
    """When the listing shows the cancellation, scoring ends, and nothing is posted."""
    with slow.worker() as worker:
        pk = slow.submit("A", embeddings(NEW))
        reach(worker, "scoring")
        slow.evalai.cancel(pk)
        worker.clock.advance(25)  # the listing is due
        worker.drive(lambda: not worker.daemon.evaluation.busy)
        assert worker.state(pk) is State.CANCELLED
        assert worker.outcomes(pk) == ["cancelled"]
        assert slow.posts(pk) == []


@pytest.mark.parametrize("kind", list(Attempt))
def test_what_was_cancelled_before_its_child_failed_stays_as_it_ended(
    harness: Harness, kind: Attempt
) -> None:
    """The failure is recorded with the attempt; the submission neither waits nor gets a message."""
    harness.configure({"submission": {"disk_reserve_gigabytes": 10**9}})  # it waits where the test takes over
    with harness.worker() as worker:
        pk = harness.submit("A", embeddings(1))
        worker.drive(lambda: worker.states().get(pk) == "acknowledged")
        context, files, row, now = (
            worker.daemon.context,
            worker.daemon.files,
            worker.row(pk),
            worker.clock.now(),
        )
        act: ChildAct = FetchFile(context, files, row, deadline_s=9)
        if kind is Attempt.EVALUATE:
            act = ScoreSubmission(
                context, files, row, context.phases["dev"], file=harness.folder / "file", fold=RegisterFold()
            )
        with worker.store.write() as tx:
            state = State.ACKNOWLEDGED
            for target in (State.FETCHED, State.SCORING) if kind is Attempt.EVALUATE else ():
                tx.move(pk, state, target)
                state = target
            act.intent(tx, now)
            tx.move(pk, state, State.CANCELLED)
            act.failure(tx, OrganizerError("A fault.", code="a.fault"), now)
        assert worker.outcomes(pk, kind) == ["organizer"]
        assert "a.fault" not in worker.alerts()
        row = worker.row(pk)
        assert (row.state, row.tries, row.not_before, row.hold) == (State.CANCELLED, 0, None, None)


def test_an_edited_label_file_changes_nothing(harness: Harness, worker: StepWorker) -> None:
    """After an edit, with or without a restart, scoring uses the recorded labels."""
    first = harness.submit("A", embeddings(1))
    worker.drive()
    for file in (harness.folder / "tasks" / "dev").iterdir():
        file.write_text("nonsense")
    before = harness.submit("B", embeddings(NEW))
    worker.drive()
    worker.restart()
    after = harness.submit("C", embeddings(NEW + 1))
    worker.drive()
    assert [harness.status(pk) for pk in (first, before, after)] == ["finished"] * 3
    assert worker.alerts() == set()
    with worker.store.read() as tx:
        assert len({(cell.task, cell.version) for cell in tx.all_cells() if cell.phase == "dev"}) == 3


def test_a_rescore_under_way_mixes_no_protocols(slow: Harness) -> None:
    """Cells that were computed under the old protocol are kept under the old one."""
    slow.configure({"phases": {"dev": {"folds": 2000}}})
    with slow.worker() as worker:
        old = worker.daemon.context.phases["dev"].protocol.hash
        pk = slow.submit("A", embeddings(NEW))
        reach(worker, "scoring")
        slow.configure({"phases": {"dev": {"folds": 4}}})
        slow.rescore()
        worker.drive(lambda: worker.state(pk) not in (State.SCORING, State.FETCHED))
        new = worker.daemon.context.phases["dev"].protocol.hash
        assert new != old
        with worker.store.read() as tx:
            content = worker.row(pk).content_hash or ""
            assert {len(cell.folds) for cell in tx.cells(content, old)} == {2000}
            assert {len(cell.folds) for cell in tx.cells(content, new)} == {4}


def test_a_child_that_cannot_be_started_is_tried_again(harness: Harness, worker: StepWorker) -> None:
    """If the child's folder cannot be made, the submission waits until it can."""
    folder = harness.state / "tmp"
    folder.rmdir()
    folder.write_text("in the way")
    pk = harness.submit("A", embeddings(1))
    worker.drive(lambda: "infrastructure" in worker.outcomes(pk, "fetch") if pk in worker.states() else False)
    folder.unlink()
    folder.mkdir()
    worker.drive()
    assert harness.status(pk) == "finished"


def test_a_child_loads_nothing_of_the_daemon() -> None:
    """Configuration, database and network are not loaded in the process that reads participants' files, which also saves time."""
    heavy = {"pydantic", "yaml", "sqlalchemy", "requests", "psutil", "structlog"}
    code = (
        "import sys, worker.evaluation.evaluate_child, worker.runtime.child_main;"
        f"print(sorted({heavy} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
