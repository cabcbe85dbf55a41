"""The value that decides a phase's splits is named before it exists, fetched, checked and mixed in; nothing is scored before."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from scoring.errors import OrganizerError
from tests.worker.harness.drand import drawing
from tests.worker.harness.harness import KEY, Harness, StepWorker
from worker.fairness import commitments
from worker.fairness.beacon import DRAWS, PUBLIC_SINCE, UNREACHABLE
from worker.fairness.drand import Chain, is_signed
from worker.fairness.manifests import AnnouncedRound
from worker.intake.waiting import WAITING
from worker.organizer.rehearsal.practice_draw import practice_chain, served, sign
from worker.sandbox import ManualClock

pytestmark = pytest.mark.processes

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
NOTICE_S = 20


@pytest.fixture
def clock() -> ManualClock:
    """It is noon."""
    return ManualClock(NOON)


@pytest.fixture
def cells() -> None:
    """Nothing is scored ahead, because a phase with scores keeps its splits."""


@pytest.fixture
def rounds() -> Chain:
    """A chain that began some time ago."""
    return practice_chain(genesis=int(NOON.timestamp()) - 1000, period_s=3)


@pytest.fixture
def servers(rounds: Chain, clock: ManualClock) -> Iterator[list[str]]:
    """Three servers: one does not exist, one gives wrong answers, and one works."""
    with served(rounds, clock=clock.now, off_by=1) as lying, served(rounds, clock=clock.now) as honest:
        yield ["http://127.0.0.1:9", lying, honest]


@pytest.fixture
def changes(tmp_path: Path, rounds: Chain, servers: list[str]) -> dict[str, Any]:
    """All phases draw from that chain."""
    return drawing(tmp_path, rounds, *servers, notice_s=NOTICE_S)


def public(harness: Harness) -> list[dict[str, Any]]:
    """Return the public commitments."""
    entries: list[dict[str, Any]] = json.loads(harness.published("commitment.json"))
    return entries


def test_nothing_is_scored_before_the_value_is_known(
    harness: Harness, clock: ManualClock, rounds: Chain, servers: list[str]
) -> None:
    """Files are fetched and wait, EvalAI shows nothing as running, and unsigned values are ignored, which is an alert."""
    harness.configure({"fairness": {"drand_servers": servers[:2]}})
    with harness.worker() as worker:
        pk = harness.submit("A")
        worker.drive(lambda: worker.states().get(pk) == "fetched" and not worker.daemon.publishing.behind())
        (first,) = public(harness)
        number = first["draws"]["dev"]["round"]
        at = rounds.made_at(number)
        assert NOON + timedelta(seconds=NOTICE_S) <= at <= NOON + timedelta(seconds=NOTICE_S + 4)
        worker.drive(lambda: clock.now() >= at - timedelta(seconds=1))
        assert worker.alerts() == set()
        worker.drive(lambda: UNREACHABLE in worker.alerts())
        assert (worker.states(), harness.status(pk)) == ({pk: "fetched"}, "submitted")
        clock.advance(3 * 86400)
        worker.drive(lambda: WAITING in worker.alerts())
        assert f"1 for the public random value of phase dev, the oldest is {pk}" in worker.alert(WAITING)
        harness.configure({"fairness": {"drand_servers": servers}})
        worker.reload()
        worker.drive(lambda: worker.states()[pk] == "published")
        worker.wait(30)
        assert worker.alerts() == set()
    _, second = public(harness)
    assert set(second["drawn"]) == {"dev", "eval"}
    assert is_signed(rounds, number, second["drawn"]["dev"])


def test_a_round_committed_to_too_late_is_replaced(
    harness: Harness, worker: StepWorker, rounds: Chain
) -> None:
    """The commitment is public when the worker looks for the value, but was not yet when the round was made: another round is named.

    Where that happens again, pushes take longer than the notice, so the next round leaves more time.
    """
    pk, named = harness.submit("A"), list[int]()
    for times, more in ((1, 2), (2, 3), (3, None)):
        worker.drive(lambda: worker.states().get(pk) == "fetched" and not worker.daemon.publishing.behind())
        entries = public(harness)
        assert len(entries) == times
        named.append(entries[-1]["draws"]["dev"]["round"])
        late = rounds.made_at(named[-1]) + timedelta(seconds=1)
        if more is not None:
            with worker.store.write() as tx:
                tx.set_fact(PUBLIC_SINCE, json.dumps([late.isoformat()] * times))
            worker.drive(lambda more=more: len(public(harness)) == more)
    worker.drive(lambda: worker.states()[pk] == "published")
    *_, renamed, drawn = public(harness)
    assert "was not published before round" in renamed["reason"]
    assert is_signed(rounds, renamed["draws"]["dev"]["round"], drawn["drawn"]["dev"])
    first, second = (later - earlier for earlier, later in pairwise(named))
    assert 0 < first < second


def test_no_round_is_named_over_one_that_a_command_has_just_named(
    harness: Harness, worker: StepWorker, rounds: Chain
) -> None:
    """The worker has read that another one is due, but has not committed to it yet."""
    worker.drive(lambda: not worker.daemon.publishing.behind())
    (named,) = public(harness)
    number = named["draws"]["dev"]["round"]
    at = rounds.made_at(number)
    worker.daemon.context.timetable.mark(DRAWS)
    with worker.store.write() as tx:
        tx.set_fact(PUBLIC_SINCE, json.dumps([at.isoformat()]))
    with worker.store.read() as tx:
        (start,) = worker.daemon.beacon.starts(tx, at)
    draw = AnnouncedRound(chain=rounds, round=number + 1000)
    with worker.store.write() as tx:
        commitments.commit(tx, KEY, (), reason="a command", now=worker.clock.now(), draws={"dev": draw})
    assert not start()
    with worker.store.read() as tx:
        assert [entry["reason"] for entry in tx.public_commitments()][1:] == ["a command"]


@pytest.mark.slow
def test_rounds_are_named_only_while_commitments_can_be_pushed(
    harness: Harness, worker: StepWorker, rounds: Chain
) -> None:
    """While the repository cannot be reached, every further round would be too late, too; after it, one is."""
    away = harness.folder / "away.git"
    harness.board.rename(away)
    pk = harness.submit("A")
    worker.wait(5 * NOTICE_S)
    with worker.store.read() as tx:
        assert len(tx.public_commitments()) == 1
    away.rename(harness.board)
    worker.drive(lambda: worker.states()[pk] == "published")
    named, renamed, drawn = public(harness)
    number = renamed["draws"]["dev"]["round"]
    assert number > named["draws"]["dev"]["round"]
    assert is_signed(rounds, number, drawn["drawn"]["dev"])
    assert harness.contradictions() == []


def test_a_value_is_mixed_in_only_where_its_chain_is_awaited(
    harness: Harness, worker: StepWorker, rounds: Chain
) -> None:
    """Another chain may give its round the same number."""
    worker.drive(lambda: not worker.daemon.publishing.behind())
    (named,) = public(harness)
    later = rounds.model_copy(update={"genesis": rounds.genesis + 3600})
    draw = AnnouncedRound(chain=later, round=named["draws"]["dev"]["round"])
    with worker.store.write() as tx:
        commitments.commit(tx, KEY, (), reason="another chain", now=worker.clock.now(), draws={"eval": draw})
        tx.request_publish()
    pk = harness.submit("A")
    worker.drive(lambda: worker.states().get(pk) == "published")
    assert set(public(harness)[-1]["drawn"]) == {"dev"}


def test_a_secret_that_cannot_be_read_when_the_draw_is_due_is_an_alert(
    harness: Harness, worker: StepWorker
) -> None:
    """The organizer is told, the worker tries again at intervals, and everything else goes on."""
    worker.drive(lambda: not worker.daemon.publishing.behind())
    secret = harness.folder / "challenge.secret"
    secret.chmod(0o644)
    worker.drive(lambda: "secret.mode" in worker.alerts())
    pk = harness.submit("A")
    worker.drive(lambda: worker.states().get(pk) == "fetched")
    secret.chmod(0o600)
    worker.drive(lambda: worker.states()[pk] == "published")
    worker.wait(5)
    assert worker.alerts() == set()


def test_a_value_is_mixed_in_only_with_the_committed_secret(harness: Harness, worker: StepWorker) -> None:
    """Otherwise, a person who knows the value could try secrets."""
    worker.drive(lambda: not worker.daemon.publishing.behind())
    (named,) = public(harness)
    signature = sign(named["draws"]["dev"]["round"])
    with worker.store.write() as tx, pytest.raises(OrganizerError) as refused:
        commitments.mix_in(tx, KEY, b"x" * 32, ["dev"], signature, reason="", now=worker.clock.now())
    assert refused.value.code == "secret.changed"
