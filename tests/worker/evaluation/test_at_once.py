"""Several submissions scored at the same time: never two of one team, each with its own child, outcome and answer."""

from __future__ import annotations

import os
import sys
from typing import Self

import psutil
import pytest

from scoring.errors import OrganizerError
from tests.waiting import until
from tests.worker.harness.gate import interpreter
from tests.worker.harness.harness import Harness, StepWorker, embeddings, evaluating
from worker.challenge.configuration import load

pytestmark = pytest.mark.processes


class Held:
    """A worker that scores several at once with the local engine, whose children wait before they begin; a context manager.

    Args:
        harness: Where the worker runs.
        at_once: The largest number of children.

    Attributes:
        child_of: The child of each submission.
    """

    def __init__(self, harness: Harness, at_once: int) -> None:
        self.child_of: dict[int, psutil.Process] = {}
        self._patch = pytest.MonkeyPatch()
        self._barrier = harness.folder / "barrier"
        os.mkfifo(self._barrier)
        lines = f"""case "$*" in *evaluate_child) read -r _ < '{self._barrier}';; esac"""
        self._patch.setattr(sys, "executable", str(interpreter(harness.folder, lines)))
        self.worker = StepWorker(harness, checkpoint=self._passing)
        context = self.worker.daemon.context
        scoring = context.configuration.scoring.model_copy(update={"at_once": at_once})
        context.configuration = context.configuration.model_copy(update={"scoring": scoring})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._patch.undo()
        self.worker.stop()

    def _passing(self, checkpoint: str) -> None:
        if checkpoint == "during child evaluate" and self._barrier.is_fifo():
            others = set(self.child_of.values())
            # A process that is just starting has no command line yet.
            until(lambda: not others.issuperset(evaluating(os.getpid())))
            (child,) = set(evaluating(os.getpid())) - others
            self.child_of |= dict.fromkeys(set(self.pks) - set(self.child_of), child)

    @property
    def pks(self) -> list[int]:
        """The submissions that have a child."""
        return sorted(act.pk for act in self.worker.daemon.evaluation.runner.acts)

    def pass_time(self) -> None:
        """Let half a minute pass, in which everything that may start starts."""
        for _ in range(30):
            self.worker.clock.advance(1)
            self.worker.drive(
                lambda: not (self.worker.daemon.intake.busy or self.worker.daemon.fetching.busy)
            )

    def let_go(self) -> None:
        """Release all children."""
        self._patch.undo()
        writer = os.open(self._barrier, os.O_RDWR)  # ends the wait of those that are at the barrier
        self._barrier.rename(self._barrier.with_name("opened"))
        self._barrier.touch()  # for those that have not come to it yet
        os.close(writer)


def test_on_one_machine_one_at_a_time_is_scored(harness: Harness) -> None:
    """Two would only take longer there, so the configuration is refused, with the reason."""
    harness.configure({"scoring": {"at_once": 2}})
    with pytest.raises(OrganizerError, match=r"scoring: at_once is 2, which needs engine: ray"):
        load(harness.path)
    harness.configure({"scoring": {"engine": "ray"}})
    assert load(harness.path).scoring.at_once == 2


def test_as_many_as_allowed_are_scored_at_once_and_none_of_the_same_team(harness: Harness) -> None:
    """Every child has its own submission; a team's second file waits even if another child could start."""
    with Held(harness, 3) as held:
        first, second = harness.submit("A", embeddings(0)), harness.submit("A", embeddings(1))
        others = [harness.submit("B", embeddings(2))]
        held.worker.drive(lambda: len(held.pks) == 2)
        held.pass_time()
        assert held.pks == sorted([first, *others])
        assert harness.status(second) == "submitted"
        others += [harness.submit("C", embeddings(3)), harness.submit("D", embeddings(4))]
        held.pass_time()
        assert held.pks == sorted([first, *others[:2]])
        held.let_go()
        held.worker.drive()
    for pk in (first, second, *others):
        assert (harness.status(pk), len(harness.posts(pk))) == ("finished", 1)
    begun = [harness.evalai.submission(pk)["started_at"] for pk in (first, second)]
    assert begun[0] < begun[1]


def test_the_end_of_one_child_does_not_affect_the_others(harness: Harness) -> None:
    """One is cancelled, one is killed and tried again without a word to its team; the third is scored normally."""
    with Held(harness, 3) as held:
        worker = held.worker
        cancelled, killed, scored = (
            harness.submit(team, embeddings(seed)) for seed, team in enumerate("ABC")
        )
        worker.drive(lambda: len(held.pks) == 3)
        harness.evalai.edit(cancelled, status="cancelled")
        worker.clock.advance(25)  # the listing is due
        worker.drive(lambda: cancelled not in held.pks)
        held.child_of[killed].kill()
        worker.drive(lambda: worker.outcomes(killed)[0] is not None)
        assert scored in held.pks
        assert worker.alerts() == {"evaluate.died", "facts.changed"}
        assert harness.posts(killed) == []
        held.let_go()
        worker.drive()
        outcomes = [worker.outcomes(pk) for pk in (cancelled, killed, scored)]
        assert outcomes == [["cancelled"], ["signal", "done"], ["done"]]
        assert [len(harness.posts(pk)) for pk in (cancelled, killed, scored)] == [0, 1, 1]
        assert (worker.alerts(), harness.leftovers) == ({"facts.changed"}, [])
