"""The child that reads and scores: how it may end, and who is blamed."""

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

from scoring.errors import OrganizerError
from tests.worker.harness.gate import hanging
from tests.worker.harness.harness import LIMIT_S, NEW, Play, Stage, embeddings
from worker.challenge.configuration import load
from worker.challenge.files import read_phases
from worker.evaluation.act import ScoreSubmission
from worker.fetching.act import FetchFile
from worker.runtime.cgroup import Delegation
from worker.runtime.child_acts import ChildAct
from worker.runtime.children import Child
from worker.runtime.limits import GIGABYTE
from worker.state import Attempt, State

SLOW = {"phases": {"dev": {"folds": 60_000}}}  # scoring that lasts until it is ended


@contextmanager
def held_reading(stage: Stage) -> Iterator[tuple[Play, Callable[[], None]]]:
    """Let a worker play whose children hang where they open the one submitted file, until it is released."""
    with ExitStack() as obstacles:
        held: list[Path] = []

        def hold(checkpoint: str) -> None:
            if checkpoint == "before child evaluate" and not held:
                held.extend(play.worker.files.stored())
                obstacles.enter_context(hanging(held[0]))

        with stage.play(checkpoint=hold) as play:
            yield play, obstacles.close


@contextmanager
def unheld(stage: Stage) -> Iterator[tuple[Play, Callable[[], None]]]:
    """Let a worker play in whose way nothing is."""
    with stage.play() as play:
        yield play, lambda: None


def reach(play: Play, stage: str) -> None:
    """Drive until the child is in a stage."""
    play.drive(lambda: play.scoring(stage))


def tighten(play: Play, **limits: float) -> None:
    """Give the worker a limit that no configuration may have, to have it hit at once."""
    configuration = play.worker.context.configuration
    submission = configuration.submission.model_copy(update=limits)
    play.worker.context.configuration = configuration.model_copy(update={"submission": submission})


def end_for_memory(play: Play, tree: Path) -> None:
    """End the child as the kernel does when it goes over its ceiling, which stands in its group's file."""
    child = play.child()
    assert child is not None
    (group,) = [one for one in tree.iterdir() if (one / "cgroup.procs").read_text() == f"{child.pid}\n"]
    (group / "memory.events").write_text("oom 1\noom_kill 1\n")
    child.send_signal(signal.SIGKILL)


@pytest.fixture
def slow(stage: Stage) -> Stage:
    """A stage on which scoring lasts."""
    stage.configure(SLOW)
    return stage


@pytest.mark.parametrize("what", ["deadline", "memory"])
def test_a_limit_hit_while_scoring_is_ours(slow: Stage, what: str) -> None:
    """The submission waits, the organizer is told, and after the limit is raised it goes on by itself."""
    with slow.play() as play:
        pk = slow.submit("A", embeddings(NEW))
        reach(play, "scoring")
        tighten(play, **{"deadline": 0.001} if what == "deadline" else {"memory_gigabytes": 0.001})
        play.drive(lambda: bool(play.alerts()))
        assert play.outcomes(pk) == [what]
        assert play.alerts() == {f"evaluate.{what}"}
        assert slow.posts(pk) == []
        assert slow.status(pk) == "running"
        assert play.state(pk) is State.FETCHED


@pytest.mark.parametrize("what", ["deadline", "memory"])
def test_a_limit_hit_while_reading_is_the_files(stage: Stage, what: str) -> None:
    """A file that takes too much to read fails, in words about the file."""
    tree = stage.folder / "tree"
    tree.mkdir()
    with held_reading(stage) as (play, _):
        play.worker.context.cgroup = Delegation(tree)
        pk = stage.submit("A", embeddings(NEW))
        reach(play, "reading")
        if what == "deadline":
            tighten(play, deadline=0.001)
        else:
            end_for_memory(play, tree)
        play.drive(lambda: play.state(pk) is State.FAILED)
        assert play.outcomes(pk) == [what]
        assert stage.status(pk) == "failed"
        assert "Reading the file took more" in stage.stderr(pk)
        assert play.alerts() == set()


def test_a_memory_limit_below_what_a_good_file_needs_is_never_the_files(stage: Stage) -> None:
    """What a child has before it reads anything is measured; if the limit leaves too little, only the organizer hears of it."""
    with held_reading(stage) as (play, release):
        pk = stage.submit("A", embeddings(NEW))
        reach(play, "reading")
        tighten(play, memory_gigabytes=0.001)
        play.drive(lambda: bool(play.alerts()))
        assert play.outcomes(pk) == ["memory"]
        assert play.alerts() == {"evaluate.memory_limit"}
        assert stage.posts(pk) == []
        assert stage.status(pk) == "running"
        release()
        play.reload()
        play.drive(lambda: stage.status(pk) == "finished")
        play.drive()
        assert play.alerts() == set()


def test_a_memory_limit_that_no_good_file_fits_into_is_refused(stage: Stage) -> None:
    """The configuration is wrong then, and says so before any participant's file is looked at."""
    stage.configure({"submission": {"memory_gigabytes": 0.1}})
    with pytest.raises(
        OrganizerError, match=r"to read a good file of phase dev .* may take 0\.25 GB"
    ) as refused:
        read_phases(load(stage.path))
    assert (refused.value.code, refused.value.cure.split(" or ")[0]) == ("config.memory", "Set it to 1")
    stage.configure({"submission": {"memory_gigabytes": 0.3}})
    assert set(read_phases(load(stage.path))) >= {"dev"}


@pytest.mark.parametrize("stage_name", ["reading", "scoring"])
def test_a_killed_child_is_nobodys_fault(slow: Stage, stage_name: str) -> None:
    """Death by signal is tried again; the participant never hears of it."""
    with held_reading(slow) if stage_name == "reading" else unheld(slow) as (play, _):
        pk = slow.submit("A", embeddings(NEW))
        reach(play, stage_name)
        child = play.child()
        assert child is not None
        child.send_signal(signal.SIGKILL)
        play.drive(lambda: not play.worker.evaluation.busy)
        assert play.outcomes(pk)[0] == "signal"
        assert "evaluate.died" in play.alerts()
        assert slow.posts(pk) == []
        play.drive(lambda: len(play.outcomes(pk)) == 2)


def test_a_child_that_the_kernel_ends_for_its_memory_has_hit_the_limit(slow: Stage) -> None:
    """With a ceiling of the kernel's, death by its hand is told from any other signal."""
    tree = slow.folder / "tree"
    tree.mkdir()
    with slow.play() as play:
        play.worker.context.cgroup = Delegation(tree)
        pk = slow.submit("A", embeddings(NEW))
        reach(play, "scoring")
        child = play.child()
        assert child is not None
        (group,) = tree.iterdir()
        assert (group / "cgroup.procs").read_text().strip() == str(child.pid)
        assert int((group / "memory.max").read_text()) == 8 * GIGABYTE
        end_for_memory(play, tree)
        play.drive(lambda: not play.worker.evaluation.busy)
        assert play.outcomes(pk)[0] == "memory"
        assert play.alerts() == {"evaluate.memory"}
        assert slow.posts(pk) == []


def test_after_a_killed_child_the_answer_comes(stage: Stage, play: Play) -> None:
    """One distinct result, and the alert is over."""
    pk = stage.submit("A", embeddings(NEW))
    reach(play, "scoring")
    child = play.child()
    assert child is not None
    child.kill()
    play.drive()
    assert len(stage.posts(pk)) == 1
    assert play.outcomes(pk) == ["signal", "done"]
    assert play.alerts() == set()


def test_an_exception_in_a_child_shows_nothing_outside(tmp_path: Path) -> None:
    """A defect ends the child with a status; what it printed stays in its stderr."""
    woken = threading.Event()
    child = Child(
        "worker.evaluation.evaluate_child", {"file": "/nowhere"}, folder=tmp_path / "child", wake=woken.set
    )
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


def test_a_child_is_humble_and_blind(slow: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has low priority, a group of its own, offers itself to the kernel, and sees no secret."""
    monkeypatch.setenv("NEUCO_TEST_SECRET", "hush-hush")
    with slow.play() as play:
        slow.submit("A", embeddings(NEW))
        reach(play, "scoring")
        child = play.child()
        assert child is not None
        assert child.nice() > psutil.Process().nice()
        assert os.getpgid(child.pid) == child.pid
        assert int(Path(f"/proc/{child.pid}/oom_score_adj").read_text()) >= 500
        seen = (
            Path(f"/proc/{child.pid}/environ").read_bytes() + Path(f"/proc/{child.pid}/cmdline").read_bytes()
        )
        for secret in (b"hush-hush", slow.evalai.token("host").encode(), b"5a5a5a5a"):
            assert secret not in seen


def test_the_whole_group_is_gone_and_the_folder_too(slow: Stage) -> None:
    """However an evaluation ends, no process and no temporary file stays."""
    with slow.play() as play:
        slow.submit("A", embeddings(NEW))
        reach(play, "scoring")
        child = play.child()
        assert child is not None
        play.stop()
        assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE
        assert list((slow.state / "tmp").iterdir()) == []
        play.start()
        assert list(play.states().values()) == ["fetched"]


def test_a_cancellation_while_scoring_ends_the_child(slow: Stage) -> None:
    """When the listing shows the cancellation, nobody goes on scoring, and nothing is posted."""
    with slow.play() as play:
        pk = slow.submit("A", embeddings(NEW))
        reach(play, "scoring")
        slow.evalai.cancel(pk)
        play.clock.advance(25)  # the listing is due
        play.drive(lambda: not play.worker.evaluation.busy)
        assert play.state(pk) is State.CANCELLED
        assert play.outcomes(pk) == ["cancelled"]
        assert slow.posts(pk) == []


@pytest.mark.parametrize("kind", list(Attempt))
def test_what_was_cancelled_before_its_child_failed_stays_as_it_ended(stage: Stage, kind: Attempt) -> None:
    """The failure is on record with the attempt; the submission neither waits for anything nor is told of."""
    stage.configure({"submission": {"disk_reserve_gigabytes": 10**9}})  # it waits where the test takes over
    with stage.play() as play:
        pk = stage.submit("A", embeddings(1))
        play.drive(lambda: play.states().get(pk) == "acknowledged")
        context, files, known, now = play.worker.context, play.worker.files, play.known(pk), play.clock.now()
        act: ChildAct = FetchFile(context, files, known, deadline_s=9)
        if kind is Attempt.EVALUATE:
            act = ScoreSubmission(context, files, known, context.phases["dev"], stage.folder / "file")
        with play.store.write() as tx:
            state = State.ACKNOWLEDGED
            for target in (State.FETCHED, State.SCORING) if kind is Attempt.EVALUATE else ():
                tx.move(pk, state, target)
                state = target
            act.intent(tx, now)
            tx.move(pk, state, State.CANCELLED)
            act.failure(tx, OrganizerError("A fault.", code="a.fault"), now)
        assert play.outcomes(pk, kind) == ["organizer"]
        assert "a.fault" not in play.alerts()
        known = play.known(pk)
        assert (known.state, known.tries, known.not_before, known.hold) == (State.CANCELLED, 0, None, None)


def test_an_edited_label_file_changes_nothing(stage: Stage, play: Play) -> None:
    """What is scored after an edit, a restart in between or not, is scored on the labels that are on record."""
    first = stage.submit("A", embeddings(1))
    play.drive()
    for file in (stage.folder / "tasks" / "dev").iterdir():
        file.write_text("nonsense")
    before = stage.submit("B", embeddings(NEW))
    play.drive()
    play.restart()
    after = stage.submit("C", embeddings(NEW + 1))
    play.drive()
    assert [stage.status(pk) for pk in (first, before, after)] == ["finished"] * 3
    assert play.alerts() == set()
    with play.store.read() as tx:
        assert (
            len({(cell["task"], cell["version"]) for cell in tx.all_cells() if cell["phase"] == "dev"}) == 3
        )


def test_a_rescore_under_way_mixes_no_protocols(slow: Stage) -> None:
    """Cells that were computed under the old protocol are kept under the old one."""
    slow.configure({"phases": {"dev": {"folds": 2000}}})
    with slow.play() as play:
        old = play.worker.context.phases["dev"].protocol.hash
        pk = slow.submit("A", embeddings(NEW))
        reach(play, "scoring")
        slow.configure({"phases": {"dev": {"folds": 4}}})
        slow.rescore()
        play.drive(lambda: play.state(pk) not in (State.SCORING, State.FETCHED))
        new = play.worker.context.phases["dev"].protocol.hash
        assert new != old
        with play.store.read() as tx:
            content = play.known(pk).content_hash or ""
            assert {len(cell["folds"]) for cell in tx.cells(content, old)} == {2000}
            assert {len(cell["folds"]) for cell in tx.cells(content, new)} == {4}


def test_no_process_to_be_had_is_tried_again(stage: Stage, play: Play) -> None:
    """Without room for a child's folder the submission waits, and goes on when there is room."""
    folder = stage.state / "tmp"
    folder.rmdir()
    folder.write_text("in the way")
    pk = stage.submit("A", embeddings(1))
    play.drive(lambda: "infrastructure" in play.outcomes(pk, "fetch") if pk in play.states() else False)
    folder.unlink()
    folder.mkdir()
    play.drive()
    assert stage.status(pk) == "finished"


def test_a_child_loads_nothing_of_the_daemon() -> None:
    """Configuration, database and network stay out of the process that meets participants' files, and so does the time to load them."""
    heavy = {"pydantic", "yaml", "sqlalchemy", "requests", "psutil", "structlog"}
    code = (
        "import sys, worker.evaluation.evaluate_child, worker.runtime.child_main;"
        f"print(sorted({heavy} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
