"""What the sandbox does beyond the recorded requests: limits, the end of a challenge, the order of its board, queue and throttle."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial

import pytest
import requests
from hypothesis import given, settings
from hypothesis import strategies as st

from scoring.errors import InfrastructureError
from worker.sandbox import ManualClock, PhaseSettings, Refusal, Sandbox, SandboxSettings
from worker.sandbox.faults import FaultSource
from worker.sandbox.queue import Queue
from worker.sandbox.state import Throttle

CSV = b"id,0\na,1\n"
Send = Callable[..., requests.Response]


@pytest.fixture
def sandbox(clock: ManualClock) -> Iterator[Sandbox]:
    """Return a running sandbox with one team of two, and without a rate limit."""
    chosen = SandboxSettings(throttle_per_minute=100_000, teams={"Team Alice": ("alice", "carol")})
    with Sandbox(chosen, clock=clock.clock()) as server:
        yield server


@pytest.fixture
def send(sandbox: Sandbox) -> Send:
    """Return a function that sends a request as one of the sandbox's users."""

    def run(method: str, path: str, user: str = "host", **body: object) -> requests.Response:
        headers = {"Authorization": f"Bearer {sandbox.token(user)}"}
        return requests.request(method, sandbox.url + path, headers=headers, **body)  # type: ignore[arg-type]

    return run


def submit(sandbox: Sandbox, send: Send, user: str = "alice") -> requests.Response:
    """Submit a small file through the participants' endpoint."""
    path = f"/api/jobs/challenge/{sandbox.challenge}/challenge_phase/{sandbox.phase_pk('dev')}/submission/"
    return send("POST", path, user, files={"input_file": ("a.csv", CSV)})


def write(sandbox: Sandbox, send: Send, pk: int, user: str, **fields: object) -> requests.Response:
    """Write fields of a submission, in the address of the user's own challenge."""
    challenge = sandbox.world.elsewhere.pk if user in ("otherhost", "dave") else sandbox.challenge
    path = f"/api/jobs/challenges/{challenge}/submissions/{pk}/update_submission_meta/"
    return send("PATCH", path, user, json=fields)


def answer(sandbox: Sandbox, send: Send, pk: int, value: float) -> None:
    """Send a result, as a worker does."""
    result = [{"split": "dev_split", "show_to_participant": True, "accuracies": {"q_mean": value}}]
    body = {"submission": pk, "submission_status": "finished", "result": json.dumps(result)}
    body["challenge_phase"] = sandbox.phase_pk("dev")
    path = f"/api/jobs/challenge/{sandbox.challenge}/update_submission/"
    assert send("PUT", path, json=body).status_code == 200


@pytest.mark.parametrize(
    ("limit", "status", "sentence"),
    [
        ("max_submissions", 403, "The maximum number of submissions has been reached"),
        ("max_submissions_per_month", 403, "The maximum number of submission for this month has been"),
        ("max_submissions_per_day", 403, "The maximum number of submission for today has been reached"),
        ("max_concurrent_submissions_allowed", 406, "You have 1 submissions that are being processed."),
    ],
)
def test_limits_refuse_the_second_submission_until_the_first_is_cancelled(
    sandbox: Sandbox, send: Send, limit: str, status: int, sentence: str
) -> None:
    """Each limit has its own message; a team that cancels what was answered has one more, and the answer may come a second time."""
    sandbox.set_phase("dev", **{limit: 1})
    first = submit(sandbox, send).json()["id"]
    refused = submit(sandbox, send, "carol")
    assert (refused.status_code, refused.json()["error"][: len(sentence)]) == (status, sentence)
    assert write(sandbox, send, first, "alice", status="cancelled").status_code == 200
    assert submit(sandbox, send, "carol").status_code == 201
    answer(sandbox, send, first, 1.5)
    assert sandbox.submission(first)["status"] == "finished"


def test_paused_and_ended_challenges_take_nothing_new_but_answers(sandbox: Sandbox, send: Send) -> None:
    """New submissions and re-runs are refused, while messages and answers still pass."""
    pk = sandbox.submit("Team Alice", "dev", CSV)
    for pause in (sandbox.set_challenge, partial(sandbox.set_phase, "dev")):
        pause(is_submission_paused=True)
        assert submit(sandbox, send).status_code == 406
        pause(is_submission_paused=False)
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
    sandbox.set_phase("dev", show_leaderboard_by_latest_submission=True)
    assert shown() == [last, other]
    answer(sandbox, send, best, 3.0)
    assert shown() == [best, other]
    sandbox.set_phase(
        "dev", show_leaderboard_by_latest_submission=False, is_leaderboard_order_descending=False
    )
    assert shown() == [last, other]


def test_the_metadata_of_the_schema_decide_the_order_of_the_board() -> None:
    """If the schema says sort_ascending, the split's own order is ignored."""
    phases = (PhaseSettings(codename="dev", sort_ascending=True),)
    with Sandbox(SandboxSettings(phases=phases)) as sandbox:
        low, high = (sandbox.submit(team, "dev", CSV) for team in ("A", "B"))
        for pk, value in ((low, 1.0), (high, 2.0)):
            sandbox.world.write_row(pk, sandbox.world.phase("dev").split_pk, {"q_mean": value})
            sandbox.edit(pk, status="finished")
        assert [row["submission__id"] for row in sandbox.leaderboard("dev")] == [low, high]


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


def test_numbers_follow_the_highest_of_the_team_in_the_phase(sandbox: Sandbox, send: Send) -> None:
    """A moved row keeps its number, and the next one of its new team is above it; a re-run has a number of its own; nobody writes it."""

    def numbers(phase: str = "dev") -> dict[int, int]:
        path = f"/api/challenges/{sandbox.challenge}/challenge_phase/{sandbox.phase_pk(phase)}/submissions"
        return {row["id"]: row["submission_number"] for row in send("GET", path).json()["results"]}

    first, second, last = (sandbox.submit("Team Alice", "dev", CSV) for _ in range(3))
    other, elsewhere = sandbox.submit("Team Bob", "dev", CSV), sandbox.submit("Team Alice", "eval", CSV)
    assert (numbers(), numbers("eval")) == ({first: 1, second: 2, last: 3, other: 1}, {elsewhere: 1})
    bob = sandbox.world.team("Team Bob")
    moved = {"participant_team": bob.pk, "created_by": bob.members[0], "submission_number": 1}
    assert write(sandbox, send, last, "alice", **moved).json()["participant_team_name"] == "Team Bob"
    assert write(sandbox, send, last, "alice").status_code == 404
    assert numbers()[last] == 3
    after, again = sandbox.submit("Team Bob", "dev", CSV), sandbox.rerun(first)
    assert (numbers()[after], numbers()[again]) == (4, 3)
    sandbox.set_phase("dev", max_submissions=4)
    with pytest.raises(Refusal, match="maximum number"):  # the moved row used up one of Bob's
        sandbox.submit("Team Bob", "dev", CSV)


def test_a_row_of_another_challenge_moves_into_ours_with_its_file(sandbox: Sandbox, send: Send) -> None:
    """A participant of another challenge sets the phase; the address of the file still names the other challenge."""
    sandbox.add_team("Team Dave", ("dave",), elsewhere=True)
    pk = sandbox.submit("Team Dave", "elsewhere", CSV)
    assert sandbox.queue_length() == 0
    other = f"/challenge_{sandbox.world.elsewhere.pk}/"
    assert write(sandbox, send, pk, "dave", challenge_phase=sandbox.phase_pk("dev")).status_code == 200
    listed = send("GET", f"/api/jobs/challenge/{sandbox.challenge}/submission/").json()
    assert [(row["id"], other in row["input_file"]) for row in listed] == [(pk, True)]


def test_participants_replace_files_and_see_them_served(sandbox: Sandbox, send: Send) -> None:
    """A forged output is served; only hosts write the log of the environment, and text is not a file."""
    pk = sandbox.submit("Team Alice", "dev", CSV)
    path = f"/api/jobs/challenges/{sandbox.challenge}/submissions/{pk}/update_submission_meta/"
    files = dict.fromkeys(("input_file", "stdout_file", "environment_log_file"), ("a.txt", b"forged"))
    changed = send("PATCH", path, "alice", files=files).json()
    assert requests.get(changed["stdout_file"], timeout=60).content == b"forged"
    assert requests.get(changed["input_file"], timeout=60).content == b"forged"
    assert sandbox.submission(pk)["environment_log_file"] is None
    refused = write(sandbox, send, pk, "alice", stdout_file="http://127.0.0.1:9/")
    assert (refused.status_code, list(refused.json())) == (400, ["stdout_file"])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("status", "done"),
        ("challenge_phase", 4711),
        ("participant_team", "Team Bob"),
        ("created_by", True),
        ("is_public", "perhaps"),
        ("started_at", "yesterday"),
        ("method_name", ["a"]),
        ("project_url", "no address"),
        ("job_name", "mine"),
    ],
)
def test_impossible_values_are_refused_by_field(
    sandbox: Sandbox, send: Send, field: str, value: object
) -> None:
    """The answer is 400 with the field's name, and nothing is changed."""
    pk = sandbox.submit("Team Alice", "dev", CSV)
    before = sandbox.submission(pk)
    refused = write(sandbox, send, pk, "otherhost", is_baseline=True, **{field: value})
    assert (refused.status_code, list(refused.json())) == (400, [field])
    assert sandbox.submission(pk) == before


def test_a_file_from_an_address_must_be_there(sandbox: Sandbox, send: Send) -> None:
    """An address that does not answer is refused; one that does makes a submission, and its message has only integers."""
    path = f"/api/jobs/challenge/{sandbox.challenge}/challenge_phase/{sandbox.phase_pk('dev')}/submission/"
    refused = send("POST", path, "alice", data={"file_url": f"{sandbox.url}/nowhere"})
    assert (refused.status_code, refused.json()) == (400, {"error": "The file URL does not exists!"})
    there = submit(sandbox, send).json()["input_file"]
    sandbox.purge_queue()
    assert list(send("POST", path, "carol", data={"file_url": there}).json()) == ["message"]
    body = send("GET", f"/api/jobs/challenge/queues/{sandbox.queue}/").json()["body"]
    assert {type(value) for value in body.values()} == {int}


def test_what_evalais_checks_let_pass(sandbox: Sandbox, send: Send) -> None:
    """A lowered limit of a day, re-runs by strangers where participants may, and the rule of a private phase for files from an address."""
    first, second = sandbox.submit("Team Alice", "dev", CSV), sandbox.submit("Team Alice", "dev", CSV)
    sandbox.set_phase("dev", max_submissions_per_day=1, is_submission_public=False)
    path = f"/api/jobs/challenge/{sandbox.challenge}/challenge_phase/{sandbox.phase_pk('dev')}/submission/"
    there = sandbox.submission(first)["input_file"]
    assert send("POST", path, "alice", data={"file_url": there}).status_code == 200
    assert sandbox.submissions()[-1]["is_public"] is True
    again = f"/api/jobs/submissions/{first}/re-run/"
    assert send("POST", again, "mallory").status_code == 403
    sandbox.set_challenge(allow_participants_resubmissions=True)
    assert send("POST", again, "mallory").status_code == 200
    sandbox.edit(second, ignore_submission=True)
    assert send("POST", again.replace(str(first), str(second))).status_code == 400


def test_a_challenge_takes_submissions_before_its_approval_and_freezes_after_it(
    sandbox: Sandbox, send: Send
) -> None:
    """Approval needs a finished submission in every phase; until then only hosts read the challenge, and only they set its dates."""
    own = f"/api/challenges/challenge/{sandbox.challenge}/"
    edit = f"/api/challenges/challenge_host_team/401/challenge/{sandbox.challenge}"
    sandbox.set_challenge(approved_by_admin=False, published=False)
    assert submit(sandbox, send).status_code == 201
    with pytest.raises(Refusal, match="not yet approved"):
        sandbox.begin_upload("Team Alice", "dev")
    assert [send("GET", own, user).status_code for user in ("host", "alice")] == [200, 406]
    assert send("GET", f"/api/challenges/{sandbox.challenge}/request_approval").status_code == 406
    for phase in ("dev", "eval"):
        sandbox.edit(sandbox.submit("host", phase, CSV), status="finished")
    assert send("GET", f"/api/challenges/{sandbox.challenge}/request_approval").status_code == 200
    assert send("GET", own).json()["is_approval_requested"] is True
    sandbox.set_challenge(approved_by_admin=True)
    assert send("PATCH", edit, json={"end_date": "2030-01-01T00:00:00Z"}).status_code == 403
    assert send("PATCH", edit, json={"published": True}).json()["published"] is True
    assert send("PATCH", edit, "otherhost", json={"published": False}).status_code == 403
    sandbox.set_challenge(is_disabled=True)
    assert send("GET", own).json() == {"error": "Sorry, the challenge was removed!"}


def test_names_and_hosts_change_at_any_time(sandbox: Sandbox, send: Send) -> None:
    """Anybody renames a team, to a look-alike too; who has left the host team has no rights, and is on EvalAI's board."""
    pk = sandbox.submit("cohost", "dev", CSV)
    answer(sandbox, send, pk, 1.0)
    assert sandbox.leaderboard("dev") == []
    sandbox.change_hosts("host")
    assert [row["submission__id"] for row in sandbox.leaderboard("dev")] == [pk]
    listing = f"/api/jobs/challenge/{sandbox.challenge}/submission/"
    assert send("GET", listing, "cohost").status_code == 400
    team = sandbox.world.team("Team Alice").pk
    path = f"/api/participants/participant_team/{team}"
    assert send("PATCH", path, "bob", json={"team_name": "Team Bob"}).status_code == 403
    assert send("PATCH", path, "alice", json={"team_name": sandbox.settings.host_team}).status_code == 400
    assert send("PATCH", path, "carol", json={"team_name": "Теam Bob"}).status_code == 403
    assert send("PATCH", path, "alice", json={"team_name": "Теam Bob"}).json()["team_name"] == "Теam Bob"
    assert send("PUT", path, "bob", json={"team_name": "Losers"}).json()["team_name"] == "Losers"


def test_evalai_gives_up_on_what_waits(sandbox: Sandbox, clock: ManualClock) -> None:
    """A time limit makes failed what waits, with a reason; maintenance cancels after 14 days, also what is running."""
    waiting, running, old = (sandbox.submit("Team Alice", "dev", CSV) for _ in range(3))
    sandbox.edit(running, status="running")
    sandbox.flatten(old)
    assert (
        sandbox.submission(old)["input_file"]
        .split("/media/")[1]
        .startswith(f"submission_files/submission_{old}/")
    )
    clock.advance(2 * 3600)
    assert sandbox.give_up() == []
    assert sandbox.give_up(timedelta(hours=2), as_failed=True) == [waiting, old]
    assert "queue time limit" in sandbox.text(waiting, "stderr_file")
    late = sandbox.submit("Team Alice", "dev", CSV)
    clock.advance(14 * 86400)
    assert sandbox.submission(running)["status"] == "running"
    assert sandbox.give_up() == [running, late]
    assert [sandbox.submission(pk)["status"] for pk in (running, late)] == ["cancelled", "cancelled"]


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
