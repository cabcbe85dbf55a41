"""The child that reads and scores: the ways in which it can end, and who is to blame."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import psutil
import pytest

from scoring.errors import NeucoError, OrganizerError, ParticipantError
from tests.waiting import until
from tests.worker.harness.gate import interpreter, scoring_hangs
from tests.worker.harness.harness import NEW, SECRET, Harness, StepWorker, embeddings
from worker.challenge.configuration import load
from worker.challenge.setups import read_phases
from worker.evaluation.outcomes import READING, SCORING, STARTING, blame
from worker.runtime.child import Child, command
from worker.runtime.child_acts import Died, OverLimit
from worker.state import HOPELESS_TRIES, HOPELESS_WAIT, Outcome


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
        (Died(-signal.SIGABRT), SCORING, 2, "evaluate.died"),  # as Ray ends a process
        (Died(-signal.SIGKILL), READING, 2, "evaluate.died"),
    ],
)
def test_a_file_is_to_blame_only_while_it_is_read(
    error: NeucoError, stage: str, crashed_before: int, code: str
) -> None:
    """A limit is its author's fault only during reading, and a crash only if it is the third one; a kill never is."""
    _, blamed = blame(error, stage, 7, crashed_before=crashed_before)
    assert (blamed.code, isinstance(blamed, ParticipantError)) == (code, code.startswith("file."))


@pytest.mark.processes
def test_a_memory_limit_that_no_good_file_fits_into_is_refused(harness: Harness) -> None:
    """The configuration is refused before any participant's file is read."""
    harness.configure({"submission": {"memory_gigabytes": 0.1}})
    with pytest.raises(OrganizerError, match=r"valid file of phase dev .* may need 0\.25 GB") as refused:
        read_phases(load(harness.path))
    assert refused.value.hint.startswith("Set it to 1 or ")
    harness.configure({"submission": {"memory_gigabytes": 0.3}})
    assert set(read_phases(load(harness.path))) >= {"dev"}


@pytest.mark.processes
def test_an_exception_in_a_child_shows_nothing_outside(tmp_path: Path) -> None:
    """A defect ends the child with a status; what it printed stays in its stderr."""
    arguments = command("worker.evaluation.evaluate_child")
    with closing(
        Child(arguments, {"file": "/nowhere"}, folder=tmp_path / "child", wake=lambda: None)
    ) as child:
        until(lambda: child.ended() is not None)
        assert (child.ended(), list(child.messages())) == (1, [])
        assert "KeyError" in child.errors()
    assert not (tmp_path / "child").exists()


@pytest.mark.slow
def test_an_evaluation_that_fails_again_and_again_waits_longer(harness: Harness) -> None:
    """Each wait is longer than the one before; from ten failures on it is a quarter of an hour, and one alert tells of all submissions."""
    with harness.worker() as worker:
        with pytest.MonkeyPatch.context() as patch:
            deadly = interpreter(harness.folder, 'case "$*" in *evaluate_child) kill -9 $$;; esac')
            patch.setattr(sys, "executable", str(deadly))
            pks = [harness.submit(team, embeddings(number)) for number, team in enumerate("AB")]
            begun = worker.clock.now()
            worker.drive(lambda: all(len(worker.outcomes(pk)) == HOPELESS_TRIES for pk in pks))
            assert worker.clock.now() - begun > timedelta(minutes=3)
            worker.drive(lambda: worker.alerts() == {"evaluate.hopeless"})
            worker.clock.advance(HOPELESS_WAIT.total_seconds() - 120)
            worker.wait(10)
            assert {len(worker.outcomes(pk)) for pk in pks} == {HOPELESS_TRIES}
        worker.restart()
        worker.finish(*pks)
        worker.advance(60)
        assert worker.alerts() == set()


@pytest.mark.processes
def test_damaged_compiled_code_ends_no_evaluation(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """After a power failure, the submission is scored all the same, without an alert, and the log names the file once."""
    cache = harness.folder / "numba"
    shutil.copytree(os.environ["NUMBA_CACHE_DIR"], cache)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(cache))
    with harness.worker() as worker:
        worker.finish(harness.submit("A", embeddings(NEW)))  # compiles what is not compiled yet
        damaged = [*cache.rglob("train.train_fold-*.nbc")]
        for path in damaged:
            path.write_bytes(path.read_bytes()[:-100])
        for value in (NEW + 1, NEW + 2):
            worker.finish(harness.submit("A", embeddings(value)))
        assert worker.alerts() == set()
    told = capsys.readouterr().out
    assert [told.count(str(path)) for path in damaged if str(path) in told] == [1]


@pytest.mark.processes
def test_a_child_has_low_priority_and_sees_no_secret(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has a lower priority, a process group of its own, is killed first when memory runs out, and sees no secret."""
    monkeypatch.setenv("NEUCO_TEST_SECRET", "hush-hush")
    with harness.worker() as worker, scoring_hangs(harness.folder):
        harness.submit("A", embeddings(NEW))
        worker.drive(lambda: worker.scoring("scoring"))
        child = worker.child()
        assert child is not None
        assert child.nice() > psutil.Process().nice()
        assert os.getpgid(child.pid) == child.pid
        assert int(Path(f"/proc/{child.pid}/oom_score_adj").read_text()) >= 500
        seen = [Path(f"/proc/{child.pid}/{name}").read_text() for name in ("environ", "cmdline")]
        for secret in ("hush-hush", harness.evalai.token("host"), SECRET):
            assert not [text for text in seen if secret in text]


@pytest.mark.processes
def test_a_rescore_under_way_mixes_no_protocols(harness: Harness) -> None:
    """Cells that were computed under the old protocol are kept under the old one."""
    protocols: list[str] = []

    def rescore(checkpoint: str) -> None:
        if checkpoint == "after child evaluate" and not protocols:
            protocols.append(worker.daemon.context.phase("dev").record.protocol.hash)
            harness.configure({"phases": {"dev": {"folds": 5}}})
            harness.rescore()

    with harness.worker(checkpoint=rescore) as worker:
        pk = harness.submit("A", embeddings(NEW))
        worker.drive()
        protocols.append(worker.daemon.context.phase("dev").record.protocol.hash)
        with worker.store.read() as tx:
            content = str(worker.row(pk).content_hash)
            folds = [{len(cell.folds) for cell in tx.cells(content, protocol)} for protocol in protocols]
    assert folds == [{4}, {5}]


@pytest.mark.processes
def test_a_child_that_cannot_be_started_is_tried_again(harness: Harness, worker: StepWorker) -> None:
    """If the child's folder cannot be made, the submission waits until it can."""
    folder = harness.state / "tmp"
    folder.rmdir()
    folder.write_text("in the way")
    pk = harness.submit("A", embeddings(1))
    worker.drive(lambda: worker.failed(pk) > 0)
    folder.unlink()
    folder.mkdir()
    worker.drive()
    assert harness.status(pk) == "finished"


@pytest.mark.processes
def test_a_child_loads_nothing_of_the_daemon() -> None:
    """Neither configuration nor database is loaded where participants' files are read, which also saves time."""
    heavy = {"pydantic", "yaml", "sqlalchemy", "psutil", "structlog", "requests"}
    modules = "worker.evaluation.evaluate_child, worker.runtime.child_main"
    code = f"import sys, {modules}; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
