"""Each alert is sent once, delays nothing, and shows no secret."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from importlib.metadata import version

import pytest
from structlog.testing import capture_logs

from scoring.errors import InfrastructureError, OrganizerError
from tests.worker.harness.harness import Harness, StepWorker, embeddings
from tests.worker.harness.webhook import Hook
from worker.daemon import alerts
from worker.daemon.alerts import AGAIN_AFTER, send
from worker.daemon.logs import REDACTED, redacted


@pytest.fixture
def hook() -> Iterator[Hook]:
    """A webhook."""
    with closing(Hook()) as hook:
        yield hook


@pytest.fixture
def notified(harness: Harness, hook: Hook) -> Harness:
    """A challenge with a webhook."""
    (harness.folder / "hook").write_text(hook.url)
    harness.configure({"alerts": {"webhook": "file:hook"}})
    return harness


def on_hold(harness: Harness) -> int:
    """Submit something that waits for a person, which is an alert."""
    pk = harness.submit("A", embeddings(1))
    harness.evalai.edit(pk, created_by=harness.evalai.world.add_team(f"Other {pk}").members[0])
    return pk


def failing(worker: StepWorker, *after_s: float) -> None:
    """Report that the state fails, at some moments of one failure."""
    error = InfrastructureError("The state database failed: locked.", hint="Wait.", code="state.database")
    begun = worker.clock.now()
    for seconds in after_s:
        worker.daemon.failed(error, begun + timedelta(seconds=seconds))


@pytest.mark.processes
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
            assert notified.command("challenge", "retry", str(pk)).returncode == 0
            worker.drive()
            assert {"evaluate.start", "evaluate.done", "post.done"} <= {
                line["event_key"] for line in lines if line.get("submission") == pk
            }
            logged = [line for line in lines if line.get("alert") == f"hold:{pk}"]
            assert [line["log_level"] for line in logged] == ["warning", "warning", "info"]
            text, code = logged[0]["event"], logged[0]["event_key"]
            assert "its author is not a member of this team" in text
            assert code.startswith("facts.")
            assert hook.heard[times - 1 :] == [{"text": f"[Tiny] {text} ({code})"}]
    assert all(line["event"].endswith(".") and "event_key" in line for line in lines)
    agents = {request.headers["User-Agent"] for request in hook.asked}
    assert agents == {f"neuco-worker/{version('neuco-worker')}"}


@pytest.mark.processes
def test_alerts_that_come_together_are_one_message(notified: Harness, hook: Hook) -> None:
    """Somebody who edits many submissions at EvalAI does not use up the webhook's limit."""
    with notified.worker() as worker:
        worker.drive()
        with worker.store.write() as tx:
            for pk in range(1, 6):
                tx.raise_alert(f"changed:{pk}", "facts.changed", f"{pk} was edited.", now=worker.clock.now())
        worker.drive(lambda: bool(hook.heard))
        worker.wait(5)
        assert [message["text"] for message in hook.heard] == [
            "[Tiny] 1 was edited.\n2 was edited.\n3 was edited. and 2 more (facts.changed)"
        ]


@pytest.mark.processes
def test_nothing_that_a_participant_wrote_calls_everybody_in_a_channel(notified: Harness, hook: Hook) -> None:
    """Slack takes <!channel> for a mention and <address|words> for a link, Mattermost also @all and Markdown; neither is left."""
    pk = notified.submit("A", embeddings(1))
    with notified.worker() as worker:
        worker.drive()
        notified.evalai.edit(
            pk, method_name="<!channel> @all a@b <https://a.example|Log in> & [win](https://a.example)"
        )
        worker.drive(lambda: bool(hook.heard))
    shown = "'&lt;!channel&gt; @\u200ball a@b &lt;https://a.example|Log in&gt; &amp; [win]\u200b(https://a.example)'"
    assert f"became {shown}." in hook.heard[0]["text"]


@pytest.mark.processes
def test_an_alert_that_comes_and_goes_is_one_message_an_hour(notified: Harness, hook: Hook) -> None:
    """An outage of every other call, a clock about two minutes off, or a team that edits a submission again and again fills no channel."""
    with notified.worker() as worker:
        worker.drive()
        for times in (1, 2):
            for edited in range(3):
                with worker.store.write() as tx:
                    tx.resolve_alert("changed:1")
                    tx.raise_alert("changed:1", "facts.changed", f"Edit {edited}.", now=worker.clock.now())
                worker.drive(lambda times=times: len(hook.heard) >= times)
                worker.wait(60)
            assert len(hook.heard) == times
            worker.clock.advance(AGAIN_AFTER.total_seconds())
        worker.drive(lambda: len(hook.heard) == 3)
        assert hook.heard[-1] == {"text": "[Tiny] Edit 2. (facts.changed)"}


@pytest.mark.processes
def test_another_event_is_told_although_the_alert_about_the_last_one_lasts(
    notified: Harness, hook: Hook
) -> None:
    """Who joined the hosts in the afternoon is not hidden by who joined in the morning; the same again is nothing new."""
    said = ["'ann' joined.", "'eve' joined.", "'eve' joined."]
    with notified.worker() as worker, capture_logs() as lines:
        worker.drive()
        for text in said:
            with worker.store.write() as tx:
                tx.raise_alert("hosts", "evalai.hosts_changed", text, now=worker.clock.now(), happened=True)
            worker.wait(30)
            worker.clock.advance(AGAIN_AFTER.total_seconds())
    expected = said[:2]
    assert [line["event"] for line in lines if line.get("alert") == "hosts"] == expected
    assert [message["text"] for message in hook.heard] == [
        f"[Tiny] {text} (evalai.hosts_changed)" for text in expected
    ]


@pytest.mark.processes
def test_a_fault_that_needs_a_person_is_told_after_one_that_did_not(notified: Harness, hook: Hook) -> None:
    """A push that fails for a server that is away may next fail for a token that has expired; further changes are no news."""
    away = InfrastructureError("It is away.", hint="Wait.", code="leaderboard.unreachable")
    expired = OrganizerError("It expired.", hint="Renew it.", code="leaderboard.auth_refused")
    with notified.worker() as worker:
        worker.drive()
        for error in (away, expired, away, expired):
            with worker.store.write() as tx:
                tx.report("push", error, now=worker.clock.now())
            worker.wait(30)
    assert [message["text"] for message in hook.heard] == [
        "[Tiny] It is away. Wait. (leaderboard.unreachable)",
        "[Tiny] It expired. Renew it. (leaderboard.auth_refused)",
    ]


@pytest.mark.processes
def test_a_failing_state_is_reported_once_and_again_when_it_fails_again(
    notified: Harness, hook: Hook
) -> None:
    """Only a failure of more than a minute is reported, once while it lasts and at most hourly, although it cannot be recorded."""
    with notified.worker() as worker:
        worker.drive()
        failing(worker, 0, 30, 59)
        worker.drive()
        for times in (1, 2):
            failing(worker, 0, 30, 61, 62, 90)
            worker.drive(lambda times=times: len(hook.heard) == times)
            worker.drive()
            failing(worker, 0, 61)
            worker.drive()
            assert (len(hook.heard), worker.daemon.problem, worker.alerts()) == (times, None, set())
            worker.clock.advance(AGAIN_AFTER.total_seconds())
    assert hook.heard[0] == {"text": "[Tiny] The state database failed: locked. Wait. (state.database)"}


@pytest.mark.processes
def test_a_message_that_arrives_after_its_failure_hides_no_later_one(
    notified: Harness, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that was full for a moment works again before the webhook has answered; an hour later it is full for good."""
    ended = threading.Event()
    monkeypatch.setattr(alerts, "send", lambda *message: ended.wait() and send(*message))
    with notified.worker() as worker:
        worker.drive()
        for times in (1, 2):
            failing(worker, 0, 61)
            worker.step()
            ended.set()
            worker.drive(lambda times=times: len(hook.heard) == times)
            worker.drive()
            worker.clock.advance(AGAIN_AFTER.total_seconds())


@pytest.mark.processes
@pytest.mark.parametrize("fault", ["it refuses", "its address is missing"])
def test_a_webhook_that_does_not_work_is_tried_again_and_delays_nothing(
    notified: Harness, hook: Hook, fault: str
) -> None:
    """Alerts wait for their webhook; neither a step, a submission nor the report of a failing state does."""
    address = notified.folder / "hook"
    hook.reply.status_code = 500
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
        hook.asked.clear()
        hook.reply.status_code = 200
        address.write_text(hook.url)
        worker.drive(lambda: bool(hook.heard))
        assert "facts." in hook.heard[0]["text"]


@pytest.mark.processes
@pytest.mark.parametrize("command", ["once", "run"])
def test_a_process_that_ends_sends_its_alerts_first(live: Harness, hook: Hook, command: str) -> None:
    """Above all the one that says why it ends; the next process does not send it again."""
    (live.folder / "hook").write_text(hook.url)
    live.configure({"alerts": {"webhook": "file:hook"}, "evalai": {"challenge": 8}})
    for _ in range(2):
        assert live.command(command).returncode == 2
    assert [alert["text"].partition(".")[0] for alert in hook.heard] == [
        "[Tiny] The queue belongs to challenge 7, but the configuration says 8"
    ]


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
    said = {"event": f"failed with {secret}!", "more": {"deep": [secret, ("x", secret)]}}
    event = redacted(said, ["", "correct horse battery staple"])
    assert secret not in json.dumps(event)
    assert REDACTED in event["event"]
