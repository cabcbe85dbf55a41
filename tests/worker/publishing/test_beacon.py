"""The value that decides a phase's splits is named before it exists, fetched, checked and mixed in; nothing is scored before."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from scoring.errors import OrganizerError
from tests.leaderboard.harness.git_server import git
from tests.worker.harness.drand import drawing
from tests.worker.harness.fork_server import ForkServer
from tests.worker.harness.harness import SECRET, Harness, StepWorker
from worker.fairness import commitments
from worker.fairness.drand import is_signed, value_of
from worker.fairness.draws import AWAITED
from worker.fairness.verify import Worth, verdicts
from worker.fairness.verify.public import opened
from worker.organizer.rehearsal.practice_chain import practice_chain, served
from worker.publishing.rounds import UNREACHABLE
from worker.sandbox import ManualClock

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
NOTICE_S = 20


def published(harness: Harness) -> list[dict[str, Any]]:
    """Return the public commitments."""
    entries: list[dict[str, Any]] = json.loads(git("show", "main:commitment.json", at=harness.board))
    return entries


@contextmanager
def worker(harness: Harness) -> Iterator[StepWorker]:
    """Start a worker in this process."""
    with harness:
        steps = StepWorker(harness)
        try:
            yield steps
        finally:
            steps.stop()


def codes(steps: StepWorker) -> set[str]:
    """Return the codes of the unresolved alerts."""
    with steps.store.read() as tx:
        return {alert.code for alert in tx.alerts()}


def test_nothing_is_scored_before_the_value_is_known(tmp_path: Path) -> None:
    """Files are fetched and wait, and EvalAI shows nothing as running until the round exists."""
    clock = ManualClock(NOON)
    rounds = practice_chain(genesis=int(NOON.timestamp()) - 1000, period_s=3)
    with served(rounds, clock=clock.now) as server:
        harness = Harness(tmp_path, clock=clock, changes=drawing(tmp_path, rounds, server, notice_s=NOTICE_S))
        with worker(harness) as steps:
            pk = harness.submit("A")
            steps.drive(lambda: steps.states().get(pk) == "fetched" and not steps.daemon.publishing.due())
            [first] = published(harness)
            named = first["draws"]["dev"]
            at = datetime.fromisoformat(named["at"])
            assert NOON + timedelta(seconds=NOTICE_S) <= at <= NOON + timedelta(seconds=NOTICE_S + 4)
            assert rounds.made_at(named["round"]) == at
            steps.drive(lambda: clock.now() >= at - timedelta(seconds=1))
            assert steps.states() == {pk: "fetched"}
            assert harness.evalai.submission(pk)["status"] == "submitted"
            steps.drive(lambda: steps.states()[pk] == "published")
            assert clock.now() >= at
            _, second = published(harness)
            assert set(second["drawn"]) == {"dev", "eval"}
            found = second["drawn"]["dev"]
            assert found["round"] == named["round"]
            assert is_signed(rounds, found["round"], found["signature"])
            assert found["value"] == value_of(found["signature"])


def test_a_round_committed_to_too_late_is_replaced(tmp_path: Path) -> None:
    """If the commitment was not public before the round was made, a later round is named in public."""
    clock = ManualClock(NOON)
    rounds = practice_chain(genesis=int(NOON.timestamp()) - 1000)
    with served(rounds, clock=clock.now) as server:
        harness = Harness(tmp_path, clock=clock, changes=drawing(tmp_path, rounds, server, notice_s=NOTICE_S))
        with harness:
            harness.board.rename(tmp_path / "away.git")
            steps = StepWorker(harness)
            try:
                pk = harness.submit("A")
                steps.drive(lambda: clock.now() >= NOON + timedelta(seconds=NOTICE_S + 2))
                (tmp_path / "away.git").rename(harness.board)
                steps.drive(lambda: steps.states().get(pk) == "published")
            finally:
                steps.stop()
        named, renamed, *more = [entry for entry in published(harness) if entry["draws"]]
        assert not more
        assert renamed["draws"]["dev"]["round"] > named["draws"]["dev"]["round"]
        assert "was not published before round" in renamed["reason"]
        [drawn] = [entry for entry in published(harness) if entry["drawn"]]
        assert drawn["drawn"]["dev"]["round"] == renamed["draws"]["dev"]["round"]


def test_an_unsigned_value_is_ignored(tmp_path: Path) -> None:
    """A server that lies or is missing is skipped; until another one answers, the organizer is alerted, and the phase waits."""
    clock = ManualClock(NOON)
    rounds = practice_chain(genesis=int(NOON.timestamp()) - 1000)
    with served(rounds, clock=clock.now, off_by=1) as lying, served(rounds, clock=clock.now) as honest:
        silent = "http://127.0.0.1:9"
        harness = Harness(
            tmp_path, clock=clock, changes=drawing(tmp_path, rounds, silent, lying, notice_s=NOTICE_S)
        )
        with worker(harness) as steps:
            pk = harness.submit("A")
            steps.drive(lambda: UNREACHABLE in codes(steps))
            assert steps.states() == {pk: "fetched"}
            harness.configure({"fairness": {"drand_servers": [silent, lying, honest]}})
            steps.reload()
            steps.drive(lambda: steps.states()[pk] == "published")
            assert UNREACHABLE not in codes(steps)


def test_the_organizer_enters_a_value_by_command(tmp_path: Path) -> None:
    """Without a network the organizer enters the value, once, and not before its time, after a reminder."""
    soon = datetime.now(UTC) + timedelta(hours=1)
    harness = Harness(tmp_path, changes={"fairness": {"beacon": f"Lotto 6 aus 49@{soon.isoformat()}"}})
    with harness:
        assert (
            harness.command("challenge", "apply", "--yes", "--reason", "the challenge begins").returncode == 0
        )
        early = harness.command("challenge", "apply", "--yes", "--beacon", "3 14 15 92 65 35")
        assert early.returncode == 2
        assert "Lotto 6 aus 49 publishes its value on" in early.stderr
        with closing(harness.store()) as store, store.read() as tx:
            [entry] = tx.public_commitments()
        draw = entry["draws"]["eval"]
        assert draw == {"source": "Lotto 6 aus 49", "at": soon.isoformat(), "round": None, "chain": None}


def test_the_organizer_is_asked_for_the_value(tmp_path: Path) -> None:
    """From its moment on, an alert says which phase waits for which value; nothing is scored before."""
    clock = ManualClock(NOON)
    rule = f"Lotto@{(NOON + timedelta(seconds=30)).isoformat()}"
    harness = Harness(tmp_path, clock=clock, changes={"fairness": {"beacon": rule}})
    with worker(harness) as steps:
        pk = harness.submit("A")
        steps.drive(lambda: clock.now() >= NOON + timedelta(seconds=29))
        assert AWAITED not in codes(steps)
        steps.drive(lambda: AWAITED in codes(steps))
        assert steps.states() == {pk: "fetched"}


def test_once_waits_for_the_round_and_verify_checks_it(tmp_path: Path, fork_server: ForkServer) -> None:
    """The phase is scored on the round's splits; with another chain than drand's own, something must be trusted."""
    rounds = practice_chain(genesis=int(datetime.now(UTC).timestamp()) - 1000)
    with served(rounds) as server:
        changes = drawing(tmp_path, rounds, server, notice_s=3)
        with Harness(tmp_path, changes=changes, fork_server=fork_server) as harness:
            harness.submit("A")
            for command in (["once"], ["challenge", "reveal", "--yes", "--reason", "a test", "--open"]):
                done = harness.command(*command)
                assert done.returncode == 0, done.stderr
    with opened(str(harness.board)) as repository:
        found = {one.phase: one for one in verdicts(repository) if one.check == "beacon"}
    for phase in ("dev", "eval"):
        assert found[phase].worth is Worth.BELIEVED
        assert "by the organizers' clock, in commitment 1" in found[phase].sentence
        assert "this chain" in found[phase].sentence


def test_the_worker_mixes_nothing_in_under_another_secret(tmp_path: Path) -> None:
    """A person who knows the value could try secrets, so the value is only mixed in with the committed one."""
    clock = ManualClock(NOON)
    rule = f"Lotto@{(NOON + timedelta(seconds=30)).isoformat()}"
    harness = Harness(tmp_path, clock=clock, changes={"fairness": {"beacon": rule}})
    with worker(harness) as steps:
        steps.drive(lambda: AWAITED in codes(steps))
        secret = bytes.fromhex(SECRET)
        found = {"dev": {"value": "3 14 15 92 65 35", "round": None, "signature": None}}
        with steps.store.write() as tx, pytest.raises(OrganizerError) as refused:
            commitments.mix_in(tx, bytes(reversed(secret + b"x"))[:32], found, reason="", now=clock.now())
        assert refused.value.code == "secret.changed"
        with steps.store.write() as tx:
            commitments.mix_in(tx, secret, found, reason="", now=clock.now())
            alerts = {alert.key for alert in tx.alerts() if alert.code == AWAITED}
        assert alerts == {"beacon.awaited:eval"}
