"""EvalAI's client against the sandbox over real HTTP: its endpoints, EvalAI's oddities, and the errors for each failure."""

from __future__ import annotations

import base64
import json
import pickle
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import flask
import pytest
import requests
from hypothesis import given, settings
from hypothesis import strategies as st

from scoring.errors import InfrastructureError, NeucoError, OrganizerError
from worker.evalai import (
    Client,
    NotFound,
    NotPermitted,
    Rejected,
    Throttled,
    TokenRefused,
    Unintelligible,
    Unreachable,
    records,
    token_expiry,
)
from worker.evalai.errors import failure
from worker.sandbox import (
    Fault,
    FaultPlan,
    ManualClock,
    Sandbox,
    SandboxSettings,
)
from worker.sandbox.server import Listener

CSV = b"id,0\na,1\n"
SETTINGS = SandboxSettings(
    title="Remote",
    queue="a queue.fifo",
    throttle_per_minute=100_000,
    visibility_timeout_s=30,
    teams={"Team Alice": ("alice", "carol"), "Team Bob": ("bob",)},
)


@pytest.fixture
def clock() -> ManualClock:
    """Return a clock that only the test moves."""
    return ManualClock()


@pytest.fixture
def sandbox(clock: ManualClock) -> Iterator[Sandbox]:
    """Return a running sandbox."""
    with Sandbox(SETTINGS, clock=clock.clock()) as server:
        yield server


@pytest.fixture
def connect(sandbox: Sandbox, clock: ManualClock) -> Iterator[Callable[..., Client]]:
    """Return a function that makes clients, which are closed at the end."""
    made: list[Client] = []

    def make(**changes: Any) -> Client:
        chosen: dict[str, Any] = {
            "server": sandbox.url,
            "token": sandbox.token(),
            "challenge": sandbox.challenge,
            "queue": sandbox.queue,
            "clock": clock.now,
        }
        made.append(Client(**(chosen | changes)))
        return made[-1]

    yield make
    for client in made:
        client.close()


@pytest.fixture
def client(connect: Callable[..., Client]) -> Client:
    """Return the host's client."""
    return connect()


def dev(sandbox: Sandbox) -> int:
    """Return the primary key of the dev phase."""
    return sandbox.phase_pk("dev")


# The way of a submission


def test_a_submission_from_its_message_to_its_result(
    sandbox: Sandbox, client: Client, clock: ManualClock
) -> None:
    """Received, read, run, finished, deleted: the sandbox then has exactly one post, one row and an empty queue."""
    pk = sandbox.submit("Team Alice", "dev", CSV, method_name="mean", file_name="x.csv")
    message = client.receive()
    assert message is not None
    assert (message.submission_pk, message.phase_pk, message.challenge_pk) == (
        pk,
        dev(sandbox),
        sandbox.challenge,
    )
    read = client.submission(pk)
    assert (read.status, read.team_name, read.method_name, read.phase_pk) == (
        "submitted",
        "Team Alice",
        "mean",
        dev(sandbox),
    )
    assert (read.submitted_at, read.ignored) == (clock.now(), False)
    assert client.set_running(pk).status == "running"
    clock.advance(12.5)
    client.finish(pk, dev(sandbox), stdout='{"é": 1}', result={"q_mean": 12.5}, split="dev_split")
    client.delete_message(message.receipt_handle)
    done = client.submission(pk)
    assert done.status == "finished"
    assert sandbox.text(pk, "stdout_file") == '{"é": 1}'
    assert sandbox.text(pk, "stderr_file") == ""
    assert sandbox.text(pk, "submission_result_file") == "[{'q_mean': 12.5}]"
    assert sandbox.text(pk, "submission_metadata_file") == ""
    assert [row["result"] for row in sandbox.leaderboard("dev")] == [[12.5]]
    assert len(sandbox.journal.posts()[pk]) == 1
    assert sandbox.queue_length() == 0
    assert client.receive() is None


def test_failure_reaches_the_participant_alone(sandbox: Sandbox, client: Client) -> None:
    """A failed submission has an empty stdout, its faults in stderr and no row."""
    pk = sandbox.submit("Team Alice", "dev", CSV)
    client.fail(pk, dev(sandbox), stderr="row 3 lacks an id\x00 \ud800")
    assert client.submission(pk).status == "failed"
    assert sandbox.text(pk, "stdout_file") == ""
    assert sandbox.text(pk, "stderr_file") == "row 3 lacks an id\ufffd ?"
    assert sandbox.leaderboard("dev") == []


def test_hex_and_jwt_tokens_both_authenticate(sandbox: Sandbox, connect: Callable[..., Client]) -> None:
    """Forty hexadecimal digits are sent as Token, a JSON web token as Bearer; both work."""
    for token in (sandbox.world.user("host").hex_token, sandbox.token(), f" {sandbox.token()}\n"):
        assert connect(token=token).challenge().pk == sandbox.challenge


def test_facts_that_are_read_at_the_start(sandbox: Sandbox, client: Client) -> None:
    """Challenge, phases, splits and codenames are read once at the start."""
    challenge = client.challenge()
    assert (challenge.title, challenge.remote_evaluation, challenge.published) == ("Remote", True, True)
    assert {phase.codename: phase.pk for phase in client.phases()} == {
        "dev": dev(sandbox),
        "eval": sandbox.phase_pk("eval"),
    }
    assert client.learn_labels() == {
        (dev(sandbox), "dev_split"): frozenset({"q_mean"}),
        (sandbox.phase_pk("eval"), "eval_split"): frozenset({"q_mean"}),
    }


def test_hosts_and_authors_have_names(sandbox: Sandbox, client: Client) -> None:
    """Hosts, the token's owner and authors have names; a page after the last one is empty."""
    ours = sandbox.submit("host", "dev", CSV)
    theirs = sandbox.submit("Team Alice", "dev", CSV)
    team = client.challenge().host_team_pk
    assert team is not None
    assert client.host_names(team) == {"host", "cohost"}
    assert (client.account().name, client.account().pk) == ("host", client.submission(ours).created_by)
    authors = client.authors(dev(sandbox))
    assert {pk: (author.user, author.team, author.is_member) for pk, author in authors.items()} == {
        ours: ("host", "Host Participant Team", True),
        theirs: ("alice", "Team Alice", True),
    }
    assert list(client.authors(dev(sandbox), team="Team A")) == [theirs]
    assert client.authors(dev(sandbox), page=2) == {}


def test_the_listing_finds_what_the_queue_lost(sandbox: Sandbox, client: Client, clock: ManualClock) -> None:
    """One listing has all phases, oldest first, including soft-deleted submissions, and can be limited by time."""
    first = sandbox.submit("Team Alice", "dev", CSV)
    clock.advance(0.25)
    second = sandbox.submit("Team Bob", "eval", CSV)
    sandbox.delete(first)
    sandbox.lose_messages()
    assert client.receive() is None
    listed = client.submissions(status="submitted")
    assert [(s.pk, s.ignored) for s in listed] == [(first, True), (second, False)]
    assert [s.pk for s in client.submissions(submitted_after=clock.now())] == [second]
    eastern = clock.now().astimezone().replace(microsecond=0) + timedelta(days=1)
    assert client.submissions(submitted_after=eastern) == []


# Traps


def test_messages_of_every_producer_are_read(sandbox: Sandbox, client: Client) -> None:
    """Submit, re-run, resume and re-send give the same kind of message, with strings or integers, with or without the flag."""
    pk = sandbox.submit("Team Alice", "dev", CSV)
    fresh = sandbox.rerun(pk)
    sandbox.edit(fresh, status="failed")
    sandbox.resume(fresh)
    sandbox.send_again(pk)
    received = [client.receive() for _ in range(4)]
    assert [m.submission_pk for m in received if m] == [pk, fresh, fresh, pk]
    assert {(m.phase_pk, m.challenge_pk) for m in received if m} == {(dev(sandbox), sandbox.challenge)}


@pytest.mark.parametrize(
    "result",
    [
        {},
        {"q_mean": True},
        {"q_mean": float("nan")},
        {"q_mean": float("inf")},
        {"q_mean": None},
        {"q_mean": "0.5"},
        {"q_mean": 10**400},
        {"q_mean": 1.0, "other": 1.0},
        {"other": 1.0},
    ],
)
def test_results_on_which_evalai_fails_are_refused(
    sandbox: Sandbox, client: Client, result: dict[str, Any]
) -> None:
    """Booleans, empty, non-finite, non-numeric and wrongly labeled results are refused before any call."""
    pk = sandbox.submit("Team Alice", "dev", CSV)
    client.learn_labels()
    calls = len(sandbox.journal.requests())
    with pytest.raises(OrganizerError) as problem:
        client.finish(pk, dev(sandbox), stdout="", result=result, split="dev_split")
    assert problem.value.code == "evalai.result_invalid"
    assert len(sandbox.journal.requests()) == calls


def test_a_wrong_split_is_rejected_with_the_servers_words(sandbox: Sandbox, client: Client) -> None:
    """A 400 on a write is an organizer's fault that keeps EvalAI's text, and the submission stays as it was."""
    pk = sandbox.submit("Team Alice", "dev", CSV)
    client.set_running(pk)
    with pytest.raises(Rejected) as problem:
        client.finish(pk, dev(sandbox), stdout="", result={"q_mean": 1.0}, split="nope")
    assert problem.value.status == 400
    assert "split codename: nope" in problem.value.server_text
    assert client.submission(pk).status == "running"


@pytest.mark.parametrize("fault", [f for f in Fault if f not in (Fault.SLOW, Fault.STORM)])
def test_every_fault_is_infrastructure(sandbox: Sandbox, client: Client, fault: Fault) -> None:
    """Whatever the fault, the error is Unreachable; only for writes does it say that the effect is unknown."""
    pk = sandbox.submit("Team Alice", "dev", CSV)
    sandbox.faults.force(fault)
    with pytest.raises(Unreachable) as read:
        client.submission(pk)
    assert not read.value.applied_unknown
    sandbox.faults.force(fault)
    with pytest.raises(Unreachable) as write:
        client.set_running(pk)
    assert write.value.applied_unknown
    assert isinstance(write.value, InfrastructureError)


def test_a_slow_answer_is_a_time_out(sandbox: Sandbox, connect: Callable[..., Client]) -> None:
    """An answer that comes later than the time-out is Unreachable and may have been applied."""
    pk = sandbox.submit("Team Alice", "dev", CSV)
    sandbox.set_faults(FaultPlan(slow_s=0.4))
    sandbox.faults.force(Fault.SLOW)
    with pytest.raises(Unreachable) as problem:
        connect(timeout_s=(1.0, 0.05)).set_running(pk)
    assert problem.value.applied_unknown


def test_throttling_gives_the_time_to_wait(
    sandbox: Sandbox, connect: Callable[..., Client], clock: ManualClock
) -> None:
    """The wait after a 429 is EvalAI's own, applies to both schemes, and is long enough."""
    sandbox.world.throttle.per_minute = 3
    bearer, digits = connect(), connect(token=sandbox.world.user("host").hex_token)
    bearer.challenge()
    clock.advance(20)
    digits.challenge()
    bearer.receive()
    with pytest.raises(Throttled) as problem:
        digits.phases()
    assert problem.value.retry_after_s == 40
    clock.advance(40)
    assert len(digits.phases()) == 2


# Who may do what


def refusals(sandbox: Sandbox) -> dict[str, tuple[str, str]]:
    """Return tokens that are refused, with the reason for each."""
    day = timedelta(days=1)
    return {
        "expired": (sandbox.issue_token("host", lifetime=-day), "expired"),
        "access type": (sandbox.issue_token("host", kind="access"), "wrong_type"),
        "forged": (sandbox.token()[:-4] + "AAAA", "invalid"),
        "unknown digits": ("0" * 40, "invalid"),
    }


@pytest.mark.parametrize(
    "kind", ["expired", "access type", "forged", "unknown digits", "blacklisted", "old digits"]
)
def test_refused_tokens_say_why(sandbox: Sandbox, connect: Callable[..., Client], kind: str) -> None:
    """Expired, blacklisted, wrong kind and unknown are distinguished; each has a cure."""
    if kind == "blacklisted":
        token, reason = sandbox.token(), "blacklisted"
        sandbox.refresh_token()
    elif kind == "old digits":
        sandbox.world.tokens[sandbox.world.user("host").hex_token].expires -= timedelta(days=366)
        token, reason = sandbox.world.user("host").hex_token, "expired"
    else:
        token, reason = refusals(sandbox)[kind]
    with pytest.raises(TokenRefused) as problem:
        connect(token=token).receive()
    assert (problem.value.reason, problem.value.code) == (reason, "evalai.token_refused")
    assert problem.value.cure


def test_a_token_removed_by_a_proxy_is_reported(sandbox: Sandbox, connect: Callable[..., Client]) -> None:
    """A call that arrives without credentials is a refused token with its own reason."""

    class Stripping(requests.Session):
        def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:
            del request.headers["Authorization"]
            return super().send(request, **options)

    with pytest.raises(TokenRefused) as problem:
        connect(session=Stripping()).receive()
    assert problem.value.reason == "missing"


def test_missing_permission_differs_from_a_bad_token(
    sandbox: Sandbox, connect: Callable[..., Client]
) -> None:
    """A valid token of a user who is no host is NotPermitted on every endpoint, whatever EvalAI's status code."""
    pk = sandbox.submit("Team Alice", "dev", CSV)
    for user in ("bob", "otherhost", "mallory"):
        client = connect(token=sandbox.token(user))
        calls: list[Callable[[], object]] = [
            client.receive,
            lambda c=client: c.delete_message("x"),
            client.challenge,
            client.phases,
            client.submissions,
            lambda c=client: c.submission(pk),
            lambda c=client: c.set_running(pk),
            lambda c=client: c.fail(pk, dev(sandbox), stderr=""),
        ]
        for call in calls:
            with pytest.raises(NotPermitted):
                call()


def test_an_unverified_address_is_named(sandbox: Sandbox, connect: Callable[..., Client]) -> None:
    """An account whose e-mail address is not verified gets a code of its own."""
    sandbox.world.user("unverified").verified = False
    with pytest.raises(NotPermitted) as problem:
        connect(token=sandbox.token("unverified")).receive()
    assert problem.value.code == "evalai.email_unverified"


def test_missing_things_are_not_found(sandbox: Sandbox, connect: Callable[..., Client]) -> None:
    """Unknown submissions, queues and splits are NotFound."""
    client = connect()
    lost = connect(queue="nope")
    calls: list[Callable[[], object]] = [
        lambda: client.submission(99),
        lambda: client.set_running(99),
        lambda: client.dataset_split(99),
        lost.receive,
        lost.challenge,
        lambda: lost.delete_message("x"),
    ]
    for call in calls:
        with pytest.raises(NotFound) as problem:
            call()
        assert problem.value.code == "evalai.not_found"


# Servers that are not EvalAI


@pytest.fixture
def scripted() -> Iterator[tuple[str, dict[str, Any]]]:
    """Return the address of a server that answers what the test puts into the dictionary."""
    answer: dict[str, Any] = {}
    app = flask.Flask("scripted")

    @app.route("/", defaults={"path": ""}, methods=["GET", "POST", "PUT", "PATCH"])
    @app.route("/<path:path>", methods=["GET", "POST", "PUT", "PATCH"])
    def anything(path: str) -> flask.Response:
        answer.setdefault("seen", []).append((flask.request.method, flask.request.path))
        status, headers = answer.get("status", 200), answer.get("headers", {})
        return flask.Response(answer.get("body", b""), status=status, headers=headers)

    listener = Listener(app)
    yield listener.url, answer
    listener.close()


ODD_ANSWERS: list[tuple[int, bytes, type[NeucoError]]] = [
    (200, b"<html>log in first</html>", Unreachable),
    (200, b'{"body": {"submission_pk": 4', Unreachable),
    (200, b"", Unreachable),
    (200, b"[" * 100_000, Unreachable),
    (200, b"null", Unintelligible),
    (200, b"[]", Unintelligible),
    (200, b'{"body": {"submission_pk": "x"}, "receipt_handle": "h"}', Unintelligible),
    (200, b'{"body": {"submission_pk": 4}, "receipt_handle": null}', Unintelligible),
    (200, b'{"body": [], "receipt_handle": "h"}', Unintelligible),
    (301, b"", Rejected),
    (302, b"", Rejected),
    (400, b'{"error": "no"}', Rejected),
    (404, b"<html>no such page</html>", Unreachable),
    (405, b'{"detail": "Method \\"GET\\" not allowed."}', Rejected),
    (408, b"{}", Unreachable),
    (413, b'{"detail": "too large"}', Rejected),
    (429, b"<html>slow down</html>", Throttled),
    (500, b"<html>Error 500</html>", Unreachable),
    (503, b'{"detail": "maintenance"}', Unreachable),
]


@pytest.mark.parametrize(("status", "body", "kind"), ODD_ANSWERS)
def test_odd_answers_have_a_type(
    scripted: tuple[str, dict[str, Any]],
    connect: Callable[..., Client],
    status: int,
    body: bytes,
    kind: type[NeucoError],
) -> None:
    """Every answer that a queue would not give becomes exactly one type of error, and redirects are not followed."""
    url, answer = scripted
    answer.update(status=status, body=body, headers={"Location": f"{url}/elsewhere"})
    with pytest.raises(kind) as problem:
        connect(server=url).receive()
    assert type(problem.value) is kind
    assert [path for _, path in answer["seen"]] == ["/api/jobs/challenge/queues/a queue.fifo/"]


@pytest.mark.parametrize(
    ("value", "seconds"), [("7", 7), ("", 60), ("soon", 60), ("-1", 60), ("999999999", 3600)]
)
def test_retry_after_is_read_with_care(
    scripted: tuple[str, dict[str, Any]], connect: Callable[..., Client], value: str, seconds: float
) -> None:
    """A wait that is no number of seconds counts as a minute, a very long one as an hour."""
    url, answer = scripted
    answer.update(status=429, body=b"{}", headers={"Retry-After": value})
    with pytest.raises(Throttled) as problem:
        connect(server=url).receive()
    assert problem.value.retry_after_s == seconds


def test_unknown_keys_and_missing_optional_ones_are_tolerated(
    scripted: tuple[str, dict[str, Any]], connect: Callable[..., Client]
) -> None:
    """Answers of newer or older EvalAI versions can be read; primary keys may be strings."""
    url, answer = scripted
    known = {
        "id": "4",
        "status": "queued",
        "challenge_phase": "11",
        "participant_team": 2,
        "novelty": {"a": []},
    }
    known |= {"\ud800": 1, "is_public": "yes", "input_file": 7}
    answer["body"] = json.dumps(known | {"submitted_at": "2026-01-01T12:00:00Z"})
    read = connect(server=url).submission(4)
    assert (read.pk, read.phase_pk, read.input_file, read.is_public) == (4, 11, None, False)
    for name in ("id", "status", "challenge_phase", "submitted_at"):
        answer["body"] = json.dumps({k: v for k, v in known.items() if k != name})
        with pytest.raises(Unintelligible):
            connect(server=url).submission(4)


def test_a_refused_connection_has_no_effect(connect: Callable[..., Client]) -> None:
    """Nothing was sent, so a write was certainly not applied."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # without listening: nobody else gets the port meanwhile, either
        client = connect(server=f"http://127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(Unreachable) as problem:
            client.set_running(4)
    assert not problem.value.applied_unknown


EXHAUSTED = """
import os, resource, sys
from worker.evalai import Client, Unreachable
client = Client(server="http://127.0.0.1:9", token="0" * 40, challenge=1, queue="q")
def error():
    try:
        client.submission(4)
    except Unreachable as problem:
        return problem.code, problem.message
before = error()
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
taken = []
try:
    while True:
        taken.append(os.open(os.devnull, os.O_RDONLY))
except OSError:
    after = error()
print(before[0], *after)
"""


def test_a_lack_of_file_descriptors_is_not_blamed_on_evalai() -> None:
    """The library reports it as a connection that failed, or as a host that is unknown."""
    told = subprocess.run(
        [sys.executable, "-c", EXHAUSTED], capture_output=True, text=True, check=True
    ).stdout
    assert told.startswith("evalai.unreachable machine.descriptors ")
    assert "may not open any more files or connections" in told


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
KEYS = (
    "id",
    "status",
    "challenge_phase",
    "participant_team",
    "submitted_at",
    "codename",
    "labels",
    "creator",
    "created_by",
    "members",
    "username",
    "pk",
    "results",
)
KINDS: tuple[type[Any], ...] = (
    records.Submission,
    records.Challenge,
    records.Phase,
    records.PhaseSplit,
    records.DatasetSplit,
    records.Account,
    records.Page,
    records.HostTeam,
)
READERS: tuple[Callable[[Any], Any], ...] = (
    records.read_message,
    *(partial(records.parse, kind, record="record") for kind in KINDS),
)
SHAPED = st.fixed_dictionaries({}, optional=dict.fromkeys(KEYS, JSON)) | JSON


@given(SHAPED)
@settings(max_examples=150, deadline=None)
def test_no_json_breaks_the_readers(document: Any) -> None:
    """Any JSON is either read or Unintelligible, and no other exception is raised; texts fit into UTF-8."""
    for read in READERS:
        try:
            value = read(document)
        except Unintelligible:
            continue
        repr(value).encode()


@given(
    st.integers(100, 599), st.binary(max_size=40) | JSON.map(lambda v: json.dumps(v).encode()), st.booleans()
)
@settings(max_examples=150, deadline=None)
def test_no_answer_breaks_the_reading_of_failures(status: int, body: bytes, write: bool) -> None:
    """Any status and body give one of our errors or none, with a short printable sentence."""
    error = failure(status=status, headers={}, body=body, what="try", write=write)
    assert error is None or (isinstance(error, NeucoError) and len(error.sentence) < 500)
    if status >= 500:
        assert isinstance(error, Unreachable)
        assert error.applied_unknown == write


# The token


def test_addresses_that_must_not_get_the_token_are_refused(connect: Callable[..., Client]) -> None:
    """Plain http beyond loopback, names and passwords in the address, and nonsense are refused before any call."""
    for server in (
        "http://eval.ai",
        "ftp://eval.ai",
        "eval.ai",
        "https://u:p@eval.ai",
        "https://",
        "http://[::1",
    ):
        with pytest.raises(OrganizerError) as problem:
            connect(server=server)
        assert problem.value.code == "evalai.server_address"
    for server in ("https://eval.ai/", "http://localhost:1", "http://[::1]:1", "http://127.9.9.9"):
        connect(server=server)


@pytest.mark.parametrize("token", ["", "abc", "0" * 39, "a.b", "a.b.c.d", "ä.b.c", "a b.c.d"])
def test_a_token_of_no_known_form_is_refused_at_once(connect: Callable[..., Client], token: str) -> None:
    """A token that is neither 40 hexadecimal digits nor three dotted parts is a fault of the configuration."""
    with pytest.raises(OrganizerError) as problem:
        connect(token=token)
    assert problem.value.code == "evalai.token_form"
    assert token == "" or token not in str(problem.value)


def test_expiry_is_read_from_the_token(sandbox: Sandbox, client: Client, clock: ManualClock) -> None:
    """The end of a JSON web token is read without its key; digits and garbage have none."""
    assert token_expiry(sandbox.token()) == clock.now() + timedelta(days=365)
    assert client.expiry == token_expiry(sandbox.token())
    for payload in (b"{}", b"[]", b'{"exp": "soon"}', b'{"exp": 1e30}', b'{"exp": true}', b"\xff", b"{"):
        middle = base64.urlsafe_b64encode(payload).decode().rstrip("=")
        assert token_expiry(f"a.{middle}.c") is None
    assert token_expiry("0" * 40) is None


def our_frames(error: BaseException) -> str:
    """Render a traceback with the variables of every frame that is not the test's."""
    test = sys._getframe(1).f_code
    seen: list[str] = []
    link: BaseException | None = error
    while link is not None:
        for frame, _ in traceback.walk_tb(link.__traceback__):
            if frame.f_code is not test:
                seen.append(repr(frame.f_locals))
        seen.append(repr(link) + str(link))
        link = link.__cause__ or link.__context__
    return "".join(seen)


def test_no_failure_shows_the_token(
    sandbox: Sandbox, scripted: tuple[str, dict[str, Any]], connect: Callable[..., Client]
) -> None:
    """No error, repr, chained exception or frame variable of a failed call contains the token."""
    url, answer = scripted
    secret = sandbox.token()
    answer.update(status=400, body=b'{"error": "no"}')
    broken = connect(server="http://127.0.0.1:1")
    slow = connect(timeout_s=(1.0, 0.001))
    sandbox.set_faults(FaultPlan(slow_s=0.05, kinds=(Fault.SLOW,), probability=1.0))
    for client in (broken, slow, connect(server=url)):
        with pytest.raises(NeucoError) as problem:
            client.receive()
        assert problem.value.__context__ is None
        shown = our_frames(problem.value) + repr(client) + repr(vars(client))
        assert secret not in shown
        assert secret.split(".")[2] not in shown


@pytest.mark.parametrize(
    "error",
    [
        Unreachable("a", applied_unknown=True),
        Unintelligible("a", applied_unknown=True),
        Throttled("b", retry_after_s=7),
        TokenRefused(reason="blacklisted"),
        Rejected("c", status=400, server_text="t"),
        NotPermitted("d"),
        NotFound("e"),
    ],
)
def test_errors_cross_processes_whole(error: NeucoError) -> None:
    """A pickled error keeps its type, sentence, code and attributes."""
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert vars(again) == vars(error)


def test_time_outs_are_on_every_call(sandbox: Sandbox, connect: Callable[..., Client]) -> None:
    """Each method sends with time-outs, without following redirects, and to the documented addresses."""
    sent: list[tuple[str, str]] = []

    class Watching(requests.Session):
        def request(self, method: str, url: str, **options: Any) -> requests.Response:  # type: ignore[override]
            assert options["timeout"] == (3.0, 4.0)
            assert options["allow_redirects"] is False
            sent.append((method, url.removeprefix(sandbox.url)))
            return super().request(method, url, **options)

    pk = sandbox.submit("Team Alice", "dev", CSV)
    client = connect(session=Watching(), timeout_s=(3.0, 4.0))
    message = client.receive()
    client.submission(pk)
    client.submissions(status="submitted", submitted_after=datetime(2026, 1, 1, tzinfo=UTC))
    client.challenge()
    client.phases()
    client.phase_splits()
    client.dataset_split(51)
    client.set_running(pk)
    client.finish(pk, dev(sandbox), stdout="", result={"q_mean": 1}, split="dev_split")
    client.fail(pk, dev(sandbox), stderr="")
    client.delete_message(message.receipt_handle if message else "")
    assert sent == [
        ("GET", "/api/jobs/challenge/queues/a%20queue.fifo/"),
        ("GET", f"/api/jobs/submission/{pk}"),
        (
            "GET",
            "/api/jobs/challenge/7/submission/?status=submitted&submitted_after=2026-01-01T00%3A00%3A00.000000Z",
        ),
        ("GET", "/api/challenges/challenge/queues/a%20queue.fifo/"),
        ("GET", "/api/challenges/7/phases/"),
        ("GET", "/api/challenges/7/challenge_phase_split"),
        ("GET", "/api/challenges/challenge/create/dataset_split/51/"),
        ("PATCH", "/api/jobs/challenge/7/update_submission/"),
        ("PUT", "/api/jobs/challenge/7/update_submission/"),
        ("PUT", "/api/jobs/challenge/7/update_submission/"),
        ("POST", "/api/jobs/queues/a%20queue.fifo/"),
    ]
