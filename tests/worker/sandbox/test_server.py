"""What the sandbox does beyond the recorded requests: limits, the queue's behavior, lists, edits, faults."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
import requests
from hypothesis import given, settings
from hypothesis import strategies as st

from scoring.errors import InfrastructureError
from worker.sandbox import (
    ManualClock,
    PhaseSettings,
    Sandbox,
    SandboxSettings,
    from_challenge,
)
from worker.sandbox.faults import FaultSource
from worker.sandbox.queue import Queue
from worker.sandbox.state import Throttle

CSV = b"id,0\na,1\n"
QUIET = SandboxSettings(throttle_per_minute=100_000, teams={"Team Alice": ("alice", "carol")})


class Web:
    """Sends requests to a sandbox as one of its users."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox

    def __call__(  # noqa: D102
        self, method: str, path: str, user: str = "host", **body: Any
    ) -> requests.Response:
        headers = {"Authorization": f"Bearer {self.sandbox.token(user)}"}
        return requests.request(
            method, self.sandbox.url + path, headers=headers, allow_redirects=False, timeout=60, **body
        )

    def submit(self, user: str, phase: str, **form: str) -> requests.Response:
        """Submit a small file through the participant's endpoint."""
        path = f"/api/jobs/challenge/{self.sandbox.challenge}/challenge_phase/{self.sandbox.phase_pk(phase)}/submission/"
        return self("POST", path, user, data=form, files={"input_file": ("a.csv", CSV)})


@pytest.fixture
def clock() -> ManualClock:
    """Return a clock that only the test moves."""
    return ManualClock()


@pytest.fixture
def sandbox(clock: ManualClock) -> Iterator[Sandbox]:
    """Return a running sandbox with one team and without a rate limit."""
    with Sandbox(QUIET, clock=clock.clock()) as server:
        yield server


@pytest.fixture
def web(sandbox: Sandbox) -> Web:
    """Return a client for requests."""
    return Web(sandbox)


def finished(sandbox: Sandbox, pk: int, **changes: Any) -> dict[str, Any]:
    """Build the body of a good final PUT."""
    entry = {"split": "dev_split", "show_to_participant": True, "accuracies": {"q_mean": 1.5}}
    body = {
        "challenge_phase": sandbox.phase_pk("dev"),
        "submission": pk,
        "submission_status": "finished",
        "result": json.dumps([entry]),
    }
    return body | changes


# The participant's side


def test_direct_submissions_equal_those_over_http(sandbox: Sandbox, web: Web) -> None:
    """``submit`` gives the same fields, file and message as the participants' endpoint."""
    direct = sandbox.submit("Team Alice", "dev", CSV, method_name="m", file_name="a.csv")
    over_http = web.submit("alice", "dev", method_name="m", is_public="true").json()["id"]
    first, second = sandbox.submission(direct), sandbox.submission(over_http)
    differing = {name for name in first if first[name] != second[name]}
    assert differing <= {"id", "input_file"}
    assert requests.get(first["input_file"], timeout=60).content == CSV
    assert [body | {"submission_pk": 0} for body in received(sandbox.world.queue)] == [
        {
            "challenge_pk": "7",
            "phase_pk": "11",
            "is_static_dataset_code_upload_submission": False,
            "submission_pk": 0,
        }
    ] * 2


@pytest.mark.parametrize(
    ("limits", "sentence"),
    [
        ({"max_submissions": 1}, "The maximum number of submissions has been reached"),
        (
            {"max_submissions_per_month": 1},
            "The maximum number of submission for this month has been reached",
        ),
        ({"max_submissions_per_day": 1}, "The maximum number of submission for today has been reached"),
        ({"max_concurrent_submissions_allowed": 1}, "You have 1 submissions that are being processed."),
    ],
)
def test_limits_refuse_the_second_submission(
    clock: ManualClock, limits: dict[str, int], sentence: str
) -> None:
    """Each limit of a phase responds with 406 and its own message; a failed submission does not count."""
    phase = PhaseSettings(codename="dev", fields=limits)
    with Sandbox(SandboxSettings(phases=(phase,), teams=QUIET.teams), clock=clock.clock()) as server:
        web = Web(server)
        first = web.submit("alice", "dev")
        refused = web.submit("carol", "dev")
        server.edit(first.json()["id"], status="failed")
        assert web.submit("carol", "dev").status_code == 201
    assert refused.status_code == 406
    assert refused.json()["error"].startswith(sentence)


def test_ended_and_paused_take_nothing_new_but_answers(sandbox: Sandbox, web: Web) -> None:
    """After the end new submissions are refused, while receive and PUT still work."""
    pk = sandbox.submit("Team Alice", "dev", CSV)
    sandbox.world.phase("dev").fields["is_submission_paused"] = True
    assert web.submit("alice", "dev").status_code == 406
    sandbox.world.phase("dev").fields["is_submission_paused"] = False
    sandbox.end_challenge()
    assert web.submit("alice", "dev").status_code == 406
    assert web("POST", f"/api/jobs/submissions/{pk}/re-run/").status_code == 406
    assert web("GET", f"/api/jobs/challenge/queues/{sandbox.queue}/").json()["body"]["submission_pk"] == pk
    path = f"/api/jobs/challenge/{sandbox.challenge}/update_submission/"
    assert web("PUT", path, json=finished(sandbox, pk)).status_code == 200


def test_participants_can_edit_what_they_should_not(sandbox: Sandbox, web: Web) -> None:
    """EvalAI lets a team member change status, phase, start and input file, but not the time of submission."""
    pk = sandbox.submit("Team Alice", "dev", CSV)
    before = sandbox.submission(pk)
    path = f"/api/jobs/challenges/{sandbox.challenge}/submissions/{pk}/update_submission_meta/"
    changes = {
        "status": "finished",
        "challenge_phase": sandbox.phase_pk("eval"),
        "submitted_at": "2020-01-01T00:00:00Z",
    }
    assert web("PATCH", path, "carol", json=changes).status_code == 200
    assert web("PATCH", path, "carol", files={"input_file": ("b.gz", b"other")}).status_code == 200
    after = sandbox.submission(pk)
    assert after["status"] == "finished"
    assert after["challenge_phase"] == sandbox.phase_pk("eval")
    assert after["submitted_at"] == before["submitted_at"]
    assert after["input_file"].endswith(".gz")


# Lists and leaderboards


def test_sorting_by_latest_orders_the_whole_table_by_the_time_of_the_answers(
    sandbox: Sandbox, web: Web
) -> None:
    """By default each team's best is shown, best first; with the switch, the answer stored last is first, even a repeated one."""

    def answer(pk: int, value: float) -> None:
        result = json.dumps([{"split": "dev_split", "accuracies": {"q_mean": value}}])
        body = {"submission": pk, "submission_status": "finished", "result": result}
        body["challenge_phase"] = sandbox.phase_pk("dev")
        path = f"/api/jobs/challenge/{sandbox.challenge}/update_submission/"
        assert web("PUT", path, json=body).status_code == 200

    def shown() -> list[int]:
        return [row["submission__id"] for row in sandbox.leaderboard("dev")]

    best, last, other = (
        sandbox.submit(team, "dev", CSV) for team in ("Team Alice", "Team Alice", "Team Bob")
    )
    for pk, value in ((best, 3.0), (other, 2.0), (last, 1.0)):
        answer(pk, value)
    assert shown() == [best, other]
    fields = sandbox.world.phase("dev").fields
    fields["show_leaderboard_by_latest_submission"] = True
    assert shown() == [last, other]
    answer(other, 2.0)
    assert shown() == [other, last]
    answer(best, 3.0)
    assert shown() == [best, other]
    fields |= {"show_leaderboard_by_latest_submission": False, "is_leaderboard_order_descending": False}
    assert shown() == [last, other]


# Queue and throttle


def received(queue: Queue) -> list[dict[str, Any]]:
    """Receive messages until none is visible, and return their bodies."""
    return [dict(body) for body, _ in iter(lambda: queue.receive(0), None)]


def test_only_the_newest_handle_deletes() -> None:
    """An outdated handle reports success but deletes nothing, as with SQS."""
    standard = Queue(30, FaultSource(random.Random(0)))
    standard.send({"submission_pk": 1})
    _, old = standard.receive(0) or ({}, "")
    assert standard.receive(29) is None
    _, new = standard.receive(30) or ({}, "")
    assert old != new
    assert standard.delete(old) == "ignored"
    assert len(standard) == 1
    assert standard.delete(new) == "deleted"
    assert standard.delete(new) == "deleted"
    assert standard.delete("never seen") == "unknown"
    assert len(standard) == 0


@given(st.lists(st.integers(0, 160), min_size=1, max_size=120), st.integers(1, 10))
@settings(max_examples=50, deadline=None)
def test_throttle_window_slides(gaps: list[int], limit: int) -> None:
    """No sixty seconds contain more accepted calls than the limit, and waiting the announced time is always enough."""
    throttle, accepted, now = Throttle(limit), [], 0.0
    for gap in gaps:
        now += gap / 8  # exact in binary
        wait = throttle.admit("host", now)
        if wait is not None:
            assert 1 <= wait <= 60
            now += wait
            assert throttle.admit("host", now) is None
        accepted.append(now)
    for start in accepted:
        assert sum(start <= at < start + 60 for at in accepted) <= limit


# Start and stop


def test_settings_follow_a_challenge_configuration() -> None:
    """A worker's configuration gives the sandbox its title, keys, queue, phases, splits and metrics."""
    chosen = from_challenge(
        {
            "challenge": {"title": "T", "secret": "x"},
            "evalai": {"challenge": 2465, "queue": "q"},
            "phases": {
                "dev": {"split": "s1", "metric": "m", "folds": 4},
                "eval": {"split": "s2", "metric": "q_mean"},
            },
        },
        throttle_per_minute=9,
    )
    assert (chosen.title, chosen.challenge, chosen.queue, chosen.throttle_per_minute) == ("T", 2465, "q", 9)
    assert [(p.codename, p.split_codename, p.metrics) for p in chosen.phases] == [
        ("dev", "s1", ("m",)),
        ("eval", "s2", ("q_mean",)),
    ]


def test_a_taken_port_is_an_error() -> None:
    """It is one of our errors, and leaves nothing open."""
    with Sandbox() as first:
        port = int(first.url.rsplit(":", 1)[1])
        second = Sandbox(SandboxSettings(port=port))
        with pytest.raises(InfrastructureError) as problem:
            second.start()
        second.close()
    assert problem.value.code == "sandbox.port_taken"
