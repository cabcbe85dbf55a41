"""The value that decides a phase's splits: named before it exists, fetched, checked, mixed in; and nothing is scored before."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.leaderboard.harness.git_server import git
from tests.worker.harness.drand import chain, drawing, served, sign
from tests.worker.harness.fork_server import ForkServer
from tests.worker.harness.harness import Harness, StepWorker
from worker.fairness.drand import QUICKNET, is_signed, value_of
from worker.fairness.verify import Verdict, Worth, verdicts
from worker.fairness.verify.public import PublicRepository, opened
from worker.publishing.drawing import AWAITED
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
    """Return the codes of the alerts that stand."""
    with steps.store.read() as tx:
        return {alert.code for alert in tx.alerts()}


def test_nothing_is_scored_before_the_value_is_known(tmp_path: Path) -> None:
    """Files are fetched and wait, EvalAI shows nothing as running; from the round's moment on everything goes its way."""
    clock = ManualClock(NOON)
    rounds = chain(genesis=int(NOON.timestamp()) - 1000, period_s=3)
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


def test_a_name_that_comes_too_late_is_not_used(tmp_path: Path) -> None:
    """If nobody could read the commitment before the round was made, a later round is named, in public."""
    clock = ManualClock(NOON)
    rounds = chain(genesis=int(NOON.timestamp()) - 1000)
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
        named, renamed, *more = [entry for entry in published(harness) if "draws" in entry]
        assert not more
        assert renamed["draws"]["dev"]["round"] > named["draws"]["dev"]["round"]
        assert "was not published before round" in renamed["reason"]
        [drawn] = [entry for entry in published(harness) if "drawn" in entry]
        assert drawn["drawn"]["dev"]["round"] == renamed["draws"]["dev"]["round"]


def test_what_is_not_signed_is_no_value(tmp_path: Path) -> None:
    """A server that lies, or is not there, is passed over; as long as no other one answers the organizer is told, and the phase waits."""
    clock = ManualClock(NOON)
    rounds = chain(genesis=int(NOON.timestamp()) - 1000)
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


def test_a_value_from_elsewhere_comes_by_command(tmp_path: Path) -> None:
    """Without a network the organizer brings the value, once, and not before its time; they are reminded."""
    soon = datetime.now(UTC) + timedelta(hours=1)
    harness = Harness(tmp_path, changes={"fairness": {"beacon": f"Lotto 6 aus 49@{soon.isoformat()}"}})
    with harness:
        assert harness.command("challenge", "commit", "--reason", "the challenge begins").returncode == 0
        early = harness.command("challenge", "commit", "--beacon", "3 14 15 92 65 35")
        assert early.returncode == 2
        assert "Lotto 6 aus 49 publishes its value on" in early.stderr
        with closing(harness.store()) as store, store.read() as tx:
            [entry] = tx.public_commitments()
        assert entry["draws"]["eval"] == {"source": "Lotto 6 aus 49", "at": soon.isoformat()}


def test_the_organizer_is_asked_for_the_value(tmp_path: Path) -> None:
    """From its moment on an alert says which phase waits for which value; nothing is scored before."""
    clock = ManualClock(NOON)
    rule = f"Lotto@{(NOON + timedelta(seconds=30)).isoformat()}"
    harness = Harness(tmp_path, clock=clock, changes={"fairness": {"beacon": rule}})
    with worker(harness) as steps:
        pk = harness.submit("A")
        steps.drive(lambda: clock.now() >= NOON + timedelta(seconds=29))
        assert AWAITED not in codes(steps)
        steps.drive(lambda: AWAITED in codes(steps))
        assert steps.states() == {pk: "fetched"}


@pytest.fixture(scope="module")
def revealed(tmp_path_factory: pytest.TempPathFactory, fork_server: ForkServer) -> PublicRepository:
    """What a challenge has published that `once` ran: it waited for the round; both phases are revealed."""
    folder = tmp_path_factory.mktemp("drawn")
    rounds = chain(genesis=int(datetime.now(UTC).timestamp()) - 1000)
    with served(rounds) as server:
        changes = drawing(folder, rounds, server, notice_s=3)
        with Harness(folder, changes=changes, fork_server=fork_server) as harness:
            harness.submit("A")
            for command in (["once"], ["challenge", "reveal", "--yes", "--open"]):
                done = harness.command(*command)
                assert done.returncode == 0, done.stderr
            git(
                "clone",
                "--quiet",
                "--branch=main",
                str(harness.board),
                str(folder / "clone"),
                at=harness.board,
            )
    with opened(str(folder / "clone")) as repository:
        return PublicRepository(files={path: repository.files[path] for path in repository.files})


def beacon(repository: PublicRepository, change: Callable[[list[Any]], object] = lambda _: None) -> Verdict:
    """Return what `verify` says of dev's value once the list of commitments was changed."""
    entries = json.loads(repository.files["commitment.json"])
    change(entries)
    files = {**repository.files, "commitment.json": json.dumps(entries).encode()}
    [found] = [
        one for one in verdicts(PublicRepository(files=files)) if (one.check, one.phase) == ("beacon", "dev")
    ]
    return found


def test_once_waits_for_the_round_and_verify_checks_it(revealed: PublicRepository) -> None:
    """The phase is scored on what the round gives; another chain than drand's own leaves something to be believed."""
    found = beacon(revealed)
    assert found.worth is Worth.BELIEVED
    assert "named in commitment 1 before" in found.sentence
    assert "this chain" in found.sentence


def _other_round(entries: list[Any]) -> None:
    drawn = entries[1]["drawn"]["dev"]
    drawn |= {"round": drawn["round"] + 1, "signature": sign(drawn["round"] + 1)}
    drawn["value"] = value_of(drawn["signature"])


LIES: dict[str, tuple[Callable[[list[Any]], object], str]] = {
    "made up": (lambda entries: entries[1]["drawn"]["dev"].update(value="66" * 32), "is not that of round"),
    "another round": (_other_round, "was named"),
    "known before": (
        lambda entries: entries[0].update(made_at=entries[0]["draws"]["dev"]["at"]),
        "that was known already",
    ),
    "another moment": (
        lambda entries: entries[0]["draws"]["dev"].update(at="2100-01-01T00:00:00+00:00"),
        "is not made when",
    ),
    "never named": (lambda entries: entries[0].pop("draws"), "that nobody had named"),
    "never mixed in": (lambda entries: entries[1].pop("drawn"), "was never mixed into its splits"),
    "not drand": (
        lambda entries: entries[0]["draws"]["dev"].update(source=QUICKNET.name),
        "means another chain",
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_value_that_was_chosen_is_contradicted(revealed: PublicRepository, lie: str) -> None:
    """Made up, exchanged, named when it was known, or by another name: each contradicts what was published."""
    change, words = LIES[lie]
    found = beacon(revealed, change)
    assert found.worth is Worth.CONTRADICTED
    assert words in found.sentence


def test_values_that_were_dropped_are_counted(revealed: PublicRepository) -> None:
    """Whoever names one round after the other until one suits them has drawn several times, and that is told."""

    def dropped(entries: list[Any]) -> None:
        draw = entries[0]["draws"]["dev"]
        passed = {**entries[0], "sequence": 0, "draws": {"dev": {**draw, "at": entries[0]["made_at"]}}}
        passed["made_at"] = "2020-01-01T00:00:00+00:00"
        entries.insert(0, passed)

    found = beacon(revealed, dropped)
    assert found.worth is Worth.BELIEVED
    assert "it is draw 2" in found.sentence
