"""What the sandbox does beyond the recorded requests: limits, the end of a challenge, the order of its board, queue and throttle."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator

import pytest
import requests
from hypothesis import given, settings
from hypothesis import strategies as st

from scoring.errors import InfrastructureError
from worker.sandbox import ManualClock, Sandbox, SandboxSettings
from worker.sandbox.faults import FaultSource
from worker.sandbox.queue import Queue
from worker.sandbox.state import Throttle

CSV = b"id,0\na,1\n"
Send = Callable[..., requests.Response]


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    """Return a running sandbox with one team of two, without a rate limit, and with a clock that does not move."""
    chosen = SandboxSettings(throttle_per_minute=100_000, teams={"Team Alice": ("alice", "carol")})
    with Sandbox(chosen, clock=ManualClock().clock()) as server:
        yield server


@pytest.fixture
def send(sandbox: Sandbox) -> Send:
    """Return a function that sends a request as one of the sandbox's users."""

    def run(method: str, path: str, user: str = "host", **body: object) -> requests.Response:
        headers = {"Authorization": f"Bearer {sandbox.token(user)}"}
        return requests.request(method, sandbox.url + path, headers=headers, timeout=60, **body)  # type: ignore[arg-type]

    return run


def submit(sandbox: Sandbox, send: Send, user: str = "alice") -> requests.Response:
    """Submit a small file through the participants' endpoint."""
    path = f"/api/jobs/challenge/{sandbox.challenge}/challenge_phase/{sandbox.phase_pk('dev')}/submission/"
    return send("POST", path, user, files={"input_file": ("a.csv", CSV)})


def answer(sandbox: Sandbox, send: Send, pk: int, value: float) -> None:
    """Send a result, as a worker does."""
    result = [{"split": "dev_split", "show_to_participant": True, "accuracies": {"q_mean": value}}]
    body = {"submission": pk, "submission_status": "finished", "result": json.dumps(result)}
    body["challenge_phase"] = sandbox.phase_pk("dev")
    path = f"/api/jobs/challenge/{sandbox.challenge}/update_submission/"
    assert send("PUT", path, json=body).status_code == 200


@pytest.mark.parametrize(
    ("limits", "sentence"),
    [
        ({"max_submissions": 1}, "The maximum number of submissions has been reached"),
        ({"max_submissions_per_month": 1}, "The maximum number of submission for this month has been"),
        ({"max_submissions_per_day": 1}, "The maximum number of submission for today has been reached"),
        ({"max_concurrent_submissions_allowed": 1}, "You have 1 submissions that are being processed."),
    ],
)
def test_limits_refuse_the_second_submission(
    sandbox: Sandbox, send: Send, limits: dict[str, int], sentence: str
) -> None:
    """Each limit of a phase responds with 406 and its own message; a failed submission does not count."""
    sandbox.world.phase("dev").fields |= limits
    first = submit(sandbox, send).json()["id"]
    refused = submit(sandbox, send, "carol")
    assert (refused.status_code, refused.json()["error"][: len(sentence)]) == (406, sentence)
    sandbox.edit(first, status="failed")
    assert submit(sandbox, send, "carol").status_code == 201


def test_paused_and_ended_challenges_take_nothing_new_but_answers(sandbox: Sandbox, send: Send) -> None:
    """New submissions and re-runs are refused, while messages and answers still pass."""
    pk = sandbox.submit("Team Alice", "dev", CSV)
    sandbox.world.phase("dev").fields["is_submission_paused"] = True
    assert submit(sandbox, send).status_code == 406
    sandbox.world.phase("dev").fields["is_submission_paused"] = False
    sandbox.end_challenge()
    assert submit(sandbox, send).status_code == 406
    assert send("POST", f"/api/jobs/submissions/{pk}/re-run/").status_code == 406
    assert send("GET", f"/api/jobs/challenge/queues/{sandbox.queue}/").json()["body"]["submission_pk"] == pk
    answer(sandbox, send, pk, 1.5)


def test_sorting_by_latest_orders_the_whole_table_by_the_time_of_the_answers(
    sandbox: Sandbox, send: Send
) -> None:
    """By default each team's best is shown, best first; with the switch, the answer stored last is first, even a repeated one."""

    def shown() -> list[int]:
        return [row["submission__id"] for row in sandbox.leaderboard("dev")]

    best, last, other = (
        sandbox.submit(team, "dev", CSV) for team in ("Team Alice", "Team Alice", "Team Bob")
    )
    for pk, value in ((best, 3.0), (other, 2.0), (last, 1.0)):
        answer(sandbox, send, pk, value)
    assert shown() == [best, other]
    fields = sandbox.world.phase("dev").fields
    fields["show_leaderboard_by_latest_submission"] = True
    assert shown() == [last, other]
    answer(sandbox, send, best, 3.0)
    assert shown() == [best, other]
    fields |= {"show_leaderboard_by_latest_submission": False, "is_leaderboard_order_descending": False}
    assert shown() == [last, other]


def test_only_the_newest_handle_deletes() -> None:
    """An outdated handle reports success but deletes nothing, as with SQS."""
    queue = Queue(30, FaultSource(random.Random(0)))
    queue.send({"submission_pk": 1})
    _, old = queue.receive(0) or ({}, "")
    assert queue.receive(29) is None
    _, new = queue.receive(30) or ({}, "")
    handles = (old, new, new, "never seen")
    assert [queue.delete(handle) for handle in handles] == ["ignored", "deleted", "deleted", "unknown"]
    assert len(queue) == 0


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


def test_a_taken_port_is_an_error() -> None:
    """It is one of our errors, and leaves nothing open."""
    with Sandbox() as first:
        port = int(first.url.rsplit(":", 1)[1])
        with pytest.raises(InfrastructureError) as problem, Sandbox(SandboxSettings(port=port)):
            pass
    assert problem.value.code == "sandbox.port_taken"
