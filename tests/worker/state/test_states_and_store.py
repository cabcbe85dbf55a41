"""States, conditional writes, a full database, the lock, the budget and the answers."""

from __future__ import annotations

import contextlib
import json
import os
import random
import sqlite3
import stat
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from scoring.errors import InfrastructureError, ParticipantError
from scoring.metrics import shown
from scoring.scorecard import TaskScore
from tests.worker.harness.harness import LIMIT_S, Harness, StepWorker, embeddings
from worker.cli import guarded
from worker.evalai import Budget
from worker.evalai.pacing import LONGEST_S, backoff
from worker.evaluation import answers
from worker.fairness.membership import ShownValue
from worker.organizer.doctor import Level, examine
from worker.state import ACTIVE, ANSWERED, COUNTED, Attempt, OutboxKind, Outcome, State, Store
from worker.state.states import TRANSITIONS

NOW = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """A store on either database."""
    with contextlib.closing(Store(url)) as store:
        yield store


def cell(task: str, q: float | None = 1.5) -> TaskScore:
    """A score with a failed fold."""
    return TaskScore(
        task=task,
        version="v" * 64,
        type="regr",
        row_set="r" * 64,
        folds=(0.25, float("nan"), 0.1),
        mean=0.2,
        std=0.05,
        q=q,
        failed_folds=1,
        seconds=2.5,
    )


def test_every_state_has_its_row_and_can_be_reached() -> None:
    """The table has every state; each is reachable from ``received``; only ``superseded`` has no transitions."""
    assert set(TRANSITIONS) == set(State)
    reached, new = {State.RECEIVED}, {State.RECEIVED}
    while new:
        new = {target for state in new for target in TRANSITIONS[state]} - reached
        reached |= new
    assert reached == set(State)
    assert [state for state, targets in TRANSITIONS.items() if not targets] == [State.SUPERSEDED]
    assert COUNTED < ANSWERED
    assert not ACTIVE & ANSWERED


def test_a_transition_that_is_not_in_the_table_is_a_defect(store: Store) -> None:
    """No code can move a submission along a transition that does not exist."""
    for source in State:
        for target in set(State) - TRANSITIONS[source]:
            with store.write() as tx, pytest.raises(ValueError, match="no transition"):
                tx.move(1, source, target)


def test_a_submission_is_stored_and_moved(store: Store) -> None:
    """Adding twice adds once; facts of every type are read back unchanged; of two moves from one state, only the first happens."""
    with store.write() as tx:
        assert tx.add(7, now=NOW, message_phase=3)
        assert not tx.add(7, now=NOW)
        tx.note(7, team="Ω😀 'team'", public_now=True, q_mean=0.1 + 0.2, submitted_at=NOW)
        tx.note(7, tries=4, not_before=NOW, hold="x", hold_reason="y")
        assert tx.move(7, State.RECEIVED, State.ACKNOWLEDGED)
        assert not tx.move(7, State.RECEIVED, State.CANCELLED)
    with store.read() as tx:
        row = tx.get(7)
        assert row is not None
        assert (row.state, row.team, row.public_now, row.baseline) == (
            State.ACKNOWLEDGED,
            "Ω😀 'team'",
            True,
            False,
        )
        assert (row.q_mean, row.submitted_at) == (0.1 + 0.2, NOW)
        assert (row.tries, row.not_before, row.hold) == (0, None, None)  # the move ends waits and holds
        assert tx.counts() == {"acknowledged": 1}


def test_a_time_keeps_its_moment(store: Store) -> None:
    """Another time zone gives the same moment; a naive time is refused."""
    with store.write() as tx:
        tx.add(1, now=NOW.astimezone(timezone(timedelta(hours=-7))))
    with store.read() as tx:
        row = tx.get(1)
        assert row is not None
        assert row.first_seen_at == NOW
    with pytest.raises((ValueError, sa.exc.StatementError, InfrastructureError)), store.write() as tx:
        tx.note(1, read_at=NOW.replace(tzinfo=None))


def test_a_failed_transaction_leaves_nothing(store: Store) -> None:
    """An exception rolls everything back."""
    with contextlib.suppress(ZeroDivisionError), store.write() as tx:
        tx.add(1, now=NOW)
        raise ZeroDivisionError
    with store.read() as tx:
        assert tx.get(1) is None


def test_submissions_and_cells_have_an_order(store: Store) -> None:
    """Unknown submission times come first, then the oldest; cells are ordered by code point, not by a language."""
    with store.write() as tx:
        for pk, minutes in ((1, 5), (2, None), (3, 1)):
            tx.add(pk, now=NOW)
            tx.note(pk, submitted_at=None if minutes is None else NOW + timedelta(minutes=minutes))
        scores = [cell(name) for name in ("b", "A", "a_b", "aB", "é")]
        tx.save_cells("c" * 64, "p" * 64, "dev", scores, provenance={}, now=NOW)
    with store.read() as tx:
        assert [row.pk for row in tx.submissions()] == [2, 3, 1]
        assert [row.task for row in tx.cells("c" * 64, "p" * 64)] == ["A", "aB", "a_b", "b", "é"]


def test_cells_come_back_to_the_bit(store: Store) -> None:
    """Fold scores are read back exactly, including failed ones, and existing cells are kept."""
    with store.write() as tx:
        tx.save_cells("c" * 64, "p" * 64, "dev", [cell("one")], provenance={"x": 1}, now=NOW)
        tx.save_cells("c" * 64, "p" * 64, "dev", [cell("one", q=9.0)], provenance={}, now=NOW)
    with store.read() as tx:
        (row,) = tx.cells("c" * 64, "p" * 64)
        assert row.folds[0] == 0.25
        assert row.folds[1] != row.folds[1]
        assert row.q == 1.5


def test_attempts_are_kept_and_closed_once(store: Store) -> None:
    """Each is closed with its first outcome; keys increase."""
    with store.write() as tx:
        tx.add(1, now=NOW)
        tx.note(1, team_key=4)
        first = tx.open_attempt(1, Attempt.EVALUATE, worker="w", now=NOW)
        second = tx.open_attempt(1, Attempt.EVALUATE, worker="w", now=NOW + timedelta(seconds=1))
        assert second > first
        tx.close_attempt(first, Outcome.MEMORY, now=NOW + timedelta(seconds=3), reason="too much")
        tx.close_attempt(first, Outcome.DONE, now=NOW)
        assert [row.id for row in tx.attempts(open_only=True)] == [second]
        assert [(row.outcome, row.reason) for row in tx.attempts(pk=1)] == [
            ("memory", "too much"),
            (None, None),
        ]
        assert tx.last_turns() == {4: NOW + timedelta(seconds=1)}


def test_the_outbox_holds_one_open_row_per_kind(store: Store) -> None:
    """There is one open row per submission and kind; after it is settled, there may be another."""
    with store.write() as tx:
        tx.add(1, now=NOW)
        for receipt in "abc":
            tx.owe(OutboxKind.DELETE, 1, now=NOW, receipt=receipt)
        (owed,) = tx.owed()
        assert owed.receipt == "c"
        tx.settled(owed.id, now=NOW)
        assert tx.owed() == []
        tx.owe(OutboxKind.DELETE, 1, now=NOW, receipt="d")
        assert [row.receipt for row in tx.owed(OutboxKind.DELETE)] == ["d"]


def test_writers_wait_for_one_another(url: str) -> None:
    """Two stores that read, compute and write lose no update, because the write lock is held from the start."""
    stores = [Store(url), Store(url)]
    with stores[0].write() as tx:
        tx.set_fact("number", "0")

    def count(store: Store) -> None:
        for _ in range(20):
            with store.write() as tx:
                tx.set_fact("number", str(int(tx.fact("number") or 0) + 1))

    threads = [threading.Thread(target=count, args=(store,)) for store in stores for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with stores[1].read() as tx:
        assert tx.fact("number") == "80"
    for store in stores:
        store.close()


def test_a_reader_sees_one_moment(url: str) -> None:
    """A commit during a reading transaction is not visible in it."""
    reader, writer = Store(url), Store(url)
    with reader.read() as tx:
        assert tx.fact("a") is None
        with writer.write() as other:
            other.set_fact("a", "1")
        assert tx.fact("a") is None
    with reader.read() as tx:
        assert tx.fact("a") == "1"
    reader.close()
    writer.close()


def test_several_starts_at_once_make_the_tables_once(url: str) -> None:
    """The others find them."""
    stores: list[Store] = []
    failures: list[BaseException] = []

    def start() -> None:
        try:
            stores.append(Store(url))
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    for store in stores:
        store.close()


def test_the_database_is_private(tmp_path: Path) -> None:
    """This holds for every umask: SQLite gives the files next to it the same mode."""
    old = os.umask(0)
    try:
        store = Store(f"sqlite:///{tmp_path}/state/worker.db")
    finally:
        os.umask(old)
    with store.write() as tx:
        tx.set_fact("k", "v")
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "state").iterdir()}
    assert modes == {"worker.db": 0o600, "worker.db-wal": 0o600, "worker.db-shm": 0o600}
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700
    store.close()


def test_an_alert_is_new_only_once_until_it_is_resolved(store: Store) -> None:
    """A repeated problem is only counted; after its end it is new again."""
    with store.write() as tx:
        later = NOW + timedelta(seconds=1)
        tx.raise_alert("k", "code", "text", now=NOW)
        tx.raise_alert("k", "code", "text", now=later)
        [alert] = tx.alerts()
        assert (alert.count, alert.raised_at, alert.seen_at) == (2, NOW, later)
        tx.alert_sent(alert, now=later)
        assert tx.alerts()[0].sent_at == later
        tx.resolve_alert("k", now=later)
        assert tx.alerts() == []
        tx.raise_alert("k", "code", "text", now=later)
        [alert] = tx.alerts()
        assert (alert.count, alert.raised_at, alert.sent_at) == (1, later, None)


def test_a_full_database_is_reported_and_survived(harness: Harness, worker: StepWorker) -> None:
    """Nothing is lost when the disk is full for a while: the worker stays, and continues when there is space."""
    worker.drive()
    pks = [harness.submit("ABCD"[number % 4], embeddings(number % 8)) for number in range(12)]
    failures: list[InfrastructureError] = []

    def trying() -> bool:
        try:
            worker.step()
        except InfrastructureError as error:
            failures.append(error)
        worker.clock.advance(0.02)
        return len(failures) >= 20

    def cramp(pages: int) -> None:
        worker.store._engine.dispose()  # the limit belongs to a connection
        for hook in hooks:
            event.remove(worker.store._engine, "connect", hook)
        hooks.clear()

        def limit(connection: sqlite3.Connection, _: object) -> None:
            connection.execute(f"PRAGMA max_page_count={pages}")

        event.listen(worker.store._engine, "connect", limit)
        hooks.append(limit)

    from sqlalchemy import event

    hooks: list[object] = []
    cramp(1)  # SQLite takes this for the present size
    with contextlib.suppress(InfrastructureError):
        while True:
            with worker.store.write() as tx:
                tx.log("filling", actor="test", now=NOW, text="x" * 1500)
    ends = time.monotonic() + LIMIT_S
    while not trying():
        assert time.monotonic() < ends
        threading.Event().wait(0.002)  # lets the lanes' threads go on
    assert {error.code for error in failures} == {"state.database"}
    cramp(1_000_000)
    worker.drive()
    assert {harness.status(pk) for pk in pks} == {"finished"}
    assert {len({json.dumps(post, sort_keys=True) for post in harness.posts(pk)}) for pk in pks} == {1}
    assert harness.evalai.queue_length() == 0


def noise_in(whole: bytes) -> bytes:
    """Return a database whose pages after the first are overwritten with noise."""
    return whole[:4096] + b"\x0d\xff" * (len(whole) // 2 - 2048)


@pytest.mark.parametrize(
    "damage",
    [lambda whole: b"garbage" * 3000, lambda whole: whole[:13_000], noise_in],
    ids=["another file", "cut off", "noise"],
)
def test_a_damaged_database_is_named_with_what_to_do(
    harness: Harness, damage: Callable[[bytes], bytes], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Every command that opens it names the file, the damage and the cure; no backup is made of it."""
    harness.store().close()
    place = harness.state / "worker.db"
    place.write_bytes(damage(place.read_bytes()))
    archive = tmp_path / "damaged.tar.gz"
    for command in (["status"], ["submissions"], ["challenge", "backup", str(archive)]):
        assert guarded([*command, "--config", str(harness.path)]) == 1
        sentence, cure = capsys.readouterr().err.splitlines()
        assert sentence.startswith(f"neuco-worker: The state database {place} is damaged (")
        assert "neuco-worker challenge restore ARCHIVE DIRECTORY" in cure
        assert f"sqlite3 {place} .recover" in cure
    assert not archive.exists()
    examined = examine(harness.path, clock=lambda: NOW, only=["machine.state"])
    (finding,) = examined.outcomes[-1].findings
    assert (finding.level, finding.sentence) == (Level.FAIL, sentence.removeprefix("neuco-worker: "))


def test_damage_that_only_a_full_look_finds_is_found_by_doctor(harness: Harness) -> None:
    """The schema can be read but a table cannot: the doctor reads all pages."""
    with contextlib.closing(harness.store()) as store:
        for _ in range(40):
            with store.write() as tx:
                tx.log("filling", actor="test", now=NOW, text="x" * 3000)
    place = harness.state / "worker.db"
    with place.open("r+b") as file:
        file.seek(-8192, os.SEEK_END)
        file.write(b"\x0d\xff" * 4096)
    examined = examine(harness.path, clock=lambda: NOW, only=["machine.state"])
    (finding,) = examined.outcomes[-1].findings
    assert finding.level is Level.FAIL
    assert f"{place} is damaged" in finding.sentence


@pytest.mark.timeout(12)
def test_no_write_waits_for_a_lock_when_the_process_is_to_end(tmp_path: Path) -> None:
    """Even if another program holds the lock, a stopping daemon ends in time; one that is not stopping waits longer, and succeeds."""
    address, stopping = tmp_path / "worker.db", threading.Event()
    store = Store(f"sqlite:///{address}", stopping=stopping)
    waiting, refused = threading.Event(), []

    def write(number: int) -> None:
        waiting.set()
        try:
            with store.write() as tx:
                tx.log("written", actor="test", now=NOW, text=str(number))
        except InfrastructureError as error:
            refused.append(error.code)

    writers = [threading.Thread(target=write, args=(number,)) for number in range(2)]
    with contextlib.closing(sqlite3.connect(address, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        writers[0].start()
        waiting.wait()
        other.execute("ROLLBACK")
        writers[0].join()
        assert refused == []
        other.execute("BEGIN IMMEDIATE")
        writers[1].start()
        stopping.set()
        writers[1].join()
    assert refused == ["state.database"]
    store.close()


@given(st.lists(st.floats(0, 30), min_size=1, max_size=200), st.integers(6, 60))
def test_no_minute_holds_more_calls_than_the_budget(pauses: list[float], per_minute: int) -> None:
    """No 60 seconds contain more calls than allowed, at any pace."""
    budget, now, calls = Budget(per_minute), NOW, []
    for pause in pauses:
        now += timedelta(seconds=pause)
        if budget.allows(now, answer=True):
            budget.spend(now)
            calls.append(now)
    for begin in calls:
        assert sum(begin <= call < begin + timedelta(seconds=60) for call in calls) <= per_minute


def test_a_closed_budget_opens_at_its_time_or_when_the_clock_is_set_back() -> None:
    """Retry-After holds until its moment; a clock that was set back does not prolong it."""
    budget = Budget(50)
    budget.close(NOW, NOW + timedelta(seconds=59))
    assert not budget.allows(NOW + timedelta(seconds=58), answer=True)
    assert budget.allows(NOW + timedelta(seconds=59))
    budget.close(NOW, NOW + timedelta(seconds=59))
    assert budget.allows(NOW - timedelta(hours=1))


@given(st.integers(0, 1000), st.floats(0.1, 600), st.integers())
def test_the_back_off_grows_to_a_minute_and_no_further(tries: int, first_s: float, seed: int) -> None:
    """It is never longer than a minute, and never shorter than three quarters of its step."""
    wait = backoff(tries, first_s=first_s, random=random.Random(seed)).total_seconds()
    assert 0.74 * min(LONGEST_S, first_s) <= wait <= LONGEST_S + 1e-6


@given(st.floats(0, 10_000), st.floats(0.5, 600))
def test_answers_leave_on_multiples_of_the_grid(elapsed_s: float, grid_s: float) -> None:
    """The moment is the next multiple after ``running`` and never zero, so that even cached scores wait."""
    running_at = NOW - timedelta(seconds=elapsed_s)
    release = answers.release_at(NOW, running_at=running_at, grid_s=grid_s)
    steps = (release - running_at).total_seconds() / grid_s
    assert abs(steps - round(steps)) < 1e-3
    assert round(steps) >= 1
    assert timedelta(seconds=-1e-3) <= release - NOW <= timedelta(seconds=grid_s + 1e-3)


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e6, max_value=1e6), st.integers(0, 12))
def test_a_success_says_one_rounded_number_twice(q_mean: float, decimals: int) -> None:
    """The posted value equals that in stdout, byte for byte after storing; there is no negative zero."""
    told = ShownValue(value=shown(q_mean, decimals))
    answer = answers.finished(told, step=None, notes=("note",), zarr_suffix_removed=False)
    assert answers.Answer.from_json(answer.to_json()) == answer
    said = json.loads(answer.stdout)
    assert said["q_mean"] == answer.value == round(q_mean, decimals)
    assert not str(answer.value).startswith("-0.0") or answer.value != 0
    assert answer.stderr == ""


@given(st.text(max_size=5000), st.text(max_size=5000))
def test_a_failure_says_at_most_two_thousand_characters(sentence: str, cure: str) -> None:
    """EvalAI shows stderr as it is."""
    answer = answers.failed(ParticipantError(sentence or "x", cure=cure))
    assert len(answer.stderr) <= 2000
    assert answer.stdout == ""
    assert answer.value is None


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_value_that_is_not_finite_is_never_an_answer(value: float) -> None:
    """An unscored submission has a state, never a value."""
    with pytest.raises(ValueError, match="finite"):
        shown(value, 3)
