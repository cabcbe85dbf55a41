"""Several submissions scored at the same time: never two of one team, each with its own child, outcome and answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta

import psutil
import pytest

from scoring.errors import OrganizerError
from tests.worker.harness.harness import NEW, Harness, StepWorker, embeddings
from worker.challenge.configuration import load
from worker.intake.running import SetRunning, next_to_run
from worker.runtime import NotDue
from worker.state import State


def widen(worker: StepWorker, at_once: int) -> None:
    """Let the worker score more at once with the local engine, although that takes longer."""
    configuration = worker.daemon.context.configuration
    scoring = configuration.scoring.model_copy(update={"at_once": at_once})
    worker.daemon.context.configuration = configuration.model_copy(update={"scoring": scoring})


class Held:
    """Suspends every child of a worker at its start until it is released.

    Args:
        harness: Where the worker runs.
        at_once: The largest number of children.
    """

    def __init__(self, harness: Harness, at_once: int) -> None:
        self._holding = True
        self.child_of: dict[int, psutil.Process] = {}
        self.worker = StepWorker(harness, checkpoint=self._passing)
        widen(self.worker, at_once)

    def _passing(self, checkpoint: str) -> None:
        if checkpoint == "during child evaluate" and self._holding:
            # A process that is just starting has no command line yet.
            while len(found := children()) < len(self.pks):
                time.sleep(0)
            for child in set(found) - set(self.child_of.values()):
                child.suspend()
                self.child_of |= dict.fromkeys(set(self.pks) - set(self.child_of), child)

    @property
    def pks(self) -> list[int]:
        """The submissions that have a child."""
        return sorted(self.worker.daemon.evaluation.stages)

    def pass_time(self) -> None:
        """Let half a minute pass, in which everything that may start starts."""
        for _ in range(30):
            self.worker.clock.advance(1)
            self.worker.drive(
                lambda: not (self.worker.daemon.intake.busy or self.worker.daemon.fetching.busy)
            )

    def let_go(self) -> None:
        """Release all children."""
        self._holding = False
        for child in children():
            child.resume()


@pytest.fixture
def hold(harness: Harness) -> Iterator[Callable[[int], Held]]:
    """Start a worker whose children are suspended."""
    started: list[Held] = []

    def start(at_once: int) -> Held:
        started.append(Held(harness, at_once))
        return started[-1]

    yield start
    for held in started:
        held.worker.stop()


def children() -> list[psutil.Process]:
    """Return the processes that score."""
    found = []
    for process in psutil.Process().children():
        with suppress(psutil.Error):
            if "worker.evaluation.evaluate_child" in process.cmdline():
                found.append(process)
    return found


def running(harness: Harness, pks: list[int]) -> list[int]:
    """Return those that EvalAI shows as running."""
    return [pk for pk in pks if harness.status(pk) == "running"]


@pytest.mark.parametrize("engine", ["local", "torch"])
def test_on_one_machine_one_at_a_time_is_scored(harness: Harness, engine: str) -> None:
    """Two would only take longer there, so the configuration is refused, with the reason."""
    harness.configure({"scoring": {"engine": engine, "at_once": 2}})
    with pytest.raises(OrganizerError, match=r"scoring: at_once is 2, which needs engine: ray") as refused:
        load(harness.path)
    assert refused.value.code == "config.invalid"
    harness.configure({"scoring": {"engine": "ray"}})
    assert load(harness.path).scoring.at_once == 2


def test_as_many_as_allowed_are_scored_at_once_and_none_of_the_same_team(
    harness: Harness, hold: Callable[[int], Held]
) -> None:
    """Every child has its own submission; a team's second file waits even if another child could start."""
    held = hold(3)
    worker = held.worker
    first, second = harness.submit("A", embeddings(0)), harness.submit("A", embeddings(1))
    others = [harness.submit("B", embeddings(2))]
    worker.drive(lambda: len(held.pks) == 2)
    held.pass_time()
    assert held.pks == sorted([first, *others])
    assert running(harness, [first, second, *others]) == [first, *others]
    others += [harness.submit("C", embeddings(3)), harness.submit("D", embeddings(4))]
    held.pass_time()
    assert held.pks == sorted([first, *others[:2]])
    held.let_go()
    worker.drive()
    pks = [first, second, *others]
    assert {harness.status(pk) for pk in pks} == {"finished"}
    assert {pk: len(harness.posts(pk)) for pk in pks} == dict.fromkeys(pks, 1)
    begun = {pk: harness.evalai.submission(pk)["started_at"] for pk in (first, second)}
    assert begun[first] < begun[second]


def test_a_team_waits_for_its_answer_while_others_are_scored(harness: Harness) -> None:
    """The answer to its first file waits for the grid, so its second file is not started, even if another child could start."""
    harness.configure({"submission": {"answer_grid": 60}})
    with harness.worker() as worker:
        widen(worker, 3)
        first, second = harness.submit("A", embeddings(0)), harness.submit("A", embeddings(1))
        worker.drive(lambda: first in worker.states() and worker.state(first) is State.SCORED)
        other = harness.submit("B", embeddings(2))
        worker.drive(lambda: other in worker.states() and worker.state(other) is State.SCORED)
        assert worker.state(first) is State.SCORED
        assert running(harness, [second]) == []
        worker.drive()
        assert {harness.status(pk) for pk in (first, second, other)} == {"finished"}


def test_the_end_of_one_child_does_not_affect_the_others(
    harness: Harness, hold: Callable[[int], Held]
) -> None:
    """One is cancelled and one is killed; the third is scored normally."""
    held = hold(3)
    worker = held.worker
    cancelled, killed, scored = (harness.submit(team, embeddings(seed)) for seed, team in enumerate("ABC"))
    worker.drive(lambda: len(held.pks) == 3)
    harness.evalai.cancel(cancelled)
    worker.clock.advance(25)  # the listing is due
    worker.drive(lambda: cancelled not in held.pks)
    held.child_of[killed].kill()
    worker.drive(lambda: worker.outcomes(killed)[0] is not None)
    assert scored in held.pks
    held.let_go()
    worker.drive()
    assert worker.outcomes(cancelled) == ["cancelled"]
    assert worker.outcomes(killed) == ["signal", "done"]
    assert worker.outcomes(scored) == ["done"]
    assert [len(harness.posts(pk)) for pk in (cancelled, killed, scored)] == [0, 1, 1]
    assert harness.leftovers == []


def test_equal_content_scored_at_once_has_one_row_of_cells(
    harness: Harness, hold: Callable[[int], Held]
) -> None:
    """Neither child knew of the other's content: the first cells are kept, and both are answered from them."""
    held = hold(2)
    worker = held.worker
    one = harness.submit("A", embeddings(NEW))
    other = harness.submit("B", embeddings(NEW, shuffled=True))
    worker.drive(lambda: len(held.pks) == 2)
    held.let_go()
    worker.drive()
    assert worker.row(one).content_hash == worker.row(other).content_hash
    assert harness.stdout(one)["q_mean"] == harness.stdout(other)["q_mean"]
    setup = worker.daemon.context.phases["dev"]
    with worker.store.read() as tx:
        cells = tx.cells(worker.row(one).content_hash or "", setup.protocol.hash)
    assert [cell.task for cell in cells] == sorted(setup.tasks)


def test_the_choice_is_checked_again_when_it_is_recorded(harness: Harness, worker: StepWorker) -> None:
    """If the worker is paused after the choice, nothing is set to running."""
    pk = harness.submit("A", embeddings(0))
    worker.drive(lambda: worker.states().get(pk) == "fetched")
    now = worker.clock.now() + timedelta(seconds=1)
    with worker.store.read() as tx:
        chosen = next_to_run(worker.daemon.context, tx, now)
    assert chosen is not None
    assert chosen.pk == pk
    call = SetRunning(worker.daemon.context, chosen)
    with worker.store.write() as tx:
        tx.set_fact("mode", "pause")
    with pytest.raises(NotDue), worker.store.write() as tx:
        call.intent(tx, now)
    with worker.store.write() as tx:
        tx.set_fact("mode", None)
    worker.drive()
    assert harness.status(pk) == "finished"
