"""Several submissions scored at the same time: never two of a team, each with a child, an end and an answer of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta

import psutil
import pytest

from scoring.errors import OrganizerError
from tests.worker.harness.harness import NEW, Play, Stage, embeddings
from worker.challenge.configuration import load
from worker.intake.running import SetRunning, next_to_run
from worker.runtime import NotDue
from worker.state import State


def widen(play: Play, at_once: int) -> None:
    """Let the worker score more at once, with the local engine: here nobody minds that it takes longer."""
    configuration = play.worker.context.configuration
    scoring = configuration.scoring.model_copy(update={"at_once": at_once})
    play.worker.context.configuration = configuration.model_copy(update={"scoring": scoring})


class Held:
    """Lets every child of a worker stand still from its start, until it is let go.

    Args:
        stage: Where the worker plays.
        at_once: How many children it may have.
    """

    def __init__(self, stage: Stage, at_once: int) -> None:
        self._holding = True
        self.play = Play(stage, checkpoint=self._passing)
        widen(self.play, at_once)

    def _passing(self, checkpoint: str) -> None:
        if checkpoint == "during child evaluate" and self._holding:
            # A process that is just starting has no command line yet.
            while len(found := children()) < len(self.pks):
                time.sleep(0)
            for child in found:
                child.suspend()

    @property
    def pks(self) -> list[int]:
        """The submissions that have a child."""
        return sorted(self.play.worker.evaluation.stages)

    def pass_time(self) -> None:
        """Let half a minute pass, in which whatever may begin begins."""
        for _ in range(30):
            self.play.clock.advance(1)
            self.play.drive(lambda: not (self.play.worker.intake.busy or self.play.worker.fetching.busy))

    def let_go(self) -> None:
        """Let all children go on."""
        self._holding = False
        for child in children():
            child.resume()


@pytest.fixture
def hold(stage: Stage) -> Iterator[Callable[[int], Held]]:
    """Start a worker with children that stand still."""
    started: list[Held] = []

    def start(at_once: int) -> Held:
        started.append(Held(stage, at_once))
        return started[-1]

    yield start
    for held in started:
        held.play.stop()


def children() -> list[psutil.Process]:
    """Return the processes that score."""
    found = []
    for process in psutil.Process().children():
        with suppress(psutil.Error):
            if "worker.evaluation.evaluate_child" in process.cmdline():
                found.append(process)
    return found


def running(stage: Stage, pks: list[int]) -> list[int]:
    """Return those that EvalAI shows as running."""
    return [pk for pk in pks if stage.status(pk) == "running"]


@pytest.mark.parametrize("engine", ["local", "torch"])
def test_on_one_machine_one_at_a_time_is_scored(stage: Stage, engine: str) -> None:
    """Two would only take longer there, so the configuration is refused, with the reason."""
    stage.configure({"scoring": {"engine": engine, "at_once": 2}})
    with pytest.raises(OrganizerError, match=r"scoring: at_once is 2, which needs engine: ray") as refused:
        load(stage.path)
    assert refused.value.code == "config.invalid"
    stage.configure({"scoring": {"engine": "ray"}})
    assert load(stage.path).scoring.at_once == 2


def test_as_many_as_allowed_are_scored_at_once_and_none_of_the_same_team(
    stage: Stage, hold: Callable[[int], Held]
) -> None:
    """Every child has its own submission; a team's second file waits although there is room for it."""
    held = hold(3)
    play = held.play
    first, second = stage.submit("A", embeddings(0)), stage.submit("A", embeddings(1))
    others = [stage.submit("B", embeddings(2))]
    play.drive(lambda: len(held.pks) == 2)
    held.pass_time()
    assert held.pks == sorted([first, *others])
    assert running(stage, [first, second, *others]) == [first, *others]
    others += [stage.submit("C", embeddings(3)), stage.submit("D", embeddings(4))]
    held.pass_time()
    assert held.pks == sorted([first, *others[:2]])
    held.let_go()
    play.drive()
    pks = [first, second, *others]
    assert {stage.status(pk) for pk in pks} == {"finished"}
    assert {pk: len(stage.posts(pk)) for pk in pks} == dict.fromkeys(pks, 1)
    begun = {pk: stage.evalai.submission(pk)["started_at"] for pk in (first, second)}
    assert begun[first] < begun[second]


def test_a_team_waits_for_its_answer_while_others_are_scored(stage: Stage) -> None:
    """The answer of its first file is ready and waits for the grid: its second is not begun, however much room there is."""
    stage.configure({"submission": {"answer_grid": 60}})
    with stage.play() as play:
        widen(play, 3)
        first, second = stage.submit("A", embeddings(0)), stage.submit("A", embeddings(1))
        play.drive(lambda: first in play.states() and play.state(first) is State.SCORED)
        other = stage.submit("B", embeddings(2))
        play.drive(lambda: other in play.states() and play.state(other) is State.SCORED)
        assert play.state(first) is State.SCORED
        assert running(stage, [second]) == []
        play.drive()
        assert {stage.status(pk) for pk in (first, second, other)} == {"finished"}


def test_the_end_of_one_child_is_not_the_others(stage: Stage, hold: Callable[[int], Held]) -> None:
    """One is cancelled and one is killed; the third is scored as if nothing had been."""
    held = hold(3)
    play = held.play
    cancelled, killed, scored = (stage.submit(team, embeddings(seed)) for seed, team in enumerate("ABC"))
    play.drive(lambda: len(held.pks) == 3)
    with play.store.read() as tx:
        attempts = {row["submission"]: row["id"] for row in tx.attempts(open_only=True)}
    stage.evalai.cancel(cancelled)
    play.clock.advance(25)  # the listing is due
    play.drive(lambda: cancelled not in held.pks)
    folder = str(stage.state / "tmp" / f"evaluate-{attempts[killed]}")
    (child,) = [one for one in children() if one.cwd() == folder]
    child.kill()
    play.drive(lambda: play.outcomes(killed)[0] is not None)
    assert scored in held.pks
    held.let_go()
    play.drive()
    assert play.outcomes(cancelled) == ["cancelled"]
    assert play.outcomes(killed) == ["signal", "done"]
    assert play.outcomes(scored) == ["done"]
    assert [len(stage.posts(pk)) for pk in (cancelled, killed, scored)] == [0, 1, 1]
    assert list((stage.state / "tmp").iterdir()) == []


def test_equal_content_scored_at_once_has_one_row_of_cells(stage: Stage, hold: Callable[[int], Held]) -> None:
    """Neither child knew of the other's content: the cells that came first stay, and both are answered from them."""
    held = hold(2)
    play = held.play
    one = stage.submit("A", embeddings(NEW))
    other = stage.submit("B", embeddings(NEW, shuffled=True))
    play.drive(lambda: len(held.pks) == 2)
    held.let_go()
    play.drive()
    assert play.known(one).content_hash == play.known(other).content_hash
    assert stage.stdout(one)["q_mean"] == stage.stdout(other)["q_mean"]
    setup = play.worker.context.phases["dev"]
    with play.store.read() as tx:
        cells = tx.cells(play.known(one).content_hash or "", setup.protocol.hash)
    assert [cell["task"] for cell in cells] == sorted(setup.tasks)


def test_the_choice_is_made_again_where_it_is_recorded(stage: Stage, play: Play) -> None:
    """What changed since the choice decides: a paused worker sets nothing to running any more."""
    pk = stage.submit("A", embeddings(0))
    play.drive(lambda: play.states().get(pk) == "fetched")
    now = play.clock.now() + timedelta(seconds=1)
    with play.store.read() as tx:
        chosen = next_to_run(play.worker.context, tx, now)
    assert chosen is not None
    assert chosen.pk == pk
    call = SetRunning(play.worker.context, chosen)
    with play.store.write() as tx:
        tx.set_fact("mode", "pause")
    with pytest.raises(NotDue), play.store.write() as tx:
        call.intent(tx, now)
    with play.store.write() as tx:
        tx.set_fact("mode", None)
    play.drive()
    assert stage.status(pk) == "finished"
