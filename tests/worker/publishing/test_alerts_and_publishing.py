"""Each alert is sent once, and the board follows the scores without delaying them."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from importlib.metadata import version

import pytest
import structlog
from structlog.testing import capture_logs

from scoring.errors import InfrastructureError
from tests.worker.harness.gate import push_under_way
from tests.worker.harness.harness import Harness, StepWorker, embeddings, git
from tests.worker.harness.webhook import Hook
from worker.daemon.logs import REDACTED, Redactor
from worker.organizer.board_by_hand import freeze, thaw
from worker.organizer.reveal import reveal
from worker.organizer.session import open_session
from worker.state import State


@pytest.fixture
def hook() -> Iterator[Hook]:
    """A webhook."""
    hook = Hook()
    yield hook
    hook.close()


def test_an_alert_is_sent_once_and_again_when_it_returns(harness: Harness, hook: Hook) -> None:
    """It is sent once while it lasts; after its end, it is new again."""
    (harness.folder / "hook").write_text(hook.url)
    harness.configure({"alerts": {"webhook": "file:hook"}})
    with harness.worker() as worker:
        for round_number in (1, 2):
            pk = harness.submit("A", embeddings(round_number), phase="dev")
            worker.drive(lambda pk=pk: pk in worker.states())
            harness.evalai.edit(pk, phase="eval")
            worker.drive(lambda pk=pk: worker.row(pk).hold is not None)
            worker.wait(60)
            assert len(hook.heard) == round_number
            harness.evalai.edit(pk, phase="dev")
            worker.drive()
        assert set(hook.heard[0]) == {"text"}
        assert "[Tiny]" in hook.heard[0]["text"]
        assert "facts." in hook.heard[0]["text"]
        assert set(hook.agents) == {f"neuco-worker/{version('neuco-worker')}"}


def test_every_alert_is_logged_once_and_so_is_its_end(harness: Harness) -> None:
    """Without a webhook, the log is where the organizer learns of it; a new process logs what is still active once more."""
    pk = harness.submit("A", embeddings(1), phase="dev")
    harness.evalai.edit(pk, phase="eval")
    with harness.worker() as worker, capture_logs() as lines:
        worker.drive(lambda: pk in worker.states() and worker.row(pk).hold is not None)
        worker.wait(60)
        [line] = [line for line in lines if line.get("alert") == f"hold:{pk}"]
        assert line["log_level"] == "warning"
        assert line["event_key"].startswith("facts.")
        assert line["event"].endswith("ask the team to undo this. Until then, the submission waits.")
        worker.restart()
        worker.wait(60)
        harness.evalai.edit(pk, phase="dev")
        worker.drive(lambda: harness.status(pk) == "finished")
        levels = [line["log_level"] for line in lines if line.get("alert") == f"hold:{pk}"]
        assert levels == ["warning", "warning", "info"]


def test_a_failing_state_is_reported_once_and_again_when_it_fails_again(harness: Harness, hook: Hook) -> None:
    """Only a failure of more than a minute is reported, once while it lasts, although it cannot be recorded."""
    (harness.folder / "hook").write_text(hook.url)
    harness.configure({"alerts": {"webhook": "file:hook"}})
    error = InfrastructureError("The state database failed: locked.", cure="Wait.", code="state.database")
    with harness.worker() as worker:
        worker.drive()
        for times in (1, 2):
            begun = worker.clock.now()
            for at in (0, 30, 61, 62, 90):
                worker.daemon.failed(error, begun + timedelta(seconds=at))
                assert len(hook.heard) == times - (at < 61) or worker.daemon.alerting.busy
            worker.drive(lambda times=times: len(hook.heard) == times)
            worker.drive()
            assert worker.daemon.problem is None
        assert hook.heard[0] == {"text": "[Tiny] The state database failed: locked. Wait. (state.database)"}
        assert worker.alerts() == set()


def test_a_refusing_webhook_is_tried_again_and_delays_nothing(harness: Harness, hook: Hook) -> None:
    """Alerts wait for their webhook; submissions do not."""
    hook.status = 500
    (harness.folder / "hook").write_text(hook.url)
    harness.configure({"alerts": {"webhook": "file:hook"}})
    with harness.worker() as worker:
        held = harness.submit("A", embeddings(1))
        harness.evalai.edit(held, phase="eval")
        pk = harness.submit("B", embeddings(2))
        worker.drive(lambda: harness.status(pk) == "finished")
        worker.wait(30)
        assert len(hook.heard) > 1
        hook.status = 200
        worker.wait(70)
        with worker.store.read() as tx:
            assert all(alert.sent_at is not None for alert in tx.alerts())


def test_a_webhook_with_a_missing_address_is_tried_again_and_delays_nothing(
    harness: Harness, hook: Hook
) -> None:
    """A missing file with the address breaks neither a step nor the report of a failing state."""
    place = harness.folder / "hook"
    place.write_text(hook.url)
    harness.configure({"alerts": {"webhook": "file:hook"}})
    with harness.worker() as worker:
        worker.drive()
        place.unlink()
        begun = worker.clock.now()
        for at in (0, 61):
            error = InfrastructureError("The state database failed: locked.", code="state.database")
            worker.daemon.failed(error, begun + timedelta(seconds=at))
        held = harness.submit("A", embeddings(1))
        harness.evalai.edit(held, phase="eval")
        pk = harness.submit("B", embeddings(2))
        worker.drive(lambda: harness.status(pk) == "finished")
        assert worker.daemon.problem is None
        assert hook.heard == []
        place.write_text(hook.url)
        worker.drive(lambda: bool(hook.heard))


def test_the_push_follows_the_remotes_return(harness: Harness, worker: StepWorker) -> None:
    """Scoring never waits; the push comes within 90 seconds of the remote's return, and the alert is resolved."""
    away = harness.board.with_name("away.git")
    harness.board.rename(away)
    pk = harness.submit("A", embeddings(1))
    worker.drive(lambda: harness.status(pk) == "finished")
    for _ in range(8):
        worker.clock.advance(60)
        worker.wait(1)
    assert worker.state(pk) is State.POSTED
    assert any(code.startswith("leaderboard.") for code in worker.alerts())
    away.rename(harness.board)
    back = worker.clock.now()
    worker.drive(lambda: worker.state(pk) is State.PUBLISHED)
    assert (worker.clock.now() - back).total_seconds() <= 90
    assert harness.teams() == ["A"]
    assert worker.alerts() == set()


def test_a_change_while_a_push_is_under_way_is_pushed_next(harness: Harness) -> None:
    """A change that the listing brings during a push does not count as published."""
    with push_under_way(harness) as (worker, gate, pk):
        harness.evalai.edit(pk, is_flagged=True)
        worker.clock.advance(30)  # the listing is due
        worker.drive(lambda: worker.row(pk).flagged)
        gate.open()
        worker.drive()
        assert worker.state(pk) is State.PUBLISHED
        assert harness.teams() == []


@pytest.mark.parametrize("what", ["disqualify", "rules"])
def test_what_a_person_decides_during_a_push_is_pushed_next(harness: Harness, what: str) -> None:
    """A disqualification or another rule is not in the current push; another push follows by itself."""
    with push_under_way(harness) as (worker, gate, pk):
        if what == "disqualify":
            assert (
                harness.command("challenge", "disqualify", str(pk), "--yes", "--reason", "a test").returncode
                == 0
            )
        else:
            harness.configure({"leaderboard": {"hidden_teams": ["A"]}})
            assert harness.command("challenge", "apply", "--yes", "--reason", "a test").returncode == 0
        gate.open()
        worker.drive()
        assert worker.state(pk) is State.PUBLISHED
        assert harness.teams() == []


def test_a_phase_closes_with_everything_that_was_answered(harness: Harness) -> None:
    """This includes answers that no board has shown; later ones are on none until the board is opened again."""
    harness.configure({"leaderboard": {"publish_every": 3600}})
    with harness.worker() as worker:
        first = harness.submit("A", embeddings(1))
        worker.drive(lambda: worker.states().get(first) == "posted")
        worker.clock.advance(3600)
        worker.drive(lambda: worker.state(first) is State.PUBLISHED)
        second = harness.submit("B", embeddings(2))
        worker.drive(lambda: worker.states().get(second) == "posted")
        assert harness.teams() == ["A"]
        assert (
            harness.command(
                "board", "freeze", "--phase", "dev", "--now", "--yes", "--reason", "a test"
            ).returncode
            == 0
        )
        third = harness.submit("C", embeddings(3))
        worker.drive(lambda: worker.states().get(third) == "posted")
        for pk in (second, third):
            worker.clock.advance(3600)
            worker.drive(lambda pk=pk: worker.state(pk) is State.PUBLISHED)
        assert set(harness.teams()) == {"A", "B"}
        told = harness.command("challenge", "disqualify", str(second), "--yes", "--reason", "a test")
        assert "closed, so it does not change" in told.stdout
        assert (
            harness.command(
                "board", "freeze", "--phase", "dev", "--undo", "--yes", "--reason", "a test"
            ).returncode
            == 0
        )
        worker.clock.advance(3600)
        worker.drive(lambda: set(harness.teams()) == {"A", "C"})


def test_a_freeze_while_a_board_is_computed_comes_first(harness: Harness) -> None:
    """The board in progress is not stored: the closed one is final."""
    from leaderboard.ranking import board as boards

    with harness.worker() as worker:
        pk = harness.submit("A", embeddings(1))
        worker.drive()
        frozen = threading.Event()
        make = boards.next_board

        def slowly(*arguments: object, **options: object) -> object:
            made = make(*arguments, **options)
            if made is not None and not frozen.is_set():
                with worker.store.write() as tx:
                    tx.freeze_phase("dev", at=worker.clock.now())
                    tx.request_publish()
                frozen.set()
            return made

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(boards, "next_board", slowly)
            harness.submit("B", embeddings(2))
            worker.drive()
        assert frozen.is_set()
        assert harness.teams() == ["A"]
        with worker.store.read() as tx:
            assert tx.last_board("dev") == 1
        assert worker.state(pk) is State.PUBLISHED


def test_somebody_elses_commit_is_kept(harness: Harness, worker: StepWorker) -> None:
    """The board is committed on top of whatever is at the branch's tip."""
    harness.submit("A", embeddings(1))
    worker.drive()
    tip = git(harness.board, "rev-parse", "main").strip()
    tree = git(harness.board, "rev-parse", "main^{tree}").strip()
    identity = ("-c", "user.name=Organizer", "-c", "user.email=o@example.org")
    other = git(harness.board, *identity, "commit-tree", tree, "-p", tip, "-m", "by hand").strip()
    git(harness.board, "update-ref", "refs/heads/main", other)
    harness.submit("B", embeddings(2))
    worker.drive()
    assert "by hand" in git(harness.board, "log", "--format=%s", "main")
    assert set(harness.teams()) == {"A", "B"}


def messages(harness: Harness) -> list[str]:
    """Return the commit messages of the branch, oldest first, without the changed ranks, which follow from the scores."""
    said = git(harness.board, "log", "--reverse", "--format=%B%x00", "main").split("\0")
    return [re.sub(r", \d+ (own|passive) moves?", "", text).strip() for text in said if text.strip()]


def test_a_commit_says_what_it_changes(harness: Harness, worker: StepWorker) -> None:
    """A batch of receipts, a closed board and a reveal are distinguished from a new board."""
    worker.drive()
    pk = harness.submit("A", embeddings(1))
    worker.drive()
    for _ in range(2):
        worker.clock.advance(3601)
        worker.drive()
    for decide in (freeze, thaw, freeze):
        with open_session(harness.path) as session:
            decide(replace(session, now=worker.clock.now()), "dev")
        worker.drive()
    with open_session(harness.path) as session:
        reveal(replace(session, clock=worker.clock.now), ["dev"], labels=True, contents={})
    worker.drive()
    assert messages(harness) == [
        "Publish commitment 1",
        f"dev: 1 submission counted, 1 new entry\n\nSubmission: {pk}",
        "Publish batch 1 of receipts",
        "Publish batch 2 of receipts",
        "Close the board of phase dev",
        "Open the board of phase dev",
        "Close the board of phase dev",
        "Reveal phase dev\n\nPublish batch 3 of receipts",
    ]


def test_a_commit_message_covers_an_earlier_lost_push(harness: Harness, worker: StepWorker) -> None:
    """A commit with several boards names the submissions of all of them."""
    worker.drive()
    away = harness.board.rename(harness.folder / "away.git")
    pks: list[int] = []

    def made() -> int:
        with worker.store.read() as tx:
            return tx.last_board("dev")

    for seed, team in enumerate("AB"):
        pks.append(harness.submit(team, embeddings(seed)))
        worker.drive(lambda: made() == len(pks))
    away.rename(harness.board)
    worker.drive()
    assert messages(harness)[1:] == [
        f"dev: 2 submissions counted, 2 new entries\n\nSubmission: {pks[0]}\nSubmission: {pks[1]}"
    ]


def batches(harness: Harness) -> list[datetime]:
    """Return the times of the batches in the public log."""
    lines = git(harness.board, "show", "main:receipts.jsonl").splitlines()
    return [datetime.fromisoformat(json.loads(line)["made_at"]) for line in lines]


def test_no_batch_is_backdated(harness: Harness, worker: StepWorker) -> None:
    """After a pause the next batch carries its own time, missed ones are not made up for, and the first commitment's interval stays."""
    hour, slack = timedelta(hours=1), timedelta(minutes=10)
    worker.drive()
    begun_at = worker.clock.now().replace(microsecond=0)
    harness.configure({"leaderboard": {"receipts_every": 24 * 3600}})
    worker.reload()
    worker.clock.advance(3600)
    worker.drive()
    worker.stop()
    worker.clock.advance(10 * 3600)
    worker.start()
    worker.drive()
    worker.clock.advance(3600)
    worker.drive()
    first, paused, last = batches(harness)
    assert begun_at < first <= begun_at + hour + slack
    assert first + 10 * hour <= paused
    assert paused < last <= paused + hour + slack


def test_failures_and_resends_cause_no_commit(harness: Harness, worker: StepWorker) -> None:
    """Only changes of the board are committed."""
    pk = harness.submit("A", embeddings(1))
    worker.drive()
    commits = harness.commits()
    harness.submit("B", b"id,0\nx,1\n")
    harness.evalai.send_again(pk)
    worker.drive()
    worker.restart()
    worker.drive()
    assert harness.commits() == commits


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


def test_a_log_line_is_a_sentence_a_key_and_ids(harness: Harness, worker: StepWorker) -> None:
    """Each line about a submission names its event and its submission."""
    pk = harness.submit("A", embeddings(1))
    with structlog.testing.capture_logs() as lines:
        worker.daemon.context.log = structlog.get_logger("neuco_worker")
        worker.drive()
    about = [line for line in lines if line.get("submission") == pk]
    assert {line["event_key"] for line in about} >= {"evaluate.start", "evaluate.done", "post.done"}
    assert all(line["event"].endswith(".") for line in lines)
    assert all("event_key" in line for line in lines)
