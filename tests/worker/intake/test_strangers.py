"""Whatever a participant, or a stranger with a challenge of their own, writes into an EvalAI row changes nothing that is published."""

from __future__ import annotations

import json
from typing import Any

import pytest
import requests

from tests.worker.harness.harness import Harness, StepWorker, embeddings
from worker.intake.changes import ELSEWHERE
from worker.organizer.archiving import mark_restored
from worker.sandbox.writable import FILES, FLAGS, MOMENTS, STATUSES
from worker.state import State

pytestmark = pytest.mark.processes

BASELINE = "Baseline mean embeddings"
DECISIVE = (
    "status",
    *FLAGS[:3],
    "ignore_submission",
    "participant_team",
    "created_by",
    "challenge_phase",
    "input_file",
    *FILES[2:5],
    "method_name",
)
"""Fields of which a change after the answer is told, if it was not repaired."""
ANSWERS = ("status", *FILES[2:], "started_at", "completed_at", "stdout_file", "stderr_file")
"""What our answer writes."""
TOLD = {"facts.changed", "submission.set_back"}


def answer(harness: Harness, method: str, pk: int, **words: Any) -> None:
    """Answer a submission as the worker does, in the address of a stranger's own challenge."""
    address = (
        f"{harness.evalai.url}/api/jobs/challenge/{harness.evalai.world.elsewhere.pk}/update_submission/"
    )
    headers = {"Authorization": f"Bearer {harness.evalai.token('otherhost')}"}
    body = {"submission": pk, "challenge_phase": harness.evalai.phase_pk("dev"), "stderr": "", "metadata": ""}
    accuracies = {"split": "dev_split", "show_to_participant": True, "accuracies": {"q_mean": 99.0}}
    body |= {"stdout": "forged", "result": json.dumps([accuracies])}
    answered = requests.request(method, address, headers=headers, json=body | words, timeout=60)
    assert answered.status_code == 200, answered.text


def write(harness: Harness, user: str, pk: int, **body: Any) -> None:
    """Write into a submission in the address of the user's own challenge."""
    own = harness.evalai.world.elsewhere.pk if user == "otherhost" else harness.evalai.challenge
    address = f"{harness.evalai.url}/api/jobs/challenges/{own}/submissions/{pk}/update_submission_meta/"
    headers = {"Authorization": f"Bearer {harness.evalai.token(user)}"}
    answer = requests.patch(address, headers=headers, timeout=60, **body)
    assert answer.status_code == 200, answer.text


def writes(harness: Harness, rival: int) -> list[dict[str, Any]]:
    """Return a request for each field and value that can be written."""
    other = harness.evalai.world.submissions[rival]
    host = next(user.pk for user in harness.evalai.world.users.values() if user.name == "host")
    values: list[tuple[str, Any]] = [
        *(("status", status) for status in STATUSES),
        *((flag, value) for flag in FLAGS for value in (True, False)),
        *((moment, "2020-01-01T00:00:00Z") for moment in MOMENTS),
        *(("created_by", user) for user in (other["created_by"], host)),
        *(("challenge_phase", harness.evalai.phase_pk(name)) for name in ("elsewhere", "eval")),
        ("method_name", BASELINE),
        *((link, "https://forged.example") for link in ("project_url", "publication_url")),
    ]
    forged = ("forged.csv", embeddings(0, noise=0.01))
    return [
        *({"json": {name: value}} for name, value in values),
        *({"files": {name: forged}} for name in FILES[:-1]),
        {"json": {"participant_team": other["participant_team"]}},  # the last one that its team may write
    ]


def seen(harness: Harness, *pks: int) -> dict[str, Any]:
    """Return what is published, and how often and with what each submission was answered."""
    page = {"board": harness.boards(), "readme": harness.published("README.md")}
    answered = {(post["status"], post["stdout"]) for pk in pks for post in harness.posts(pk)}
    return {**page, "answers": answered}


@pytest.mark.parametrize(
    ("late", "status"),
    [
        *((False, status) for status in ("running", "finished", "cancelled")),
        *((True, status) for status in ("failed", "finished", "cancelled")),
    ],
)
def test_an_answer_by_a_stranger_is_replaced(
    harness: Harness, worker: StepWorker, late: bool, status: str
) -> None:
    """Before ours or after it: what the participant reads in the end is ours, at once or after the command that the alert names."""
    pk = harness.submit("Rival", embeddings(1, noise=1.0))
    worker.drive(lambda: worker.states().get(pk) not in (None, State.RECEIVED))
    if late:
        worker.drive(lambda: worker.row(pk).answer_files is not None)
    else:
        worker.clock.advance(10)  # so that it is read before it is scored
    answer(harness, "PATCH" if status == "running" else "PUT", pk, submission_status=status)
    other = harness.submit("Other", embeddings(2, noise=1.0))
    worker.drive()
    worker.advance(3600)
    alerts = worker.alerts() & TOLD
    if alerts:
        (code,) = alerts
        assert f"challenge retry {pk}`" in worker.alert(code)
        assert harness.command("challenge", "retry", str(pk)).returncode == 0
        worker.drive()
        worker.advance(3600)
    assert {harness.status(each) for each in (pk, other)} == {"finished"}
    assert harness.stdout(pk)["status"] == "completed"
    assert (set(harness.teams()), worker.alerts()) == ({"Rival", "Other"}, set())


@pytest.mark.parametrize(
    ("user", "state", "last"),
    [
        ("member", State.FETCHED, {"status": "cancelled"}),
        ("otherhost", State.FETCHED, {"ignore_submission": True}),
        ("otherhost", State.FETCHED, {"status": "failed"}),
        ("otherhost", State.SCORING, {"status": "cancelled"}),
        ("otherhost", State.SCORING, {"ignore_submission": True}),
        ("otherhost", State.SCORING, {"status": "finished"}),
    ],
    ids=str,
)
def test_what_anybody_writes_before_the_answer_changes_nothing(
    harness: Harness, worker: StepWorker, user: str, state: State, last: dict[str, Any]
) -> None:
    """Everybody is answered as if nothing had happened, at once or after the command that the alert names."""
    harness.evalai.add_team("Written", ("member",))
    rival = harness.submit("Rival", embeddings(1, noise=1.0))
    worker.drive()
    pk = harness.submit("Written", embeddings(2, noise=1.0))
    worker.drive(lambda: worker.states().get(pk) == state)
    first = dict(harness.evalai.world.submissions[pk])
    *requests, moved = writes(harness, rival)
    for request in (*requests, {"json": last}, moved):
        write(harness, user, pk, **request)
    worker.clock.advance(10)  # so that it is read before it is scored
    late = harness.submit("Late", embeddings(3, noise=1.0))
    worker.drive()
    assert "facts.changed" in worker.alerts()
    assert (worker.state(pk) is State.CANCELLED) == (last.get("status") not in ("failed", "finished"))
    if worker.state(pk) is State.CANCELLED:
        assert f"`neuco-worker challenge retry {pk}`" in worker.alert("facts.changed")
        assert harness.command("challenge", "retry", str(pk)).returncode == 0
        worker.finish(pk)
    harness.evalai.edit(pk, **{name: value for name, value in first.items() if name not in ANSWERS})
    worker.drive()
    assert worker.alerts() == set()
    assert {(row["team"], row["baseline"]) for row in harness.boards()} == {
        (team, False) for team in ("Rival", "Written", "Late")
    }
    assert [len(harness.posts(each)) for each in (rival, late, pk)] == [1, 1, 1]


def test_what_was_stopped_after_a_backup_is_told(harness: Harness, worker: StepWorker) -> None:
    """A restored state has never seen it, but somebody may wait for an answer."""
    with worker.store.write() as tx:
        mark_restored(tx, worker.clock.now().isoformat())
    worker.stop()
    pk = harness.submit("Rival", embeddings(1, noise=1.0))
    write(harness, "otherhost", pk, json={"status": "cancelled"})
    worker.start()
    worker.drive()
    assert f"`neuco-worker challenge retry {pk}`" in worker.alert("facts.changed")


def test_a_submission_that_a_stranger_moves_to_another_challenge_is_answered(
    harness: Harness, worker: StepWorker
) -> None:
    """EvalAI then hides it from its hosts; when it is moved back, the alert ends, and what others answered meanwhile is replaced."""
    pk = harness.submit("Rival", embeddings(1, noise=1.0))
    worker.drive(lambda: worker.states().get(pk) == State.FETCHED)
    write(harness, "otherhost", pk, json={"challenge_phase": harness.evalai.phase_pk("elsewhere")})
    worker.finish(pk)
    assert 'phase (number) 11 became "another challenge\'s"' in worker.alert("facts.changed")
    answer(harness, "PUT", pk, submission_status="finished")
    write(harness, "otherhost", pk, json={"challenge_phase": harness.evalai.phase_pk("dev")})
    worker.drive()
    assert (set(harness.teams()), worker.alerts()) == ({"Rival"}, set())
    assert harness.stdout(pk)["status"] == "completed"


@pytest.mark.parametrize("ended", [False, True])
def test_a_submission_that_is_hidden_before_it_is_read_costs_others_nothing(
    harness: Harness, worker: StepWorker, ended: bool
) -> None:
    """It is told, is scored if it comes back, and does not count among those for which calls are kept."""
    harness.configure({"evalai": {"reconcile_every": 600}})
    worker.reload()
    worker.drive()
    pk = harness.submit("Rival", embeddings(1, noise=1.0))
    write(harness, "otherhost", pk, json={"challenge_phase": harness.evalai.phase_pk("elsewhere")})
    worker.wait(300)
    address = f"/api/jobs/submission/{pk}"
    assert len([made for made in harness.evalai.journal.requests("GET") if made.path == address]) == 1
    assert f"Submission {pk} was sent to this challenge" in worker.alert("facts.changed")
    assert (worker.daemon.waiting(worker.clock.now()).nothing, harness.evalai.queue_length()) == (True, 0)
    if ended:
        harness.decide("challenge", "disqualify", str(pk))
        harness.evalai.send_again(pk, phase="dev")
        worker.wait(60)
        assert worker.alerts() == set()
        harness.decide("challenge", "disqualify", str(pk), "--undo")
    write(harness, "otherhost", pk, json={"challenge_phase": harness.evalai.phase_pk("dev")})
    worker.clock.advance(600)
    worker.drive(lambda: worker.state(pk) != State.CANCELLED)
    assert worker.alerts() == set()
    worker.drive()
    assert (harness.status(pk), worker.alerts(), harness.teams()) == ("finished", set(), ["Rival"])


def test_a_stranger_who_runs_a_submission_again_and_again_delays_no_new_one(harness: Harness) -> None:
    """A team's files are scored one after another, and re-runs have the time of the first run."""
    harness.configure({"submission": {"answer_grid": 60}})
    with harness.worker() as worker:
        first = harness.submit("Rival", embeddings(1))
        worker.drive()
        again = [harness.evalai.rerun(first) for _ in range(4)]
        late = harness.submit("Rival", embeddings(2))
        worker.drive(lambda: harness.status(late) == "finished")
        assert sum(harness.status(pk) == "finished" for pk in again) <= 1
        worker.finish(*again)


def test_a_stranger_who_moves_many_answered_submissions_delays_nobody(harness: Harness) -> None:
    """EvalAI is asked for each of them, one by one; a submission that comes then is scored and answered before."""
    # so few calls that most are left when it is answered
    harness.configure({"evalai": {"requests_per_minute": 10, "poll_every": 10}})
    with harness.worker() as worker:
        pks = [harness.submit(f"Rival {seed}", embeddings(seed)) for seed in range(8)]
        worker.finish(*pks)
        worker.clock.advance(3600)
        for pk in pks:
            write(harness, "otherhost", pk, json={"challenge_phase": harness.evalai.phase_pk("elsewhere")})
        worker.drive(lambda: bool(worker.daemon.intake.session.unlisted))
        late = harness.submit("Late", embeddings(0, noise=0.1))
        worker.drive(lambda: harness.status(late) == "finished")
        assert worker.daemon.intake.session.unlisted
        worker.drive(lambda: not worker.daemon.intake.session.unlisted)
        worker.drive()
        assert all(worker.row(pk).at_evalai["phase"] == ELSEWHERE for pk in pks)


def test_what_anybody_writes_after_the_answer_changes_nothing(harness: Harness, worker: StepWorker) -> None:
    """Each change is told, or repaired."""
    rival = harness.submit("Rival", embeddings(1, noise=1.0))
    pk = harness.submit("Written", embeddings(2, noise=1.0))
    worker.drive()
    worker.advance(3600)  # EvalAI is read after the answer
    before, answered = seen(harness, rival, pk), dict(harness.evalai.world.submissions[pk])
    for request in writes(harness, rival):
        posts = len(harness.posts(pk))
        write(harness, "otherhost", pk, **request)
        worker.drive()
        assert seen(harness, rival, pk) == before, request
        now = harness.evalai.world.submissions[pk]
        if len(harness.posts(pk)) > posts:  # our answer is there again
            answered |= {name: now[name] for name in ANSWERS}
        differs = {name for name in DECISIVE if now[name] != answered[name]}
        assert not differs or worker.alerts() & TOLD, request
        harness.evalai.edit(pk, **answered)
        worker.drive()
        assert "facts.changed" not in worker.alerts(), request


def test_where_evalai_keeps_an_answer_is_read_at_once(harness: Harness, worker: StepWorker) -> None:
    """The call after the answer reads it: later, nobody can tell whether the files at EvalAI are ours."""
    worker.drive()
    pk = harness.submit("Rival", embeddings(1, noise=1.0))
    worker.drive(lambda: pk in worker.states() and worker.row(pk).answer_files is not None)
    answering, reading = [made for made in harness.evalai.journal.requests() if made.origin == "api"][-2:]
    assert (answering.method, answering.status) == ("PUT", 200)
    assert (reading.method, reading.path) == ("GET", f"/api/jobs/submission/{pk}")


@pytest.mark.parametrize("name", FILES[2:5])
def test_a_replaced_answer_is_told_and_sent_again(harness: Harness, worker: StepWorker, name: str) -> None:
    """A stranger's words or results do not stay at EvalAI."""
    pk = harness.submit("Rival", embeddings(1, noise=1.0))
    worker.drive(lambda: pk in worker.states() and worker.row(pk).answer_files is not None)
    answer = harness.evalai.text(pk, name)
    write(harness, "otherhost", pk, files={name: ("answer.txt", b"forged")})
    worker.advance(3600)
    assert "its answer was replaced" in worker.alert("facts.changed")
    assert harness.command("challenge", "retry", str(pk)).returncode == 0
    worker.drive()
    assert harness.evalai.text(pk, name) == answer
    worker.advance(3600)
    assert worker.alerts() == set()


def test_a_retry_lets_an_answer_be_sent_again_as_often_as_at_first(
    harness: Harness, worker: StepWorker
) -> None:
    """A submission that is reset gets its answer again once; then it is told, until the organizers want it sent."""
    pk = harness.submit("Rival", embeddings(1, noise=1.0))
    worker.drive()

    def reset() -> tuple[str, set[str]]:
        harness.evalai.edit(pk, status="submitted")
        worker.advance(3600)
        return harness.status(pk), worker.alerts()

    for _ in range(2):
        assert reset() == ("finished", set())
        assert reset() == ("submitted", {"submission.set_back"})
        assert harness.command("challenge", "retry", str(pk)).returncode == 0
        worker.drive()
        assert (harness.status(pk), worker.alerts()) == ("finished", set())
