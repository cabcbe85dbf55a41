"""Each alert is sent once, and the board follows the scores without delaying them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from importlib.metadata import version

import pytest
from structlog.testing import capture_logs

from scoring.errors import InfrastructureError
from tests.worker.harness.gate import push_under_way
from tests.worker.harness.harness import Harness, StepWorker, embeddings, git
from tests.worker.harness.webhook import Hook
from worker.challenge.configuration import load
from worker.daemon.logs import REDACTED, Redactor
from worker.fairness import membership
from worker.fairness.register import RegisterFold
from worker.organizer.board_by_hand import freeze, thaw
from worker.organizer.reveal import reveal
from worker.organizer.session import open_session
from worker.publishing.board_history import BoardHistory
from worker.publishing.boards import keep_boards, make_boards, read_inputs
from worker.state import State


@pytest.fixture
def hook() -> Iterator[Hook]:
    """A webhook."""
    hook = Hook()
    yield hook
    hook.close()


@pytest.fixture
def notified(harness: Harness, hook: Hook) -> Harness:
    """A challenge with a webhook."""
    (harness.folder / "hook").write_text(hook.url)
    harness.configure({"alerts": {"webhook": "file:hook"}})
    return harness


def on_hold(harness: Harness) -> int:
    """Submit something that waits for a person, which is an alert."""
    pk = harness.submit("A", embeddings(1))
    harness.evalai.edit(pk, phase="eval")
    return pk


def failing(worker: StepWorker, *after_s: float) -> None:
    """Report that the state fails, at some moments of one failure."""
    error = InfrastructureError("The state database failed: locked.", cure="Wait.", code="state.database")
    begun = worker.clock.now()
    for seconds in after_s:
        worker.daemon.failed(error, begun + timedelta(seconds=seconds))


def test_every_alert_is_logged_once_and_so_is_its_end(notified: Harness, hook: Hook) -> None:
    """It is sent once while it lasts, too, and again when it returns; a new process only logs once more what is still active.

    Each line of the log is a sentence and has a key; lines about a submission have its number.
    """
    with notified.worker() as worker, capture_logs() as lines:
        for times in (1, 2):
            pk = on_hold(notified)
            worker.drive(lambda pk=pk: pk in worker.states() and worker.row(pk).hold is not None)
            worker.wait(5)
            worker.restart()
            worker.wait(5)
            notified.evalai.edit(pk, phase="dev")
            worker.drive()
            assert {"evaluate.start", "evaluate.done", "post.done"} <= {
                line["event_key"] for line in lines if line.get("submission") == pk
            }
            logged = [line for line in lines if line.get("alert") == f"hold:{pk}"]
            assert [line["log_level"] for line in logged] == ["warning", "warning", "info"]
            text, code = logged[0]["event"], logged[0]["event_key"]
            assert text.endswith("ask the team to undo this. Until then, the submission waits.")
            assert code.startswith("facts.")
            assert hook.heard[times - 1 :] == [{"text": f"[Tiny] {text} ({code})"}]
    assert all(line["event"].endswith(".") and "event_key" in line for line in lines)
    assert set(hook.agents) == {f"neuco-worker/{version('neuco-worker')}"}


def test_a_failing_state_is_reported_once_and_again_when_it_fails_again(
    notified: Harness, hook: Hook
) -> None:
    """Only a failure of more than a minute is reported, once while it lasts, although it cannot be recorded."""
    with notified.worker() as worker:
        worker.drive()
        failing(worker, 0, 30, 59)
        worker.drive()
        for times in (1, 2):
            failing(worker, 0, 30, 61, 62, 90)
            worker.drive(lambda times=times: len(hook.heard) == times)
            worker.drive()
            assert (len(hook.heard), worker.daemon.problem, worker.alerts()) == (times, None, set())
    assert hook.heard[0] == {"text": "[Tiny] The state database failed: locked. Wait. (state.database)"}


@pytest.mark.parametrize("fault", ["it refuses", "its address is missing"])
def test_a_webhook_that_does_not_work_is_tried_again_and_delays_nothing(
    notified: Harness, hook: Hook, fault: str
) -> None:
    """Alerts wait for their webhook; neither a step, a submission nor the report of a failing state does."""
    address = notified.folder / "hook"
    hook.status = 500
    with notified.worker() as worker:
        worker.drive()
        if "missing" in fault:
            address.unlink()
        failing(worker, 0, 61)
        on_hold(notified)
        pk = notified.submit("B", embeddings(2))
        worker.drive(lambda: notified.status(pk) == "finished")
        worker.drive(lambda: len(hook.heard) > 1 or not address.exists())
        assert worker.daemon.problem is None
        assert bool(hook.heard) == address.exists()
        hook.heard.clear()
        hook.status = 200
        address.write_text(hook.url)
        worker.drive(lambda: bool(hook.heard))
        assert "facts." in hook.heard[0]["text"]


@pytest.mark.parametrize("change", ["flag", "disqualify", "rules"])
def test_a_change_while_a_push_is_under_way_is_pushed_next(harness: Harness, change: str) -> None:
    """What the listing brings or a person decides is not in the current push; another push follows by itself."""
    with push_under_way(harness) as (worker, gate, pk):
        if change == "flag":
            harness.evalai.edit(pk, is_flagged=True)
            worker.clock.advance(30)  # the listing is due
            worker.drive(lambda: worker.row(pk).flagged)
        elif change == "disqualify":
            harness.decide("challenge", "disqualify", str(pk), "--reason", "a test")
        else:
            harness.configure({"leaderboard": {"hidden_teams": ["A"]}})
            harness.decide("challenge", "apply", "--yes", "--reason", "a test")
        gate.open()
        worker.drive()
        assert worker.state(pk) is State.PUBLISHED
        assert harness.teams() == []


def test_a_phase_closes_with_everything_that_was_answered(harness: Harness) -> None:
    """This includes answers that no board has shown; later ones are on none until the board is opened again."""
    harness.configure({"leaderboard": {"publish_every": 3600}})
    with harness.worker() as worker:

        def answered(team: str, seed: int) -> int:
            pk = harness.submit(team, embeddings(seed))
            worker.drive(lambda: worker.states().get(pk) == "posted")
            return pk

        first = answered("A", 1)
        worker.clock.advance(3600)
        worker.drive(lambda: worker.state(first) is State.PUBLISHED)
        second = answered("B", 2)
        assert harness.teams() == ["A"]
        harness.decide("board", "freeze", "--phase", "dev", "--now", "--yes")
        third = answered("C", 3)
        worker.clock.advance(3600)
        worker.drive(lambda: {worker.state(second), worker.state(third)} == {State.PUBLISHED})
        assert set(harness.teams()) == {"A", "B"}
        message = harness.decide("challenge", "disqualify", str(second), "--reason", "a test")
        assert "closed, so it does not change" in message
        harness.decide("board", "freeze", "--phase", "dev", "--undo")
        worker.clock.advance(3600)
        worker.drive(lambda: set(harness.teams()) == {"A", "C"})


@pytest.mark.parametrize("decision", [None, "close", "remove a name"])
def test_a_board_that_a_decision_overtakes_is_not_stored(
    harness: Harness, worker: StepWorker, decision: str | None
) -> None:
    """It was computed before the phase was closed or a team's name was removed, and is made again."""
    harness.submit("A", embeddings(1))
    pk = harness.submit("B", embeddings(2))
    worker.drive()
    now = worker.clock.now()
    with worker.store.write() as tx:
        tx.note(pk, excluded="a test")
        inputs = read_inputs(tx, load(harness.path), ["dev"], BoardHistory(), RegisterFold(), now=now)
    pending = make_boards(inputs)
    assert [row.team for row in pending.new[0].standings] == ["A"]
    with worker.store.write() as tx:
        if decision == "close":
            tx.freeze_phase("dev", at=now)
        elif decision is not None:
            membership.add(tx, 1, "Team Twelve")
        assert keep_boards(tx, pending) == (decision is None)


def last_board(worker: StepWorker) -> int:
    """Return the number of the last board that is stored."""
    with worker.store.read() as tx:
        return tx.last_board("dev")


def messages(harness: Harness) -> list[str]:
    """Return the commit messages of the branch, oldest first, without the changed ranks, which follow from the scores."""
    texts = git(harness.board, "log", "--reverse", "--format=%B%x00", "main").split("\0")
    return [re.sub(r", \d+ (own|passive) moves?", "", text).strip() for text in texts if text.strip()]


def test_a_commit_says_what_it_changes(harness: Harness, worker: StepWorker) -> None:
    """Boards, a batch of receipts, a closed board and a reveal are told apart.

    While the remote is away, scoring goes on; the boards follow within 90 seconds of its return, and the alert is resolved.
    """
    worker.drive()
    away = harness.board.rename(harness.folder / "away.git")
    for number, team in enumerate("AB", 1):
        pk = harness.submit(team, embeddings(number))
        worker.drive(lambda number=number: last_board(worker) == number)
    for _ in range(8):
        worker.clock.advance(60)
        worker.wait(1)
    assert worker.state(pk) is State.POSTED
    assert any(code.startswith("leaderboard.") for code in worker.alerts())
    away.rename(harness.board)
    back = worker.clock.now()
    worker.drive(lambda: worker.state(pk) is State.PUBLISHED)
    assert (worker.clock.now() - back).total_seconds() <= 90
    assert worker.alerts() == set()
    harness.submit("C", embeddings(0))
    worker.drive()
    for _ in range(2):
        worker.advance(3601)
    for decide in (freeze, thaw, freeze):
        with open_session(harness.path) as session:
            decide(replace(session, now=worker.clock.now()), "dev")
        worker.drive()
    with open_session(harness.path) as session:
        reveal(replace(session, clock=worker.clock.now), ["dev"], labels=True, contents={})
    worker.drive()
    assert messages(harness) == [
        "Publish a commitment",
        "dev: 2 submissions counted\n\nSubmission: 1001\nSubmission: 1002",
        "dev: 1 submission counted\n\nSubmission: 1003",
        "Publish receipts",
        "Publish receipts",
        "Close the board of phase dev",
        "Open the board of phase dev",
        "Close the board of phase dev",
        "Reveal phase dev\n\nPublish receipts",
    ]


def test_no_batch_is_backdated(harness: Harness, worker: StepWorker) -> None:
    """After a pause the next batch carries its own time, missed ones are not made up for, and the first commitment's interval stays."""
    hour, slack = timedelta(hours=1), timedelta(minutes=10)
    worker.drive()
    begun_at = worker.clock.now().replace(microsecond=0)
    harness.configure({"leaderboard": {"receipts_every": 24 * 3600}})
    worker.reload()
    for hours in (1, 10, 1):
        worker.stop()
        worker.clock.advance(hours * 3600)
        worker.start()
        worker.drive()
    lines = map(json.loads, harness.published("receipts.jsonl").splitlines())
    first, paused, last = (datetime.fromisoformat(line["made_at"]) for line in lines)
    assert begun_at < first <= begun_at + hour + slack
    assert first + 10 * hour <= paused
    assert paused < last <= paused + hour + slack


@pytest.mark.parametrize(
    "secret",
    [
        "eyJhbGciOiJIUzI1NiJ9.eyJ1c2VyX2lkIjoxfQ.c2lnbmF0dXJl",
        "0123456789abcdef0123456789abcdef01234567",
        "ghp_abcdefghijklmnopqrstuvwxyz012345",
        "https://hooks.slack.com/services/T0/B0/abc",
        "correct horse battery staple",
    ],
)
def test_no_log_line_holds_a_secret(secret: str) -> None:
    """Text that looks like a token, and every known secret, is removed from every text, however deep."""
    clean = Redactor(["correct horse battery staple"])
    event = clean(
        None, "info", {"event": f"failed with {secret}!", "more": {"deep": [secret, ("x", secret)]}}
    )
    assert secret not in json.dumps(event)
    assert REDACTED in event["event"]
