"""A state that was rolled back, copied or run twice never forks the log: it stops until `challenge restore` says that it is older."""

from __future__ import annotations

import shutil
from contextlib import closing

import pytest

from tests.leaderboard.harness.git_server import git
from tests.worker.harness.commits import forged_commitment
from tests.worker.harness.harness import KEY, Harness, StepWorker, embeddings
from worker.challenge.signing import HOME, Signer
from worker.fairness import commitments, published, receipts
from worker.organizer.archiving import mark_restored
from worker.publishing.boards import attestation_files
from worker.state import State

pytestmark = pytest.mark.processes

CADENCE_S = 1000


@pytest.fixture
def begun(harness: Harness) -> Harness:
    """A challenge with an answered team, a line of the log, and a copy of its state."""
    harness.configure({"leaderboard": {"receipts_every": CADENCE_S}})
    with harness.worker() as worker:
        harness.submit("A", embeddings(1))
        worker.drive()
        worker.advance(CADENCE_S + 1)
    shutil.copytree(harness.state, harness.folder / "copy")
    return harness


def lines(harness: Harness) -> list[str]:
    """Return the public log."""
    return harness.published(receipts.PATH).splitlines()


def roll_back(harness: Harness) -> None:
    """Put the copy of the state in the state's place."""
    harness.state.rename(harness.folder / "newest")
    (harness.folder / "copy").rename(harness.folder / "state")


def restored(worker: StepWorker) -> None:
    """Record what `challenge restore --dump` records."""
    with worker.store.write() as tx:
        mark_restored(tx, worker.clock.now().isoformat())


def stops(worker: StepWorker) -> None:
    """Let the worker go on until it has told that its state is older."""
    worker.drive(lambda: "leaderboard.state_behind" in worker.alerts())


def test_a_line_that_is_due_first_is_not_signed_again(begun: Harness) -> None:
    """A line is due before the first push of a rolled-back state: nothing is signed, pushed or answered until it is restored."""
    with begun.worker() as worker:
        begun.submit("B", embeddings(2))
        worker.drive()
        worker.advance(CADENCE_S)
    before, tip = lines(begun), git("rev-parse", "main", at=begun.board)
    assert len(before) == 2
    roll_back(begun)
    with begun.worker() as worker:
        worker.clock.advance(CADENCE_S)
        stops(worker)
        pk = begun.submit("C", embeddings(3))
        worker.drive(lambda: worker.states().get(pk) == State.FETCHED)
        worker.wait(30)
        assert worker.states()[pk] == State.FETCHED
        assert git("rev-parse", "main", at=begun.board) == tip
        with worker.store.read() as tx:
            assert len(tx.batches()) == 1
        restored(worker)
        worker.clock.advance(3600)
        worker.drive(lambda: worker.states().get(pk) == State.PUBLISHED)
        assert "leaderboard.state_behind" not in worker.alerts()
    assert lines(begun)[:2] == before
    assert begun.contradictions() == []


def test_a_board_without_a_line_yet_counts(begun: Harness) -> None:
    """An answer that only the last board shows is not lost without a word either."""
    with begun.worker() as worker:
        begun.submit("B", embeddings(2))
        worker.drive()
    roll_back(begun)
    with begun.worker() as worker:
        stops(worker)
    assert set(begun.teams()) == {"A", "B"}


def test_a_copy_that_signed_at_the_same_moment_gives_way(begun: Harness) -> None:
    """Both had compared before either pushed; the copy that comes second stops, and goes on from the public line once it is restored."""
    with begun.worker() as worker:
        worker.advance(CADENCE_S)
    before = lines(begun)
    roll_back(begun)
    with begun.worker() as worker:
        with worker.store.write() as tx:
            receipts.close_batch(tx, KEY, made_at=worker.clock.now())
        stops(worker)
        restored(worker)
        worker.clock.advance(3600)
        worker.drive(lambda: "leaderboard.state_behind" not in worker.alerts())
    assert lines(begun)[: len(before)] == before
    assert len(lines(begun)) > len(before)
    assert begun.contradictions() == []


@pytest.mark.parametrize("loses_a_line", [False, True])
def test_a_restore_is_later_than_what_it_lost(begun: Harness, *, loses_a_line: bool) -> None:
    """The clock of the new machine is behind; nobody says later that the organizers have hidden a board."""
    with begun.worker() as worker:
        worker.advance(CADENCE_S + 1 if loses_a_line else CADENCE_S / 2)
        begun.submit("B", embeddings(2))
        worker.drive()
    roll_back(begun)
    assert begun.clock is not None
    begun.clock.advance(-60)
    with begun.worker() as worker:
        restored(worker)
        worker.drive()
    for decision in (("board", "close", "--phase", "dev", "--now"), ("challenge", "reveal")):
        begun.decide(*decision)
    assert begun.contradictions() == []


def test_the_newest_state_may_move(begun: Harness) -> None:
    """A copy that lacks nothing, as on a new machine, goes on without a word."""
    roll_back(begun)
    with begun.worker() as worker:
        begun.submit("B", embeddings(2))
        worker.drive()
        worker.advance(CADENCE_S)
        assert worker.alerts() == set()
    assert set(begun.teams()) == {"A", "B"}
    assert begun.contradictions() == []


def test_a_commitment_that_no_backup_has_cannot_be_taken_over(begun: Harness) -> None:
    """What it hides is lost, so a restored state stops, too, and the message names another way out; a stranger's stops nothing."""
    with closing(begun.store()) as store, store.write() as tx:
        ours, key = attestation_files(tx), KEY
    listed = ours[commitments.PATH].decode()
    for restored_, hint in ((False, published.RESTORE), (True, published.NEWER)):
        public = [{commitments.PATH: forged_commitment(listed, key)}]
        with pytest.raises(published.StateIsBehind) as stopped:
            published.check_state(public, ours, key=key.public, restored=restored_)
        assert stopped.value.hint == hint
        public = [{commitments.PATH: forged_commitment(listed, Signer(b"7" * 32))}]
        published.check_state(public, ours, key=key.public, restored=restored_)


def test_nothing_is_answered_before_the_public_log_was_read(harness: Harness) -> None:
    """An answer that waits in a rolled-back state does not leave in the first seconds after the start; it may be an older one."""
    with harness.worker() as worker:
        pk = harness.submit("A", embeddings(1))
        worker.drive(lambda: worker.states().get(pk) == State.SCORED)
        shutil.copytree(harness.state, harness.folder / "copy")
        worker.drive()
    posted = harness.posts(pk)
    roll_back(harness)
    with harness.worker() as worker:
        stops(worker)
        worker.wait(30)
    assert harness.posts(pk) == posted


def test_nothing_is_published_before_evalai_has_answered(live: Harness) -> None:
    """A trial without EvalAI leaves no commitment that the real challenge would have to explain in public."""
    live.configure({"evalai": {"server": "http://127.0.0.1:9"}})
    assert live.once().returncode == 1
    refused = live.command("board", "publish")
    assert "EvalAI has not answered" in refused.stderr
    assert git("for-each-ref", at=live.board) == ""


def test_a_copy_does_not_sign(live: Harness) -> None:
    """While the original is in its place, its copy starts no worker; once that was moved away, the copy goes on."""
    live.submit("A", embeddings(1))
    assert live.once().returncode == 0
    tip = git("rev-parse", "main", at=live.board)
    home = live.state.rename(live.folder / "home")
    shutil.copytree(home, live.state)
    with closing(live.store()) as store, store.write() as tx:
        tx.set_fact(HOME, str(home / "worker.db"))
    refused = live.once()
    assert refused.returncode == 2
    assert str(home) in refused.stderr
    assert git("rev-parse", "main", at=live.board) == tip
    home.rename(live.folder / "away")
    assert live.once().returncode == 0
