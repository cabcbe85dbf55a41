"""Several workers on one PostgreSQL state: the work is shared, calls and pushes are one worker's, and whoever dies is replaced."""

from __future__ import annotations

import json
import random
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from tests.worker.postgres_server import Server, binaries, server
from tests.worker.stage import NEW, Play, Stage, embeddings
from worker import sharing
from worker.configuration import load
from worker.daemon import Worker, make_client
from worker.fetching.stage import AHEAD
from worker.sandbox import ManualClock
from worker.sharing import LEASE
from worker.state import LOG_UNSEEN, RESTORED, Store
from worker.states import ACTIVE, Outcome, State

pytestmark = [
    pytest.mark.xdist_group("postgres"),  # one server
    pytest.mark.skipif(binaries() is None, reason="no PostgreSQL server is installed (tests/setup.sh)"),
]
LIMIT_S = 180.0
LINKS = ("ids.txt", "tasks", "challenge.secret", "token", "board.git")


@pytest.fixture(scope="module")
def postgres() -> Iterator[Server]:
    """One server for this module."""
    with server() as running:
        yield running


@pytest.fixture
def shared(tmp_path: Path, postgres: Server, cells: Path) -> Iterator[Stage]:
    """A stage whose state is on the server, under a clock that stands still unless it is moved."""
    url = postgres.url(postgres.fresh())
    (tmp_path / "one").mkdir()
    with Stage(tmp_path / "one", clock=ManualClock(), changes={"state": url}) as stage:
        know_cells(stage, cells)
        yield stage


def know_cells(stage: Stage, cells: Path) -> None:
    """Let the database know the scores of what most plays submit."""
    store = stage.store()
    with store.write() as tx:
        for row in json.loads(cells.read_text()):
            tx._connection.exec_driver_sql(
                f"INSERT INTO cells VALUES ({','.join(['%s'] * len(row))})", tuple(row)
            )
    store.close()


def second_machine(stage: Stage, folder: Path, *, own_tasks: bool = False) -> Path:
    """Make a folder with the same challenge and a state directory (and label files) of its own; return its configuration."""
    folder.mkdir()
    for name in LINKS:
        (folder / name).symlink_to(stage.folder / name)
    if own_tasks:
        (folder / "tasks").unlink()
        shutil.copytree(stage.folder / "tasks", folder / "tasks")
    path = folder / "challenge.yaml"
    path.write_text(stage.path.read_text())
    return path


class Colleague(Play):
    """One of several workers on a stage.

    Args:
        stage: With its state on a server.
        name: Among the workers.
        path: Configuration file, if not the stage's.
    """

    def __init__(self, stage: Stage, name: str, *, path: Path | None = None) -> None:
        self.name = name
        self._path = path or stage.path
        self.dead = False
        super().__init__(stage)

    def start(self) -> None:
        """Begin under a name of its own."""
        configuration = load(self._path)
        self.store = Store(configuration.database_url)
        self.worker = Worker(
            configuration,
            self.store,
            make_client(configuration, clock=self.clock.now),
            now=self.clock.now(),
            random=random.Random(0),
            name=self.name,
            wake=self.wake.set,
        )

    def die(self) -> None:
        """Vanish as a machine without power does: children, connections, and no word to anybody."""
        for stage in (self.worker.evaluation, self.worker.fetching):
            for performance in stage._runner._performances:
                if performance.child is not None:
                    performance.child.close()
        self.store.close()
        self.dead = True

    def stop(self) -> None:
        """End in good order, unless dead."""
        if not self.dead:
            super().stop()


Hire = Callable[..., Colleague]


@pytest.fixture
def hire(shared: Stage) -> Iterator[Hire]:
    """Start workers on the stage; those that live are ended with the test."""
    hired: list[Colleague] = []

    def start(name: str, **options: Path) -> Colleague:
        hired.append(Colleague(shared, name, **options))
        return hired[-1]

    yield start
    for one in hired:
        one.stop()


def together(
    colleagues: Sequence[Colleague], until: Callable[[], bool], *, watch: Callable[[], None] = lambda: None
) -> None:
    """Step all in turns until a condition holds; time goes on when nobody has anything under way."""
    ends = time.monotonic() + LIMIT_S
    while not until():
        moved = False
        for one in colleagues:
            moved |= one.step()
            watch()
        if time.monotonic() > ends:
            raise AssertionError(f"it did not come: {colleagues[0].states()}")
        if not moved:
            if any(one.busy for one in colleagues):
                threading.Event().wait(0.02)
                colleagues[0].clock.advance(0.02)
            else:
                colleagues[0].clock.advance(0.5)


def all_in(one: Colleague, *states: State) -> bool:
    """Tell whether every submission has come to one of some states."""
    found = set(one.states().values())
    return bool(found) and found <= {state.value for state in states}


def workers_of(one: Colleague, kind: str = "evaluate") -> dict[int, list[str]]:
    """Return which workers tried each submission."""
    with one.store.read() as tx:
        tried: dict[int, list[str]] = {}
        for attempt in tx.attempts():
            if attempt["kind"] == kind:
                tried.setdefault(attempt["submission"], []).append(attempt["worker"])
    return tried


def test_a_worker_runs_on_postgresql(shared: Stage, hire: Hire) -> None:
    """From queue to board, a refused file and a large upload among them, as on SQLite."""
    good, other = shared.submit("A"), shared.submit("B", embeddings(1))
    bad = shared.submit("C", b"id,0\nimg_000,1\n")
    large = shared.evalai.begin_upload("D", "dev")
    one = hire("one")
    together([one], lambda: all_in(one, State.PUBLISHED, State.FAILED, State.UPLOADING))
    shared.evalai.finish_upload(large, embeddings(2))
    together([one], lambda: all_in(one, State.PUBLISHED, State.FAILED))
    pks = (good, other, bad, large)
    assert [shared.status(pk) for pk in pks] == ["finished", "finished", "failed", "finished"]
    assert sorted(shared.teams()) == ["A", "B", "D"]
    assert all(len(shared.posts(pk)) == 1 for pk in pks)


def test_two_workers_share_the_work(shared: Stage, hire: Hire, tmp_path: Path) -> None:
    """Each scores some on a machine of its own, fetched shortly before; one makes all calls, one pushes, every answer is posted once."""
    pks = [shared.submit(f"team {number}", embeddings(number)) for number in range(8)]
    here = hire("here")
    there = hire("there", path=second_machine(shared, tmp_path / "two"))
    ahead: list[int] = []

    def count() -> None:
        ahead.append(list(here.states().values()).count(State.FETCHED))

    together([here, there], lambda: all_in(here, State.PUBLISHED), watch=count)
    assert 1 <= max(ahead) <= 2 * AHEAD
    tried = workers_of(here)
    assert {name for names in tried.values() for name in names} == {"here", "there"}
    assert all(len(names) == 1 for names in tried.values())
    assert {pk: len(shared.posts(pk)) for pk in pks} == dict.fromkeys(pks, 1)
    assert len(shared.teams()) == 8
    assert [one.worker.budget.total > 0 for one in (here, there)] == [True, False]


def test_a_dead_worker_is_replaced(shared: Stage, hire: Hire, tmp_path: Path) -> None:
    """It held calls, pushes, a stored file and an evaluation; within a lease another machine has done all of it, once."""
    here = hire("here")
    there = hire("there", path=second_machine(shared, tmp_path / "two"))
    together([here], lambda: here.worker.intake.session.connected)
    pk = shared.submit("A", embeddings(NEW))
    together([here], lambda: here.worker.evaluation.busy)
    died_at = here.clock.now()
    here.die()
    together([there], lambda: Outcome.DEAD in there.outcomes(pk))
    assert there.clock.now() - died_at >= LEASE - timedelta(seconds=16), "taken over before the lease ended"
    together([there], lambda: all_in(there, State.PUBLISHED))
    assert workers_of(there) == {pk: ["here", "there"]}
    assert there.outcomes(pk) == [Outcome.DEAD, Outcome.DONE]
    assert workers_of(there, "fetch") == {pk: ["here", "there"]}
    assert len(shared.posts(pk)) == 1
    assert shared.teams() == ["A"]


def test_a_claim_on_what_another_machine_fetched_is_given_up(
    shared: Stage, hire: Hire, tmp_path: Path
) -> None:
    """The same content may lie on two machines: who leaves the phase to the other keeps no claim, and takes no file away."""
    here = hire("here")
    there = hire("there", path=second_machine(shared, tmp_path / "two"))
    pk = shared.submit("A", embeddings(0))
    together([here], lambda: here.states().get(pk) == "fetched")
    now = here.clock.now()
    with here.store.write() as tx:
        here.worker.sharing.let_go(tx, pk, now)
    assert there.worker.sharing.claim(pk, now)
    with there.store.write() as tx:
        there.worker.sharing.hand_back(tx, {"dev"}, now)
        assert tx.attempts(pk=pk, open_only=True) == []
    assert here.state(pk) is State.FETCHED
    assert here.worker.sharing.claim(pk, now)


def test_a_worker_that_slept_is_fenced(shared: Stage, hire: Hire) -> None:
    """Its lease ended while it slept; what it brings when it wakes is refused, and nothing is posted twice."""
    here, there = hire("here"), hire("there")
    pk = shared.submit("A", embeddings(NEW))
    together([here], lambda: here.worker.evaluation.busy)
    slept_since = here.clock.now()
    for post in here.worker.sharing._posts.values():  # its network slept, too
        post.leave()
    together([there], lambda: there.state(pk) is State.PUBLISHED)
    assert there.clock.now() - slept_since > LEASE - timedelta(seconds=16)
    answer = there.known(pk).answer
    together([here, there], lambda: not here.worker.evaluation.busy)
    assert here.outcomes(pk) == [Outcome.DEAD, Outcome.DONE]
    assert there.known(pk).answer == answer
    assert there.state(pk) is State.PUBLISHED
    assert len(shared.posts(pk)) == 1


def test_a_state_that_was_put_back_from_a_dump_looks_for_what_it_lacks(shared: Stage, hire: Hire) -> None:
    """The organizer says so before the start; then what EvalAI shows since is named, and the public log is gone on from."""
    first = hire("first")
    shared.submit("A", embeddings(0))
    together([first], lambda: all_in(first, State.PUBLISHED))
    with first.store.read() as tx:
        known_until = tx.fact("reconciled_at")
    first.stop()
    first.dead = True
    assert shared.command("challenge", "restored").returncode == 0
    lost = shared.submit("B", embeddings(1))
    shared.evalai.edit(lost, status="finished")
    second = hire("second")
    with second.store.read() as tx:
        assert (tx.fact(RESTORED), tx.fact(LOG_UNSEEN)) == (known_until, "true")
    together([second], lambda: "restore.answered_since" in second.alerts())
    together([second], lambda: not second.worker.publishing.due() and not second.busy)
    with second.store.read() as tx:
        assert tx.fact(LOG_UNSEEN) is None


def test_a_lease_lasts_while_its_worker_lives(shared: Stage, hire: Hire) -> None:
    """However long an evaluation takes, nobody takes it from a worker that beats."""
    here, there = hire("here"), hire("there")
    pk = shared.submit("A", embeddings(NEW))
    together([here, there], lambda: here.worker.evaluation.busy or there.worker.evaluation.busy)
    for _ in range(20):
        here.clock.advance(LEASE.total_seconds() / 5)
        here.step()
        there.step()
    together([here, there], lambda: all_in(here, State.PUBLISHED))
    assert here.outcomes(pk) == [Outcome.DONE]


def test_the_budget_outlives_the_courier(shared: Stage, hire: Hire) -> None:
    """A new courier knows what the last one spent: never more calls in a minute than allowed (at a start: when it was read)."""
    shared.configure({"evalai": {"requests_per_minute": 6}})
    here, there = hire("here"), hire("there")
    for number in range(2):
        shared.submit(f"team {number}", embeddings(number))
    together([here], lambda: here.worker.budget.left(here.clock.now()) <= 2)
    here.die()
    left = there.worker.budget.left(there.clock.now())
    assert left <= 2
    together([there], lambda: all_in(there, State.PUBLISHED))
    requests = [entry for entry in shared.evalai.journal.requests() if entry.origin == "api"]
    calls = [entry.at for entry in requests if "/challenges/" not in entry.path]
    most = max(sum(timedelta() <= other - call < timedelta(seconds=60) for other in calls) for call in calls)
    assert most <= 6


def test_teams_take_turns_across_workers(shared: Stage, hire: Hire) -> None:
    """Six files of one team do not hold up another team's first, whoever scores."""
    many = [shared.submit("many", embeddings(number)) for number in range(6)]
    few = shared.submit("few", embeddings(6))
    here, there = hire("here"), hire("there")
    together([here, there], lambda: all_in(here, State.PUBLISHED))
    with here.store.read() as tx:
        order = [row["submission"] for row in tx.attempts() if row["kind"] == "evaluate"]
    assert order.index(few) <= 3
    assert sorted(order) == sorted([*many, few])


def test_only_an_alive_machine_is_believed() -> None:
    """A process of this boot that is gone is dead at once; of other machines only leases tell."""
    mark = sharing.machine_mark()
    assert sharing.is_dead(f"host:999999999:{mark}")
    assert not sharing.is_dead(sharing.worker_name())
    assert not sharing.is_dead("host:999999999:elsewher")
    assert not sharing.is_dead("play")


def test_a_killed_daemon_is_replaced_by_the_other(tmp_path: Path, postgres: Server, cells: Path) -> None:
    """Two daemons of one configuration; the one that scores is killed, and the other finishes everything once."""
    url = postgres.url(postgres.fresh())
    (tmp_path / "one").mkdir()
    with Stage(tmp_path / "one", changes={"state": url}) as stage:
        know_cells(stage, cells)
        daemons = {process.pid: process for process in (stage.run(), stage.run())}
        pks = [stage.submit(f"team {number}", embeddings(NEW + number)) for number in range(4)]
        store = stage.store()

        scorers: list[int] = []

        def scores() -> bool:
            with store.read() as tx:
                attempts = tx.attempts(open_only=True)
            scorers.extend(int(one["worker"].split(":")[1]) for one in attempts if one["kind"] == "evaluate")
            return bool(scorers)

        stage.until(scores)
        victim = daemons.pop(scorers[0])
        victim.send_signal(signal.SIGKILL)
        victim.wait(timeout=LIMIT_S)

        def done() -> bool:
            with store.read() as tx:
                return set(tx.counts()) == {"published"} and tx.counts()["published"] == len(pks)

        stage.until(done)
        with store.read() as tx:
            assert not tx.submissions(ACTIVE)
            assert any(attempt["outcome"] == Outcome.DEAD for attempt in tx.attempts())
        store.close()
        assert {pk: len(stage.posts(pk)) for pk in pks} == dict.fromkeys(pks, 1)
        assert len(stage.teams()) == len(pks)
        (survivor,) = daemons.values()
        survivor.terminate()
        assert survivor.wait(timeout=LIMIT_S) == 0
