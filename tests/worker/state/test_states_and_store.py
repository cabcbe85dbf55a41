"""Conditional writes, the lock, a damaged database, the budget and the answers."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import random
import stat
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from leaderboard import PhaseRules
from scoring.errors import InfrastructureError, OrganizerError, ParticipantError
from scoring.metrics import shown
from scoring.scorecard import TaskScore
from tests.worker.harness.harness import Harness
from worker.answers import answers
from worker.cli import guarded
from worker.evalai import Budget
from worker.evalai.pacing import LONGEST_S, backoff
from worker.fairness.membership import ShownValue
from worker.organizer.doctor import Level, examine
from worker.state import LeaderLock, State, Store

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
        test_parts=(0, 1, 0),
    )


def test_a_submission_is_stored_and_moved(store: Store) -> None:
    """Adding twice adds once; facts of every type are read back unchanged; of two moves from one state, only the first happens."""
    elsewhere = NOW.astimezone(timezone(timedelta(hours=-7)))
    facts = {"team": "Ω😀 'team'", "public_at_first": True, "q_mean": 0.1 + 0.2}
    with store.write() as tx:
        assert tx.add(7, now=elsewhere) == tx.add(7, now=NOW + timedelta(hours=1))
        tx.note(7, submitted_at=elsewhere, tries=4, not_before=NOW, hold="x", hold_reason="y", **facts)
        assert tx.move(7, State.RECEIVED, State.ACKNOWLEDGED)
        assert not tx.move(7, State.RECEIVED, State.CANCELLED)
        with pytest.raises(ValueError, match="no transition"):
            tx.move(7, State.ACKNOWLEDGED, State.SCORED)
    with store.read() as tx:
        row = tx.get(7)
    assert row is not None
    assert {name: getattr(row, name) for name in facts} == facts
    assert (row.state, row.submitted_at, row.first_seen_at) == (State.ACKNOWLEDGED, NOW, NOW)
    assert (row.tries, row.not_before, row.hold) == (0, None, None)  # the move ends waits and holds


def test_only_its_answer_ends_a_dispute(store: Store) -> None:
    """No other move of a submission settles contradictory facts, and a cancellation may be undone."""
    with store.write() as tx:
        tx.add(8, now=NOW)
        tx.note(8, hold="facts.author_not_in_team", hold_reason="Who sent it?")
        for source, target, hold in (
            (State.RECEIVED, State.ACKNOWLEDGED, ("facts.author_not_in_team", "Who sent it?")),
            (State.ACKNOWLEDGED, State.CANCELLED, ("facts.author_not_in_team", "Who sent it?")),
            (State.CANCELLED, State.ACKNOWLEDGED, ("facts.author_not_in_team", "Who sent it?")),
            (State.ACKNOWLEDGED, State.FAILED, (None, None)),
        ):
            tx.move(8, source, target)
            row = tx.get(8)
            assert row is not None
            assert (row.hold, row.hold_reason) == hold


def test_a_failed_transaction_leaves_nothing(store: Store) -> None:
    """A time without a zone, which would depend on the machine, is refused, and everything before it is rolled back."""

    def write() -> None:
        with store.write() as tx:
            tx.add(1, now=NOW)
            tx.note(1, read_at=NOW.replace(tzinfo=None))

    with pytest.raises((ValueError, sa.exc.StatementError, InfrastructureError)):
        write()
    with store.read() as tx:
        assert tx.get(1) is None


def test_cells_come_back_to_the_bit(store: Store) -> None:
    """In the order of code points, not of a language; failed folds included; and existing cells are kept."""
    with store.write() as tx:
        scores = [cell(name) for name in ("b", "A", "a_b", "aB", "é")]
        tx.save_cells("c" * 64, "p" * 64, "dev", scores, provenance={"x": 1})
        tx.save_cells("c" * 64, "p" * 64, "dev", [cell("b", q=9.0)], provenance={})
    with store.read() as tx:
        rows = tx.cells("c" * 64, "p" * 64)
    assert [row.task for row in rows] == ["A", "aB", "a_b", "b", "é"]
    assert {(str(row.folds), row.q) for row in rows} == {("[0.25, None, 0.1]", 1.5)}


def at_once(*work: Callable[[], object]) -> None:
    """Do several things at once; what one of them raises is raised."""
    with ThreadPoolExecutor(len(work)) as pool:
        for future in [pool.submit(each) for each in work]:
            future.result()


def test_several_starts_at_once_make_the_tables_once(url: str) -> None:
    """The others find them."""
    at_once(*[lambda: Store(url).close()] * 4)


def test_writers_wait_for_one_another(url: str) -> None:
    """Two stores that read, compute and write lose no update, because the write lock is held from the start."""
    with contextlib.closing(Store(url)) as first, contextlib.closing(Store(url)) as second:

        def count(store: Store) -> None:
            for _ in range(20):
                with store.write() as tx:
                    tx.set_fact("number", str(int(tx.fact("number") or 0) + 1))

        at_once(*[partial(count, store) for store in (first, second) for _ in range(2)])
        with second.read() as tx:
            assert tx.fact("number") == "80"


def test_a_reader_sees_one_moment(url: str) -> None:
    """A commit during a reading transaction is not visible in it."""
    reader, writer = Store(url), Store(url)
    with reader.read() as tx:
        assert tx.counts() == {}
        with writer.write() as other:
            other.add(1, now=NOW)
        assert tx.counts() == {}
    with reader.read() as tx:
        assert tx.counts() == {State.RECEIVED: 1}
    reader.close()
    writer.close()


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


def noise_in(whole: bytes) -> bytes:
    """Return a database whose pages after the first are overwritten with noise."""
    return whole[:4096] + b"\x0d\xff" * (len(whole) // 2 - 2048)


@pytest.mark.processes
@pytest.mark.parametrize(
    "damage",
    [lambda whole: b"garbage" * 3000, lambda whole: whole[:13_000], noise_in],
    ids=["another file", "cut off", "noise"],
)
def test_a_damaged_database_is_named_with_what_to_do(
    harness: Harness, damage: Callable[[bytes], bytes], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Every command that opens it names the file, the damage and the hint; no backup is made of it."""
    harness.store().close()
    place = harness.state / "worker.db"
    place.write_bytes(damage(place.read_bytes()))
    archive = tmp_path / "damaged.tar.gz"
    for command in (["status"], ["submissions"], ["challenge", "backup", str(archive)]):
        assert guarded([*command, "--config", str(harness.path)]) == 1
        sentence, hint = capsys.readouterr().err.splitlines()
        assert sentence.startswith(f"neuco-worker: The state database {place} is damaged (")
        assert "neuco-worker challenge restore ARCHIVE DIRECTORY" in hint
        assert f"sqlite3 {place} .recover" in hint
    assert not archive.exists()
    examined = examine(harness.path, clock=lambda: NOW, only=["machine.state"])
    (finding,) = examined.outcomes[-1].findings
    assert (finding.level, finding.sentence) == (Level.FAIL, sentence.removeprefix("neuco-worker: "))


def test_a_file_system_without_locks_is_named(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on some clusters; the hint says where the state can be."""

    def flock(*_: object) -> None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(InfrastructureError, match=r"gives no locks \(Function not implemented\)\.") as error:
        LeaderLock(harness.state).take()
    assert "a disk of this machine, or to PostgreSQL" in error.value.hint


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


@given(st.integers(0, 1000), st.integers())
def test_the_back_off_grows_from_a_second_to_a_minute(tries: int, seed: int) -> None:
    """It doubles with each failure, and jitter takes at most a quarter off."""
    wait = backoff(tries, random=random.Random(seed)).total_seconds()
    step = min(LONGEST_S, 2**tries)
    assert 0.74 * step <= wait <= step + 1e-6


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
    value = ShownValue(value=shown(q_mean, decimals))
    answer = answers.finished(
        value, rules=PhaseRules(), public=True, board=None, notes=("note",), zarr_suffix_removed=False
    )
    assert answers.Answer.from_json(answer.to_json()) == answer
    stdout = json.loads(answer.stdout)
    assert stdout["q_mean"] == answer.value == round(q_mean, decimals)
    assert not str(answer.value).startswith("-0.0") or answer.value != 0
    assert answer.stderr == ""


@given(st.text(max_size=5000), st.text(max_size=5000))
def test_a_failure_says_at_most_two_thousand_characters(sentence: str, hint: str) -> None:
    """EvalAI shows stderr as it is."""
    answer = answers.failed(ParticipantError(sentence or "x", hint=hint))
    assert len(answer.stderr) <= 2000
    assert answer.stdout == ""
    assert answer.value is None


@pytest.mark.parametrize(
    "address",
    [
        "me:half@secret@x/y",
        "me:half@secret/@x/y",
        "me:secret@x:port/y",
        "me:secret@[::1/y",
        "me:secret@db..local/y",
    ],
)
def test_an_address_that_is_none_shows_no_password(address: str) -> None:
    """An @ in a password must be written as %40: what follows would be taken for the server, and be named in an error."""
    with pytest.raises(OrganizerError) as error:
        Store(f"postgresql+psycopg://{address}")
    assert error.value.code == "state.url"
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("name", ["what?", "my%20state", "100%", "#1"])
def test_the_state_is_where_its_path_says(tmp_path: Path, name: str) -> None:
    """Whatever the path would mean in an address: another file would be neither private nor in a backup."""
    (tmp_path / name).mkdir()
    with (
        contextlib.closing(Store(f"sqlite:///{tmp_path / name / 'worker.db'}")) as store,
        store.write() as tx,
    ):
        tx.set_fact("a", "b")
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name / "worker.db").stat().st_size
